"""Which engine a command takes, and what is said of it, where there is no device."""

import re

import h5py
import numpy as np
import pytest
from commands import DISTBFS, files_in, here, on, write_edge_list
from graphs import kronecker, random_tuples
from launching import needs_mpi, run

from distbfs.build.cuda.room import SPARE, SPARE_VERTEX
from distbfs.device import cuda
from distbfs.device.array_table import total_bytes
from distbfs.engines.base import on_device
from distbfs.engines.cuda.common.graph_engine import GraphEngine
from distbfs.engines.cuda.xbfs.engine import XbfsEngine
from distbfs.engines.cuda.xbfs.memory import MULTIPROCESSORS, search_bytes, split_rows
from distbfs.engines.cuda.xbfs.search_table import expected_shape
from distbfs.errors import DeviceMissing, UsageError
from distbfs.graph.degrees import DegreeHistogram
from distbfs.graph.device_graph import graph_table
from distbfs.options import Factors, Knobs, SearchOptions
from distbfs.plan.memory import readable
from distbfs.ranks.world import SoloWorld
from distbfs.registry import ENGINES, lookup
from distbfs.search.choose import Request, choose, has_option

GRAPH = random_tuples(60, 120, seed=5)
DEVICE_WORDS = [
    ("--frontier", "scan-free"),
    ("--balance", "static"),
    ("--no-async",),
    ("--internal-ids",),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stores")
    file = write_edge_list(folder / "graph.txt", GRAPH)
    assert here("convert", file, "-o", folder / "graph").code == 0
    return folder / "graph"


def commands(store):
    yield ("bfs", store, "--source", 3)
    yield ("graph500", "--graph", store, "--roots", 2)
    yield ("graph500", "--scale", 5, "--roots", 2)


def test_the_line_says_why(store):
    for words in commands(store):
        done = here(*words, "--verbose")
        assert done.code == 0
        assert done.err.endswith("; auto: no CUDA device: hidden by a test\n")
        assert "auto" not in here(*words, "-v", "--engine", "openmp").err


def test_that_there_is_no_device_is_not_told_at_every_search(
    store, monkeypatch, tmp_path
):
    words = next(commands(store))
    assert here(*words).err.startswith("distbfs: engine openmp")
    assert "CUDA" not in here(*words).err
    assert here(*words, "--quiet").err == ""
    (tmp_path / "version").write_text("a driver")
    monkeypatch.setattr(cuda, "NVIDIA", tmp_path / "version")
    assert "; auto: no CUDA device" in here(*words).err


@needs_mpi
def test_the_line_says_why_on_ranks():
    words = ("graph500", "--scale", 5, "--roots", 2)
    assert "; auto: no CUDA device" in on(2, *words, "-v").err
    assert on(2, *words, "-q").err == ""


def test_no_device_is_code_3(store, tmp_path):
    for words in commands(store):
        done = here(*words, "--engine", "xbfs")
        assert (done.code, done.out) == (3, "")
        assert done.err.startswith("distbfs: no CUDA device")
        assert done.err.count("\n") == 1
    output = tmp_path / "out.h5"
    words = ("bfs", store, "--source", 3, "-o", output, "--engine", "xbfs")
    assert here(*words).code == 3
    assert files_in(tmp_path) == []


def test_no_device_in_a_process_of_its_own(store):
    words = ("bfs", store, "--source", 3, "--engine", "xbfs")
    done = run([*DISTBFS, *map(str, words)], env={"CUDA_VISIBLE_DEVICES": "-1"})
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("distbfs: no CUDA")
    assert done.stderr.count("\n") == 1


@needs_mpi
def test_several_ranks_need_devices_too():
    done = on(2, "graph500", "--scale", 5, "--engine", "xbfs")
    assert done.code == 3
    assert done.err.count("distbfs: rank 0: no CUDA device") == 1


@pytest.mark.parametrize("more", DEVICE_WORDS)
def test_options_of_the_device(store, more):
    """Refused by the engines of the host; without a device there is no other."""
    for words in commands(store):
        refusal = here(*words, *more, "--engine", "openmp").refusal
        assert " is not an option of engine openmp; it belongs to xbfs" in refusal
        done = here(*words, *more, "--engine", "xbfs-paper")
        assert (done.code, done.out) == (3, "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "push"}, "method is 'push'; allowed: fast"),
        ({"method": "resident"}, "method is 'resident'; allowed: fast"),
        (
            {"frontier": "no-queue"},
            "not an option of engine xbfs; it belongs to xbfs-paper",
        ),
        (
            {"balance": "static"},
            "balance is not an option of engine xbfs; it belongs to xbf",
        ),
        (
            {"asynchronous": False},
            "asynchronous is not an option of engine xbfs; it belongs",
        ),
        (
            {"dn": Factors(1, 0)},
            "dn is not an option of engine xbfs; it belongs to reference",
        ),
    ],
)
def test_contradictions(options, message):
    """Before anything of a device is asked for."""
    with pytest.raises(UsageError, match=message):
        choose(SoloWorld(), SearchOptions.named(engine="xbfs", **options), 9, Request())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "fast"}, "method is 'fast'; allowed: paper"),
        ({"frontier": "x"}, "frontier is 'x'; allowed: auto, scan-f"),
        ({"balance": "x"}, "balance is 'x'; allowed: auto, static, "),
        (
            {"frontier": "no-queue", "direction": "push"},
            "frontier is 'no-queue' with direction 'push'; allowed: auto, scan-free, ",
        ),
        (
            {"frontier": "scan-free", "direction": "pull"},
            "frontier is 'scan-free' with direction 'pull'; allowed: auto, double-scan",
        ),
    ],
)
def test_strategies_of_xbfs_paper(options, message):
    with pytest.raises(UsageError, match=message):
        choose(
            SoloWorld(),
            SearchOptions.named(engine="xbfs-paper", **options),
            9,
            Request(),
        )


