"""XBFS as published, with a choice of all its frontier and balancing strategies.

A search runs in one cooperative launch; the device decides.
Source: Gaihre, Wu, Yao, Liu: XBFS: eXploring Runtime Optimizations for Breadth-First
Search on GPUs, HPDC 2019, Sections 4 and 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.device import cuda, programs
from distbfs.device.array_table import ArrayPlan, ArrayTable
from distbfs.engines.base import Query, WholeResult
from distbfs.engines.cuda.common.host_results import results_table
from distbfs.engines.cuda.common.resident import ResidentSearch
from distbfs.errors import UsageError
from distbfs.options import BALANCES, FRONTIERS, check_choice
from distbfs.partition.share import Share
from distbfs.types import Array, Root

SOURCE = Path(__file__).with_name("paper.cu")
THREADS = 256  # of a block; as in paper_state.cuh
CHUNK = 2048  # neighbours; as in push.cuh
MAX_BLOCKS = 8  # on a multiprocessor
BUCKETS = 32  # of degree, by powers of two

DIRECTIONS = ("auto", "push", "pull")
MODES = ("push-scan-free", "push-single-scan", "push-no-queue", "pull")
STOPPED = 2  # of ``done`` in paper_state.cuh
ALLOWED = {
    "auto": FRONTIERS,
    "push": ("auto", "scan-free", "single-scan"),
    "pull": ("auto", "double-scan"),
}


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


def array_table(graph: Share, *, parents: bool) -> ArrayTable:
    """Return the arrays of searches by argument name, without those of results."""
    n, blocks = max(graph.active, 1), cuda.multiprocessors() * MAX_BLOCKS
    return {
        **results_table(graph.active, parents=parents),
        "queues": [ArrayPlan(np.uint32, n)] * 2,
        "chunks": ArrayPlan(np.uint64, 2 * graph.m // CHUNK + 1),
        "segments": ArrayPlan(np.uint32, blocks * THREADS),
        "totals": ArrayPlan(np.uint32, blocks),
        "records": PaperSearch.records_plan(),
        "work": ArrayPlan(np.uint64, (2 + BUCKETS, BUCKETS)),
    }


def check_frontier(frontier: str, direction: str) -> None:
    """Raise UsageError unless a way to form queues fits a direction."""
    if frontier not in ALLOWED[direction]:
        raise UsageError(
            f"frontier is '{frontier}' with direction '{direction}'; allowed: "
            f"{', '.join(ALLOWED[direction])}"
        )


class PaperSearch(ResidentSearch):
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
    alpha: above 0, up to 1.

    Not allowed: ``no-queue`` or ``double-scan`` with direction ``push``; a frontier of
    pushes with direction ``pull``.  Raises UsageError, ResourceError.
    """

    source, steps = SOURCE, MODES

    def __init__(
        self,
        graph: Share,
        *,
        frontier: str = "auto",
        balance: str = "warp",
        asynchronous: bool = True,
        direction: str = "auto",
        parents: bool = True,
        alpha: float = 0.1,
    ) -> None:
        check_choice("frontier", frontier, FRONTIERS)
        check_choice("balance", balance, BALANCES)
        check_choice("direction", direction, DIRECTIONS)
        check_frontier(frontier, direction)
        if not 0 < alpha <= 1:
            raise UsageError(f"alpha is {alpha}; allowed: above 0, up to 1")
        super().__init__(
            graph,
            alpha=alpha,
            frontier=FRONTIERS.index(frontier),
            direction=DIRECTIONS.index(direction),
            balance=BALANCES.index(balance),
            asynchronous=asynchronous,
        )
        self._kernel = programs.Module(SOURCE).kernel("search")
        blocks = min(_resident_blocks(self._kernel), MAX_BLOCKS)
        self.grid = blocks * cuda.multiprocessors()
        # vertices in a thread's segment, a multiple of 32
        self.params.segment = 32 * -(-graph.active // (self.grid * THREADS * 32))
        self._allocate(array_table(graph, parents=parents))
        self._launch(counting=False)

    def _prepare(self, *, counting: bool) -> programs.Launch:
        """Return the launch of a search; its blocks count in shared memory."""
        shared = self._arrays["work"].nbytes * counting
        return self._kernel.prepare(
            self.params, self.grid, THREADS, shared=shared, cooperative=True
        )

    def _end(self, state: Any) -> tuple[int, int, bool]:
        return state.level - 1, state.levels, state.done == STOPPED

    def answer(self, number: Root, query: Query) -> PaperResult:
        """Search from a vertex number; with records, count the work of levels."""
        work = self._arrays["work"] if query.records else None
        self.params.set(work=work)
        result = super().answer(number, query)
        counts = None if work is None else work.get().T.astype(np.int64)
        return PaperResult(**vars(result), work=counts)


def _resident_blocks(kernel: programs.Kernel) -> int:
    """Return the number of blocks of a kernel that run on a multiprocessor at once."""
    count: int = cuda.cupy().cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(
        kernel.function.ptr, THREADS, 0
    )
    return count
