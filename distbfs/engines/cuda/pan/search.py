"""Search of a degree-separated part on a CUDA device: arrays and calls of search.cu.

Source: Pan, Pearce, Owens 2018, Section IV (Fig. 3): visits of nn and dn on one stream,
of dd and nd on another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.device import cuda, programs
from distbfs.device.arrays import brought_here
from distbfs.device.reached import value_counts
from distbfs.device.structures import structure
from distbfs.engines.base import CHOSEN, COUNTS, LARGEST, Targets, Work
from distbfs.errors import UsageError
from distbfs.exchange.bins import Bins
from distbfs.graph.csr import CSR
from distbfs.partition.layout import Placement
from distbfs.partition.part import PART_SHIFT, Part, mask_of, mask_words
from distbfs.types import Array, Choice, DirectionName, Ids, Root

SOURCE = Path(__file__).with_name("search.cu")
THREADS = 256
# blocks of a kernel on each multiprocessor; pull: PULL_BLOCKS in part.cuh
BLOCKS = {"push": 8, "push_nn": 4, "pull": 5, "advance": 4, "other": 8}
NONE = 0xFFFFFFFF
SUBGRAPHS = ("nn", "nd", "dn", "dd")  # as the kernels number them
VISITS = ("push_nn", "push_nd", "push_dn", "push_dd", "pull_nd", "pull_dn", "pull_dd")
QUEUES = ("queue_dd", "queue_dn")
BITMAPS = ("visited", "fresh", "front")  # of normal vertices; d...: of delegates
KERNEL_NAMES = ("start", "take_normals", "advance", "finish", *QUEUES, *VISITS)
ENTRIES_BITS = 30  # COUNT_BITS in part.cuh
FIRST = 4  # columns of a row stored in separate arrays, as in part.cuh
BOX_STEP = 16  # uint64 words between counters, as in part.cuh
MAX_ROWS, MAX_EDGES = 1 << ENTRIES_BITS, 1 << (64 - ENTRIES_BITS)
NORMALS, TARGETS = (Work._fields.index(x) for x in ("normals", "targets"))
COUNT_SLICE = 1 << 26  # columns counted in one pass


def blocks_of(kernel: str) -> int:
    """Return the blocks of a kernel on each multiprocessor."""
    kind = kernel.partition("_")[0]
    return BLOCKS.get(kernel, BLOCKS.get(kind, BLOCKS["other"]))


class Control:
    """The counters of a part, in one array, and a copy of them on the host.

    The array is uint64: sizes of the queues of dd and dn and of boxes [parts], BOX_STEP
    words apart; work [COUNTS]; edge checks [4].
    """

    def __init__(self, parts: int) -> None:
        self._work = at = (2 + parts) * BOX_STEP
        self.array = cuda.cupy().zeros(at + COUNTS + 4, np.uint64)
        self._copy = cuda.HostCopy(self.array)
        self.views = {
            "size": self.array,
            "box_size": self.array[2 * BOX_STEP :],
            "work": self.array[at:],
        }
        self.checks = self.array[at + COUNTS :]

    def fetch(self, stream: Any) -> None:
        """Start copying the counters to the host."""
        self._copy.begin(stream)

    def values(self) -> tuple[Ids, Ids]:
        """Wait for the copy; return (work, checks)."""
        counts = self._copy.wait()[self._work :].astype(np.int64)
        return counts[:COUNTS], counts[COUNTS:]

    def box_sizes(self) -> Ids:
        """Wait for the copy; return the sizes of boxes, int64 [parts]."""
        sizes = self._copy.wait()[2 * BOX_STEP : self._work : BOX_STEP]
        return sizes.astype(np.int64)


class CudaPart:
    """Searches one part level by level, a ``DomainSearch``, on the current device.

    An item for another part is a uint64 that holds the vertex's number there and the
    place of its parent (``item_of`` in part.cuh).
    """

    parents = LARGEST
    streamed = in_rounds = leaves = False
    directions = CHOSEN
    visits, extras = SUBGRAPHS, ()

    def __init__(
        self,
        part: Part,
        placement: Placement,
        *,
        parents: bool,
    ) -> None:
        cp = cuda.cupy()
        self.part = part
        n, d = part.local_count, part.delegate_count
        _check_size(part, placement)
        words, dwords = -(-part.active // 64) * 2, mask_words(d) * 2
        graphs = {name: getattr(part, name) for name in SUBGRAPHS}
        if any(g.offsets.dtype.itemsize == 8 for g in graphs.values()):
            graphs = {name: _widened(g) for name, g in graphs.items()}
        narrow = part.layout.n < 1 << 31 and part.nn.columns.dtype.itemsize == 4
        self.vertex = np.dtype(np.int32 if narrow else np.int64)
        owned = np.flatnonzero(part.layout.part_of(part.delegates) == part.index)
        owned = owned[np.argsort(part.delegates[owned])]  # results are written in order
        parts = part.layout.parts
        on_ranks = np.zeros((placement.ranks, placement.per_rank), np.uint32)
        for rank, row in enumerate(on_ranks):
            row[: len(placement.parts_of(rank))] = placement.parts_of(rank)
        sent_words = -(-part.layout.local_count(0) // 32)
        with cuda.memory_of(f"a search of part {part.index}"):
            boxes = self._boxes(graphs["nn"])
            self._control = Control(parts)
            self.level = cp.full(n, -1, dtype=np.int32)
            self.parent = cp.full(n, -1, dtype=self.vertex) if parents else None
            self._boxes_at = boxes
            self._outbox = cp.empty(max(int(boxes[-1]), 1), dtype=np.uint64)
            first = self._outbox.data.ptr
            places = part.layout.local_of(part.delegates[owned])
            kind = structure(SOURCE, "Rows")
            self.params = structure(SOURCE, "Params")(
                rows=[
                    kind(offsets=x.offsets, columns=x.columns) for x in graphs.values()
                ],
                vertices=part.vertices,
                delegate_ids=cp.asarray(part.delegates.astype(self.vertex)),
                level=self.level,
                dlevel=cp.empty(d, dtype=np.int32),
                parent=self.parent,
                dparent=cp.empty(d if parents else 0, dtype=self.vertex),
                sent=cp.zeros(sent_words * parts if parts > 1 else 1, np.uint32),
                dd_queue=cp.empty(4 * d, dtype=np.uint32),
                dn_queue=cp.empty(4 * d, dtype=np.uint32),
                box=cp.asarray(first + 8 * boxes[:-1].astype(np.uint64)),
                senders=cp.asarray(on_ranks),
                owned=cp.asarray(owned.astype(np.uint32)),
                places=cp.asarray(places.astype(np.uint32)),
                **{x: cp.zeros(words, np.uint32) for x in BITMAPS},
                **{f"d{x}": cp.zeros(dwords, np.uint32) for x in BITMAPS},
                **self._control.views,
                words=words,
                dwords=dwords,
                active=part.active,
                d=d,
                owned_count=len(owned),
                index=part.index,
                parts=parts,
                sent_words=sent_words,
                devices=placement.per_rank,
                device=placement.device_of(part.index),
            )
            self._held = self.params.held
            self._mask = self._own_mask
            self._module = programs.Module(
                SOURCE,
                OFFSET=programs.word_of(graphs["nn"].offsets),
                VERTEX="int" if self.vertex.itemsize == 4 else "i64",
            )
            self._launches = {
                name: self._module.kernel(name).prepare(
                    self.params, blocks_of(name) * cuda.multiprocessors(), THREADS
                )
                for name in KERNEL_NAMES
            }
            self._row_masks(graphs, words, dwords)
            self._first_columns(graphs["nd"], min(part.active, n), 32 * words, "nd")
            self._first_columns(graphs["dd"], d, 32 * dwords, "dd")
        self._normal = cp.cuda.Stream(non_blocking=True)
        self._delegate = cp.cuda.Stream(non_blocking=True)
        names = ("ready", "nn", "found", "normal", "delegate")
        self._events = {name: cp.cuda.Event(disable_timing=True) for name in names}
        self._device = cp.cuda.Device()
        self._lost_targets = 0
        self._work = Work()
        self._isolated: int | None = None  # local id of a root without edges

    def _boxes(self, nn: CSR) -> Ids:
        """Return the bounds of the parts' boxes, int64 [parts + 1].

        A box holds at most one item for each vertex of its part, and at most one for
        each edge to that part.
        """
        layout = self.part.layout
        counts = np.zeros(layout.parts, dtype=np.int64)
        if layout.parts > 1:
            for start in range(0, nn.edges, COUNT_SLICE):
                columns = nn.columns[start : min(start + COUNT_SLICE, nn.edges)]
                part = (columns >> np.uint64(PART_SHIFT)).astype(np.int32)
                counts += value_counts(part, layout.parts)
        counts[self.part.index] = 0
        most = np.array([layout.local_count(k) for k in range(layout.parts)])
        return np.concatenate([[0], np.cumsum(np.minimum(counts, most))])

    def _row_masks(self, graphs: dict[str, CSR], words: int, dwords: int) -> None:
        """Build the masks of rows that have edges."""
        cp = cuda.cupy()
        kernel = self._module.kernel("row_mask")
        grid = BLOCKS["other"] * cuda.multiprocessors()
        for name, graph in graphs.items():
            size = words if name in ("nn", "nd") else dwords
            mask = cp.zeros(max(size, 1), dtype=np.uint32)
            rows = min(self.part.active, graph.rows) if name[0] == "n" else graph.rows
            kernel(grid, THREADS, graph.offsets, np.uint64(rows), np.uint64(size), mask)
            self.params.set(**{f"{name}_mask": mask})

    def _first_columns(self, graph: CSR, rows: int, places: int, name: str) -> None:
        """Copy the first columns of each row to arrays that pulls read first."""
        first = cuda.cupy().empty(max(FIRST * places, 1), dtype=np.uint32)
        kernel = self._module.kernel("first_columns")
        grid = BLOCKS["other"] * cuda.multiprocessors()
        kernel(
            grid,
            THREADS,
            graph.offsets,
            graph.columns,
            np.uint64(rows),
            np.uint64(places),
            first,
        )
        self.params.set(**{f"{name}_first": first})

    @property
    def _own_mask(self) -> Any:
        """Delegates that this part found, uint64 [ceil(d/64)]."""
        return self._held["dfresh"].view(np.uint64)

    def _run(self, name: str, stream: Any) -> None:
        """Launch a kernel with the present arguments."""
        self._launches[name](stream.ptr)

    def start(
        self,
        local: Root | None,
        delegate: Root | None,
        *,
        counting: bool = False,
        targets: Targets | None = None,
    ) -> None:
        """Reset the search; set the root if this part has it."""
        with self._device:
            main = cuda.cupy().cuda.get_current_stream()
            if self._isolated is not None:
                self._write(self._isolated, -1, -1)
                self._isolated = None
            at = None if local is None else int(local)
            number = None if at is None else self.part.number_of(at)
            lone = number is not None and number >= self.part.active
            self._aim(targets, number if lone else None)
            if lone:
                self._isolated, number = at, None
            p = self.params
            p.checks = self._control.checks.data.ptr if counting else None
            p.number = NONE if number is None else number
            p.delegate = NONE if delegate is None else delegate
            p.depth = 0
            self._run("start", main)
            self._mask = self._own_mask
            self._advance(main)

    def _aim(self, targets: Targets | None, lone: int | None) -> None:
        """Count targets in ``work``; lone: the number of a root without edges."""
        p, self._lost_targets = self.params, 0
        p.targets = p.dtargets = None
        if targets is None:
            return
        active = targets.numbers < self.part.active
        self._lost_targets = int((targets.numbers[~active] != lone).sum())
        for name, bits, words in (
            ("targets", targets.numbers[active], p.words),
            ("dtargets", targets.delegates, p.dwords),
        ):
            mask = mask_of(bits, 32 * words).view(np.uint32)
            with cuda.memory_of("targets"):
                p.set(**{name: cuda.cupy().asarray(mask) if len(mask) else None})

    def _advance(self, main: Any) -> None:
        """Make the vertices that were found the frontier; copy counters to the host."""
        self.params.mask = self._mask.data.ptr
        cuda.clear(self._control.array, main)
        self._run("advance", main)
        self._events["ready"].record(main)
        self._control.fetch(main)

    def work(self) -> Ids:
        """Return the work of the next level, whose queues already exist."""
        work, _ = self._control.values()
        if self._isolated is not None and not self.params.depth:
            work[NORMALS] += 1  # a root without a row in the kernels' subgraphs
        work[TARGETS] += self._lost_targets
        self._work = Work._make(work.tolist())
        return work

    def advance(self, choice: Choice) -> Iterator[Any]:
        """Start the visits of a level, one after the other if checks are counted."""
        with self._device:
            for stream in (self._normal, self._delegate):
                stream.wait_event(self._events["ready"])
            nn = self.visit("nn", "push")
            self._events["nn"].record(self._normal)
            dd = self.visit("dd", choice["dd"])
            nd = self.visit("nd", choice["nd"])
            self._events["found"].record(self._delegate)
            dn = self.visit("dn", choice["dn"])
        # the host may wait for nn now that all have started; the caller's current
        # device is the exchange's and may differ
        sends = self._work.nn and self.part.layout.parts > 1
        yield Bins(self._outbox, self.found_elsewhere if sends else None)
        with self._device:
            main = cuda.cupy().cuda.get_current_stream()
            main.wait_event(self._events["found"])
        self._checks = [nn, nd, dn, dd]
        yield self._own_mask

    def checks(self) -> list[int]:
        """Return the edge checks of the last level by subgraph."""
        return self._checks

    def visit(self, name: str, direction: DirectionName) -> int:
        """Launch a visit if it has a frontier.

        If edge checks are counted, wait and return them; else return 0 at once.
        """
        stream = self._normal if name in ("nn", "dn") else self._delegate
        forward = getattr(self._work, "nn" if name == "nn" else f"{name}_forward")
        if forward or direction == "pull":
            if name in ("dd", "dn") and direction == "push":
                self._run(f"queue_{name}", stream)
            self._run(f"{direction}_{name}", stream)
        if self.params.checks is None:
            return 0
        self._control.fetch(stream)
        _, checks = self._control.values()
        return int(checks[SUBGRAPHS.index(name)])

    def found_elsewhere(self) -> tuple[Ids, Ids]:
        """Wait for nn; return where each part's box begins, and where its items end."""
        with self._device:
            main = cuda.cupy().cuda.get_current_stream()
            main.wait_event(self._events["nn"])
            self._control.fetch(main)
        starts = self._boxes_at[:-1]
        return starts, starts + self._control.box_sizes()

    def accept(self, bits: Any, items: Sequence[tuple[int, Any]]) -> None:
        """Merge the vertices that all parts found into the next level's frontier."""
        with self._device:
            main = cuda.cupy().cuda.get_current_stream()
            for name, stream in (
                ("normal", self._normal),
                ("delegate", self._delegate),
            ):
                self._events[name].record(stream)
                main.wait_event(self._events[name])
            p = self.params
            for rank, some in items:
                near = brought_here(some)
                p.items, p.item_count = near.data.ptr, len(near)
                p.senders = self._held["senders"][rank].data.ptr
                self._run("take_normals", main)
            self._mask = self._own_mask if bits is None else brought_here(bits)
            p.depth += 1
            self._advance(main)

    def delegate_parents(self) -> Array:
        """Return the parents of delegates that this part found, vertex ids [d].

        Other delegates have -1.
        """
        with self._device:
            parents: Array = self._held["dparent"].get()
        return parents

    def take_delegate_parents(self, parents: Array) -> None:
        """Set the parents of all reached delegates."""
        with self._device:
            self._held["dparent"].set(parents)

    def finish(self) -> tuple[Any, Any]:
        """Return levels and parents by local id, CuPy arrays."""
        with self._device:
            self._run("finish", cuda.cupy().cuda.get_current_stream())
            if self._isolated is not None:
                root = self.part.layout.global_of(self.part.index, self._isolated)
                self._write(self._isolated, 0, int(root))
        return self.level, self.parent

    def _write(self, local: int, level: int, parent: int) -> None:
        self.level[local] = level
        if self.parent is not None:
            self.parent[local] = parent


def _check_size(part: Part, placement: Placement) -> None:
    """Raise UsageError if the kernels' counters cannot hold the sizes of a part."""
    rows = max(part.local_count, part.delegate_count)
    if rows >= MAX_ROWS:
        raise UsageError(
            f"part {part.index} has {rows} rows; engine pan takes fewer than "
            f"{MAX_ROWS} on a device: use more parts"
        )
    most = max(getattr(part, name).edges for name in SUBGRAPHS)
    if most >= MAX_EDGES:
        raise UsageError(
            f"part {part.index} has {most} edges of one kind; engine pan takes fewer "
            f"than {MAX_EDGES}: use more parts"
        )
    placement.check_items(part.local_count)


def _widened(rows: CSR) -> CSR:
    """Return rows with 64-bit offsets."""
    return CSR(rows.offsets.astype(np.uint64), rows.columns)
