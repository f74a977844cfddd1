"""Measure a host with 1, 2, 4 or 8 devices: contracts, scaling, domains, stores.

    python scripts/bench_devices.py --out results
    python scripts/bench_devices.py --uses scales domains --budget 300 --out results
    python scripts/bench_devices.py --cpu --out results      # 8 parts on CPU ranks

Every cell is ``distbfs graph500`` in a process of its own, under mpirun where it has
several ranks, so that a fault loses one cell.  On N devices:

- scales: each of --scales on all devices, in the input's ids and in internal ones, by
  one process and by a rank a device
- contracts: tests of all exchanges, of searches by them, and of ranks that are lost
- weak: scale 26 a device, over 1, 2 … N, in one domain and in domains of one device
- domains: scale 28 between domains of N/2 devices and of one, by each exchange, with
  the bytes that rank 0 sends and the time of a level, from one more search a root
- strong: scale 28 over 1, 2 … N; shapes: ranks x devices
- largest: what devices and host memory could hold, downwards
- stores, many: other scripts, for stored graphs, a service under load, many searches
- checked: 10^5 searches of scale 18, of four graphs, each validated

Searches give levels and parents; --validate roots of a cell are validated, more where
there is time.  Cells run in the order of what matters most, and those that the --budget
does not hold are left out and named.  --list tells the order alone.  Results are
written after each cell.  Figures are drawn by matplotlib; --draw FILE draws a file's.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import device_cells as cells
import device_report as telling
import figures

from distbfs.device import cuda
from distbfs.errors import DistbfsError, InputError, UsageError
from distbfs.plan.memory import machine_memory
from distbfs.report.provenance import driver_version
from distbfs.report.tables import print_table

SCRIPTS = Path(__file__).resolve().parent
ROOT = SCRIPTS.parent
DISTBFS = (sys.executable, "-m", "distbfs")
NAME = "bench_devices"
USES = (
    *("scales", "contracts", "weak", "domains", "strong", "largest", "shapes"),
    *("stores", "many", "checked"),
)
HEAD = ("shape", "scale", "way", "GTEPS", "ms", "roots", "validated", "for", "")
GRACE = 10.0  # seconds that a process gets to end after a request
HOST_SHARE = 0.9  # of the host's memory, for what devices do not hold
SHORTEST, TIMES = 60.0, 5.0  # time limit of a cell: a multiple of its expected time
NO_MEMORY = 3
BEFORE_ERRORS = "Traceback"
LINE = 300  # characters of a command's message
STATES = ("passed", "failed", "skipped", "stopped")  # of tests
RIGHT = re.compile(r"^(\S+) is right$", re.MULTILINE)
COUNTED = re.compile(r"(\d+) (passed|failed|skipped|errors?)\b")
USUAL: dict[bool, dict[str, int | None]] = {  # on devices, and with --cpu
    False: {"weak": 26, "strong": 28, "roots": 64, "validate": 4, "devices": None},
    True: {"weak": 13, "strong": 15, "roots": 16, "validate": 16, "devices": 8},
}
CPU_TOP, CPU_RANKS = 17, 4


@dataclass(frozen=True)
class Ended:
    """How a command ended; late: by the time limit."""

    code: int
    out: str
    err: str
    seconds: float
    late: bool

    @property
    def said(self) -> str:
        """The line that gives the reason, or the last one."""
        lines = [x.rstrip() for x in self.err.splitlines() if x.strip()]
        lines = [x for x in lines if not x.startswith("distbfs: engine ")]
        for k, line in enumerate(lines):
            if line.startswith(BEFORE_ERRORS):
                lines = [x for x in lines[k + 1 :] if not x.startswith(" ")][:1]
                break
        own = [x for x in lines if x.startswith("distbfs: ")]
        last = (own or lines)[-1:]
        return last[0].removeprefix("distbfs: ")[:LINE] if last else ""


def below(process: int) -> list[int]:
    """Return all descendants of a process."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            stat = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        parents.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(
            int(path.parent.name)
        )
    processes = list(parents.get(process, []))
    for one in processes:
        processes += parents.get(one, [])
    return processes


def kill(process: subprocess.Popen[str]) -> None:
    """Kill a process that does not end, and its descendants."""
    for one in [*below(process.pid), process.pid]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)


