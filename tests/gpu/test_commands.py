"""The commands with engines of a device, on graphs that live there."""

import contextlib
import io
import json

import h5py
import numpy as np
import pytest
from graphs import Tuples, check_search, random_tuples

from distbfs.benchmark import graph500 as benchmark
from distbfs.cli import main
from distbfs.cli import trials as probing
from distbfs.device import cuda
from distbfs.options import BuildOptions
from distbfs.ranks.world import SoloWorld, run_guarded
from distbfs.search.result import Result as Found
from distbfs.search.result_file import ResultFile
from distbfs.store.write import write_graph

GRAPH = random_tuples(150, 260, seed=5)
SOURCES = [0, 3, 77, int(GRAPH.degrees.argmax())]
ALONE = int(GRAPH.degrees.argmin())
ONE = ("--devices", 1)
XBFS = ("--engine", "xbfs", *ONE)
PAPER = ("--engine", "xbfs-paper")
PAN = ("--engine", "pan", *ONE)
FRONTIERS = ("auto", "scan-free", "single-scan", "no-queue", "double-scan")
BALANCES = ("static", "thread", "warp", "donation")
COMMON = [
    (),
    ("--internal-ids",),
    ("--no-parents",),
    ("--internal-ids", "--no-parents"),
    ("--direction", "push"),
    ("--direction", "pull"),
]
VARIANTS = [
    *((*XBFS, *more) for more in COMMON),
    *((*PAPER, *more) for more in COMMON),
    *((*PAPER, "--frontier", x, *more) for x in FRONTIERS for more in COMMON[:3]),
    *(
        (*PAPER, "--balance", x, *more)
        for x in BALANCES
        for more in ((), ("--no-async",))
    ),
    (*PAPER, "--frontier", "scan-free", "--direction", "push"),
    (*PAPER, "--frontier", "double-scan", "--direction", "pull", "--no-async"),
]


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def values(self):
        assert self.code == 0, self.err
        return json.loads(self.out)


def here(*words):
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    words = [str(word) for word in words]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run_guarded(None, lambda: main.run(words))
    return Result(code, out.getvalue(), err.getvalue())


def options(sources):
    return [word for source in sources for word in ("--source", source)]


def words_of(*words):
    return pytest.param(words, id=" ".join(map(str, words)) or "-")


# graph500


@pytest.mark.parametrize("more", [words_of(*x) for x in VARIANTS])
def test_benchmark(more):
    words = ("graph500", "--scale", 9, "--roots", 4, "--json", *more)
    told = here(*words).values
    assert told["validated"] is True
    assert (
        told["result"]
        == f"levels {'only' if '--no-parents' in more else 'and parents'}"
    )
    assert told["ids"] == ("internal" if "--internal-ids" in more else "input")
    search = told["search"]
    assert search["engine"] == more[1]
    assert search["method"] == ("paper" if more[1] == "xbfs-paper" else "fast")
    assert search["mode"] == "resident"
    assert search["device"]
    assert search["exchange"] == "none"
    assert search["internal_ids"] == ("--internal-ids" in more)
    assert told["harmonic_mean_TEPS_by_wall"] < told["harmonic_mean_TEPS"]
    assert told["construction_time"] > 0
    assert told["graph_generation"] > 0
    for one in told["searches"]:
        assert 0 < one["time"] < one["wall_time"]


BETWEEN = [
    (("--engine", "pan"), "pan", 1, ""),
    (("--engine", "pan", "--parts", 3), "pan", 3, "--parts"),
    (("--engine", "pan", "--no-parents"), "pan", 1, ""),
    (("--engine", "pan", "--direction", "pull"), "pan", 1, ""),
    (("--engine", "xbfs", "--parts", 3), "xbfs", 3, "--parts"),
    (("--engine", "xbfs", "--parts", 3, "--no-parents"), "xbfs", 3, "--parts"),
    (("--engine", "xbfs", "--parts", 3, "--direction", "pull"), "xbfs", 3, "--parts"),
    (("--parts", 2), "xbfs", 2, "--parts"),
    (("--threshold", 4), "xbfs", 1, "--threshold"),
    (("--uniquify",), "pan", 1, "uniquify"),
    (("--local-all2all", "--parts", 2), "xbfs", 2, "--parts"),
    (("--dd-factors", 1, 1), "pan", 1, "dd"),
]


