"""Levels of pairs by edge lookups: those that are known are right, and most are."""

from unittest.mock import patch

import numpy as np
import pytest
from graphs import (
    NAMED,
    Tuples,
    build,
    grid,
    kronecker,
    last_in_common,
    random_tuples,
    sources,
    uniform,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from wholes import all_levels, whole

from distbfs.errors import UsageError
from distbfs.multisearch import lookups
from distbfs.multisearch.lookups import MOST, OPEN, Lookups
from distbfs.store.whole import NO_DELEGATES

TRIED = 32  # as in lookups.c


def looked_up(part, sources, most=MOST):
    """Levels of all vertices from some, int32 [k, n]; none are given up."""
    search, out, n = Lookups(part, 2, most), [], part.local_count
    rows, columns = np.divmod(np.arange(len(sources) * n), n)
    ends = part.numbers[sources][rows], part.numbers[columns]
    with patch.object(lookups, "ALONE", 0):  # else one thread looks up so few
        for low in range(0, len(rows), TRIED):
            search._view.tried = search._view.open = 0
            out.append(search.levels(*(x[low : low + TRIED].copy() for x in ends)))
    return np.concatenate(out).reshape(len(sources), n)


def known_are_right(part, wanted, most=MOST, step=1):
    """Return which levels are known, of every step-th source."""
    wanted = wanted[::step]
    levels = looked_up(part, np.arange(part.local_count)[::step], most)
    known = levels != OPEN
    np.testing.assert_array_equal(levels[known], wanted[known])
    return known


@pytest.mark.parametrize("name", NAMED)
def test_all_pairs_to_level_five(name):
    """For level 5 only the first columns of a row are looked up."""
    source, step = NAMED[name], 1 + NAMED[name].n // 100
    wanted = all_levels(source)
    known = known_are_right(whole(source), wanted, 1 << 20, step)
    last = 5 if source.degrees.max(initial=0) <= 32 else 4
    wanted = wanted[::step]
    assert known[(wanted >= 0) & (wanted <= last)].all()
    assert not known[wanted > 5].any()


def test_all_columns_count():
    source = last_in_common(50)
    assert source.distances(2)[3] == 4
    assert known_are_right(whole(source), all_levels(source), 1 << 20)[2, 3]


@settings(max_examples=60, deadline=None)
@given(source=sources(), directed=st.booleans(), most=st.sampled_from((0, 3, 20, MOST)))
def test_any_graph(source, directed, most):
    known_are_right(whole(source, directed), all_levels(source, directed), most)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("block", [16, 1 << 15])
def test_numbers_by_block(block, directed):
    """Rows ascend by degree, numbers do not."""
    source = random_tuples(250, 700, seed=8)
    options = {"directed": True} if directed else {}
    [part], _ = build(source, 1, threshold=NO_DELEGATES, order_block=block, **options)
    known_are_right(part, all_levels(source, directed))


def test_a_graph_with_hubs_needs_no_more():
    """All but a few of many pairs, none of them twice."""
    part = whole(kronecker(12))
    rng = np.random.default_rng(2)
    ends = part.numbers[rng.integers(0, part.local_count, (2, 5000))]
    assert (Lookups(part, 2).levels(*ends) == OPEN).mean() < 0.01


def test_they_are_given_up_where_they_do_not_help():
    """On a grid most pairs are far apart: later calls look nothing up."""
    part = whole(grid(30))
    search, near = Lookups(part, 1), part.numbers[[0, 0, 1]]
    assert search.levels(near, near).tolist() == [0, 0, 0]
    far = np.full(64, part.numbers[0]), np.full(64, part.numbers[899])
    assert (search.levels(*far) == OPEN).all()
    assert search.levels(near, near).tolist() == [OPEN] * 3


@pytest.mark.parametrize("row", [0, 1, 20, 39])
def test_rows_in_another_order_are_refused(row):
    part = whole(uniform(40, 300))
    Lookups(part, 1)
    columns = part.nn.columns.copy()
    here = slice(*part.nn.offsets[row : row + 2])
    columns[here] = columns[here][::-1]
    rows = type(part.nn)(part.nn.offsets, columns)
    with pytest.raises(UsageError, match="not in the order of their degrees"):
        Lookups(part.with_rows({**part.subgraphs, "nn": rows}), 1)


def test_no_pairs_and_no_edges():
    part = whole(Tuples(4, [1, 2], [1, 2]))
    none = np.zeros(0, np.uint32)
    assert Lookups(part, 2).levels(none, none).shape == (0,)
    ends = part.numbers[[0, 0]], part.numbers[[0, 3]]
    assert Lookups(part, 2).levels(*ends).tolist() == [0, -1]
