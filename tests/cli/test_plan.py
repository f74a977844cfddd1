"""``distbfs plan``: exact for a store, close for a graph that is not there yet."""

import json
import re
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from allocations import allocated
from commands import here, on
from graphs import NAMED, build, kronecker, random_tuples
from launching import needs_mpi, run, run_ranks

from distbfs.build.host.parts import construct
from distbfs.device import control_groups
from distbfs.engines.openmp import part as engine_part
from distbfs.engines.openmp.memory import bytes_needed
from distbfs.engines.openmp.part import OpenMPPart
from distbfs.engines.openmp.whole import OpenMPWhole
from distbfs.generate.expected import expected_edges
from distbfs.generate.kronecker import Kronecker
from distbfs.options import BuildOptions
from distbfs.partition.delegates import DelegateNumbers
from distbfs.partition.layout import Placement
from distbfs.partition.part import PART_SHIFT
from distbfs.plan import memory
from distbfs.plan.host_memory import NO_EDGES
from distbfs.plan.memory import PartShape
from distbfs.plan.threshold import suggest_host_threshold, suggest_threshold
from distbfs.ranks.world import SoloWorld
from distbfs.store.hdf5 import open_store
from distbfs.store.schema import DATASETS, part_arrays
from distbfs.store.write import write_graph
from distbfs.types import SUBGRAPHS

GRAPHS = {**NAMED, "random": random_tuples(700, 2000, seed=3)}
SPLITS = [(1, None), (1, 3), (2, 2), (3, None), (5, 0)]
BUILT = [(14, 1), (14, 2), (15, 4), (16, 1), (16, 2), (16, 4), (16, 8)]
PEAK = """
from pathlib import Path
from distbfs.ranks.world import start
from distbfs.generate.kronecker import Kronecker
from distbfs.options import BuildOptions
from distbfs.build.host.parts import construct
world = start()
construct(Kronecker(19, threads=1), world, world.size, BuildOptions(), [].append)
if world.rank == 0:
    # ru_maxrss would begin with what the process that started this one holds
    said = Path("/proc/self/status").read_text().partition("VmHWM:")[2]
    print(int(said.split()[0]) * 1024)
world.finish()
"""


def shape_of(part):
    """The counts of a part, with its edges to other parts."""
    away = 0
    if part.layout.parts > 1:
        away = part.nn.columns >> np.uint64(PART_SHIFT) != part.index
    return replace(engine_part.shape_of(part), edges_away=int(np.sum(away)))


def search_of(part, parents):
    placement = Placement(part.layout.parts, 1)
    return OpenMPPart(part, placement, 1, parents=parents, direction="auto")


def sizes_of(part):
    return {name: array.nbytes for name, array in part_arrays(part).items()}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize(("parts", "threshold"), SPLITS)
def test_stored_arrays_are_counted_exactly(name, parts, threshold):
    for part in build(GRAPHS[name], parts, threshold=threshold)[0]:
        assert memory.array_bytes(shape_of(part)) == sizes_of(part)
        assert tuple(memory.array_bytes(shape_of(part))) == DATASETS


@pytest.mark.parametrize("parents", [True, False])
@pytest.mark.parametrize("name", ["random", "star", "kronecker", "path", "complete"])
@pytest.mark.parametrize(("parts", "threshold"), SPLITS)
def test_a_search_is_counted_exactly(name, parts, threshold, parents):
    for part in build(GRAPHS[name], parts, threshold=threshold)[0]:
        shape = shape_of(part)
        if shape.whole:
            search = OpenMPWhole(part, "fast", 1, "auto", parents)
        else:
            search = search_of(part, parents)
        held = allocated(vars(search), part_arrays(part).values())
        assert bytes_needed(shape, parents=parents) == held


