"""The sizes and times that ``distbfs plan`` expects, and what it refuses."""

import json
import re
import time

import numpy as np
import pytest
from commands import here
from graphs import build, kronecker

from distbfs.cli.plan_input import of_kronecker
from distbfs.engines.cuda.xbfs.memory import part_bytes, split_part
from distbfs.generate.kronecker import Kronecker
from distbfs.partition.part import PART_SHIFT
from distbfs.plan import memory
from distbfs.plan.memory import PartShape
from distbfs.plan.threshold import suggest_threshold
from distbfs.types import SUBGRAPHS


def row_of(out, name):
    """Return the cells of a row of the table of GPUs after its name."""
    (line,) = (x for x in out.splitlines() if x.startswith(f"{name}  "))
    return re.split("  +", line)[1:]


def test_counts_are_those_of_built_parts():
    parts, summary = build(kronecker(14), 4)
    graph = of_kronecker(14, 16, 4, summary.threshold)
    shape = graph.shapes[0]
    assert graph.delegates == pytest.approx(summary.delegates, rel=0.02)
    for name in SUBGRAPHS:
        assert 4 * shape.edges[name] == pytest.approx(summary.edges[name], rel=0.03)
    active = sum(part.active for part in parts)
    assert graph.active - graph.delegates == pytest.approx(active, rel=0.02)
    sizes = part_bytes(shape)
    assert sizes["graph"] == pytest.approx(parts[0].graph_bytes, rel=0.03)
    last = max(sizes["graph"], sizes["search"] + sizes["messages"])
    assert sizes["total"] == sizes["numbering"] + sizes["inner"] + last


@pytest.mark.parametrize("threshold", [20, 60, 200, 1 << 20])
@pytest.mark.parametrize("parts", [2, 9])
def test_outer_edges_are_about_those_of_built_parts(parts, threshold):
    made, _ = build(kronecker(13), parts, threshold=threshold)
    shape = of_kronecker(13, 16, parts, threshold).shapes[0]
    targets = 0
    for part in made:
        away = part.nn.columns >> np.uint64(PART_SHIFT) != part.index
        targets += len(np.unique(part.nn.columns[away])) / parts
    assert shape.targets == pytest.approx(targets, rel=0.06)


def test_the_largest_graph_of_the_list_fits():
    """Scale 41 on 8,192 devices of 80 GB."""
    words = ("--scale", 41, "--devices", 8192, "--device-memory", "80G")
    about = here("plan", *words, "--json").values["gpu_part"]
    assert about["fits"]
    assert about["kept"] is None
    assert about["searching"] < 66 << 30
    assert about["host_building"] < 64 << 30
    words = (*words[:-1], "60G")
    about = here("plan", *words, "--json").values["gpu_part"]
    assert about["fits"]
    assert about["outer_on_host"]
    assert about["making"] < 55 << 30
    assert about["searching"] - about["outer"] < 45 << 30
    assert about["host"] == about["outer"]
    row = row_of(here("plan", *words).out, "each part, in domains of 1")
    assert row[3:5] == ["55.9 GiB", "all"]
    assert row[5].startswith("20.5 GiB; ")
    assert row[5].endswith(" GiB to build")
    short = here("plan", *words[:-1], "50G", "--json")
    assert short.code == 3
    assert not json.loads(short.out)["gpu_part"]["fits"]


def test_domains_of_several_devices():
    """Outer edges lead out of a domain; thresholds are weighed between domains."""
    words = ("plan", "--scale", 41, "--devices", 8192, "--device-memory", "80G")
    alone, eight = (
        here(*words, "--domain", size, "--threshold", 30000, "--json").values
        for size in (1, 8)
    )
    ratio = eight["gpu_part"]["outer"] / alone["gpu_part"]["outer"]
    assert ratio == pytest.approx(8184 / 8191)
    assert eight["delegates_allowed"] == 8 * alone["delegates_allowed"]
    assert (eight["devices"], eight["domain"]) == (8192, 8)
    whole = here(*words, "--domain", 8)
    assert "devices       8192, in domains of 8\n" in whole.out
    assert "\neach part, in domains of 8  " in whole.out
    found = here(*words, "--domain", 8, "--json").values
    assert found["gpu_part"]["fits"]
    best = suggest_threshold(memory.expected_degrees(41, 16), 1024)
    assert found["threshold"] == best
    text = here("plan", "--scale", 20, "--devices", 9, "--domain", 2).refusal
    assert "9 devices do not divide into domains of 2" in text


