"""What ``bench_devices.py`` plans for 1 to 8 devices, its budget, what rows tell."""

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from distbfs.errors import UsageError

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
H200 = 150_109_880_320
TOPS = {1: 29, 2: 30, 4: 31, 8: 32}
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


def grid_of(cells, devices, **more):
    most = cells.largest_scale(devices, H200)
    return cells.Grid(devices, 26, 28, most, devices, **{"memory": H200, **more})


def cells_in(scripts, jobs):
    return [job for job in jobs if isinstance(job, scripts.device_cells.Cell)]


@pytest.mark.parametrize("devices", [1, 2, 4, 8])
def test_all_shapes_scales_and_modes_are_planned(scripts, devices):
    cells = scripts.device_cells
    grid = grid_of(cells, devices)
    jobs = cells.plan(grid)
    assert len(set(jobs)) == len(jobs)
    planned = cells_in(scripts, jobs)
    keys = {(x.devices, x.ranks, x.scale, x.method, x.turn) for x in planned}
    assert len(keys) == len(planned), "no cell runs twice"
    counts = [x for x in (1, 2, 4, 8) if x <= devices]
    for method in ("resident", "stepwise"):
        for k, count in enumerate(counts):
            at = "fast" if count == 1 else method
            assert (count, 1, 26 + k, at, 1) in keys
            assert (count, 1, 28, at, 1) in keys
    for method in ("resident", "stepwise"):
        at = "fast" if devices == 1 else method
        shapes = {x.shape for x in planned if "shapes" in x.uses and x.method == at}
        assert shapes == SHAPES[devices]
    [ladder] = [x for x in jobs if isinstance(x, cells.Ladder)]
    assert ladder.scales[0] == TOPS[devices]
    assert ladder.scales[-1] == max(26 + len(counts) - 1, 28) + 1
    assert all(x.devices % x.ranks == 0 for x in planned)


def test_what_matters_most_comes_first(scripts):
    cells = scripts.device_cells
    jobs = cells.plan(grid_of(cells, 8))
    assert [x.name for x in jobs[:2]] == [
        "1x1x8, scale 29, resident",
        "1x1x4, scale 28, resident",
    ]
    assert jobs[1].uses == ("weak", "strong")
    tested = jobs[2]
    assert (tested.ranks, tested.program[1]) == (8, "check")
    assert set(tested.kinds) == {f"{x}-device" for x in ("host", "nccl", "cuda_aware")}
    places = {name: k for k, name in enumerate(x.name for x in jobs)}
    assert places["1x1x1, scale 26, fast"] < places["1x1x8, scale 28, resident"]
    assert places["1x1x8, scale 29, stepwise"] < places["1x8x1, scale 29, stepwise"]


def test_contract_tests_are_there(scripts):
    cells = scripts.device_cells
    root = SCRIPTS.parent
    for grid in (grid_of(cells, 8), cells.Grid(8, 9, 9, 9, 4, cpu=True)):
        for job in cells.contracts(grid):
            assert (root / job.program[0]).is_file()
    assert [x.ranks for x in cells.contracts(grid)] == [4, 2, 1]
    nccl = [x.ranks for x in cells.contracts(grid_of(cells, 8)) if "nccl" in x.kinds]
    assert nccl == [8], "one device a rank"


def test_what_memory_cannot_hold_is_left_out(scripts):
    cells = scripts.device_cells
    small = cells.Grid(4, 20, 28, 28, 4, memory=16 << 30)
    kept = cells_in(scripts, cells.plan(small))
    assert {x.devices for x in kept if "strong" in x.uses} == {4}


def test_the_grid_on_cpus(scripts):
    cells = scripts.device_cells
    jobs = cells.plan(cells.Grid(8, 9, 10, 14, 4, cpu=True))
    some = cells_in(scripts, jobs)
    assert {x.method for x in some} == {"stepwise"}
    assert {x.turn for x in some} == {1}
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
    ("devices", "method", "words"),
    [
        (8, "resident", "--engine xbfs --devices 8 --domain 8"),
        (2, "stepwise", "--engine pan --devices 2 --parts 2"),
        (1, "fast", "--engine xbfs --devices 1"),
        (1, "fast, internal ids", "--engine xbfs --devices 1 --internal-ids"),
    ],
)
def test_words_of_the_command(scripts, devices, method, words):
    cells = scripts.device_cells
    cell = cells.Cell(devices, 1, 20, method, ("weak",))
    start = "graph500 --json --scale 20 --roots 64"
    for count, end in ((64, ""), (4, " --validate 4"), (0, " --skip-validation")):
        command = cells.words_of(cell, cpu=False, roots=64, validate=count)
        assert " ".join(command) == f"{start} {words}{end}"
    command = cells.words_of(cell, cpu=True, roots=9, validate=9)
    assert "openmp" in command


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


