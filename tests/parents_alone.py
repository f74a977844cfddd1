"""What a result without levels must tell, of a search by any engine."""

from itertools import pairwise

import numpy as np
import pytest
from graphs import check_search, levels_by, some_roots

from distbfs.errors import UsageError

NEEDS_LEVELS = {
    "level_counts": (),
    "frontier": (1,),
    "to_dict": (),
    "path_counts": (),
    "edges_within": (),
    "predecessors_to": (0,),
    "path_count_to": (0,),
    "all_paths_to": (0,),
}


def check_parents(found, source):
    """Assert that all that a result without levels tells is right; return levels."""
    level, parent = found.to_numpy()
    assert (level, found.has_levels, found.has_parents) == (None, False, True)
    wanted = check_search(source, found.root, levels_by(parent), parent)
    assert (found.reached, found.depth) == ((wanted >= 0).sum(), wanted.max())
    assert found.nedge == source.ends[wanted >= 0].sum() // 2
    ids = np.array([0, source.n - 1, source.n // 3, 0])
    none, above = found.at(ids)
    assert none is None
    np.testing.assert_array_equal(above, parent[ids])
    assert all(one is None for one, _ in found.shards)
    far = int(wanted.argmax())
    way = found.path_to(far)
    assert (len(way), way[0], way[-1]) == (wanted.max() + 1, found.root, far)
    assert all(source.matrix[pair] for pair in pairwise(way))
    child = np.flatnonzero(wanted > 0)
    tree = found.tree()
    if found.order is not None:  # that of the queue
        tree = tree[np.argsort(tree[:, 1])]
    np.testing.assert_array_equal(tree.T, [parent[child], child])
    for name, values in NEEDS_LEVELS.items():
        with pytest.raises(UsageError, match="the search was made without levels"):
            getattr(found, name)(*values)
    return wanted


def check_session(session, source):
    """Search from some vertices; what is kept is right after the next search, too."""
    for root in some_roots(source, 3):
        found = session.search(root).keep()
        session.search(0)
        check_parents(found, source)
    with pytest.raises(UsageError, match="without levels and without parents"):
        session.search(0, parents=False)
