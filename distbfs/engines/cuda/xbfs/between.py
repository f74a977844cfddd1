"""Searches on one device of a domain, in the loop between domains (between.cu).

Method fast searches the inner graph of one device; several devices synchronise inside a
level.

Source: Pan, Pearce, Owens 2018, Sections III to V: delegates are sent in masks, and
targets of outer edges as numbers, each once.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from distbfs.build.cuda.inner_part import WIDE, InnerPart, Outer
from distbfs.build.cuda.seen import SeenEdges, SeenPart
from distbfs.device import cuda, programs
from distbfs.device.array_table import allocate
from distbfs.device.arrays import brought_here
from distbfs.device.structures import structure
from distbfs.engines.base import ASKED, TAIL_COUNTS, Offer, Targets, Work
from distbfs.engines.cuda.xbfs.arrays import (
    ELSEWHERE,
    KERNELS,
    NO_LIMIT,
    ROWS,
    THREADS,
    mask,
    too_deep,
    ways,
)
from distbfs.engines.cuda.xbfs.between_leaves import WAITED, HungLeaves
from distbfs.engines.cuda.xbfs.between_params import (
    ANSWERS,
    ASKS,
    COUNTED,
    GOES,
    PUSHES,
    QUESTIONS,
    BetweenShape,
    box_bounds,
    box_limit,
    replies_at,
)
from distbfs.engines.cuda.xbfs.search import (
    CONTROL_BYTES,
    COUNTERS,
    cut,
    tail_counts,
)
from distbfs.engines.cuda.xbfs.search_table import words_of
from distbfs.engines.cuda.xbfs.seeds import BY_QUEUE, begin_at_root, begin_at_set
from distbfs.engines.cuda.xbfs.shared import SharedMemory
from distbfs.engines.streamed import first_words
from distbfs.errors import DistbfsError
from distbfs.exchange.bins import Bins
from distbfs.graph.device_graph import ISOLATED
from distbfs.partition.part import mask_words
from distbfs.types import Choice, Ids, Root

HEADER = KERNELS / "between.cuh"
TOGETHER = ("level", "settle")  # kernels whose blocks meet
ALONE = ("empty", "tell_sizes", "choose")  # of one block
FAILED = COUNTED.index("failed")
OVER, CHECKED = COUNTED.index("over"), COUNTED.index("checks")
WORK = tuple(  # where ``Work`` is counted
    (name, COUNTED.index(counted))
    for name, counted in (
        ("normals", "normals"),
        ("delegates", "delegates"),
        ("nn", "outer"),
        ("dd_forward", "found"),
        ("targets", "missed"),
        ("open", "open_outer"),
    )
)
KERNEL_NAMES = (
    "clean_up",
    "begin",
    "begin_roots",
    "outer",
    "front",
    "level",
    "ask",
    "empty",
    "tell_sizes",
    "answer",
    "take_mask",
    "take_items",
    "take_answers",
    "settle",
    "choose",
    "codes",
    "end",
    "ask_parents",
    "answer_parents",
    "take_parents",
    "late_parents",
)


def _size(name: str) -> int:
    return ctypes.sizeof(structure(HEADER, name))


def bitmap(flags: Any) -> Any:
    """Return flags, CuPy uint8 [32 k], as bits, uint32 [k]."""
    return cuda.cupy().packbits(flags, bitorder="little").view(np.uint32)


class Checks(Sequence[int]):
    """Edge checks of a level, outer and inner; reading them waits for the device.

    So all devices of a rank begin before the host waits for one of them. count: how
    many numbers there are
    """

    def __init__(self, count: int, read: Callable[[], list[int]]) -> None:
        self._count, self._read = count, read
        self._checks: list[int] = []

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        self._checks = self._checks or self._read()
        return self._checks[index]


class BetweenLevels:
    """Searches level by level on the current device; a ``DomainSearch``.

    shared: shared memory of this device, connected if its domain has several
    Items that it sends are uint64; see between_outer.cuh.
    """

    parents = ASKED
    directions = ("outer",)
    visits = ("outer", "inner")

    def __init__(self, part: InnerPart, shared: SharedMemory) -> None:
        cp = cuda.cupy()
        self.part, self.device = part, cp.cuda.Device()
        self._memory = shared
        arrays = self.arrays = shared.arrays
        parts, d = part.layout.parts, len(part.delegates)
        domains = part.domain.of
        self.others = domains.apart_from(part.index)
        self.first = first_words(domains.most_apart)
        owners = part.layout.part_of(part.delegates[part.delegates >= 0])
        owned = np.bincount(owners, minlength=parts)
        self.box_at = box_bounds(domains, part.index, part.edges_to, owned)
        self.reply_at = replies_at(self.box_at)
        self.most_owned = int(owned.max())
        limit = box_limit(parts, domains.most_apart)
        self.in_rounds = limit is not None
        self._owned_at_once = len(part.owned) if limit is None else limit
        self.parent_rounds = -(-self.most_owned // limit) if limit else 1
        shape = BetweenShape(
            words=arrays.params.words,
            parts=parts,
            targets=len(part.outer.targets),
            normals=part.normals,
            delegates=d,
            owned=len(part.owned),
            boxes=int(self.box_at[-1]),
            directed=part.graph.directed,
        )
        made = allocate(shape.messages() | shape.table(), cp.zeros)
        split = part.graph.tails is not None
        self.extras: tuple[str, ...] = TAIL_COUNTS if split else ()
        # what the host reads lies together
        self._control = made.pop("counts")
        self.counts, self.sizes = cp.split(self._control, [len(COUNTED)])
        self._kept = cp.zeros(2 * CONTROL_BYTES + _size("State"), np.uint8)
        self._mask = made["found"]
        self.mask: Any = self._mask if d else None
        # which sets arguments of ``arrays``: they are copied next
        self.leaves = None if arrays.searched is None else HungLeaves(part, shared)
        self.params = structure(HEADER, "Between", ways(part.graph))(
            own=arrays.params,
            **shared.arguments(),
            **self._outer_edges(),
            locals=part.graph.vertices,
            names=part.ids,
            **made,
            box=cp.asarray(self.box_at.astype(np.uint64)),
            sizes=self.sizes,
            below=cp.zeros(1, np.uint64),
            open=cp.zeros(1, np.uint32),
            does=cp.zeros(2, np.uint32),
            device=cp.zeros(_size("DeviceControl"), np.uint8),
            mail=cp.zeros(3 * _size("Mail"), np.uint8),
            counts=self.counts,
            idle=cp.zeros(2, np.uint32),
            filled=cp.zeros(1, np.uint32),
            owned=cp.asarray(part.owned.astype(np.uint32)),
            is_owned=self._owned_bits(),
            homes=cp.asarray(domains.homes().astype(np.uint32)),
            sent_words=shape.sent_words,
            edges_to=len(part.outer.columns),
            normals=part.normals,
            slots=part.slots,
            dwords=2 * mask_words(d),
            owned_to=len(part.owned),
            domains=len(domains),
            domain=part.domain.index,
            lanes=domains.lanes,
            own_lanes=part.domain.lanes,
            rule=PUSHES | ASKS,
            writer=ISOLATED,
            shares=parts,
            share=part.index,
            id_bits=part.id_bits,
            is_short=self.in_rounds,
        )
        self._held = self.params.held
        self._show(None)
        own = self.own = self.params.own
        base = own.control = self._kept.data.ptr
        own.other, own.state = base + CONTROL_BYTES, base + 2 * CONTROL_BYTES
        own.last, own.root = NO_LIMIT, ELSEWHERE
        self.results = arrays.results_launch(own)
        self._counts: Any = None
        self._launches: dict[tuple[int, int], dict[str, programs.Launch]] = {}
        self.masked = False
        self._sizes = cuda.HostCopy(self._control)
        self._work = cuda.HostCopy(self._control)
        self._ready = cp.cuda.Event(disable_timing=True)
        self._dirty, self._counting = True, False
        self.depth, self._boxed = 0, False
        # of a level in rounds: whether it pushes, and has more to send; outer edges
        # looked at for questions so far, and at once; edge checks of pushes
        self._pushed = self._left = False
        self._asked = self._checked = 0
        self._span = len(part.asked.columns)
        self._outer = Work()
        self._load(counting=False)

    def _outer_edges(self) -> dict[str, Any]:
        """Return the arrays of outer edges by their names in between.cuh."""
        made: dict[str, Any] = {}
        outer = {"outer": self.part.outer}
        if self.part.incoming is not None:
            outer["in"] = self.part.incoming
        for side, edges in outer.items():
            names = [f"{side}_{x}" for x in ("offsets", "columns", "targets")]
            names.append("starts" if side == "outer" else "in_starts")
            starts = cuda.cupy().asarray(edges.starts.astype(np.uint32))
            made |= zip(names, (*edges.arrays, starts), strict=True)
        return made

    def _owned_bits(self) -> Any:
        """Return the numbers of own delegates, a bitmap, uint32 [normals / 32]."""
        cp = cuda.cupy()
        flags = cp.zeros(self.part.normals, np.uint8)
        flags[cp.asarray(self.part.owned)] = 1
        return bitmap(flags)

    def _leaves(self) -> tuple[Any, Any]:
        """Count the left-out leaves of each delegate; mark delegates that have some.

        Returns the counts by visible edges, CuPy uint32 [normals], and a bitmap, uint32
        [normals / 32].
        """
        counts = self.arrays.leaves_on(self.part.normals)
        return counts, bitmap((counts > 0).astype(np.uint8))

    def _rows_with(self, some: Any) -> Any:
        """Return flags of normal vertices, bool [k], as a bitmap by number, uint32."""
        cp, p = cuda.cupy(), self.arrays.params
        flags = cp.zeros(32 * words_of(p.every), np.uint8)
        flags[self.part.normals : self.part.normals + len(some)] = some
        return bitmap(flags)

    def see(self, view: SeenPart | None) -> None:
        """Restrict later searches to some edges; None means all."""
        with self.device, cuda.memory_of("a masked search"):
            self.arrays.show(self.own, None if view is None else view.inner)
            self._show(None if view is None else view.outer)
            self.masked = view is not None
            self._load(counting=False)
            cuda.cupy().cuda.Device().synchronize()  # streams of searches are others

    def _show(self, outer: SeenEdges | None) -> None:
        """Set the visible outer edges, None for all, and leaves by inner ones."""
        leaves, has_leaves = self._leaves()
        self.params.set(leaves=leaves, has_leaves=has_leaves)
        self._show_side("", self.part.outer, outer)
        if self.part.incoming is not None:
            incoming = None if outer is None else outer.incoming
            self._show_side("in_", self.part.incoming, incoming)

    def _show_side(self, side: str, outer: Outer, seen: SeenEdges | None) -> None:
        """Set the visible ones of a set of outer edges, None for all."""
        cp, bits = cuda.cupy(), None if seen is None else seen.bits
        ends = cp.diff(outer.offsets) if seen is None else seen.ends
        some = self._rows_with(ends > 0)
        self.params.set(**{f"{side}has_outer": some, f"{side}outer_seen": bits})

    def _form(self, *, counting: bool) -> tuple[int, int]:
        """Return the form of the kernels: (counters and masks, tails).

        The form that counts also serves masks, and for a directed graph tails.
        """
        graph, counting = self.part.graph, counting or self.masked
        split = graph.tails is not None
        if graph.directed:
            counting = split = counting or split
        return int(counting), int(split)

    def _load(self, *, counting: bool) -> None:
        """Choose the kernels; prepare their launches on the first call."""
        self._now = form = self._form(counting=counting)
        count, split = form
        if count and self._counts is None:
            self._counts = cuda.cupy().zeros((COUNTERS, ROWS), np.uint64)
        if count:
            self.arrays.count_with(self.own)
        self.own.counts = self._counts.data.ptr if count else 0
        if form in self._launches:
            return
        several = self.part.domain.devices > 1
        module = programs.Module(
            KERNELS / "between.cu",
            OFFSET=self.arrays.offset,
            COUNT=count,
            IN_IDS=1,
            SEVERAL=int(several),
            SPLIT=split,
            **mask(bool(count)),
            **ways(self.part.graph),
        )
        made = self._launches[form] = {}
        for name in KERNEL_NAMES:
            together = name in TOGETHER or (several and name == "end")
            blocks = 1 if name in ALONE else self.arrays.grid
            shared = self.arrays.shared_bytes if name == "level" else 0
            made[name] = module.kernel(name).prepare(
                self.params, blocks, THREADS, shared=shared, cooperative=together
            )

    def _run(self, name: str, stream: Any, needs: int = 0) -> None:
        """Launch a kernel with the present arguments.

        needs: what the level must do; if it does not, the kernel does nothing
        """
        self.params.needs = needs
        if name in TOGETHER:  # each clears the counters of the other
            self.take_counters(TOGETHER.index(name))
        self._launches[self._now][name](stream.ptr)

    def take_counters(self, at: int, pair: Any = None) -> None:
        """Make the next launch count in counters 0 or 1; it may clear the other ones.

        pair: both counters, uint8; by default those for launches of a level
        """
        base = (self._kept if pair is None else pair).data.ptr
        self.own.control = base + at * CONTROL_BYTES
        self.own.other = base + (1 - at) * CONTROL_BYTES

    def start(
        self,
        local: Root | None,
        delegate: Root | None,
        *,
        counting: bool = False,
        targets: Targets | None = None,
    ) -> None:
        """Reset the search; set the root or roots that this part has."""
        with self.device:
            main, streamed = cuda.cupy().cuda.get_current_stream(), self.params.gathered
            counted = targets is not None or not streamed  # the host reads counts
            self._count(counting=counting)
            self.aim(local, delegate, targets)
            self.clean_up()
            self.take_counters(0)  # which ``begin`` clears, and the others
            self._run("begin", main)
            if isinstance(local, np.ndarray):
                self._run("begin_roots", main)
            elif not counted:
                return
            self._run("settle", main)
            if counted:
                self._work.begin(main)
            if streamed:
                cuda.clear(self._control, main)

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
            begin_at_root(own)
            if local is not None:
                own.root = local
                own.root_id = self.part.layout.global_of(self.part.index, local)
            if delegate is not None:
                p.delegate = delegate
        way = PUSHES if p.rule & PUSHES else ASKS
        p.begins = GOES | (way if several or delegate is None else 0)
        own.snapshot, own.next_snapshot = own.next_snapshot, own.snapshot
        own.by_first, own.next_by_first = own.next_by_first, own.by_first
        self.depth = 0

    def clean_up(self) -> None:
        """Clear the state of a search that did not end, before another begins."""
        if self._dirty:
            self._run("clean_up", cuda.cupy().cuda.get_current_stream())
        self._dirty = True

    def _begin_at(self, local: Ids, delegates: Ids) -> None:
        """Set the roots: local ids of own vertices, and all delegates among them."""
        numbers = self.part.numbers_of(local)
        own = self.part.numbers_at(delegates)
        known = np.concatenate([numbers[numbers < WIDE], own[own >= 0]])
        lone = np.sort(local[numbers >= self.own.active])  # leaves are in both
        ids = self.part.layout.global_of(self.part.index, lone)
        begin_at_set(self.arrays, self.own, known, lone, ids, BY_QUEUE)
        if self.leaves is not None:
            self.params.again[:] = self.leaves.among(numbers, delegates)

    def _count(self, *, counting: bool) -> None:
        """Choose the kernels with or without counters of edge checks."""
        self._counting = counting
        self._load(counting=counting)
        if counting:
            self._counts.fill(0)

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
                self.arrays.params.set(targets=cuda.cupy().asarray(places))
            own.targets, own.sought = self.arrays.params.targets, len(places)

    def _settle(self, main: Any) -> None:
        """Make the vertices that were found the frontier; send counts to the host."""
        cuda.clear(self._control, main)
        self._run("settle", main)
        self._work.begin(main)

    def work(self) -> Ids:
        """Return the modelled cost of the next level."""
        counted = self._work.wait()[: len(COUNTED)].view(np.int64)
        work = self._work_of(counted.tolist())
        # all domains count the delegates
        # mutant: part.domain.index -> part.index : test_domains_of_a_rank
        mine = 0 if self.part.domain.index else work.delegates
        work = work._replace(delegates=mine)
        self._outer = work
        return np.array(work, dtype=np.int64)

    @staticmethod
    def _work_of(counted: list[int]) -> Work:
        """Return the counts of a level, in the order of COUNTED."""
        if counted[FAILED]:
            raise DistbfsError(WAITED)
        return Work(**{name: counted[at] for name, at in WORK})

    def advance(self, choice: Choice, offer: Offer) -> Sequence[int]:
        """Begin a level; reading its edge checks waits for its end."""
        with self.device:
            main = cuda.cupy().cuda.get_current_stream()
            self._boxed = choice["outer"] == "push" and bool(self._outer.nn)
            self._pushed, self._left = self._boxed and self.in_rounds, False
            self._asked = self._checked = 0
            if self._pushed:
                self._mark_front(main)
            if self._boxed:
                self._box("outer", main)
            self._run("level", main)
            self.depth += 1
            self._ready.record(main)
        # the caller's device is the exchange's, which may be another
        offer.normals(self._bins())
        cuda.cupy().cuda.get_current_stream().wait_event(self._ready)
        offer.bits(self._mask)
        if not self._counting:
            return [0] * (len(self.visits) + len(self.extras))
        boxed, count = self._boxed, len(self.visits) + len(self.extras)
        if self.in_rounds:
            return Checks(count, lambda: self.checks_of(sent=self._checked))
        return Checks(
            count, lambda: self.checks_of(self._sizes.wait() if boxed else None)
        )

    def _mark_front(self, main: Any) -> None:
        """Mark the frontier for the rounds of a push; see ``post`` in between_outer."""
        cuda.clear(self._held["front"], main)
        self.params.edges_from, self.params.edges_to = 0, len(self.part.outer.columns)
        self._run("front", main)

    def checks_of(self, counts: Any = None, sent: int = 0) -> list[int]:
        """Return the last level's outer and inner edge checks, then ``extras``.

        counts: NumPy uint64, this part's counts; None: outer checks are ``sent``
        """
        sent = sent if counts is None else int(counts[CHECKED])
        level = min(self.depth, ROWS - 1)
        with self.device:
            inner = self._counts[:, level : level + 1].get().astype(np.int64)
        tails = tail_counts(inner)
        return [sent, int(inner[0, 0]), *(tails[name][0] for name in self.extras)]

    def _box(self, kernel: str, main: Any) -> None:
        """Fill the boxes; start copying their sizes to the host."""
        cuda.clear(self._control, main)
        self._run(kernel, main)
        self._tell_sizes(main)

    def _tell_sizes(self, main: Any, *, replies: bool = False) -> None:
        """Start copying the sizes of boxes, or of replies, to the host."""
        self.params.item_step, self.params.replying = 0, replies
        self._run("tell_sizes", main)
        self.params.replying = 0
        self._sizes.begin(main)

    def _bins(self, a_word: int = 1) -> Bins:
        """Return the content of the boxes, uint64, whose copy may still run.

        a_word: how many items fill a word; ANSWERS stands for replies
        """
        boxes = self._held["replies" if a_word == ANSWERS else "outbox"]
        filled = partial(self._filled, a_word)
        return Bins(boxes, filled if self._boxed else None)

    def _filled(self, a_word: int) -> tuple[Ids, Ids]:
        """Wait for the boxes; return where each begins, and where its content ends."""
        sizes = self._sizes.wait()[len(COUNTED) :].astype(np.int64)
        starts = (self.reply_at if a_word == ANSWERS else self.box_at)[:-1]
        sizes = sizes[: len(starts)]
        return starts, starts + np.where(sizes, 1 - (-sizes // a_word), 0)

    def questions(self) -> Bins:
        """Return the questions of this part's unvisited vertices, after ``advance``."""
        with self.device:
            left = self._asked < len(self.part.asked.columns)
            self._boxed = bool(self._outer.open) and left
            main = cuda.cupy().cuda.get_current_stream()
            if self._boxed and self.in_rounds:
                self._ask_some(main)
            elif self._boxed:
                self._box("ask", main)
        return self._bins(QUESTIONS)

    def _ask_some(self, main: Any) -> None:
        """Put questions for the next outer edges into boxes, as many as fit."""
        p, every = self.params, len(self.part.asked.columns)
        p.edges_from = self._asked
        while True:
            p.edges_to = min(self._asked + self._span, every)
            self._run("empty", main)
            self._box("ask", main)
            if not self._sizes.wait()[OVER]:
                break
            self._span = max((p.edges_to - p.edges_from) // 2, 1)
        self._asked = p.edges_to
        # mutant: self._asked < every -> False : test_levels_in_rounds
        self._left = self._asked < every
        self._span = min(2 * self._span, every)  # later there may be fewer questions

    def more(self) -> bool:
        """Return whether boxes were too small for all items; see ``DomainSearch``."""
        if self._pushed:
            counts = self._sizes.wait()
            self._left = bool(counts[OVER])
            self._checked += int(counts[CHECKED])
        return self._left

    def rest(self) -> Bins:
        """Return the pushed items that did not fit into boxes; see ``DomainSearch``."""
        with self.device:
            main = cuda.cupy().cuda.get_current_stream()
            self._run("empty", main)
            self._boxed = self._pushed = self._left
            if self._boxed:
                self._box("outer", main)
        return self._bins()

    def take(
        self,
        normals: Sequence[tuple[int, Any]],
        answers: Sequence[tuple[int, Any]] = (),
    ) -> None:
        """Merge the items of a round that is not the last; see ``DomainSearch``."""
        with self.device:
            main = cuda.cupy().cuda.get_current_stream()
            items, replies = ([x for _, x in pairs] for pairs in (normals, answers))
            self._admit(None, items, replies, main)

    def answers(self, questions: Sequence[tuple[int, Any]]) -> Bins:
        """Return the answers to other parts; call it before ``accept``.

        questions: (source rank, questions of its parts to this part)
        """
        return self._reply("answer", questions, ANSWERS)

    def _reply(
        self, kernel: str, questions: Sequence[tuple[int, Any]], a_word: int = 1
    ) -> Bins:
        """Return the answers of a kernel to other parts; a_word: see ``_bins``."""
        with self.device:
            main = cuda.cupy().cuda.get_current_stream()
            self._boxed = bool(questions)
            self._run("empty", main)
            for _, items in questions:
                self._take(kernel, items, main)
            self._tell_sizes(main, replies=a_word == ANSWERS)
        return self._bins(a_word)

    def _take(self, kernel: str, items: Any, main: Any, needs: int = 0) -> None:
        """Run a kernel on the items that other parts sent.

        items: boxes one after the other, or [k, words], as they were sent
        """
        p, near = self.params, brought_here(items)
        p.items, p.item_count, p.item_step = near.data.ptr, near.size, 0
        if near.ndim > 1:
            p.boxes, p.item_step = near.shape
        self._run(kernel, main, needs)

    def _admit(
        self,
        masks: Any,
        items: Sequence[Any],
        answers: Sequence[Any],
        main: Any,
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
            self._run("take_mask", main, goes)
        for array in items:
            self._take("take_items", array, main, pushes)
        for array in answers:
            self._take("take_answers", array, main, asks)

    def accept(
        self,
        bits: Any,
        normals: Sequence[tuple[int, Any]],
        answers: Sequence[tuple[int, Any]] = (),
    ) -> None:
        """Make all vertices that were found here or elsewhere the next frontier."""
        with self.device:
            main = cuda.cupy().cuda.get_current_stream()
            mask = None
            if bits is not None and self.params.dwords:
                mask = brought_here(bits)[None]
            items, replies = ([x for _, x in pairs] for pairs in (normals, answers))
            self._admit(mask, items, replies, main)
            self._settle(main)

    def ask_parents(self, turn: int = 0) -> Bins:
        """Return this part's questions for parents of delegates, after all levels."""
        p, step, count = self.params, self._owned_at_once, len(self.part.owned)
        with self.device:
            self._boxed = True
            # mutant: (turn, turn + 1) -> (0, 1) : test_levels_in_rounds
            p.owned_from, p.owned_to = (min(k * step, count) for k in (turn, turn + 1))
            main = cuda.cupy().cuda.get_current_stream()
            if turn:
                self._run("empty", main)
            self._box("ask_parents", main)
        return self._bins()

    def answer_parents(self, questions: Sequence[tuple[int, Any]]) -> Bins:
        """Return answers with the parents that this part knows; see ``answers``."""
        return self._reply("answer_parents", questions)

    def take_parents(self, answers: Sequence[tuple[int, Any]]) -> None:
        """Accept the parents that other domains know."""
        with self.device:
            main = cuda.cupy().cuda.get_current_stream()
            for _, items in answers:
                self._take("take_parents", items, main)

    def went(self, levels: int) -> None:
        """Note that one launch ran the whole search and wrote results."""
        self._dirty, self.depth = False, levels

    def finish(self) -> tuple[Any, Any]:
        """Return levels, int8 or int32, and parents by local id, CuPy arrays.

        Either is None if it was not requested.
        """
        arrays, count = self.arrays, self.part.local_count
        with self.device:
            if self._dirty:
                main = cuda.cupy().cuda.get_current_stream()
                # mutant: self.depth -> NO_LIMIT : test_ends
                self.own.last = self.depth  # leaves have none beyond
                if self.leaves is not None:
                    self._run("codes", main)
                self._run("end", main)
                self.own.last = NO_LIMIT
                if self.leaves is not None:
                    self.leaves.ends(main)
                self.results(main.ptr)
                self._dirty = False
            deep = too_deep(arrays.params, self.depth)
            level = arrays.wide if deep else arrays.level
            return cut(level, count), cut(arrays.parent, count)