@pytest.mark.parametrize("parents", [True, False])
@pytest.mark.parametrize("name", ["random", "star", "kronecker", "path", "complete"])
@pytest.mark.parametrize("parts", [2, 3])
def test_parts_that_own_rows_are_counted_exactly(name, parts, parents):
    for part in build(GRAPHS[name], parts, owned=True)[0]:
        assert memory.array_bytes(shape_of(part)) == sizes_of(part)
        held = allocated(vars(search_of(part, parents)), part_arrays(part).values())
        assert bytes_needed(shape_of(part), parents=parents) == held


@pytest.mark.parametrize("spread", [1, 7])
def test_delegates_of_a_session_are_counted(spread):
    """At most: a table by id takes no more than ids in their order."""
    ids = spread * np.arange(40)[::-1]
    bare, with_delegates = (
        memory.session_bytes(PartShape(300, 2, d, 150, 0, 0, NO_EDGES, 0))[0]
        for d in (0, len(ids))
    )
    held = allocated(vars(DelegateNumbers(ids)), ()) + 2 * 8
    assert held <= with_delegates - bare
    assert (held < with_delegates - bare) == (spread == 1)


@pytest.mark.parametrize(("scale", "parts"), BUILT)
def test_expected_graphs_are_close_to_built_ones(scale, parts):
    made = []
    construct(Kronecker(scale), SoloWorld(), parts, BuildOptions(), made.append)
    real = [sizes_of(part) for part in made]
    histogram = memory.expected_degrees(scale, 16)
    assert histogram.n == 1 << scale
    threshold = suggest_host_threshold(histogram, parts)
    nn = expected_edges(scale, threshold)["nn"]
    shape = memory.expected_shape(histogram, parts, threshold, nn)
    sizes = memory.array_bytes(shape)
    total = sum(sum(one.values()) for one in real) / parts
    assert sum(sizes.values()) == pytest.approx(total, rel=0.01)
    for name, size in sizes.items():
        mean = sum(one[name] for one in real) / parts
        assert size == pytest.approx(mean, rel=0.06, abs=16)


@pytest.mark.parametrize(
    "parts", [1, pytest.param(2, marks=[needs_mpi, pytest.mark.thorough])]
)
def test_peak_of_a_build_is_near_the_estimate(parts):
    argv = [sys.executable, "-c", PEAK]
    done = run_ranks(parts, argv) if parts > 1 else run(argv)
    peak = int(done.stdout)
    words = ("plan", "--scale", "19", "--devices", parts, "--json")
    estimate = here(*words).values["device"]["building"]
    assert 0.75 * peak < estimate < 1.5 * peak


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stores")
    for parts in (1, 3, 4):
        source = Kronecker(12) if parts > 1 else kronecker(9)
        write_graph(SoloWorld(), source, folder / f"in-{parts}", parts, BuildOptions())
    return {parts: folder / f"in-{parts}" for parts in (1, 3, 4)}


