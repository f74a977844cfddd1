"""What ``bench_devices.py`` plans for 1 to 8 devices, its budget, what rows tell."""

import importlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from distbfs.errors import UsageError
from distbfs.registry import EXCHANGES

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
H200 = 150_109_880_320
TOPS = {1: 30, 2: 31, 4: 32, 8: 33}
SCALES = (22, 26, 28, 31)
SHAPES = {
    1: {"1x1x1"},
    2: {"1x1x2", "1x2x1"},
    4: {"1x1x4", "1x2x2", "1x4x1"},
    8: {"1x1x8", "1x2x4", "1x4x2", "1x8x1"},
}


@pytest.fixture
def scripts(monkeypatch):
    """The two modules that start nothing."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    names = ("device_cells", "device_report")
    yield SimpleNamespace(**{name: importlib.import_module(name) for name in names})
    for name in names:
        del sys.modules[name]


HOST = 128 << 30  # bytes of host memory for each device


def grid_of(cells, devices, **more):
    memory = {"memory": H200, "host_memory": HOST * devices}
    most = cells.largest_scale(devices, *memory.values())
    return cells.Grid(devices, 26, 28, most, devices, **memory, scales=SCALES, **more)


def cells_in(scripts, jobs):
    return [job for job in jobs if isinstance(job, scripts.device_cells.Cell)]


@pytest.mark.parametrize("devices", [1, 2, 4, 8])
def test_all_shapes_scales_and_ways_are_planned(scripts, devices):
    cells = scripts.device_cells
    jobs = cells.plan(grid_of(cells, devices))
    assert len(set(jobs)) == len(jobs)
    planned = cells_in(scripts, jobs)
    keys = {(x.devices, x.ranks, x.scale, x.way, x.roots) for x in planned}
    assert len({x.name for x in planned}) == len(planned), "no cell runs twice"
    counts = [x for x in (1, 2, 4, 8) if x <= devices]
    for k, count in enumerate(counts):
        at = "fast" if count == 1 else "resident"
        assert (count, 1, 26 + k, at, 0) in keys
        assert (count, 1, 28, at, 0) in keys
        if count > 1:
            between = (count, count, 26 + k, "nccl between domains of 1", 0)
            assert between in keys
    at = "fast" if devices == 1 else "resident"
    for scale in SCALES:
        for ranks in {1, devices}:
            fits = scale <= TOPS[devices]
            assert ((devices, ranks, scale, at, 0) in keys) is fits
            assert ((devices, ranks, scale, f"{at}, internal ids", 0) in keys) is fits
    sizes = {x.domain for x in planned if "domains" in x.uses}
    assert sizes == {1: set(), 2: {1}, 4: {2, 1}, 8: {4, 1}}[devices]
    for size in sizes:
        here = [x for x in planned if "domains" in x.uses and x.domain == size]
        assert [x.method for x in here] == ["nccl", "host", "nvshmem"]
        assert {(x.devices, x.ranks, x.scale) for x in here} == {
            (devices, devices // size, 28)
        }
    shapes = {x.shape for x in planned if "shapes" in x.uses}
    assert shapes == SHAPES[devices]
    ladders = [x for x in jobs if isinstance(x, cells.Ladder)]
    highest = max(26 + len(counts) - 1, 28, *(x for x in SCALES if x <= TOPS[devices]))
    assert [x.scales for x in ladders] == (
        [tuple(range(TOPS[devices], highest, -1))] if TOPS[devices] > highest else []
    )
    assert all(x.devices % x.ranks == 0 for x in planned)


def test_what_matters_most_comes_first(scripts):
    cells = scripts.device_cells
    jobs = cells.plan(grid_of(cells, 4))
    assert [x.name for x in jobs[:4]] == [
        "1x1x4, scale 22, resident",
        "1x1x4, scale 22, resident, internal ids",
        "1x1x4, scale 26, resident",
        "1x1x4, scale 26, resident, internal ids",
    ]
    assert jobs[4].uses == ("scales", "weak", "strong", "shapes")
    tested, lost = jobs[8:10]
    assert (tested.ranks, tested.program[1]) == (4, "check")
    assert set(tested.kinds) == {f"{x}-device" for x in ("host", "nccl", "cuda_aware")}
    assert (lost.program[0], lost.launched) == ("tests/gpu/test_searching_ranks.py", 0)
    places = {name: k for k, name in enumerate(x.name for x in jobs)}
    assert places["1x1x1, scale 26, fast"] < places["1x1x1, scale 28, fast"]
    between = "nccl between domains of"
    first = places[f"1x2x2, scale 28, {between} 2"]
    assert first < places[f"1x4x1, scale 28, {between} 1"]
    assert jobs[-1].program[0] == "tests/gpu/exchange_ranks.py"
    checked = "1x1x4, scale 18, resident, 25000 roots"
    assert places[checked] < places[f"{checked}, seed 4"] < len(jobs) - 1
    words = scripts.device_cells.words_of(
        jobs[places[f"{checked}, seed 4"]], cpu=False, roots=25_000, validate=25_000
    )
    assert words[-2:] == ["--seed", "4"]
    assert places["the largest scale of 32 to 32"] < places["1x4x1, scale 28, resident"]


def test_other_scripts_are_there(scripts):
    cells = scripts.device_cells
    for devices, uses in ((1, {"stores"}), (4, {"stores", "many"})):
        jobs = cells.programs(grid_of(cells, devices))
        assert {x.use for x in jobs} == uses
        for job in jobs:
            assert (SCRIPTS / job.script).is_file()
            assert any("OUT" in word for word in job.words)
            assert (job.ranks > 1) is (job.use == "many")


def test_contract_tests_are_there(scripts):
    cells = scripts.device_cells
    root = SCRIPTS.parent
    for grid in (grid_of(cells, 8), cells.Grid(8, 9, 9, 9, 4, cpu=True)):
        for job in cells.contracts(grid):
            assert (root / job.program[0]).is_file()
    assert [x.ranks for x in cells.contracts(grid)] == [4, 2, 1]
    for devices in (1, 2, 4, 8):
        for job in cells.contracts(grid_of(cells, devices)):
            kinds = {x.removesuffix("-device") for x in job.kinds}
            assert kinds <= {*EXCHANGES, "auto", "domain", "first"}
    nccl = [x.ranks for x in cells.contracts(grid_of(cells, 8)) if "nccl" in x.kinds]
    assert nccl == [8], "one device per rank"


def test_what_memory_cannot_hold_is_left_out(scripts):
    cells = scripts.device_cells
    small = cells.Grid(4, 20, 28, 28, 4, memory=16 << 30, scales=SCALES)
    kept = cells_in(scripts, cells.plan(small))
    assert {x.devices for x in kept if "strong" in x.uses} == {4}
    assert {x.scale for x in kept if "scales" in x.uses} == {22, 26, 28}
    few = cells.Grid(4, 20, 22, 28, 2, scales=SCALES)
    assert not cells.between(few), "a domain of one device has a rank"


def test_the_grid_on_cpus(scripts):
    cells = scripts.device_cells
    jobs = cells.plan(cells.Grid(8, 9, 10, 14, 4, cpu=True))
    some = cells_in(scripts, jobs)
    assert {x.method for x in some} == {"stepwise"}
    assert not any(x.internal or x.domain or x.roots for x in some)
    assert not any(isinstance(x, cells.Program) for x in jobs)
    weak = {x.shape: x.scale for x in some if "weak" in x.uses}
    assert weak == {"1x1x1": 9, "1x2x1": 10, "1x4x1": 11, "1x4x2": 12}
    shapes = {x.shape for x in some if "shapes" in x.uses}
    assert shapes == {"1x1x8", "1x2x4", "1x4x2"}


@pytest.mark.parametrize("more", [{"devices": 3}, {"ranks": 0}])
def test_grids_that_are_refused(scripts, more):
    fields = {"devices": 2, "weak": 9, "strong": 9, "top": 9, "ranks": 1}
    with pytest.raises(UsageError, match=r"devices is '3'|ranks is 0"):
        scripts.device_cells.Grid(**{**fields, **more})


@pytest.mark.parametrize(
    ("devices", "ranks", "method", "more", "words"),
    [
        (8, 1, "resident", {}, "--devices 8 --domain 8"),
        (8, 2, "nccl", {"domain": 4}, "--devices 4 --domain 4 --exchange nccl"),
        (2, 2, "host", {"domain": 1}, "--devices 1 --domain 1 --exchange host"),
        (1, 1, "fast", {}, "--devices 1"),
        (1, 1, "fast", {"internal": True}, "--devices 1 --internal-ids"),
    ],
)
def test_words_of_the_command(scripts, devices, ranks, method, more, words):
    cells = scripts.device_cells
    cell = cells.Cell(devices, ranks, 20, method, ("weak",), **more)
    start = "graph500 --json --scale 20 --roots 64"
    for count, end in ((64, ""), (4, " --validate 4"), (0, " --skip-validation")):
        command = cells.words_of(cell, cpu=False, roots=64, validate=count)
        assert " ".join(command) == f"{start} --engine xbfs {words}{end}"
    cell = cells.Cell(4, 2, 20, "stepwise", ("weak",))
    command = cells.words_of(cell, cpu=True, roots=9, validate=9)
    assert " ".join(command[-5:]) == "--engine openmp --parts 4 --stepwise"


# time


class Clock:
    """A clock that stands still unless it is moved."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def budget_of(scripts, seconds):
    cells = scripts.device_cells
    clock = Clock()
    return cells.Budget(seconds, cells.ON_DEVICES, clock), clock