def execute(words: Sequence[str], limit: float) -> Ended:
    """Run a command of the checkout to its end, at most ``limit`` seconds."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    began, late = time.monotonic(), False
    process = subprocess.Popen(
        list(words),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        late = True
        process.terminate()  # a benchmark then reports its finished searches
        try:
            out, err = process.communicate(timeout=GRACE)
        except subprocess.TimeoutExpired:
            kill(process)
            out, err = process.communicate()
    except BaseException:
        kill(process)
        raise
    seconds = time.monotonic() - began
    return Ended(process.returncode, out, err, seconds, late)


def launcher(ranks: int, *, always: bool = False) -> list[str]:
    """Return the launcher of ``ranks`` ranks: this Python's mpiexec, or another.

    always: also for one rank
    """
    if ranks == 1 and not always:
        return []
    beside = Path(sys.executable).with_name("mpiexec")
    command = str(beside) if beside.exists() else shutil.which("mpirun")
    if not command:
        raise UsageError("several ranks need mpirun, which is not on the path")
    return [command, "-n", str(ranks)]


def describe_devices() -> dict[str, Any]:
    """Return number and kind of the devices."""
    count = int(cuda.cupy().cuda.runtime.getDeviceCount())
    facts = {"count": count, **cuda.describe(), "driver_version": driver_version()}
    return {**facts, "free_bytes": cuda.free_bytes()}


def devices_here() -> dict[str, Any]:
    """Describe the devices in a process of its own, which then holds no memory."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(describe_devices).result()