@pytest.mark.parametrize("parts", [1, 3, 4])
def test_a_store_is_planned_exactly(stores, parts):
    store = open_store(stores[parts])
    loaded = [store.load_part(index) for index in range(parts)]
    plan = here("plan", stores[parts], "--json").values
    manifest = store.manifest
    assert plan["exact"]
    assert plan["threshold_origin"] == "from the store"
    for name in ("tuples", "threshold", "delegates"):
        assert plan[name] == getattr(manifest, name)
    assert plan["nn"] == manifest.edges["nn"]
    sizes = [plan[name] for name in ("vertices", "stored_edges", "edges")]
    assert sizes == [manifest.n, manifest.m, manifest.m // 2]
    every = [sizes_of(part) for part in loaded]
    total = plan["total"]
    assert total["stored"] == sum(sum(one.values()) for one in every)
    assert plan["device"]["stored"] in [sum(one.values()) for one in every]
    for name in SUBGRAPHS:
        for array in ("offsets", "columns"):
            expected = sum(one[f"{name}/{array}"] for one in every)
            assert total[f"{name}_{array}"] == expected
    assert total["disk"] == sum(x.file_bytes for x in manifest.records)
    needed = sum(bytes_needed(shape_of(part)) for part in loaded)
    assert total["search"] == pytest.approx(needed, rel=0.01)
    assert plan["mode"] == ("whole" if parts == 1 else "part by part")
    terms = ("stored", "search", "session", "process")
    assert total["searching"] == sum(total[name] for name in terms)


def test_a_store_in_other_parts(stores, tmp_path):
    words = ("--devices", "4", "--threshold", "60", "--json")
    plan = here("plan", stores[3], *words).values
    assert not plan["exact"]
    assert plan["threshold_origin"] == "given"
    partition = ("partition", stores[3], "-o", tmp_path / "s", *words[2:-1])
    assert here(*partition, "--parts", "4").code == 0
    built = here("plan", tmp_path / "s", "--json").values
    assert plan["delegates"] == built["delegates"]
    assert plan["stored_edges"] == built["stored_edges"]
    for name in ("stored", "search"):
        assert plan["total"][name] == pytest.approx(built["total"][name], rel=0.02)
    more = built["total"]["disk"] - plan["total"]["disk"]
    assert abs(more) < 4 * 10_000  # of HDF5, in each part


def test_a_graph_of_unknown_kind_in_other_parts(stores):
    plan = here("plan", stores[1], "--devices", "2", "--json").values
    assert (plan["vertices"], plan["stored_edges"]) == (512, kronecker(9).matrix.nnz)
    assert plan["graph"].endswith(", built anew")


def test_constraints():
    def holds(*words):
        plan = here("plan", "--scale", "16", "--json", *words).values
        assert plan["delegates_hold"] == (
            plan["delegates"] <= 4 * plan["vertices"] / plan["devices"]
        )
        return plan["delegates_hold"]

    assert holds("--devices", "4")
    assert holds("--devices", "4", "-t", "1000")
    assert not holds("--devices", "64", "-t", "2")
    assert holds("--devices", "1")
    out = here("plan", "--scale", "16", "--devices", "64", "-t", "2", "--verbose").out
    assert "at most 4n/p = 4096: does not hold" in out


def test_the_threshold_is_suggested_or_given():
    words = ("plan", "--scale", "20", "--devices", "8", "--json")
    plan = here(*words).values
    best = suggest_threshold(memory.expected_degrees(20, 16), 8)
    assert (plan["threshold"], plan["threshold_origin"]) == (best, "suggested")
    given = here(*words, "--threshold", "100").values
    assert (given["threshold"], given["threshold_origin"]) == (100, "given")
    fast = here(*words, "--network-bandwidth", "395GB/s").values
    assert fast["threshold"] == best  # what a build takes, whatever the rates


def test_large_graphs_take_no_time():
    began = time.thread_time()  # of this thread, whatever else runs
    plan = here("plan", "--scale", "42", "--devices", "8192", "--json").values
    assert time.thread_time() - began < 2
    assert plan["vertices"] == 1 << 42
    assert plan["tuples"] == 16 << 42
    share = plan["device"]["stored"] * 8192 / plan["formula_bytes"]
    assert 1 < share < 2
    assert not plan["host"]["searching_fits"]
    assert not plan["host"]["building_fits"]


def test_devices_of_a_host():
    words = ("plan", "--scale", "30", "--devices", "64", "--json")
    everything, four = here(*words).values, here(*words, "--devices-per-host", 4).values
    assert everything["host"]["devices"] == 64
    assert four["host"]["devices"] == 4
    assert four["host"]["searching"] == 4 * four["device"]["searching"]
    assert four["host"]["memory"] == memory.machine_memory()[0] > 1 << 28
    more = here(*words, "--devices-per-host", 1000).values
    assert more["host"] == everything["host"]


@pytest.mark.parametrize(
    ("controllers", "name"),
    [("", "memory.max"), ("memory", "memory.limit_in_bytes")],
)
def test_the_limit_of_a_control_group_counts(tmp_path, monkeypatch, controllers, name):
    group = tmp_path / controllers / "job" / "step"
    group.mkdir(parents=True)
    member = tmp_path / "cgroup"
    member.write_text(f"7:cpu:/job\n3:{controllers}:/job/step\n")
    monkeypatch.setattr(control_groups, "CGROUP", tmp_path)
    monkeypatch.setattr(control_groups, "MEMBERSHIP", member)
    physical = memory.machine_memory()
    assert physical[1] == "physical"
    (group / name).write_text("max\n")
    assert memory.machine_memory() == physical
    (group.parent / name).write_text(f"{1 << 62}\n")
    assert memory.machine_memory() == physical
    (group.parent / name).write_text(f"{64 << 20}\n")
    assert memory.machine_memory() == (64 << 20, "cgroup limit")
    plan = here("plan", "--scale", "10", "--json").values
    assert not plan["host"]["searching_fits"]


def test_a_plan_is_short_and_of_the_devices_that_are_named(stores):
    lines = here("plan", stores[4]).out.splitlines()
    assert len(lines) <= 13
    facts = dict(re.split("  +", line, maxsplit=1) for line in lines if "  " in line)
    assert facts["devices"] == "4"
    assert facts["searching on CPUs"].endswith(": fits")
    assert any(x.startswith("each part, in domains of 1  ") for x in lines)
    words = ("plan", "--scale", "31", "--device-memory")
    for size, fits in (("900G", "838.2 GiB  +all"), ("141G", r"131.3 GiB  +\d+ ")):
        out = here(*words, size).out
        assert re.search(fits, out)
        assert "on CPUs" not in out  # this machine is not asked about


def test_text(stores):
    out = here("plan", stores[4], "--verbose").out
    for text in ("searching", "formula", "holds"):
        assert text in out
    assert re.search(r"searching on CPUs +[\d.]+ MiB of [\d.]+ GiB: fits", out)
    out = here("plan", "--scale", "31", "--verbose").out
    assert "up to 2^31 - 1 vertices on one device, not 2147483648" in out
    assert "does not fit" in out
    impossible = here("plan", "--scale", "48", "--devices", "65536", "--verbose").out
    assert "note: ranks without GPUs cannot build it: " in impossible
    assert "note: GPUs cannot build it: 281474976710656 vertices; " in impossible


@needs_mpi
def test_ranks_print_once_and_are_the_devices():
    done = on(2, "plan", "--scale", "14", "--json")
    assert json.loads(done.out)["devices"] == 2


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "give either a STORE or --scale"),
        (["x", "--scale", "3"], "give either a STORE or --scale"),
        (["x", "--edge-factor", "3"], "--edge-factor goes with --scale"),
        (["x"], "there is no such file or folder"),
        (["--scale", "0"], "1<=x<=48"),
        (["--scale", "5", "--devices", "0"], "x>=1"),
        (["--scale", "5", "--devices-per-host", "0"], "x>=1"),
        (["--scale", "5", "--threshold", "-1"], "x>=0"),
        (["--scale", "5", "--domain", "0"], "x>=1"),
        (
            ["--scale", "30", "--devices", "16", "--domain", "16"],
            "domain is 16; a domain has up to 8 devices of one host",
        ),
        (["--scale", "48", "--devices", "8"], "need at least 65536 parts"),
    ],
)
def test_refused(tmp_path, monkeypatch, words, text):
    monkeypatch.chdir(tmp_path)
    assert text in here("plan", *words).refusal


def test_altered_part_is_refused_where_it_is_read(stores, tmp_path):
    folder = tmp_path / "bad"
    folder.mkdir()
    for file in stores[3].iterdir():
        data = bytearray(file.read_bytes())
        if file.name == "part-00002.h5":
            data[100:108] = b"\xff" * 8
        (folder / file.name).write_bytes(data)
    assert here("plan", folder).code == 0
    assert "part-00002.h5: " in here("plan", folder, "--devices", "2").refusal
