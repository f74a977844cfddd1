"""One device's share of searches between domains: arguments and kernels (between.cu).

``BetweenSearch`` (between.py) leads its levels from the host or puts them on a stream,
and ``BetweenLoop`` (between_loop.py) runs them in one launch.

Source: Pan, Pearce, Owens 2018, Sections III to V: delegates are sent in masks, and
targets of outer edges as numbers, each once.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from distbfs.build.cuda.seen import SeenEdges
from distbfs.device import cuda, programs, sources
from distbfs.device.array_table import allocate
from distbfs.device.arrays import brought_here
from distbfs.device.sources import Variant
from distbfs.device.structures import structure
from distbfs.device.take import take
from distbfs.engines.base import TAIL_COUNTS, Targets, Work
from distbfs.engines.cuda.xbfs.arrays import ELSEWHERE, KERNELS, ways
from distbfs.engines.cuda.xbfs.between_params import (
    ASKS,
    COUNTED,
    GOES,
    PUSHES,
    BetweenShape,
    box_bounds,
    box_limit,
    reply_words,
)
from distbfs.engines.cuda.xbfs.block_memory import THREADS
from distbfs.engines.cuda.xbfs.limits import NO_LIMIT, too_deep
from distbfs.engines.cuda.xbfs.search_table import words_of
from distbfs.engines.cuda.xbfs.share_search import BY_QUEUE, ShareSearch, has
from distbfs.engines.cuda.xbfs.shared import SharedMemory
from distbfs.engines.streamed import first_words
from distbfs.errors import DistbfsError
from distbfs.graph.device_graph import ISOLATED, WIDE
from distbfs.partition.part import mask_words
from distbfs.partition.share import Outer, Share
from distbfs.types import Array, Ids, Root

HEADER, SOURCE = KERNELS / "between.cuh", KERNELS / "between.cu"
TOGETHER = ("level", "settle")  # kernels whose blocks meet
ALONE = ("empty", "tell_sizes", "choose")  # of one block
HELD_CODES = 4096  # words of delegates whose codes a block holds: between_leaves.cuh
WAITED = (
    "a device of a domain did not answer another in time; this session cannot search "
    "any more"
)
FAILED = COUNTED.index("failed")
OVER, CHECKED = COUNTED.index("over"), COUNTED.index("checks")
WORK = [(name, COUNTED.index(name)) for name in Work._fields if name in COUNTED]


def _size(name: str) -> int:
    return ctypes.sizeof(structure(HEADER, name))


def bitmap(words: int, places: Any, values: Any = 1) -> Any:
    """Return a bitmap, CuPy uint32 [words], with values at places, 0 elsewhere."""
    cp = cuda.cupy()
    flags = cp.zeros(32 * words, np.uint8)
    flags[places] = values
    return cp.packbits(flags, bitorder="little").view(np.uint32)


class BetweenShare(ShareSearch):
    """One device's share of searches between domains; create it on this device.

    shared: shared memory of this device, connected if its domain has several
    limit: the most words of a box where levels go in rounds, else None
    """

    source = SOURCE

    def __init__(self, part: Share, shared: SharedMemory) -> None:
        cp = cuda.cupy()
        self.part, self.device = part, cp.cuda.Device()
        arrays, self._shared = shared.arrays, shared  # whose memory kernels address
        super().__init__(arrays, in_ids=True, levels=True)
        parts, d = part.layout.parts, len(part.delegates)
        domains = part.domain.of
        self.others = domains.apart_from(part.index)
        self.first = first_words(domains.most_apart)
        owners = part.layout.part_of(part.delegates[part.delegates >= 0])
        owned = np.bincount(owners, minlength=parts)
        self.box_at = box_bounds(domains, part.index, part.edges_to, owned)
        self.reply_at = reply_words(self.box_at, np.arange(parts + 1))
        self.most_owned = int(owned.max())
        self.limit = box_limit(parts, domains.most_apart)
        shape = BetweenShape(
            words=arrays.params.words,
            parts=parts,
            targets=len(part.out.outer.targets),
            normals=part.normals,
            delegates=d,
            owned=len(part.owned),
            boxes=int(self.box_at[-1]),
            directed=part.directed,
        )
        made = allocate(shape.messages() | shape.table(), cp.zeros)
        split = part.out.tails is not None
        self.extras: tuple[str, ...] = TAIL_COUNTS if split else ()
        # what the host reads lies together
        self._control = made.pop("counts")
        self.counts, self.sizes = cp.split(self._control, [len(COUNTED)])
        self._mask = made["found"]
        self._asking = cp.zeros(2, np.uint32)
        self.mask: Any = self._mask if d else None
        self.leaves, several = arrays.searched is not None, part.domain.devices > 1
        if self.leaves:
            arrays.take_codes_of(part.domain.devices * part.normals // 32, HELD_CODES)
        # of the devices that meet when a search ends
        self._failed = cuda.HostCopy(shared.failed) if several and self.leaves else None
        self.params = structure(HEADER, "Between", ways(part))(
            own=arrays.params,
            **shared.arguments,
            **self._outer_edges(),
            locals=part.vertices,
            names=part.ids,
            **made,
            box=cp.asarray(self.box_at.astype(np.uint64)),
            sizes=self.sizes,
            below=cp.zeros(1, np.uint64),
            open=cp.zeros(1, np.uint32),
            asking=self._asking,
            does=cp.zeros(2, np.uint32),
            device=cp.zeros(_size("DeviceControl"), np.uint8),
            mail=cp.zeros(3 * _size("Mail"), np.uint8),
            counts=self.counts,
            idle=cp.zeros(2, np.uint32),
            filled=cp.zeros(1, np.uint32),
            owned=cp.asarray(part.owned.astype(np.uint32)),
            is_owned=bitmap(part.normals // 32, cp.asarray(part.owned)),
            homes=cp.asarray(domains.homes().astype(np.uint32)),
            sent_words=shape.sent_words,
            edges_to=len(part.out.outer.columns),
            normals=part.normals,
            slots=part.slots,
            dwords=2 * mask_words(d),
            owned_to=len(part.owned),
            domains=len(domains),
            domain=part.domain.index,
            lanes=domains.lanes,
            own_lanes=part.domain.lanes,
            rule=PUSHES | ASKS,
            shares=parts,
            share=part.index,
            id_bits=part.id_bits,
            is_short=self.limit is not None,
        )
        self._held = self.params.held
        self._show(None)
        own = self.own = self.params.own
        arrays.move(own)
        self.take_counters(0)
        own.last, own.root = NO_LIMIT, ELSEWHERE
        self.results = arrays.results_launch()
        self.exact["SEVERAL"] = int(several)
        self._kernels: dict[Variant, dict[str, programs.Launch]] = {}
        self._dirty, self.depth = True, 0
        self._load(counting=False)

    def _outer_edges(self) -> dict[str, Any]:
        """Return the arrays of outer edges by their names in between.cuh."""
        made: dict[str, Any] = {}
        for side, rows in zip(("outer", "in"), self.part.sides, strict=False):
            edges = rows.outer
            names = [f"{side}_{x}" for x in ("offsets", "columns", "targets")]
            names.append("starts" if side == "outer" else "in_starts")
            starts = cuda.cupy().asarray(edges.starts.astype(np.uint32))
            made |= zip(names, (*edges.arrays, starts), strict=True)
        return made

    def see(self, view: SeenEdges | None) -> None:
        """Restrict later searches to some edges; None means all."""
        with self.device, cuda.memory_of("a masked search"):
            self.arrays.see(view)
            self._show(view and view.outer)
            self.masked = view is not None
            self._load(counting=False)
            cuda.cupy().cuda.Device().synchronize()  # streams of searches are others

    def _show(self, outer: SeenEdges | None) -> None:
        """Set the visible outer edges, None for all, and leaves by inner ones."""
        normals = self.part.normals
        leaves = self.arrays.leaves_on(normals)  # of each delegate, [normals]
        has_leaves = bitmap(normals // 32, slice(normals), leaves > 0)
        self.params.set(leaves=leaves, has_leaves=has_leaves)
        self._show_side("", self.part.out.outer, outer)
        if self.part.directed:
            self._show_side("in_", self.part.into.outer, outer and outer.pulled)

    def _show_side(self, side: str, outer: Outer, seen: SeenEdges | None) -> None:
        """Set the visible ones of a set of outer edges, None for all."""
        cp, bits = cuda.cupy(), None if seen is None else seen.bits
        ends = cp.diff(outer.offsets) if seen is None else seen.ends
        first, count = self.part.normals, cp.count_nonzero(ends)
        rows = slice(first, first + len(ends))  # of normal vertices
        some = bitmap(words_of(self.arrays.params.every), rows, ends > 0)
        self.params.set(**{f"{side}has_outer": some, f"{side}outer_seen": bits})
        self._asking[0] = count  # of edges in, which come last

    def _load(self, *, counting: bool) -> None:
        """Choose the kernels; prepare their launches on the first call."""
        self._now = form = self._form_of(records=counting)
        self._counting = counting
        self._count(counted=has(form, "COUNT"), records=counting, traced=False)
        if form in self._kernels:
            return
        module = programs.Module(SOURCE, **dict(form))
        made = self._kernels[form] = {}
        for name in sources.kernels(SOURCE):
            together = name in TOGETHER or (name == "end" and has(form, "SEVERAL"))
            blocks = 1 if name in ALONE else self.arrays.grid
            shared = self.arrays.shared_bytes if name == "level" else 0
            made[name] = module.kernel(name).prepare(
                self.params, blocks, THREADS, shared=shared, cooperative=together
            )

    def _run(self, name: str, needs: int = 0) -> None:
        """Launch a kernel with the present arguments on the current stream.

        needs: what the level must do; if it does not, the kernel does nothing
        """
        self.params.needs = needs
        if name in TOGETHER:  # each clears the counters of the other
            self.take_counters(TOGETHER.index(name))
        stream = cuda.cupy().cuda.get_current_stream()
        self._kernels[self._now][name](stream.ptr)

    def aim(
        self,
        local: Root | None,
        delegate: Root | None,
        targets: Targets | None = None,
    ) -> None:
        """Set the arguments of a search; see ``start``."""
        p, own = self.params, self.own
        own.root = own.root_id = ELSEWHERE
        p.delegate = ISOLATED
        self._aim(targets)
        several = isinstance(local, np.ndarray)
        if isinstance(local, np.ndarray):
            self._begin_at(local, np.asarray(delegate))
        else:
            self._begin()
            if local is not None:
                own.root = local
                own.root_id = self.part.layout.global_of(self.part.index, local)
            if delegate is not None:
                p.delegate = delegate
        way = PUSHES if p.rule & PUSHES else ASKS
        p.begins = GOES | (way if several or delegate is None else 0)
        self._swap_bitmaps()
        self.depth = 0

    def clean_up(self) -> None:
        """Clear the state of a search that did not end, before another begins."""
        if self._dirty:
            self._run("clean_up")
        self._dirty = True

    def _begin_at(self, local: Ids, delegates: Ids) -> None:
        """Set the roots: local ids of own vertices, and all delegates among them."""
        numbers = self.part.numbers_of(local)
        own = self.part.numbers_at(delegates)
        known = np.concatenate([numbers[numbers < WIDE], own[own >= 0]])
        # leaves are in both
        self._begin(BY_QUEUE, known, local[numbers >= self.own.active])
        if self.leaves:
            on = self._hung_on(numbers)
            others = int(np.isin(on, delegates, invert=True).sum())
            # mutant: len(on) - others, others -> 0, len(on)
            #   : test_between_leaves::test_records
            self.params.again[:] = len(on) - others, others

    def _hung_on(self, numbers: Ids) -> Array:
        """Return the positions on which leaves among numbers hang by a visible edge."""
        leaves = numbers[(numbers >= self.own.active) & (numbers < WIDE)]
        on = take(self.arrays.held["first"], leaves).astype(np.int64)
        seen: Array = on[on < self.own.bound]
        return seen

    def hung(self, numbers: Ids) -> tuple[Ids, Ids]:
        """Return (numbers that are not leaves, delegates of the leaves).

        numbers: int64 [k], as in ``Targets``; no search can reach those of WIDE or
        more. Delegates are vertex ids, int64, without repeats.
        """
        leaf = (numbers >= self.own.active) & (numbers < WIDE)
        with self.device:
            on = self._hung_on(numbers)
        lost = np.full(int(leaf.sum()) - len(on), WIDE, np.int64)
        ids: Ids = np.unique(self.part.delegates[on])
        return np.concatenate([numbers[~leaf], lost]), ids

    def _aim(self, targets: Targets | None) -> None:
        """Count targets in ``work``."""
        p, own = self.params, self.own
        p.lost = p.hung = own.targets = own.sought = 0
        if targets is None:
            return
        numbers = targets.numbers[targets.numbers < WIDE]
        p.lost, p.hung = len(targets.numbers) - len(numbers), len(targets.hung)
        delegates = np.concatenate([targets.delegates, targets.hung])
        delegates = self.part.numbers_at(delegates)
        places = np.concatenate([numbers, delegates]).astype(np.uint32)
        if len(places):
            with cuda.memory_of("targets"):
                own.set(targets=cuda.cupy().asarray(places), sought=len(places))

    @staticmethod
    def _work_of(counted: list[int]) -> Work:
        """Return the counts of a level, in the order of COUNTED."""
        if counted[FAILED]:
            raise DistbfsError(WAITED)
        return Work(**{name: counted[at] for name, at in WORK})

    def _take(self, kernel: str, items: Any, needs: int = 0) -> None:
        """Run a kernel on the items that other parts sent.

        items: boxes one after the other, or [k, words], as they were sent
        """
        p, near = self.params, brought_here(items)
        p.items, p.item_count, p.item_step = near.data.ptr, near.size, 0
        if near.ndim > 1:
            p.boxes, p.item_step = near.shape
        self._run(kernel, needs)

    def _admit(
        self,
        masks: Any,
        items: Sequence[Any],
        answers: Sequence[Any],
        goes: int = 0,
        pushes: int = 0,
        asks: int = 0,
    ) -> None:
        """Mark the vertices in masks, uint64 [k, words] or None, in pushes and answers.

        goes, pushes, asks: what the level must do for each of these, see ``_run``
        """
        p = self.params
        if masks is not None:
            p.mask, p.masks = masks.data.ptr, len(masks)
            self._run("take_mask", goes)
        for array in items:
            self._take("take_items", array, pushes)
        for array in answers:
            self._take("take_answers", array, asks)

    def went(self, levels: int) -> None:
        """Note that one launch ran the whole search and wrote results."""
        self._dirty, self.depth = False, levels

    def finish(self) -> tuple[Any, Any]:
        """Return levels, int8 or int32, and parents by local id, CuPy arrays.

        Either is None if it was not requested.
        """
        with self.device:
            if self._dirty:
                main = cuda.cupy().cuda.get_current_stream()
                # mutant: self.depth -> NO_LIMIT : test_ends
                self.own.last = self.depth  # leaves have none beyond
                if self.leaves:
                    self._run("codes")
                self._run("end")
                self.own.last = NO_LIMIT
                if self._failed is not None:
                    self._failed.begin(main)
                self.results(main.ptr)
                self._dirty = False
            deep = too_deep(self.arrays.params, self.depth)
            return self._results_of(narrow=not deep)

    def check(self) -> None:
        """Raise DistbfsError if devices of the domain did not meet in ``finish``.

        Call it when all devices have begun ``finish``; it waits for their end.
        """
        if self._failed is not None and self._failed.wait()[0]:
            raise DistbfsError(WAITED)