class Bench:
    """Runs all jobs and collects their results."""

    def __init__(
        self, args: argparse.Namespace, grid: cells.Grid, device: dict[str, Any] | None
    ) -> None:
        self.args, self.grid, self.device = args, grid, device
        costs = cells.ON_CPUS if grid.cpu else cells.ON_DEVICES
        self.budget = cells.Budget(args.budget, costs)
        self.rows: list[cells.Row] = []
        self.contracts: list[cells.Row] = []
        self.programs: list[cells.Row] = []
        self.skipped: list[cells.Row] = []

    def run(self, jobs: Sequence[cells.Job]) -> None:
        """Run the jobs that fit the budget, in order."""
        for k, job in enumerate(jobs):
            after = jobs[k + 1 :]
            if isinstance(job, cells.Ladder):
                self.climb(job, after)
            elif not self.late(job):
                if isinstance(job, cells.Contract):
                    self.contracts.append(self.contract(job))
                elif isinstance(job, cells.Program):
                    self.programs.append(self.program(job))
                else:
                    self.cell(job, after)
            self.write()

    def late(self, job: cells.Job) -> bool:
        """Return whether there is no time for a job; records it then."""
        args, budget = self.args, self.budget
        need = budget.expected(job, args.roots, args.validate)
        if need <= budget.left():
            return False
        why = f"takes about {need:.0f} s, {max(budget.left(), 0):.0f} s are left"
        self.skipped.append({"name": job.name, "why": why})
        self.say(f"skipped: {job.name}: {why}")
        return True

    def limit(self, expected: float) -> float:
        """Return the time limit for an expected time."""
        usual = min(max(SHORTEST, TIMES * expected), self.args.limit)
        return max(min(usual, self.budget.left()), 1.0)

    def say(self, line: str) -> None:
        """Print the progress."""
        spent = self.args.budget - self.budget.left()
        print(f"{spent:5.0f} s  {line}", file=sys.stderr, flush=True)

    def cell(
        self, cell: cells.Cell, after: Sequence[cells.Job], validate: int | None = None
    ) -> cells.Row:
        """Run a cell and record its row.

        validate: number of roots; default: as many as there is time for
        """
        args, budget = self.args, self.budget
        if validate is None:
            validate = budget.to_validate(cell, after, args.roots, args.validate)
        counts = {"roots": cell.roots or args.roots, "validate": validate}
        words = cells.words_of(cell, cpu=self.grid.cpu, **counts)
        limit = self.limit(budget.expected(cell, **counts))
        with tempfile.TemporaryDirectory() as name:
            records = Path(name) / "records"
            words += ["--records", str(records)] if cell.domain else []
            ended = execute([*launcher(cell.ranks), *DISTBFS, *words], limit)
            row = {**cell.as_dict(), **row_of(ended), "seconds": ended.seconds}
            if cell.domain and records.is_file() and row["state"] == "done":
                with records.open(encoding="utf-8") as lines:
                    row["sent"] = telling.sent_of(lines)
        if row["state"] == "done":
            budget.learn(cell, **counts, seconds=ended.seconds)
            if row["validate_seconds"]:
                budget.check = cell.tuples / row["validate_seconds"]
        self.rows.append(row)
        outcome = f"{row['GTEPS']:.4g} GTEPS" if row["state"] == "done" else row["said"]
        self.say(f"{cell.name}: {row['state']}, {outcome} ({ended.seconds:.0f} s)")
        return row

    def climb(self, ladder: cells.Ladder, after: Sequence[cells.Job]) -> None:
        """Find the largest scale that fits, from the top down."""
        for cell in map(ladder.cell, ladder.scales):
            if self.late(cell):
                continue
            row = self.cell(cell, after)
            if row["state"] != "done" and "validation" in row["said"]:
                row = self.cell(cell, after, validate=0)
            if row["state"] == "done":
                return

    def program(self, job: cells.Program) -> cells.Row:
        """Run another script; its file becomes part of the row."""
        with tempfile.TemporaryDirectory() as folder:
            words = [word.replace("OUT", folder) for word in job.words]
            script = str(SCRIPTS / job.script)
            command = [*launcher(job.ranks), sys.executable, script, *words]
            ended = execute(command, self.limit(job.seconds))
            row: cells.Row = {"name": job.name, "use": job.use, "code": ended.code}
            row |= {"seconds": ended.seconds, "said": ended.said if ended.code else ""}
            with contextlib.suppress(OSError, ValueError):
                row["result"] = json.loads((Path(folder) / job.file).read_text())
        state = "done" if not ended.code else f"exit code {ended.code}"
        state = "still running at the time limit" if ended.late else state
        row["state"] = state
        self.say("; ".join(filter(None, [f"{job.name}: {state}", row["said"]])))
        return row

    def contract(self, job: cells.Contract) -> cells.Row:
        """Run contract tests; restart after a kind that fails."""
        row: cells.Row = {"name": job.name, "ranks": job.ranks, "said": []}
        row |= dict.fromkeys(STATES, 0)
        row |= {"right": [], "not_run": []}
        began = time.monotonic()
        expected = self.budget.expected(job, 0, 0)
        if job.kinds:
            for kind, state, said in self.kinds(job, expected):
                row["right"] += [kind] * (state == "passed")
                row["not_run"] += [kind] * (state == "skipped")
                row[state] += 1
                row["said"] += [f"{kind}: {said}"] if said else []
        else:
            self.counted(job, expected, row)
        row["seconds"] = time.monotonic() - began
        counts = [f"{row[x]} {x}" for x in STATES if row[x] or x == "passed"]
        self.say("; ".join([f"{job.name}: {', '.join(counts)}", *row["said"]]))
        return row

    def kinds(
        self, job: cells.Contract, expected: float
    ) -> Iterator[tuple[str, str, str]]:
        """Yield (kind, state, reason) for each kind of exchange."""
        waiting = list(job.kinds)
        while waiting:
            if self.budget.left() < self.budget.costs.start:
                yield waiting.pop(0), "skipped", "no time is left"
                continue
            words = [sys.executable, *job.program, *waiting]
            ended = execute([*launcher(job.ranks), *words], self.limit(expected))
            right = RIGHT.findall(ended.out)
            while waiting and waiting[0] in right:
                yield waiting.pop(0), "passed", ""
            if not waiting:
                return
            state, why = "failed", f"{ended.said} (exit code {ended.code})"
            if ended.late:
                state, why = "stopped", "still running at the time limit"
            elif ended.code == InputError.exit_code:
                state = "skipped"
            yield waiting.pop(0), state, why

    def counted(self, job: cells.Contract, expected: float, row: cells.Row) -> None:
        """Run tests by pytest, and count the results."""
        words = [sys.executable, "-m", "pytest", *job.program]
        words += ["-p", "no:cacheprovider", *["--with-mpi"] * job.launched]
        started = launcher(job.ranks, always=True) if job.launched else []
        ended = execute([*started, *words], self.limit(expected))
        tail = "\n".join(ended.out.splitlines()[-1:])
        for count, what in COUNTED.findall(tail):
            row["failed" if what.startswith("error") else what] += int(count)
        if ended.late or ended.code:
            row["stopped"] += ended.late
            row["failed"] += not (ended.late or row["failed"])
            late = "still running at the time limit" if ended.late else ""
            row["said"].append(late or ended.said or tail)

    def values(self) -> dict[str, Any]:
        """Return all results so far, for the result file."""
        device = {} if self.device is None else {"device": self.device}
        return {
            **device,
            "form": "cpus" if self.grid.cpu else "devices",
            "grid": vars(self.grid),
            "budget": self.args.budget,
            "took": self.args.budget - self.budget.left(),
            "told": telling.report_of(self.rows, self.grid),
            "contracts": self.contracts,
            "programs": self.programs,
            "skipped": self.skipped,
            "rows": self.rows,
        }

    def write(self) -> None:
        """Write the results so far."""
        figures.write(self.args.out, NAME, self.values(), device=False)

    def wrong(self) -> list[str]:
        """Return the failures; too little memory is none."""
        faults = [
            f"{x['name']}: {'; '.join(x['said'])}"
            for x in self.contracts
            if x["failed"] or x["stopped"]
        ]
        faults += [
            f"{x['name']}: {x['state']}; {x['said']}"
            for x in self.programs
            if x["code"]
        ]
        for row in self.rows:
            if row["state"] == "failed":
                at = f"{row['shape']}, scale {row['scale']}, {row['way']}"
                faults.append(f"{at}: {row['said']}")
        return faults


