"""Searches on several devices that end before all is found, exactly there."""

import numpy as np
import pytest
from device_graphs import hubs
from fast_graphs import HUGE, beside, chained, lone, pairs, path, shuffled, star, untils
from graphs import complete, kronecker, uniform
from resident_parts import look, resident_driver

from distbfs.engines.base import Until
from distbfs.errors import UsageError

INTERNAL = pytest.mark.parametrize("internal", [True, False], ids=["internal", "ids"])
SOURCES = {
    "path": shuffled(path(20)),
    "kronecker": kronecker(9),
    "star": star(300),
    "hubs": hubs(3, 600),
    "two-blobs": shuffled(chained(complete(50), path(20), complete(60))),
    "tiny": shuffled(beside(uniform(300, 1500), pairs(30), lone(9))),
}
SETTINGS = {
    "auto": {},
    "push": {"direction": "push"},
    "pull": {"direction": "pull", "parents": False},
    "always-mark": {"overrides": {"mark_edges": 0, "pull_edges": HUGE}},
    "pull-early": {"overrides": {"mark_edges": HUGE, "pull_edges": 50, "tile": 8}},
    "mark-then-pull": {"overrides": {"mark_edges": 20, "pull_edges": 400}},
}


@pytest.mark.parametrize("named", SETTINGS)
@INTERNAL
def test_levels_and_targets(device, internal, named):
    """Nothing beyond the last level; the search after it is whole again.

    Half of the graphs are searched by position. Settings and roots take the ends of a
    graph in turns.
    """
    turn = 2 * list(SETTINGS).index(named) + internal
    for k, source in enumerate([*SOURCES.values()][internal::2]):
        parts = (2, 3, 4, 1)[(k + turn) % 4]
        told = SETTINGS[named]
        driver = resident_driver(source, parts, internal_ids=internal, **told)
        at = (k + turn // 2) % 2
        root = int(source.u[0] if at else source.degrees.argmax())
        for until in untils(source.distances(root), root)[(k + turn + 3 * at) % 6 :: 6]:
            look(driver, source, root, until=until)
        look(driver, source, root)
        driver.close()


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_after_every_step(device, parts):
    """Each step is once the last one, also where pulls are late."""
    last = set()
    for source, told in (
        (shuffled(chained(uniform(3000, 45_000), path(4))), {}),
        (shuffled(chained(complete(120), path(5), complete(200), path(3))), {}),
        (
            uniform(2000, 30_000),
            {"overrides": {"mark_edges": HUGE, "pull_edges": HUGE}},
        ),
        (uniform(2000, 30_000), {"overrides": {"mark_edges": 0, "pull_edges": HUGE}}),
        (shuffled(beside(path(23), complete(12))), {"direction": "pull"}),
    ):
        driver = resident_driver(source, parts, **told)
        root = int(source.degrees.argmax()) if source.n > 60 else int(source.u[0])
        levels = source.distances(root)
        for depth in range(1, levels.max() + 1):
            target = int(np.flatnonzero(levels == depth)[-1])
            until = Until(depth)
            if (depth + parts) % 3 == 1:
                look(driver, source, root, until=until)
            if (depth + parts) % 3 == 2:
                look(driver, source, root, until=Until(None, np.array([target])))
            records = look(driver, source, root, until=until, records=True).records
            assert [x["found"] for x in records] == np.bincount(
                levels[(levels > 0) & (levels <= depth)], minlength=depth + 1
            )[1:].tolist()
            last.add(records[-1]["direction"])
    assert last == {"push-block", "push", "push-marking", "pull", "pull-last"}


@INTERNAL
def test_targets_of_several_parts(device, internal):
    source = SOURCES["tiny"]
    root = int(source.degrees.argmax())
    levels = source.distances(root)
    driver = resident_driver(source, 3, internal_ids=internal)
    reached = np.flatnonzero(levels >= 0)
    for depth in range(1, levels.max() + 1):
        some = reached[levels[reached] <= depth]
        targets = [some[some % 3 == part][-2:] for part in range(3)]
        look(driver, source, root, until=Until(None, np.concatenate(targets)))
    lonely = int(np.flatnonzero(source.degrees == 0)[0])
    for target in (lonely, int(np.flatnonzero(levels < 0)[-1])):
        look(driver, source, root, until=Until(None, np.array([root, target])))
    for until in untils(source.distances(lonely), lonely):
        look(driver, source, lonely, until=until)


def test_signed_bytes_and_ints(device):
    source = path(140)
    driver = resident_driver(source, 2)
    for depth in (99, 125, 127, 139):
        found = look(driver, source, 0, until=Until(depth))
        kind = np.int8 if depth <= 126 else np.int32
        assert [level.dtype for level in found.level] == [kind] * 2
        assert [parent.dtype for parent in found.parent] == [np.int32] * 2


def test_targets_that_are_no_vertices_are_refused(device):
    source = SOURCES["path"]
    driver = resident_driver(source, 2)
    for wrong in (-1, 20):
        with pytest.raises(UsageError, match=f"target is {wrong}; allowed: 0 to 19"):
            driver.search(3, until=Until(None, np.array([1, wrong])))
    look(driver, source, 3)