@pytest.mark.parametrize(
    ("scale", "devices", "threshold", "text"),
    [
        (41, 8192, 1 << 40, "vertices of other domains; allowed: 4294967295"),
        (41, 8192, 512, "delegates on each of 1 devices; allowed: about"),
        (42, 1024, 1 << 20, "4294967296 vertices per part; allowed: 4294967295"),
        (
            43,
            8192,
            1 << 20,
            "vertices; allowed on devices: 4398046511104",
        ),
        (34, 8, 0, "delegates on each of 1 devices; allowed: about"),
    ],
)
def test_what_gpus_cannot_build_fits_no_device(scale, devices, threshold, text):
    words = ("--scale", scale, "--devices", devices, "--threshold", threshold)
    plan = here("plan", *words, "--device-memory", "1000T", "--json").values
    (note,) = (x for x in plan["notes"] if x.startswith("GPUs cannot build it: "))
    assert text in note
    assert not plan["gpu_part"]["fits"]


@pytest.mark.parametrize("threshold", [20, 200, 1 << 20])
def test_tails_are_about_those_of_built_parts(threshold):
    part = build(kronecker(13), 3, threshold=threshold)[0][0]
    length = {x: np.diff(getattr(part, x).offsets.astype(np.int64)) for x in SUBGRAPHS}
    inside = np.cumsum(part.nn.columns >> np.uint64(PART_SHIFT) == part.index)
    inside = np.concatenate([[0], inside])[part.nn.offsets]
    rows = [length["dd"] + length["dn"], length["nd"] + np.diff(inside)]
    rows = np.concatenate(rows)
    graph = of_kronecker(13, 16, 3, threshold)
    told = graph.histogram, graph.shapes[0]
    every, last = part_bytes(graph.shapes[0])["searching"], 1 << 30
    for share in (0.1, 0.2, 0.3):
        have = every - int(share * 4 * rows.sum())
        found = split_part(*told, every, have)
        assert found["device"] <= have
        assert 8 <= found["kept"] < last
        last = found["kept"]
        tails = 4 * int(np.maximum(rows - last, 0).sum())
        assert found["host"] == pytest.approx(tails, rel=0.3)  # rows vary
    assert split_part(*told, every, 0)["kept"] == 8


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("size", "fits"), [("141GB", True), ("141e9", True), ("1GiB", False)]
)
def test_device_memory(size, fits):
    words = ("--scale", 30, "--devices", 16, "--device-memory", size)
    told = here("plan", *words, "--json")
    assert told.code == (0 if fits else 3)
    assert json.loads(told.out)["gpu_part"]["fits"] is fits
    row = row_of(here("plan", *words).out, "each part, in domains of 1")
    assert row[3].startswith("not 1.0 GiB, but ") == (not fits)
    assert fits == (row[3] == "131.3 GiB")
    assert here("plan", "--scale", 9, "--json").values["gpu_part"]["fits"] is None


def test_the_largest_take_no_time():
    began = time.thread_time()  # of this thread, whatever else runs
    plan = here("plan", "--scale", 42, "--devices", 8192, "--json").values
    assert time.thread_time() - began < 2
    assert 0 < plan["xbfs"]["seconds"] < 60
    assert here("plan", "--scale", 1, "--devices", 1).code == 0


def test_text():
    out = here("plan", "--scale", 30, "--devices", 16, "--verbose").out
    assert re.search(r"^all +[\d.]+$", out, re.MULTILINE)
    rows = [row_of(out, name) for name in ("one GPU", "each part, in domains of 1")]
    plan = here("plan", "--scale", 30, "--devices", 16, "--json").values
    part = [memory.readable(plan["gpu_part"][x]) for x in ("searching", "total")]
    assert [len(row) for row in rows] == [3, 3]
    assert rows[1][1:] == part