def test_time_is_told_by_the_pace_of_what_ran(scripts):
    cells = scripts.device_cells
    budget, clock = budget_of(scripts, 500)
    small, large = (cells.Cell(8, 1, x, "resident", ()) for x in (20, 29))
    plain = budget.plain(large, 64, 4)
    assert plain > budget.plain(small, 64, 4)
    assert budget.expected(large, 64, 4) == plain
    for pace in (0.5, 0.5, 3):
        budget.learn(small, 64, 4, pace * budget.plain(small, 64, 4))
    assert budget.expected(large, 64, 4) == pytest.approx(plain / 2)
    clock.now += 120
    assert budget.left() == 380


def test_more_roots_are_validated_where_there_is_time(scripts):
    cells = scripts.device_cells
    cell = cells.Cell(8, 1, 29, "resident", ())
    later = [cell] * 3
    counts = []
    for seconds in (50, 200, 400, 4000):
        budget, _ = budget_of(scripts, seconds)
        counts.append(budget.to_validate(cell, later, 64, 4))
    assert counts[0] == 4
    assert counts[-1] == 64
    assert counts == sorted(set(counts))
    assert budget.to_validate(cell, later, 3, 4) == 3
    budget, _ = budget_of(scripts, 400)
    budget.check *= 4
    assert budget.to_validate(cell, later, 64, 4) > counts[2]


