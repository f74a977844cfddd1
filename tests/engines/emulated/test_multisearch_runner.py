"""The CUDA runner of many searches, its kernels run on the CPU: all applications."""

import re
import runpy
from fractions import Fraction
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
import throwaway
from graphs import NAMED, NO_VERTEX, Tuples, build, grid, kronecker, random_tuples
from wholes import betweenness, closeness, eccentricity, harmonic, levels, whole

import distbfs
from distbfs import registry
from distbfs.device import cuda
from distbfs.errors import OutOfMemory, SearchStopped, TooDeep, UsageError
from distbfs.multisearch.apps.diameter import diameter
from distbfs.multisearch.apps.khop import khop
from distbfs.multisearch.apps.reachability import reachability
from distbfs.multisearch.base import RunOptions
from distbfs.multisearch.cuda_bits import SEARCHES
from distbfs.multisearch.domain_bits import DomainBitSearches
from distbfs.multisearch.problem import Problem, State
from distbfs.plan import pull_shares
from distbfs.ranks.world import SoloWorld
from distbfs.search.choose import choose_searcher

DOCS = Path(__file__).resolve().parents[3] / "docs"
LARGER = ("kronecker", "path", "wide-star", "grid", "binary-tree")
SMALL = {
    **{name: source for name, source in NAMED.items() if name not in LARGER},
    "kronecker": kronecker(6),
    "random": random_tuples(130, 150, 4),
    "grid": grid(6),
}
FROM = Problem("from", (State("distance_from", "int64", "vertex"),), bits=True)
METHODS = ("", "hybrid", "warp", "work-efficient", "edge-parallel")


@pytest.fixture
def device(device, monkeypatch):
    """The emulator has no properties to tell."""
    monkeypatch.setattr(cuda, "describe", dict)
    return device


part_of = cache(whole)


def searcher(source, engine, *, directed=False, **options):
    kind, _ = choose_searcher(engine)
    part = part_of(source, directed)
    return kind(SoloWorld(), part, RunOptions(**options))


def both(source, work, *, directed=False, **options):
    """What some work finds on the device, and by the reference."""
    return (
        work(searcher(source, "xbfs", directed=directed, **options)),
        work(searcher(source, "reference", directed=directed)),
    )


def applications(on):
    """Return what some applications find from some vertices."""
    some = np.random.default_rng(3).permutation(on.n)[:7].astype(np.int64)
    return [
        levels(on, some, "int16"),
        closeness(on, some),
        harmonic(on, some),
        on.run(FROM, some)["distance_from"],
        eccentricity(on, some)[0],
        khop(on, some, 2),
        reachability(on, np.stack([some, some[::-1]], axis=1)),
    ]


def sums(on):
    """Return betweenness from all vertices, from one, and from none."""
    every = np.arange(on.n)
    return [betweenness(on, some) for some in (every, every[:1], every[:0])]


@cache
def by_reference(work, source, directed):
    return work(searcher(source, "reference", directed=directed))


def compare(work, method, directed, rtol=1e-12):
    """Half of the graphs each, all by two methods or more and in both directions."""
    turn = (METHODS.index(method) + directed) % 2
    for name, source in [*SMALL.items()][turn::2]:
        on = searcher(source, "xbfs", method=method, directed=directed)
        wanted = by_reference(work, source, directed)
        for values, expected in zip(work(on), wanted, strict=True):
            np.testing.assert_allclose(values, expected, rtol=rtol, err_msg=name)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("method", "directed"),
    [*((method, False) for method in METHODS), ("", True), ("hybrid", True)],
)
def test_applications(device, method, directed):
    compare(applications, method, directed)


@pytest.mark.parametrize(
    ("method", "directed"),
    [*((method, False) for method in METHODS[:3]), ("", True), ("edge-parallel", True)],
)
def test_betweenness(device, method, directed):
    compare(sums, method, directed, rtol=1e-9)


@pytest.mark.parametrize("share", [Fraction(1, 1 << 40), 1 << 40, pull_shares.MANY])
def test_directions_of_directed_graphs(device, monkeypatch, share):
    """All pushed, all pulled; the last level may have no edges out; nor the first."""
    monkeypatch.setattr(pull_shares, "MANY", share)
    chain, one = Tuples(5, [0, 1, 3], [1, 2, 0]), Tuples(3, [0, 0], [1, 2])
    for source in (chain, one, SMALL["random"], SMALL["kronecker"]):
        some = np.arange(source.n)[::2]
        for work in (
            lambda s, some=some: levels(s, some, "int16"),
            lambda s, some=some: khop(s, some, None),
        ):
            found, wanted = both(source, work, directed=True)
            np.testing.assert_array_equal(found, wanted)