def test_the_time_of_engine_xbfs():
    words = ("plan", "--scale", 33, "--devices", 64, "--domain", 8)
    several = (*words, "--devices-per-host", 8, "--gpu", "h100")
    plan = here(*several, "--json").values["xbfs"]
    assert (plan["device"], plan["exchange"]) == ("H100", "nccl")
    assert plan["several_hosts"]
    assert plan["levels_begun_by"] == "devices"
    terms = plan["seconds_by_term"]
    assert plan["seconds"] == pytest.approx(sum(terms.values()))
    assert terms["hops"] > 0
    one = here(*words, "--json").values["xbfs"]
    assert one["device"] == "H200"
    assert one["seconds_by_term"]["hops"] == 0
    assert "nvshmem_20" in one["constants"]["bandwidth"]["origin"]
    slow = here(*several, "--network-bandwidth", "25e9", "--json").values["xbfs"]
    assert slow["seconds_by_term"]["wire"] == pytest.approx(2 * terms["wire"])
    assert slow["constants"]["bandwidth"] == {"value": 25e9, "origin": "given"}
    out = here(*several, "--verbose").out
    assert re.search(
        r"engine xbfs on H100, 8 domains of 8 devices, exchange nccl between hosts, "
        r"levels begun by devices: about [\d.]+ ms a search, [\d.e+]+ GTEPS",
        out,
    )
    assert re.search(r"^ *meetings +[\d.]+$", out, re.MULTILINE)
    assert "hop 5e-06 (assumed)" in out
    alone = here("plan", "--scale", 28, "--devices", 1, "--verbose").out
    assert "engine xbfs on H200, 1 domain of one device: about" in alone
    many = here("plan", "--scale", 36, "--devices", 128, "--exchange", "nvshmem")
    assert "exchange nccl inside a host, levels begun by hosts" in many.out


def test_memory_that_searches_over_nvshmem_put_into():
    words = ("plan", "--scale", 28, "--devices")
    size = here(*words, 8, "--json").values["gpu_part"]["symmetric"]
    assert size > 1 << 20
    several = here(*words, 8, "--domain", 2, "--json").values["gpu_part"]["symmetric"]
    assert 1 << 20 < several < size
    for more in ((1,), (8, "--domain", 8), (128,)):
        assert not here(*words, *more, "--json").values["gpu_part"]["symmetric"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--device-memory", "x"], "'x' is not a size above 0"),
        (["--device-memory", "0"], "'0' is not a size above 0"),
        (["--device-memory", "1.2.3GB"], "is not a size above 0"),
        (["--network-bandwidth", "-5"], "'-5' is not a size above 0"),
        (["--network-bandwidth", "1e999"], "is not a size above 0"),
        (["--gpu", "A9"], "'A9' is not one of"),
        (["--exchange", "solo"], "'solo' is not one of"),
    ],
)
def test_refused(words, text):
    assert text in here("plan", "--scale", 20, "--devices", 4, *words).refusal


def test_shapes_that_hold_little():
    empty = PartShape(1, 1, 0, 1, 0, 0, dict.fromkeys(SUBGRAPHS, 0), 0)
    sizes = part_bytes(empty)
    # words about its own box, and replies; two of what was sent
    assert sizes["messages"] == 8 * (1 + 3) + 4 * 2
    assert sizes["inner"] < sizes["search"] - (16 << 20) < 64 << 10
    assert Kronecker(1).n == 2


