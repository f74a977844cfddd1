"""XBFS as published, with a choice of all its frontier and balancing strategies.

A search runs in one cooperative launch (resident), or level by level from a loop on the
host (stepwise). Both call the same device functions, and the device decides.
Source: Gaihre, Wu, Yao, Liu: XBFS: eXploring Runtime Optimizations for Breadth-First
Search on GPUs, HPDC 2019, Sections 4 and 5.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.device import cuda, programs
from distbfs.device.array_table import ArrayPlan, ArrayTable, allocate
from distbfs.device.stop_word import StopWord
from distbfs.device.structures import structure
from distbfs.engines.base import WHOLE, LevelRecord, Until, WholeResult
from distbfs.engines.cuda.common.arguments import arguments
from distbfs.engines.cuda.common.goal import goal_of
from distbfs.engines.cuda.common.host_results import results_table
from distbfs.errors import ResourceError, SearchStopped, UsageError
from distbfs.graph.device_graph import DeviceGraph
from distbfs.options import BALANCES, FRONTIERS, check_choice
from distbfs.types import Array, Stop

SOURCE = Path(__file__).with_name("paper.cu")
THREADS = 256  # of a block; as in paper_state.cuh
CHUNK = 2048  # neighbours; as in push.cuh
MAX_BLOCKS = 8  # on a multiprocessor
RECORDS = 1 << 16  # most levels that a resident search records
BUCKETS = 32  # of degree, by powers of two
TO_HOST = 2  # cudaMemcpyDeviceToHost

DIRECTIONS = ("auto", "push", "pull")
MODES = ("push-scan-free", "push-single-scan", "push-no-queue", "pull")
SINGLE_SCAN, NO_QUEUE, PULL = 1, 2, 3
STOPPED = 2  # of ``done`` in paper_state.cuh
ALLOWED = {
    "auto": FRONTIERS,
    "push": ("auto", "scan-free", "single-scan"),
    "pull": ("auto", "double-scan"),
}
STEPS = (
    "start",
    "gather",
    "adopt",
    "expand",
    "chunks",
    "scan",
    "count",
    "place",
    "pull",
    "end",
)


COUNTED = ("found_early", "repeats", "handed_out", "donations")
RECORD = (
    "level",
    "mode",
    "frontier",
    "checks",
    "found",
    "found_early",
    "repeats",
    "handed_out",
    "donations",
    "nanoseconds",
)


@dataclass
class PaperResult(WholeResult):
    """One search by vertex number, and the work of its pulls by degree.

    records: their ``direction`` is one of ``MODES``; ``found`` includes ``found_early``
    (vertices of the next level found by an asynchronous pull), which is in ``extra``
    with ``repeats`` (status writes beyond one a vertex), ``handed_out`` (queue entries
    that a pull distributed by its counter) and ``donations`` (rows of a pull that a
    warp took over from its last lane)
    work: int64 [32, 34], or None without records: pulled vertices by degree, of which
    row k has those of 2^k ... 2^(k+1) - 1: their number, their edge checks and, in
    column 2 + w, how many had 2^w ... 2^(w+1) - 1 checks (Figure 9)
    """

    work: Array | None = None


def array_table(graph: DeviceGraph, *, parents: bool) -> ArrayTable:
    """Return the arrays of searches by argument name, without those of results."""
    n, blocks = max(graph.active, 1), cuda.multiprocessors() * MAX_BLOCKS
    return {
        **results_table(graph.active, parents=parents),
        "queues": [ArrayPlan(np.uint32, n)] * 2,
        "chunks": ArrayPlan(np.uint64, 2 * graph.m // CHUNK + 1),
        "segments": ArrayPlan(np.uint32, blocks * THREADS),
        "totals": ArrayPlan(np.uint32, blocks),
        "control": ArrayPlan(np.uint8, ctypes.sizeof(structure(SOURCE, "Control"))),
        "records": ArrayPlan(np.uint64, (RECORDS, len(RECORD))),
        "work": ArrayPlan(np.uint64, (2 + BUCKETS, BUCKETS)),
    }


def check_frontier(frontier: str, direction: str) -> None:
    """Raise UsageError unless a way to form queues fits a direction."""
    if frontier not in ALLOWED[direction]:
        raise UsageError(
            f"frontier is '{frontier}' with direction '{direction}'; allowed: "
            f"{', '.join(ALLOWED[direction])}"
        )


class PaperSearch:
    """Searches a graph on one device by the published method.

    In a directed graph, it pushes along outgoing edges and pulls along incoming ones.

    frontier: how queues are made.
        ``auto``: the order of Figure 7, decided by alpha and lambda.
        ``scan-free``, ``single-scan``: every push makes the next queue in this way; the
        first push after a pull gets its queue by one scan of the status array.
        ``no-queue``: the first push after a pull reads the queue of that pull; only
        then is there such a queue, so other pushes are scan-free. ``double-scan``: the
        first level is a scan-free push, all others are pulled.
    balance: how a pull shares its queue: ``static``, ``thread`` (Algorithm 1), ``warp``
        (Algorithm 2), ``donation`` (warp, and the last lane's row is shared),
        ``degree`` (thread, warp or block by degree: the paper's baseline).
    asynchronous: a pull also visits vertices of the level after (Algorithm 3), except
        where its own may be the last: at a limit of depth, and where targets are given.
    direction: ``auto`` pulls a level where its edge checks over |E| reach alpha;
        ``push`` and ``pull`` take one direction at all levels.  ``balance`` and
        ``asynchronous`` change nothing where no level is pulled.
    parents: whether parents are written.
    stepwise: level by level from the host; else one cooperative launch.
    alpha: above 0, up to 1.
    blocks: blocks of 256 threads on a multiprocessor, 0: as many as fit.

    Not allowed: ``no-queue`` or ``double-scan`` with direction ``push``; a frontier of
    pushes with direction ``pull``.  Raises UsageError, ResourceError.
    """

    def __init__(
        self,
        graph: DeviceGraph,
        *,
        frontier: str = "auto",
        balance: str = "warp",
        asynchronous: bool = True,
        direction: str = "auto",
        parents: bool = True,
        stepwise: bool = False,
        alpha: float = 0.1,
        blocks: int = 0,
    ) -> None:
        check_choice("frontier", frontier, FRONTIERS)
        check_choice("balance", balance, BALANCES)
        check_choice("direction", direction, DIRECTIONS)
        check_frontier(frontier, direction)
        if not 0 < alpha <= 1:
            raise UsageError(f"alpha is {alpha}; allowed: above 0, up to 1")
        if not 0 <= blocks <= MAX_BLOCKS:
            raise UsageError(f"blocks is {blocks}; allowed: 0 to {MAX_BLOCKS}")
        self.graph, self._stepwise, self._blocks = graph, stepwise, blocks
        self._programs: dict[bool, _Program] = {}
        self._module = programs.Module(SOURCE)
        self._word = StopWord()
        self._host_control = structure(SOURCE, "Control")
        self._params = arguments(
            SOURCE,
            "Params",
            graph,
            alpha=alpha,
            frontier=FRONTIERS.index(frontier),
            direction=DIRECTIONS.index(direction),
            balance=BALANCES.index(balance),
            asynchronous=asynchronous,
        )
        with cuda.memory_of("a search by the paper's method"):
            self._allocate(parents)
        self._program(counting=False)

    def _allocate(self, parents: bool) -> None:
        """Allocate the arrays of searches."""
        made = allocate(array_table(self.graph, parents=parents), cuda.cupy().empty)
        self._level, self._parent = made.pop("level"), made.pop("parent", None)
        self._control, self._work = made["control"], made.pop("work")
        self._control.fill(0)
        self._records = made["records"]
        self._params.set(status=self._level, parent=self._parent, **made)

    def _program(self, counting: bool) -> _Program:
        """Return the launches, with or without shared memory for counters."""
        if counting not in self._programs:
            self._programs[counting] = _Program(
                self._module,
                self._params,
                self._blocks,
                self._stepwise,
                self._work.nbytes * counting,
            )
        return self._programs[counting]

    def search(
        self,
        number: int,
        *,
        records: bool = False,
        until: Until = WHOLE,
        stop: Stop | None = None,
    ) -> PaperResult:
        """Search from a vertex number; with records, count the work of levels.

        stop: as in ``WholeSearch``
        A resident search records at most 65536 levels. Raises UsageError for an invalid
        vertex number, and if there are more levels to record.
        """
        program = self._program(records)
        self._params.root = number
        work = self._work if records else None
        goal = goal_of(until, number, self.graph.active)
        self._params.set(goal=goal, work=work)
        self._params.segment = program.segment(self.graph.active)
        self._params.record_capacity = 1 if self._stepwise else RECORDS
        log: list[LevelRecord] = []
        if self._stepwise:
            seconds, log = self._step(program, records, stop)
        else:
            self._word.stop = stop
            self._params.stop = self._word.address
            seconds = program.launches["search"].timed(word=self._word)
        state = self._read_state()
        if state.done == STOPPED:
            raise SearchStopped(f"the search was stopped at level {state.level - 1}")
        if records and not self._stepwise:
            log = self._resident_log(state.level - 1)
        counts = work.get().T.astype(np.int64) if work is not None else None
        return PaperResult(
            self._level, self._parent, state.levels, seconds, 1, log, work=counts
        )

    def _read(self) -> Any:
        """Wait for the device; return a copy of the control structure."""
        host = self._host_control()
        cuda.cupy().cuda.runtime.memcpy(
            ctypes.addressof(host), self._control.data.ptr, ctypes.sizeof(host), TO_HOST
        )
        return host

    def _read_state(self) -> Any:
        return self._read().state

    def _resident_log(self, levels: int) -> list[LevelRecord]:
        """Return the records that the device wrote."""
        if levels > RECORDS:
            raise UsageError(
                f"a resident search records {RECORDS} levels, this one has {levels}; "
                "allowed: stepwise=True, or no records"
            )
        rows = self._records[:levels].get()
        ends = rows[:, -1].astype(np.float64) * 1e-9
        spans = np.diff(ends, prepend=0.0)
        return [_record(row, s) for row, s in zip(rows, spans, strict=True)]

    def _step(
        self, program: _Program, records: bool, stop: Stop | None
    ) -> tuple[float, list[LevelRecord]]:
        """Run a search level by level; return (seconds, records)."""
        event = cuda.cupy().cuda.Event
        elapsed = cuda.cupy().cuda.get_elapsed_time
        begin, before, end = event(), event(), event()
        run = program.launches
        log: list[LevelRecord] = []
        begin.record()
        run["start"]()
        end.record()
        while True:
            state = self._read_state()
            if state.done:
                break
            if stop is not None and stop():
                level = state.level - 1
                raise SearchStopped(f"the search was stopped at level {level}")
            before.record()
            self._level_steps(program, state)
            run["end"]()
            end.record()
            if records:
                end.synchronize()
                row = self._records[0].get()
                log.append(_record(row, elapsed(before, end) * 1e-3))
        return elapsed(begin, end) * 1e-3, log

    def _level_steps(self, program: _Program, state: Any) -> None:
        """Launch the phases of one level, as ``run_level`` of paper.cu does."""
        run = program.launches
        if state.mode == PULL:
            names = ["count", "place", "pull"]
        else:
            names = ["gather"] if state.gather else []
            names += ["adopt"] if state.mode == NO_QUEUE and state.early else []
            names += ["expand", "chunks"]
            names += ["scan"] if state.mode == SINGLE_SCAN else []
        for name in names:
            run[name]()


def _record(row: Array, seconds: float) -> LevelRecord:
    """Return the record of a level; row: its RECORD."""
    values = dict(zip(RECORD, row.tolist(), strict=True))
    return LevelRecord(
        MODES[values["mode"]],
        values["frontier"],
        values["checks"],
        values["found"] + values["found_early"],
        float(seconds),
        {name: values[name] for name in COUNTED},
    )


class _Program:
    """The launches of one module, all on the same grid."""

    def __init__(
        self,
        module: programs.Module,
        params: Any,
        blocks: int,
        stepwise: bool,
        shared: int,
    ) -> None:
        resident = module.kernel("search")
        fit = min(_resident_blocks(resident), MAX_BLOCKS)
        if blocks > fit:
            raise ResourceError(
                f"{blocks} blocks do not fit a multiprocessor; allowed: 1 to {fit}"
            )
        self.grid = (blocks or fit) * cuda.multiprocessors()
        if not stepwise:
            launch = resident.prepare(
                params, self.grid, THREADS, shared=shared, cooperative=True
            )
            self.launches = {"search": launch}
            return
        self.launches = {
            name: module.kernel(f"step_{name}").prepare(
                params, 1 if name == "end" else self.grid, THREADS, shared=shared
            )
            for name in STEPS
        }

    def segment(self, vertices: int) -> int:
        """Return the vertices in a thread's segment, a multiple of 32."""
        return 32 * -(-vertices // (self.grid * THREADS * 32))


def _resident_blocks(kernel: programs.Kernel) -> int:
    """Return the number of blocks of a kernel that run on a multiprocessor at once."""
    count = ctypes.c_int()
    code = cuda.driver().cuOccupancyMaxActiveBlocksPerMultiprocessor(
        ctypes.byref(count),
        ctypes.c_void_p(kernel.function.ptr),
        ctypes.c_int(THREADS),
        ctypes.c_size_t(0),
    )
    cuda.check(code, f"occupancy of {kernel.name}")
    if not count.value:
        raise ResourceError(f"CUDA: no block of {kernel.name} fits a multiprocessor")
    return count.value