def test_a_cell_with_roots_of_its_own_validates_all(scripts):
    cells = scripts.device_cells
    budget, _ = budget_of(scripts, 400)
    usual = cells.Cell(4, 1, 18, "resident", ())
    many = cells.Cell(4, 1, 18, "resident", ("checked",), roots=100_000)
    assert budget.to_validate(many, (), 64, 4) == 100_000
    assert budget.plain(many, 64, 4) == budget.plain(usual, 100_000, 100_000)


# what rows tell


def row(cell, rate, **more):
    fields = {"state": "done", "GTEPS": rate, "GTEPS_large": None}
    fields |= {"validated": 4, "roots": 64}
    return {**cell.as_dict(), **fields, "mode": cell.method, "exchange": "nccl", **more}


def rows_of(scripts, grid, rate):
    cells = cells_in(scripts, scripts.device_cells.plan(grid))
    return [row(cell, rate(cell)) for cell in cells]


@pytest.mark.parametrize("devices", [2, 4, 8])
def test_ratios(scripts, devices):
    grid = grid_of(scripts.device_cells, devices)

    def rate(cell):  # each doubling is 1.8 times as fast, messages halve it
        steps = cell.devices.bit_length() - 1
        return 100 * 1.8**steps / (2 if cell.domain else 1)

    rows = rows_of(scripts, grid, rate)
    top = scripts.device_cells.Cell(devices, 1, TOPS[devices], "resident", ("largest",))
    summary = scripts.device_report.report_of([*rows, row(top, 1.0)], grid)
    for use in ("weak", "strong"):
        line = summary[use]["resident"]
        assert [x["devices"] for x in line] == [2**k for k in range(len(line))]
        assert [x["faster"] for x in line] == pytest.approx(
            [1.8**k for k in range(len(line))]
        )
        assert line[1]["efficiency"] == pytest.approx(0.9)
    line = summary["weak"]["nccl"]
    assert line[-1]["faster"] == pytest.approx(1.8 ** (len(line) - 1) / 2)
    assert "nccl" not in summary["strong"]
    assert summary["largest"]["scale"] == TOPS[devices]
    shaped = {(x["shape"], x["way"]) for x in summary["shapes"]}
    assert {shape for shape, way in shaped if way == "resident"} == SHAPES[devices]
    assert (f"1x{devices}x1", "host between domains of 1") in shaped
    text = list(scripts.device_report.lines_of(summary))
    assert any(x.startswith("weak, nccl: 1 at 26: x 1 (100%), 2 at 27") for x in text)
    assert ("wanted" in summary) is (devices == 4)