@pytest.mark.parametrize(("more", "engine", "parts", "asked"), BETWEEN)
def test_benchmark_between_domains(more, engine, parts, asked):
    """Parts with delegates, some on one device, in one process."""
    done = here("graph500", "--scale", 9, "--roots", 4, "--json", *ONE, *more)
    told = done.values
    assert (told["validated"], told["parts"]) == (True, parts)
    search = told["search"]
    assert (search["engine"], search["method"]) == (engine, "parts")
    assert (search["mode"], search["exchange"]) == ("stepwise", "host")
    name = cuda.describe()["device"]
    line = f"distbfs: engine {engine} (parts), {name}, stepwise, exchange host; "
    assert done.err.startswith(line)
    assert done.err.endswith("one rank\n")
    assert not asked or f"{asked} is " in done.err
    for one in told["searches"]:
        assert 0 < one["time"] < one["wall_time"]


def waits(*case):
    """A case whose devices wait for each other."""
    return pytest.param(*case, marks=pytest.mark.alone)


def need_two_devices():
    if int(cuda.cupy().cuda.runtime.getDeviceCount()) < 2:
        pytest.skip("needs 2 devices")


@pytest.mark.parametrize(
    ("more", "engine", "parts", "why"),
    [
        ((), "xbfs", 1, "auto: one device searches alone, as 4096 vertices are below"),
        waits(("--domain", 2), "xbfs", 2, "auto: 2 devices map each other's memory"),
        (("--domain", 1), "xbfs", 2, "domains of one device were requested; one rank"),
        (("--engine", "pan"), "pan", 2, "one rank"),
        waits(("--engine", "xbfs", "--domain", 2), "xbfs", 2, "2 devices map each"),
    ],
)
def test_benchmark_on_two_devices(more, engine, parts, why):
    need_two_devices()
    words = ("graph500", "--scale", 12, "--roots", 4, "--json", "--devices", 2)
    done = here(*words, *more)
    assert done.values["validated"] is True
    assert done.values["parts"] == parts
    assert done.values["search"]["engine"] == engine
    assert f"; {why}" in done.err


def test_text_of_the_report():
    done = here("graph500", "--scale", 10, "--internal-ids", *XBFS)
    assert done.code == 0, done.err
    assert done.err.startswith("distbfs: engine xbfs (fast), ")
    for text in (
        "NBFS:                           64\n",
        "# result:                       levels and parents\n",
        "# ids:                          results in internal ids, not those of the",
        "# harmonic_mean_TEPS by wall:   ",
        "# device:                       ",
        "# device memory:                ",
        "# CUDA driver:                  ",
        "# time:                         device events around each search, of the slo",
    ):
        assert text in done.out
    assert all(line[31] == " " for line in done.out.splitlines())


def test_the_same_roots_and_edges_as_on_the_host():
    words = ("graph500", "--scale", 10, "--seed", 5, "--json", "--engine")
    runs = [here(*words, name).values for name in ("xbfs", "openmp", "reference")]
    pairs = [[(x["root"], x["nedge"]) for x in run["searches"]] for run in runs]
    assert pairs[0] == pairs[1] == pairs[2]
    assert runs[1]["harmonic_mean_TEPS_by_wall"] is None


def test_auto_takes_the_device():
    words = ("graph500", "--scale", 8, "--roots", 2, *ONE)
    name = cuda.describe()["device"]
    done = here(*words)
    assert done.err == (
        f"distbfs: engine xbfs (fast), {name}, resident, exchange none; auto: there is "
        "a CUDA device\n"
    )
    done = here(*words, "--engine", "openmp")
    assert done.err.startswith("distbfs: engine openmp (")
    assert "auto" not in done.err


def test_an_engine_that_was_named_needs_no_why():
    done = here("graph500", "--scale", 8, "--roots", 2, *XBFS)
    name = cuda.describe()["device"]
    assert done.err == (
        f"distbfs: engine xbfs (fast), {name}, resident, exchange none\n"
    )


def test_little_memory_for_keys():
    words = ("graph500", "--scale", 12, "--memory", 1e-4, "--roots", 3, "--json")
    assert here(*words, *XBFS).values["validated"] is True


def test_results_in_batches_and_alone(monkeypatch):
    for room in (0, 20000):
        monkeypatch.setattr(benchmark, "MOST_BYTES", room)
        told = here("graph500", "--scale", 10, "--roots", 7, "--json", *XBFS).values
        assert told["NBFS"] == 7
        assert told["validated_together"] in ({1} if room == 0 else range(2, 7))