LAYOUTS = {
    "one": ("--scale", 28, "--device-memory", "32GiB"),
    "domain": ("--scale", 29, "--devices", 2, "--domain", 2, "--device-memory", "30G"),
    "domains": ("--scale", 29, "--devices", 2, "--device-memory", "40GiB"),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", LAYOUTS)
def test_what_is_read_over_the_link_takes_time(name):
    words = LAYOUTS[name]
    plan, whole = (here("plan", *some, "--json").values for some in (words, words[:-2]))
    keys = {"one": "gpu_search_tails", "domain": "gpu_domain_tails"}
    tails = plan[keys.get(name, "gpu_part")]
    link, time = tails["link"], plan["xbfs"]
    assert 0 < link["visits"] <= link["lines"] <= link["columns"]
    assert link["bytes"] == 128 * link["lines"] < tails["host"] / 10
    assert time["link_of_a_device"] == link
    more = (link["lines"] - link["visits"]) * 128 / 51e9 + link["visits"] / 37e6
    assert time["seconds_by_term"]["link"] == pytest.approx(more)
    assert time["seconds"] == pytest.approx(whole["xbfs"]["seconds"] + more)
    assert time["constants"]["visits"]["origin"] == "measured on an H200"
    assert whole["xbfs"]["link_of_a_device"] is None
    assert not {"link", "visits"} & set(whole["xbfs"]["constants"])
    out = here("plan", *words, "--verbose").out
    size = memory.readable(link["bytes"])
    assert f"  {size}, {1e3 * link['seconds']:.4g} ms\n" in out
    assert f"a device reads in a search: {size} of tails in host memory\n" in out


def test_a_store_that_does_not_fit_has_its_degrees_read(tmp_path):
    here("generate", "kronecker", "--scale", 16, "-o", tmp_path / "g")
    sizes = here("plan", tmp_path / "g", "--json").values["gpu_search"]
    have = 2560 * 2**20 + (2 << 16) + sizes["total"] - 500_000
    words = ("plan", tmp_path / "g", "--device-memory", have)
    plan = here(*words, "--json").values
    assert plan["exact"]
    tails = plan["gpu_search_tails"]
    assert tails["fits"]
    assert 8 <= tails["kept"] < plan["vertices"]
    assert tails["link"]["bytes"] > 0
    assert plan["xbfs"]["link_of_a_device"] == tails["link"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (
            ("--scale", 30, "--device-memory", "40G"),
            "in 37.3 GiB of a GPU; one GPU needs 55.6 GiB and 119.4 GiB of the host",
        ),
        (
            ("--scale", 30, "--device-memory", "80G", "--host-memory", "32G"),
            "in 74.5 GiB of a GPU and 29.8 GiB of a host; one GPU needs 74.5 GiB and ",
        ),
        (
            ("--scale", 30, "--devices", 2, "--device-memory", "20G"),
            "each of 2 GPUs needs ",
        ),
        (
            (
                *("--scale", 33, "--devices", 16, "--domain", 8),
                "--device-memory",
                "20G",
            ),
            "the GPU of each part needs ",
        ),
    ],
)
def test_what_fits_in_neither_ends_and_says_what_would(words, text):
    told = here("plan", *words)
    assert told.code == 3
    assert told.err.count("\n") == 1
    assert text in told.err
    assert "about 0 ms" not in told.out
    assert "\nengine xbfs on " not in told.out, "no time of what there is no memory for"
    assert json.loads(here("plan", *words, "--json", "--verbose").out)["xbfs"] is None
    needs = re.search(r"needs ([\d.]+) GiB and ([\d.]+) GiB of the host", told.err)
    device, host = (float(x) for x in needs.groups())
    size = ("--device-memory", f"{device}GiB")
    shape = [x for x in words if str(x).startswith("--") or not str(x).endswith("G")]
    shape = shape[: shape.index("--device-memory")]
    shares = 16 if "each part" in text else 1
    room = f"{host * shares:.1f}GiB"
    assert here("plan", *shape, *size, "--host-memory", room).code == 0


def test_devices_of_one_host_are_a_domain_too():
    """Which holds what several domains of one device do not."""
    words = ("--scale", 30, "--devices", 2, "--device-memory", "47G")
    plan = json.loads(here("plan", *words, "--json", "--verbose").out)
    assert plan["gpu_domain_tails"]["fits"]
    assert not plan["gpu_part"]["fits"]
    assert here("plan", *words).code == 0
    assert here("plan", *words, "--devices-per-host", 1).code == 3
    assert "--host-memory goes with --device-memory" in (
        here("plan", "--scale", 9, "--host-memory", "1G").refusal
    )