def test_diameter(device):
    for name, source in SMALL.items():
        found, wanted = both(source, diameter)
        assert found.pop("searches") <= source.n
        wanted.pop("searches")
        assert found == wanted, name


def test_every_dtype_and_no_vertices(device):
    line = NAMED["path"]
    for dtype in ("int8", "int16", "int32"):
        for k in (0, 1, 3):
            some = np.arange(k)
            found, wanted = both(
                random_tuples(40, 50, 1),
                lambda s, some=some, d=dtype: levels(s, some, d),
            )
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, wanted)
    if line.n > 127:
        with pytest.raises(TooDeep):
            levels(searcher(line, "xbfs"), np.arange(1), "int8")
    assert levels(searcher(NO_VERTEX, "xbfs"), np.arange(0), "int8").shape == (0, 0)


def test_refusals(device):
    source = kronecker(6)
    some = np.arange(3)
    plain = Problem("plain", (State("x", "int64", "search"),), {"init": len})
    with pytest.raises(UsageError, match="has no CUDA text"):
        searcher(source, "xbfs").run(plain, some)
    with pytest.raises(UsageError, match="method 'x' of engine xbfs; allowed: bits"):
        searcher(source, "xbfs", method="x").run(plain, some)
    wrong = Problem("wrong", (State("x", "int64", "search"),), {}, "void init(int) {}")
    with pytest.raises(UsageError, match="problem wrong cannot run with method bits"):
        searcher(source, "xbfs", method="bits").run(wrong, some)
    with pytest.raises(SearchStopped, match="stopped after 0 of 3"):
        levels(searcher(source, "xbfs", stop=lambda: True), some, "int8")
    delegates, _ = build(source, 1, threshold=2)
    with pytest.raises(UsageError, match="one part without delegates"):
        choose_searcher("xbfs")[0](SoloWorld(), delegates[0], RunOptions())


def test_turns_where_memory_does_not_last(device, monkeypatch):
    """Fewer sources at once; sums by vertex count each source once."""
    source, every, most = SMALL["random"], np.arange(130), SEARCHES
    states = (*FROM.state, State("level", "int16", "pair"))
    problem = Problem("both", states, bits=True)
    run, sizes = DomainBitSearches.run, []

    def scarce(self, sources, wanted):
        sizes.append(len(sources))
        run(self, sources, wanted)
        if len(sources) > most:
            raise OutOfMemory("not enough")

    monkeypatch.setattr(DomainBitSearches, "run", scarce)
    on = searcher(source, "xbfs")
    results = on.run(problem, every)
    wanted = searcher(source, "reference").run(problem, every)
    for name in wanted.values:
        np.testing.assert_array_equal(results[name], wanted[name])
    assert sizes == [130, SEARCHES, 2]
    most = 0
    with pytest.raises(OutOfMemory, match="not enough"):
        searcher(source, "xbfs", batch=9).run(problem, every)
    assert sizes[-2:] == [2, 9]


@pytest.mark.parametrize("method", METHODS[1:])
def test_an_application_of_one_file(device, method, tmp_path, monkeypatch):
    """Its CUDA text gives what its functions give."""
    (tmp_path / "one_file.py").write_text(throwaway.APP)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(registry.APPS, "reach", "one_file:APP")
    graph = distbfs.Graph.from_edges([0, 1, 1, 3], [1, 2, 2, 4], n=6)
    ask = partial(distbfs.search_many, graph, "reach", [0, 3, 5], times=3)
    assert ask("xbfs", method=method)["edges"].tolist() == [12, 6, 0]
    assert ask("reference")["edges"].tolist() == [12, 6, 0]


def test_the_example_of_the_pages(device):
    """Its CUDA text gives what its functions give."""
    text = (DOCS / "howto" / "many_searches.md").read_text(encoding="utf-8")
    [code] = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    names = {}
    exec(compile(code, "many_searches.md", "exec"), names)
    found = distbfs.search_many(names["graph"], names["problem"], [0, 4], engine="xbfs")
    for name in ("level", "paths"):
        np.testing.assert_array_equal(found[name], names["found"][name])


def test_the_problem_among_the_examples(request):
    """Its CUDA text gives what its function gives."""
    path = DOCS / "examples" / "odd_cycles.py"
    names = runpy.run_path(str(path))
    request.getfixturevalue("device")  # the program itself runs without
    graph = names["wrong"]
    cycles = [
        distbfs.search_many(graph, names["problem"], [0, 210, 399], engine)["cycle"]
        for engine in ("reference", "xbfs")
    ]
    np.testing.assert_array_equal(*cycles)
    assert cycles[0][0] == 9