def test_skipped_validation():
    words = ("graph500", "--scale", 8, "--skip-validation", "--json", *XBFS)
    assert here(*words).values["validated"] is False


@pytest.mark.parametrize("more", [XBFS, PAN])
def test_wrong_levels_are_found(monkeypatch, more):
    keep = Found.keep

    def wrong(self):
        kept = keep(self)
        kept.shards[0][0][:] = 3
        return kept

    monkeypatch.setattr(Found, "keep", wrong)
    done = here("graph500", "--scale", 8, "--roots", 2, *more)
    assert (done.code, done.out) == (1, "")
    assert "no results printed for invalid run: " in done.err


@pytest.mark.parametrize("engine", ["xbfs", "xbfs-paper"])
def test_level_records(tmp_path, engine):
    path = tmp_path / "levels.jsonl"
    words = ("graph500", "--scale", 8, "--roots", 3, "--records", path, "--json")
    told = here(*words, "--engine", engine).values
    records = [json.loads(line) for line in path.read_text().splitlines()]
    roots = [search["root"] for search in told["searches"]]
    assert list(dict.fromkeys(record["root"] for record in records)) == roots


# stores


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Stores of the graph: in 1 and 3 parts, with delegates, permuted, by degree."""
    folder = tmp_path_factory.mktemp("stores")
    kinds = {
        "one": (1, {"threshold": 10**9}),
        "permuted": (1, {"threshold": 10**9, "permute_seed": 3}),
        "delegates": (1, {"threshold": 3}),
        "parts": (3, {"threshold": 4}),
        "permuted-parts": (2, {"threshold": 4, "permute_seed": 9}),
    }
    source = Tuples(GRAPH.n, GRAPH.u, GRAPH.v)
    for name, (parts, building) in kinds.items():
        target = folder / name
        write_graph(SoloWorld(), source, target, parts, BuildOptions(**building))
    return {name: folder / name for name in kinds}


KINDS = ["one", "permuted", "delegates", "parts", "permuted-parts"]


@pytest.fixture
def output(tmp_path):
    return tmp_path / "out.h5"


def check_results(path, sources, *, parents=True):
    with h5py.File(path) as file:
        assert file["sources"][:].tolist() == list(sources)
        assert file["level"].dtype == np.int32
        levels = file["level"][:]
        above = file["parent"][:] if "parent" in file else None
    assert (above is not None) == parents
    assert above is None or above.dtype == np.int64
    for row, root in enumerate(sources):
        check_search(GRAPH, root, levels[row], None if above is None else above[row])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("engine", ["xbfs", "xbfs-paper", "pan"])
def test_stores(stores, output, kind, engine):
    sources = [*SOURCES, ALONE]
    words = ("bfs", stores[kind], *options(sources), "-o", output, "--json")
    told = here(*words, "--engine", engine, *ONE).values
    check_results(output, sources)
    assert told["engine"] == engine
    by_reference = output.with_name("reference.h5")
    words = ("bfs", stores[kind], *options(sources), "-o", by_reference, "--json")
    other = here(*words, "--engine", "reference").values
    with h5py.File(output) as one, h5py.File(by_reference) as two:
        np.testing.assert_array_equal(one["level"][:], two["level"][:])
    for mine, wanted in zip(told["searches"], other["searches"], strict=True):
        for name in ("source", "reached", "depth", "nedge"):
            assert mine[name] == wanted[name]
        assert 0 < mine["seconds"] < mine["wall_seconds"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("more", [(), ("--no-parents",)])
def test_internal_ids(stores, output, kind, more):
    """Only the time is another: what is written has the input's ids."""
    sources = [*SOURCES, ALONE]
    words = ("bfs", stores[kind], *options(sources), "-o", output, "--json", *more)
    told = here(*words, *XBFS, "--internal-ids").values
    assert told["internal_ids"] is True
    check_results(output, sources, parents=not more)


@pytest.mark.parametrize("more", [XBFS, (*XBFS, "--internal-ids"), PAPER])
def test_records(stores, tmp_path, more):
    path = tmp_path / "levels.jsonl"
    sources = sorted({x for x in SOURCES if GRAPH.degrees[x]})
    words = ("bfs", stores["one"], *options(sources), "--records", path)
    done = here(*words, *more)
    assert done.code == 0, done.err
    records = [json.loads(line) for line in path.read_text().splitlines()]
    for source in sources:
        mine = [record for record in records if record["source"] == source]
        level = GRAPH.distances(source)
        assert [x["level"] for x in mine] == [*range(1, len(mine) + 1)]
        assert sum(x["found"] for x in mine) == (level > 0).sum()