def test_more_vertices_than_validation_takes(scripts):
    cells = scripts.device_cells
    top = cells.MAX_VERTICES.bit_length() - 1
    for scale, cpu, fits in ((top, False, True), (top + 1, False, False)):
        cell = cells.Cell(8, 1, scale, "stepwise", ())
        assert cells.can_validate(cell, cpu=cpu) is fits
        assert cells.can_validate(cell, cpu=True)


# what rows tell


def row(cell, rate, **more):
    fields = {"state": "done", "GTEPS": rate, "validated": 4, "roots": 64}
    return {**cell.as_dict(), **fields, "mode": cell.method, "exchange": "nccl", **more}


def rows_of(scripts, grid, rate):
    cells = cells_in(scripts, scripts.device_cells.plan(grid))
    return [row(cell, rate(cell)) for cell in cells]


@pytest.mark.parametrize("devices", [2, 4, 8])
def test_ratios(scripts, devices):
    grid = grid_of(scripts.device_cells, devices)

    def rate(cell):  # each doubling is 1.8 times as fast, levels by the host are slower
        slow = 2 if cell.method == "stepwise" else 1
        steps = cell.devices.bit_length() - 1
        return 100 * 1.8**steps / slow * (1.1 if cell.turn > 1 else 1) ** steps

    summary = scripts.device_report.report_of(rows_of(scripts, grid, rate), grid)
    for use in ("weak", "strong"):
        line = summary[use]["resident"]
        assert [x["devices"] for x in line] == [2**k for k in range(len(line))]
        assert [x["faster"] for x in line] == pytest.approx(
            [1.8**k for k in range(len(line))]
        )
        assert line[1]["efficiency"] == pytest.approx(0.9)
        assert summary[use]["stepwise"][-1]["faster"] == pytest.approx(
            1.8 ** (len(line) - 1) / 2
        )
    pair = summary["doubling"]["resident"]
    assert pair["ratios"] == pytest.approx([1.8, 1.98])
    assert pair["validated"] == 4
    assert summary["reached"] == {"doubling": True, "aim": False, "GTEPS": False}
    assert {x["over_one_rank"] for x in summary["shapes"]} == {1.0}
    assert summary["largest"]["scale"] == max(25 + devices.bit_length(), 28)
    assert any("1.8, 1.98" in line for line in scripts.device_report.lines_of(summary))


def test_rows_that_are_missing(scripts):
    cells = scripts.device_cells
    grid = grid_of(cells, 8)
    summary = scripts.device_report.report_of([], grid)
    assert summary["weak"] == summary["strong"] == summary["doubling"] == {}
    assert summary["largest"] is None
    assert list(scripts.device_report.lines_of(summary)) == []
    every = rows_of(scripts, grid, lambda cell: 10.0 * cell.devices)
    for one in every:
        if one["devices"] == 8:
            one |= {"state": "no memory", "said": "part 0"}
            del one["GTEPS"]
    summary = scripts.device_report.report_of(every, grid)
    assert [x["devices"] for x in summary["weak"]["resident"]] == [1, 2, 4]
    assert summary["doubling"] == {}
    assert summary["shapes"] == []


def test_the_largest_scale_and_the_largest_that_was_validated(scripts):
    cells = scripts.device_cells
    grid = grid_of(cells, 8)
    rows = [
        row(cells.Cell(8, 1, 32, "stepwise", ("largest",)), 9.0, validated=0),
        row(cells.Cell(8, 1, 31, "resident", ("largest",)), 99.0),
        row(cells.Cell(4, 1, 33, "resident", ("largest",)), 99.0),
    ]
    largest = scripts.device_report.report_of(rows, grid)["largest"]
    assert (largest["scale"], largest["largest_validated"]) == (32, 31)