def row_of(ended: Ended) -> cells.Row:
    """Return the row entries for how a command ended.

    state: done, or why not: "no memory" (or device), "refused", "stopped" by the time
    limit, "failed"; a stopped run has figures of its finished searches
    """
    said = ended.said if ended.code or ended.late else ""
    if ended.late and ended.code:
        said = f"still running after {ended.seconds:.0f} s"
    try:
        report = telling.figures_of(json.loads(ended.out)) if ended.code == 0 else None
    except (ValueError, KeyError, TypeError):
        report, said = None, f"no report: {ended.said}"
    if report is not None:
        return {"state": "done", "said": said, **report}
    states = {NO_MEMORY: "no memory", InputError.exit_code: "refused"}
    state = "stopped" if ended.late else states.get(ended.code, "failed")
    return {"state": state, "said": said or f"exit code {ended.code}"}


def shown(row: cells.Row) -> list[str]:
    """Return a row of the table."""
    at = [row["shape"], str(row["scale"]), row["way"]]
    uses = " ".join(row["uses"])
    if row["state"] != "done":
        return [*at, "-", "-", "-", "-", uses, f"{row['state']}: {row['said']}"]
    figures_ = [f"{row['GTEPS']:.4g}", f"{row['median_ms']:.4g}", str(row["roots"])]
    method, mode, exchange = row["method"], row["mode"], row["exchange"]
    note = row["said"]
    if row["domain"]:
        note = mode if exchange == method else f"{exchange}, {mode}"
    elif method == cells.RESIDENT and mode != method:
        note = mode
    if row["GTEPS_large"]:
        others = f"{row['GTEPS_large']:.4g} GTEPS without roots in small components"
        note = ", ".join(filter(None, [note, others]))
    return [*at, *figures_, str(row["validated"]), uses, note]