def test_parts_of_a_new_graph():
    for more in (("--parts", 2), ("--threshold", 4)):
        words = (
            "graph500",
            "--scale",
            6,
            "--roots",
            2,
            *more,
            "--engine",
            "xbfs-paper",
        )
        assert f"{more[0]} is for engines between domains" in here(*words).refusal


def test_an_exchange_that_is_not_there():
    done = here("graph500", "--scale", 6, "--exchange", "p2p")
    assert "'p2p' is not one of 'auto', 'host', 'nccl', " in done.refusal


def test_wrong_words():
    words = ("graph500", "--scale", 5)
    assert "'x' is not one of 'auto'" in here(*words, "--frontier", "x").refusal
    assert "'x' is not one of 'auto'" in here(*words, "--balance", "x").refusal


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("k1=3", "k1 is '3'; allowed: 1, 2, 4, 8, 16, 32"),
        ("k2=-1", "k2 is -1.0; allowed: 0 to 100"),
        ("k2=nan", "k2 is nan; allowed: 0 to 100"),
        ("k3=0", "k3 is 0; allowed: 1 to 1024"),
        ("k4=65", "k4 is 65; allowed: 0 to 64"),
        ("k5=5", "k5 is 5; allowed: 0 to 4"),
        ("k6=100", "k6 is '100'; allowed: 32, 64, 128, 256, 512, 1024"),
        ("k7=17", "k7 is 17; allowed: 0 to 16"),
        ("k1=x", "k1 is 'x', not a number; allowed: 1 to 32"),
        ("ext=1", "ext is '1'; allowed: yes, no"),
        ("k8=1", "knob 'k8'; allowed: auto, or some of k1, k2"),
        ("k1", "k1 is '', not a number"),
    ],
)
def test_knobs_outside_their_ranges(text, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        Knobs.parse(text)
    words = ("graph500", "--scale", 5, "--engine", "bfs4k", "--knobs", text)
    assert message in here(*words).refusal


def test_knobs_of_a_command():
    assert Knobs.parse("auto") == Knobs.parse("") == Knobs()
    knobs = Knobs.parse("k1=8,k2=0.25,k3=16,k4=2,k5=1,k6=64,k7=10,ext=no")
    assert knobs == Knobs(8, 0.25, 16, 2, 1, 64, 10, False)
    words = ("graph500", "--scale", 5, "--knobs", "k1=4")
    refusal = here(*words, "--engine", "openmp").refusal
    assert refusal.endswith(
        "knobs is not an option of engine openmp; it belongs to bfs4k"
    )


GRAPH_ENGINES = [
    name for name in ENGINES if issubclass(lookup(ENGINES, "engine", name), GraphEngine)
]


@pytest.mark.parametrize("engine", GRAPH_ENGINES)
def test_engines_for_whole_graphs_refuse_what_is_not_theirs(engine):
    kind = lookup(ENGINES, "engine", engine)
    refusals = [
        ({"method": "none"}, "method is 'none'; allowed: "),
        ({"uniquify": True}, f"uniquify is not an option of engine {engine}"),
    ]
    if "pull" not in kind.directions:
        refusals += [({"direction": "pull"}, "direction is 'pull'; allowed: auto, pus")]
    for name, value in (("frontier", "no-queue"), ("knobs", Knobs(k1=4))):
        if not has_option(kind, name):
            refusals += [({name: value}, f"{name} is not an option of engine {engine}")]
    for options, message in refusals:
        named = SearchOptions.named(engine=engine, **options)
        with pytest.raises(UsageError, match=message):
            choose(SoloWorld(), named, 9, Request())
    assert (kind.whole_graphs, kind.domains, kind.devices) == (True, False, 1)


def test_engines_without_masks_say_so_before_there_is_a_graph():
    for name in ENGINES:
        masks, request = lookup(ENGINES, "engine", name).masks, Request(masked=True)
        options = SearchOptions.named(engine=name)
        assert masks == (name in ("reference", "openmp", "xbfs"))
        if not masks:
            with pytest.raises(
                UsageError, match=f"^engine {name} cannot be limited to some"
            ):
                choose(SoloWorld(), options, 9, request)


def test_engines_say_where_they_search():
    places = {name: on_device(lookup(ENGINES, "engine", name)) for name in ENGINES}
    hosts = {name for name, there in places.items() if not there}
    assert hosts == {"reference", "openmp"}
    with pytest.raises(DeviceMissing):
        XbfsEngine(SearchOptions(engine="xbfs"))


# the plan


def test_memory_of_a_gpu_search_is_planned(store):
    plan = here("plan", "--scale", 20, "--json").values
    report = plan["gpu_search"]
    assert report["total"] == report["graph"] + report["search"]
    assert report["graph"] > 4 * plan["stored_edges"]
    out = here("plan", "--scale", 20, "--verbose").out
    assert re.search(rf"^one GPU +{readable(report['graph'])} ", out, re.MULTILINE)
    wide = here("plan", "--scale", 32, "--edge-factor", 1, "--json").values
    assert wide["gpu_search"]["search"] > 9 << 32
    assert wide["gpu_domain"] is None
    domain = ("--scale", 33, "--edge-factor", 1, "--devices", 2)
    told = here("plan", "--verbose", *domain)
    assert "\none GPU  " not in told.out  # which has up to 2^32 vertices
    assert "\neach of a domain of 2  " in told.out
    each = here("plan", *domain, "--json").values["gpu_domain"]
    assert wide["gpu_search"]["total"] < each["total"] < 150 << 30
    n, m, active = 60, len(GRAPH.edges), int((GRAPH.degrees > 0).sum())
    report = here("plan", store, "--json").values["gpu_search"]
    assert report["graph"] == total_bytes(graph_table(n, active, m))
    assert report["search"] == search_bytes(n, active, m)
    for devices in (1, 3):
        again = here("plan", store, "--devices", devices, "--json").values
        assert again["gpu_search"] == report


def test_less_is_asked_for_takes_less():
    counts = (1 << 24, 1 << 23, 1 << 28)
    full = search_bytes(*counts)
    ids = expected_shape(*counts, MULTIPROCESSORS).results
    assert search_bytes(*counts, parents=False) == full - 4 * ids
    assert counts[0] <= ids <= 1.01 * counts[0]
    assert search_bytes(*counts, in_ids=False) < full
    assert search_bytes(*counts, listed=1000) < full


def test_results_say_their_ids(store, tmp_path):
    assert here("bfs", store, "-s", 1, "-o", tmp_path / "out.h5").code == 0
    with h5py.File(tmp_path / "out.h5") as file:
        assert file.attrs["ids"] == "input"
        assert "vertices" not in file


@pytest.mark.thorough
def test_tails_in_host_memory_are_planned():
    words = ("--scale", 28, "--devices", 4, "--device-memory")
    plan = here("plan", *words, "80GiB", "--json").values
    assert plan["gpu_search_tails"]["fits"]
    tails = plan["gpu_domain_tails"]
    spare = SPARE + SPARE_VERTEX * (1 << 26)
    about = {"have": 80 << 30, "spare": spare, "fits": True, "kept": None}
    assert tails == {**about, "host": 0, "link": None}
    table = here("plan", *words, "80GiB", "--verbose").out.partition("TH, ")[0]
    assert "over the link" not in table
    last = None
    for gib in (11, 10, 9):
        told = here("plan", "--verbose", *words, f"{gib}GiB")
        tails = here("plan", *words, f"{gib}GiB", "--json").values["gpu_domain_tails"]
        assert tails["device"] < gib << 30
        assert 0 < tails["host"] < 4 * plan["stored_edges"]
        assert last is None or tails["host"] > last
        last = tails["host"]
        host = f"{readable(tails['host'])} for all"
        line = rf"of 4  .* {gib}\.0 GiB +{tails['kept']} +{host}  "
        assert re.search(line, told.out)
    out = here("plan", *words, "4GiB", "--verbose").out
    assert re.search(r"of 4  .*not 4\.0 GiB, but .* for all", out)
    assert here("plan", "--scale", 9, "--json").values["gpu_search_tails"] is None


@pytest.mark.parametrize("devices", [1, 3])
def test_rows_are_split_where_they_just_fit(devices):
    degrees = kronecker(8).degrees.astype(np.int64)
    histogram = DegreeHistogram(*np.unique(degrees, return_counts=True))
    columns = 4 * -(-histogram.m // devices)
    rows = -(-int((degrees > 0).sum()) // devices)

    def need(kept):
        """Columns on a device, offsets of 64 bits, and where tails begin."""
        heads = 4 * np.minimum(degrees, kept).sum() + 8 * (degrees >= kept).sum()
        return 1000 + 4 * rows - int(-heads // devices)

    for have in range(need(8), need(degrees.max()) + 9, 500):
        found = split_rows(histogram, 1000 + columns, have, devices)
        kept = found["kept"]
        assert found["device"] == need(kept) <= have
        assert kept == degrees.max() or need(kept + 1) > have
        assert found["host"] == 4 * np.maximum(degrees - kept, 0).sum()
    least = split_rows(histogram, 1000 + columns, need(8) - 1, devices)
    assert (least["kept"], least["device"]) == (8, need(8)), "does not fit, as is seen"