def test_what_four_devices_must_reach(scripts):
    cells = scripts.device_cells
    grid = grid_of(cells, 4)
    rows = rows_of(scripts, grid, lambda x: 5000.0 / (2 if x.domain else 1))
    summary = scripts.device_report.report_of(rows, grid)
    goals = {
        (x["shape"], x["scale"], x["way"]): x
        for x in summary["wanted"]
        if "what" not in x
    }
    ids = goals["1x1x4", 28, "resident"]
    assert (ids["value"], ids["must"], ids["aim"]) == (5000, 4500, 5500)
    assert goals["1x1x4", 28, "resident, internal ids"]["must"] == 5200
    assert goals["1x4x1", 26, "resident"]["must"] == 3300
    assert goals["1x2x2", 28, "nccl between domains of 2"]["must"] == 1800
    assert ("1x2x2", 28, "host between domains of 2") not in goals
    assert not any(scale in (18, 22) for _, scale, _ in goals)
    [last] = [x for x in summary["wanted"] if "what" in x]
    assert (last["what"], last["value"]) == ("efficiency", 2500 / 4 / 5000)
    text = list(scripts.device_report.lines_of(summary))
    assert "1x1x4, scale 28, resident: 5000 GTEPS (must 4500, aim 5500)" in text


def test_roots_in_small_components_do_not_decide(scripts):
    cells = scripts.device_cells
    one = row(cells.Cell(4, 1, 28, "resident", ("scales",)), 1e-5, GTEPS_large=4700.0)
    [goal] = scripts.device_report.wanted([one], {})
    assert (goal["value"], goal["must"]) == (4700, 4500)


def test_what_is_sent(scripts):
    kinds = scripts.device_report.KINDS

    def level(root, sent, seconds):
        values = {kind: sent * k for k, kind in enumerate(kinds)}
        phases = {"work": seconds, "exchange": 2 * seconds}
        record = {"root": root, "bytes_sent": values, "seconds": phases}
        return json.dumps(record)

    lines = [level(3, 10, 1e-6), level(3, 20, 3e-6), level(5, 50, 1e-6)]
    sent = scripts.device_report.sent_of(lines)
    assert sent["levels"] == 1.5
    assert sent["bytes"] == {kind: 40 * k for k, kind in enumerate(kinds)}
    assert sent["us_a_level"] == pytest.approx({"work": 1.5, "exchange": 3})
    assert scripts.device_report.sent_of([]) == {}


def test_rows_that_are_missing(scripts):
    cells = scripts.device_cells
    grid = grid_of(cells, 8)
    summary = scripts.device_report.report_of([], grid)
    assert summary["weak"] == summary["strong"] == {}
    assert summary["largest"] is None
    assert list(scripts.device_report.lines_of(summary)) == []
    every = rows_of(scripts, grid, lambda cell: 10.0 * cell.devices)
    for one in every:
        if one["devices"] == 8:
            one |= {"state": "no memory", "said": "part 0"}
            del one["GTEPS"]
    summary = scripts.device_report.report_of(every, grid)
    assert [x["devices"] for x in summary["weak"]["resident"]] == [1, 2, 4]
    assert summary["shapes"] == []
    four = grid_of(cells, 4)
    some = [x for x in rows_of(scripts, four, lambda _: 9.0) if x["devices"] < 4]
    assert scripts.device_report.report_of(some, four)["wanted"] == []


def test_the_largest_scale_and_the_largest_that_was_validated(scripts):
    cells = scripts.device_cells
    grid = grid_of(cells, 8)
    rows = [
        row(cells.Cell(8, 1, 32, "resident", ("largest",)), 9.0, validated=0),
        row(cells.Cell(8, 1, 31, "resident", ("largest",)), 99.0),
        row(cells.Cell(4, 1, 33, "resident", ("largest",)), 99.0),
    ]
    largest = scripts.device_report.report_of(rows, grid)["largest"]
    assert (largest["scale"], largest["largest_validated"]) == (32, 31)