def chosen(jobs: Sequence[cells.Job], uses: Sequence[str]) -> list[cells.Job]:
    """Return the jobs of some uses."""
    picked = []
    for job in jobs:
        serves: tuple[str, ...] = ("contracts",)
        if isinstance(job, cells.Cell):
            serves = job.uses
        elif isinstance(job, cells.Ladder):
            serves = ("largest",)
        elif isinstance(job, cells.Program):
            serves = (job.use,)
        if set(serves) & set(uses):
            picked.append(job)
    return picked


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    """Return the arguments of the command line."""
    text = __doc__ or ""
    parser = argparse.ArgumentParser(description=text.partition("\n")[0])
    add = parser.add_argument
    add("--cpu", action="store_true", help="parts on CPU ranks, at small scales")
    add("--devices", type=int, help="so many; else all, or 8 parts with --cpu")
    add("--weak", type=int, help="scale a device [26; --cpu: 13]")
    add("--strong", type=int, help="scale of strong scaling [28; --cpu: 15]")
    add("--top", type=int, help="largest scale to try; else by memory [--cpu: 17]")
    text = "on all devices [22 26 28 31; --cpu: none]"
    add("--scales", type=int, nargs="*", help=text)
    add("--ranks", type=int, help="most ranks [one per device; --cpu: 4]")
    add("--roots", type=int, help="searches of a cell [64; --cpu: 16]")
    add("--validate", type=int, help="roots of each cell, at least [4; --cpu: 16]")
    add("--uses", nargs="+", choices=USES, default=list(USES), help="what is run")
    add("--budget", type=float, default=570, help="seconds in all [570]")
    add("--limit", type=float, default=150, help="seconds of one cell [150]")
    add("--out", type=Path, default=figures.RESULTS, help="output folder")
    add("--list", action="store_true", help="tell what would run, in its order")
    add("--draw", type=Path, metavar="FILE", help="draw a result file, run nothing")
    args = parser.parse_args(words)
    for name, value in USUAL[args.cpu].items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    if args.scales is None:
        args.scales = () if args.cpu else cells.SCALES
    for name in ("roots", "validate", "weak", "strong", "budget", "limit"):
        if getattr(args, name) <= 0:
            raise UsageError(f"--{name} is {getattr(args, name)}; allowed: above 0")
    return args


def grid_of(
    args: argparse.Namespace,
) -> tuple[cells.Grid, dict[str, Any] | None]:
    """Return the available hardware, and a description of its devices."""
    scales = tuple(args.scales)
    if args.cpu:
        ranks = args.ranks or min(CPU_RANKS, args.devices)
        top = args.top or CPU_TOP
        on = args.devices, args.weak, args.strong, top, ranks
        return cells.Grid(*on, cpu=True, scales=scales), None
    if args.list and args.devices and args.top:  # plan for other hardware
        on = args.devices, args.weak, args.strong, args.top, args.ranks or args.devices
        return cells.Grid(*on, scales=scales), None
    device = devices_here()
    most = max(x for x in cells.COUNTS if x <= device["count"])
    count = args.devices or most
    if count > most:
        raise UsageError(f"devices is {count}; here are {device['count']}")
    memory = device["memory_bytes"], int(HOST_SHARE * machine_memory()[0])
    top = args.top or cells.largest_scale(count, *memory)
    on = count, args.weak, args.strong, top, args.ranks or count
    return cells.Grid(*on, False, *memory, scales), device


def draw_file(path: Path, out: Path) -> None:
    """Draw the figure of a result file."""
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        figures.drawn(out / path.stem, partial(telling.draw, report=report), (13, 4.5))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: no results of {NAME}.py") from error


def main(words: Sequence[str] | None = None) -> int:
    """Run the requested cells; return 1 if a result was wrong."""
    args = parse(words)
    if args.draw:
        draw_file(args.draw, args.out)
        return 0
    grid, device = grid_of(args)
    jobs = chosen(cells.plan(grid), args.uses)
    bench = Bench(args, grid, device)
    if args.list:
        for job in jobs:
            need = bench.budget.expected(job, args.roots, args.validate)
            print(f"{need:5.0f} s  {job.name}")
        return 0
    launcher(max([getattr(job, "ranks", 1) for job in jobs], default=1))
    bench.run(jobs)
    values = bench.values()
    draw = partial(telling.draw, report=values)
    figures.save(args.out, NAME, values, draw, device=False, size=(13, 4.5))
    print_table(HEAD, [shown(row) for row in bench.rows])
    for line in telling.lines_of(values["told"]):
        print(line)
    for row in bench.skipped:
        print(f"skipped: {row['name']}: {row['why']}")
    wrong = bench.wrong()
    for line in wrong:
        print(line, file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # stops children
    try:
        raise SystemExit(main())
    except DistbfsError as error:
        print(f"{NAME}.py: {error}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None