@pytest.mark.parametrize("more", [(), ("--internal-ids",)])
def test_resumed(stores, output, monkeypatch, more):
    sources = list(range(12))
    words = ("bfs", stores["permuted"], *options(sources), "-o", output, "--json")
    put = ResultFile.put

    def failing(self, name, row, *values):
        if row == 5:
            raise MemoryError("in the middle")
        put(self, name, row, *values)

    with monkeypatch.context() as patch:
        patch.setattr(ResultFile, "put", failing)
        assert here(*words, *XBFS, *more).code == 3
    assert not output.exists()
    done = here(*words, *XBFS, *more)
    assert "continuing after 5 of 12 searches" in done.err
    assert len(done.values["searches"]) == 7
    check_results(output, sources)


@pytest.mark.parametrize("kind", KINDS)
def test_benchmark_of_a_store(stores, kind):
    words = ("graph500", "--graph", stores[kind], "--roots", 6, "--json", *XBFS)
    told = here(*words).values
    assert told["notes"]["validated by"] == "its stored edges"
    for search in told["searches"]:
        level = GRAPH.distances(search["root"])
        assert search["nedge"] == (level[GRAPH.u] >= 0).sum()


@pytest.mark.parametrize("parts", [1, 2])
def test_benchmark_of_a_stored_kronecker_graph(tmp_path, parts):
    words = ("--scale", 8, "--edge-factor", 6, "--seed", 4)
    made = ("generate", "kronecker", *words, "--parts", parts)
    assert here(*made, "-o", tmp_path / "graph").code == 0
    stored = here(
        "graph500", "--graph", tmp_path / "graph", "--seed", 4, "--json", *XBFS
    )
    fresh = here("graph500", *words, "--json", *XBFS).values
    told = stored.values
    assert told["notes"]["validated by"] == "its tuples"
    assert told["graph_generation"] == 0
    assert [(x["root"], x["nedge"]) for x in told["searches"]] == [
        (x["root"], x["nedge"]) for x in fresh["searches"]
    ]


# errors, doctor


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            ("--frontier", "no-queue"),
            "frontier is not an option of engine xbfs; it belongs to xbfs-paper",
        ),
        (
            ("--no-async",),
            "asynchronous is not an option of engine xbfs; it belongs to xbfs-paper",
        ),
        *(
            (("--method", x), f"method is '{x}'; allowed: fast")
            for x in ("push", "captured", "resident", "auto")
        ),
        (("--dd-factors", 1, 1), "dd is not an option of engine xbfs; it belongs to "),
        (("--domain", 7), "domain is 7; allowed with engine xbfs: 1"),
        (("--exchange", "p2p"), "'p2p' is not one of 'auto', 'host', "),
    ],
)
def test_contradictions(more, message):
    done = here("graph500", "--scale", 6, *XBFS, *more)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert done.err.count("\n") == 1


def test_more_devices_than_there_are():
    count = int(cuda.cupy().cuda.runtime.getDeviceCount())
    for more in ((), ("--engine", "xbfs")):
        done = here("graph500", "--scale", 6, "--devices", count + 1, *more)
        assert (done.code, done.out) == (2, "")
        assert f"devices is {count + 1}; allowed: 1 to {count}" in done.err
        assert done.err.count("\n") == 1


def test_out_of_device_memory(stores):
    pool = cuda.cupy().cuda.MemoryPool()
    pool.set_limit(1 << 16)
    with cuda.cupy().cuda.using_allocator(pool.malloc):
        runs = [
            here("graph500", "--scale", 16, *XBFS),
            here("bfs", stores["one"], "--source", 3, *XBFS),
            here("bfs", stores["parts"], "--source", 3, *XBFS),
        ]
    for done in runs:
        assert (done.code, done.out) == (3, "")
        assert "bytes are free" in done.err
        assert done.err.count("\n") == 1


def test_what_cannot_fit_is_said_before(stores, monkeypatch):
    monkeypatch.setattr(cuda, "free_bytes", lambda: 1000)
    done = here("bfs", stores["one"], "--source", 3, *XBFS)
    assert (done.code, done.out) == (3, "")
    assert "1000 are free" in done.err


def test_doctor_searches_with_every_engine():
    assert probing.engine_trials()["xbfs"] == "works"
