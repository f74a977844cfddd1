"""Long searches on devices that end where somebody says so, and those after them."""

import time

import numpy as np
import pytest
from bit_searches import BitSearches
from device_graphs import HostGraph
from device_problems import device_problem, run_problem
from fast_graphs import fault, path, shuffled
from graphs import check_search
from resident_parts import devices_of, look, parts_here, resident_driver
from sessions import open_tuples

from distbfs.engines.cuda.xbfs.search import FastSearch
from distbfs.errors import SearchStopped
from distbfs.search.choose import Request

pytestmark = pytest.mark.solitary

LONG = path(200_000)
WAYS = {
    "cluster": {},
    "push": {"direction": "push"},
    "pull": {"direction": "pull"},
}


LATER = (5e-3, 20e-3, 80e-3, 320e-3)  # seconds


class Later:
    """Says yes some seconds after it was first asked."""

    def __init__(self, seconds=LATER[0]):
        self.seconds, self.ends = seconds, None

    def __call__(self):
        self.ends = self.ends or time.perf_counter() + self.seconds
        return time.perf_counter() >= self.ends


def never():
    return False


def timed(work, *arguments, **options):
    """Return (what came out, seconds)."""
    began = time.perf_counter()
    return work(*arguments, **options), time.perf_counter() - began


def stopped(search, *arguments, **options):
    """Return (the level that a search was stopped at, seconds).

    Devices that are busy with other tests may still be at level 0: they get longer.
    """

    def work(later):
        with pytest.raises(SearchStopped, match=r"stopped at level \d+$") as told:
            search(*arguments, stop=Later(later), **options)
        return int(str(told.value).rpartition(" ")[2])

    for later in LATER:
        level, seconds = timed(work, later)
        if level:
            break
    return level, seconds


@pytest.mark.parametrize("in_ids", [True, False], ids=["ids", "numbers"])
@pytest.mark.parametrize("named", WAYS)
def test_one_device(named, in_ids):
    made = HostGraph(LONG)
    search = FastSearch(made.graph, in_ids=in_ids, **WAYS[named])
    assert (search._cluster is not None) == (named == "cluster")
    found, whole = timed(search.search, 0)
    assert fault(made, 0, found, in_ids=in_ids) is None
    middle = made.source.n // 2 - 100
    for root in (0, middle, 0):
        level, spent = stopped(search.search, root)
        assert 0 < level < made.source.n // 2
        assert spent < whole
    for root in (0, middle):
        found = search.search(root, stop=never)
        assert fault(made, root, found, in_ids=in_ids) is None


@pytest.mark.parametrize("internal", [True, False], ids=["internal", "ids"])
def test_resident(internal):
    for parts in parts_here():
        driver = resident_driver(
            LONG, parts, devices=devices_of(parts), internal_ids=internal
        )
        found, whole = timed(look, driver, LONG, 0)
        for _ in range(3):
            level, spent = stopped(driver.search, 0)
            assert 0 < level < found.levels - 1
            assert spent < whole
        look(driver, LONG, 0, stop=never)
        look(driver, LONG, 5000)
        driver.close()


def test_bit_parallel_searches():
    source = shuffled(path(60_000))
    searches = BitSearches(HostGraph(source).graph)
    sources = np.arange(0, 128, 9)
    batch = searches.search(sources)
    for _ in range(2):
        level, _ = stopped(searches.search, sources)
        assert 0 < level < batch.deepest
    levels = searches.search(sources, stop=never).levels_by_id().get()
    for row, root in zip(levels, sources.tolist(), strict=True):
        np.testing.assert_array_equal(row, source.distances(root))


def test_a_block_for_each_search():
    source = shuffled(path(60_000))
    made, problem, roots = HostGraph(source), device_problem("paths"), np.arange(300)
    for stop in (Later(), never):
        ways = {"levels": True, "stop": stop}
        if stop is never:
            found, _ = run_problem(problem, made.graph, roots[:3], **ways)
            wanted = [source.distances(int(root)) for root in roots[:3]]
            np.testing.assert_array_equal(found["level"].get(), np.stack(wanted))
            continue
        with pytest.raises(SearchStopped, match="of 300 sources"):
            run_problem(problem, made.graph, roots, **ways)


@pytest.mark.parametrize("engine", ["xbfs", "bfs4k", "layer"])
def test_sessions(engine):
    source = path(40_000) if engine == "layer" else LONG  # which looks at all vertices
    session = open_tuples(source, engine=engine, request=Request(devices=1))
    level, _ = stopped(session.search, 0)
    assert 0 < level < source.n - 1
    check_search(source, 0, *session.search(0, stop=never).to_numpy())
    session.close()
