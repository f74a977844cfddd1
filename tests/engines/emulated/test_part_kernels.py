"""Searches of parts with the kernels run on the CPU."""

import numpy as np
import pytest
from device_parts import LARGE, check, device_parts, driver_of, joined
from graphs import Tuples, kronecker, some_roots
from part_graphs import GRAPHS

from distbfs.engines.base import Until
from distbfs.engines.cuda.pan import search as part
from distbfs.graph.csr import CSR


@pytest.fixture(autouse=True)
def small(device, monkeypatch):
    """Few blocks: each of their threads is switched to by the CPU."""
    monkeypatch.setattr(part, "BLOCKS", dict.fromkeys(part.BLOCKS, 1))


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("parts", [1, 2, 3])
def test_levels_and_parents(device, name, parts):
    source = GRAPHS[name]
    for k, threshold in enumerate((0, 4, LARGE)):
        driver = driver_of(device_parts(source, parts, threshold=threshold))
        check(driver, source, some_roots(source, 2)[(k + parts) % 2])


@pytest.mark.parametrize("direction", ["push", "pull"])
def test_directions(device, direction):
    for name in ("kronecker", "hub", "random"):
        source = GRAPHS[name]
        driver = driver_of(
            device_parts(source, 2, threshold=5), direction=direction, parents=True
        )
        for root in some_roots(source, 3):
            check(driver, source, root)


def test_records_count_every_edge_of_a_push(device):
    source = GRAPHS["kronecker"]
    driver = driver_of(device_parts(source, 2, threshold=6), direction="push")
    root = int(np.argmax(source.degrees))
    found = check(driver, source, root, records=True)
    reached = source.distances(root) >= 0
    checks = sum(sum(record["checks"].values()) for record in found.records)
    assert checks == source.degrees[reached].sum()


def test_levels_only(device):
    source = GRAPHS["kronecker"]
    driver = driver_of(device_parts(source, 2, threshold=6), parents=False)
    assert check(driver, source, 1).parent == [None, None]


def test_ids_of_64_bits(device):
    """Offsets of 64 bits give the same."""
    source = GRAPHS["kronecker"]
    parts = device_parts(source, 2, threshold=6)
    for one in parts:
        one.dd = CSR(one.dd.offsets.astype(np.uint64), one.dd.columns)
    driver = driver_of(parts)
    for root in some_roots(source, 3):
        check(driver, source, root)


@pytest.mark.parametrize("parts", [1, 2])
def test_many_unvisited_vertices_of_a_word(device, parts):
    """Pulls look at first columns, and at rows where those are unvisited."""
    source = kronecker(11)
    for threshold in (3, 20):
        placed = device_parts(source, parts, threshold=threshold)
        driver = driver_of(placed, direction="pull")
        check(driver, source, int(np.argmax(source.degrees)), records=True)
        check(driver_of(placed), source, some_roots(source, 1)[0])


@pytest.mark.parametrize("parts", [1, 3])
def test_searches_that_end_early(device, parts):
    """No array holds a level or parent beyond the last one that is wanted."""
    for name in ("kronecker", "hub", "grid"):
        source = GRAPHS[name]
        for threshold in (0, 4, LARGE):
            runner = driver_of(device_parts(source, parts, threshold=threshold))
            root = int(np.argmax(source.degrees))
            wanted = source.distances(root)
            far, lost = int(wanted.argmax()), np.flatnonzero(wanted < 0)[:1].tolist()
            near = int(np.where(wanted == 1, source.degrees, LARGE).argmin())
            hub = int(np.where(source.degrees > 4, wanted, -1).argmax())
            for depth, ids in (
                (1, []),
                (None, [root]),
                (None, [far]),
                (None, [near, hub]),  # one of them a delegate, in some
                (2, [far, *lost]),
            ):
                found = runner.search(root, until=Until(depth, np.array(ids, int)))
                last = wanted.max() if depth is None else min(depth, wanted.max())
                if depth is None:
                    last = wanted[ids].max()
                level, parent = (
                    joined(x, source.n) for x in (found.level, found.parent)
                )
                capped = np.where(wanted <= last, wanted, -1)
                np.testing.assert_array_equal(level, capped)
                np.testing.assert_array_equal(parent < 0, capped < 0)
                assert found.levels == last + 1


def test_a_target_without_neighbours(device):
    source = Tuples(70, np.array([1, 2]), np.array([2, 3]))
    runner = driver_of(device_parts(source, 2, threshold=4))
    for root, target, levels in ((9, 9, 1), (1, 9, 3), (1, 2, 2), (9, 1, 1)):
        found = runner.search(root, until=Until(None, np.array([target])))
        assert found.levels == levels


def test_a_root_without_neighbours(device):
    source = Tuples(70, np.array([1, 2]), np.array([2, 3]))
    driver = driver_of(device_parts(source, 2, threshold=4))
    for root in (9, 2, 69, 9):
        check(driver, source, root)


class Entered:
    """A device that tells whether it is the current one."""

    depth = 0

    def __enter__(self):
        self.depth += 1

    def __exit__(self, *error):
        self.depth -= 1


def test_the_device_of_the_exchange_is_current_when_parts_offer(device, monkeypatch):
    source = GRAPHS["kronecker"]
    driver = driver_of(device_parts(source, 2, threshold=6))
    seen = []
    for search in driver._searches:
        search._device = Entered()

    def offered(name):
        start = getattr(driver.exchange, name)

        def begin(arrays):
            seen.append([search._device.depth for search in driver._searches])
            return start(arrays)

        monkeypatch.setattr(driver.exchange, name, begin)

    offered("start_normals")
    offered("start_masks")
    check(driver, source, int(np.argmax(source.degrees)))
    assert seen
    assert not np.any(seen)
