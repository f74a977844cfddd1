"""Searches between domains, level by level (between.cu): by the host, or on a stream.

Method fast searches the inner graph of one device; several devices synchronise inside a
level. The actions of a level on a stream are stored in device memory (``Does`` in
between.cuh), where kernels read them that are launched before the host knows the
actions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from distbfs.device import cuda
from distbfs.device.arrays import brought_here
from distbfs.engines.base import ASKED, Targets, Work
from distbfs.engines.cuda.xbfs.arrays import ROWS
from distbfs.engines.cuda.xbfs.between_loop import BetweenLoop
from distbfs.engines.cuda.xbfs.between_params import (
    ANSWERS,
    ASKS,
    COUNTED,
    GOES,
    PUSHES,
    QUESTIONS,
)
from distbfs.engines.cuda.xbfs.between_share import CHECKED, OVER, BetweenShare
from distbfs.engines.cuda.xbfs.share_search import tail_counts
from distbfs.engines.cuda.xbfs.shared import SharedMemory
from distbfs.engines.streamed import LevelCounts
from distbfs.exchange.bins import Bins
from distbfs.exchange.symmetric import NvshmemMemory
from distbfs.partition.share import Share
from distbfs.types import Choice, DirectionName, Ids, Root, World

AT = [COUNTED.index(name) for name in LevelCounts._fields[1:]]


class BetweenSearch(BetweenShare):
    """Searches on a device of a domain (a ``DomainSearch``), also on its stream.

    Items that it sends are uint64; see between_outer.cuh.

    On a stream, the host goes ahead. A level calls ``begin_level``; ``told`` with the
    boxes received from other parts, and ``reply`` if they hold questions;
    ``end_level``; and, once the counts of all parts are gathered, ``choose``, by which
    the device derives the next level from the counts. So the next level may be launched
    before the host knows them; it does nothing if the search has ended or must wait.

    A box is one word with its size, then its contents: items of one word, or questions,
    several per word, whose answers come in the same order. The first words of each box
    are sent before the host knows how many there are. If counts say ``over``, whole
    boxes are sent, answered and merged by another ``end_level``. After the last level,
    ``ask``, ``told``, ``reply`` and ``learn`` complete the parents of delegates;
    ``finish`` may write results on another stream before ``learn``. The launches of a
    level may be repeated unchanged as long as ``form`` is the same.

    device: the device of the domain
    others: the parts of other domains, ascending, to which boxes are sent
    first: number of words of a box that are sent at once by default
    depth: number of levels so far; the caller raises it with each level
    counts: counts of the last level, CuPy uint64, to be gathered when it has ended;
    zeros before the first
    sizes: CuPy uint64 [2, parts], sizes of the boxes sent and received
    mask: the delegates that this device itself found, CuPy uint64, None without
    delegates; each other part gets its ``pieces``
    """

    parents = ASKED
    streamed = True
    directions = ("outer",)
    visits = ("outer", "inner")

    def __init__(self, part: Share, shared: SharedMemory) -> None:
        super().__init__(part, shared)
        self.in_rounds, limit = self.limit is not None, self.limit
        self._owned_at_once = len(part.owned) if limit is None else limit
        self.parent_rounds = -(-self.most_owned // limit) if limit else 1
        self._sizes = cuda.HostCopy(self._control)
        self._work = cuda.HostCopy(self._control)
        self._ready = cuda.cupy().cuda.Event(disable_timing=True)
        self._boxed = False
        self._pulls = False
        # of a level in rounds: whether it pushes, and has more to send; outer edges
        # looked at for questions so far, and at once; edge checks of pushes
        self._pushed = self._left = False
        self._asked = self._checked = 0
        self._span = len(part.into.outer.columns)
        self._outer = Work()

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
            streamed = self.params.gathered
            counted = targets is not None or not streamed  # the host reads counts
            self._load(counting=counting)
            self.aim(local, delegate, targets)
            self.clean_up()
            self.take_counters(0)  # which ``begin`` clears, and the others
            self._run("begin")
            if isinstance(local, np.ndarray):
                self._run("begin_roots")
            elif not counted:
                return
            self._run("settle")
            if counted:
                self._work.begin()
            if streamed:
                cuda.clear(self._control)

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

    def advance(self, choice: Choice) -> Iterator[Any]:
        """Begin a level, for whose end only ``checks`` waits."""
        with self.device:
            self._pulls = choice["outer"] == "pull"
            self._boxed = bool(self._outer.nn) and not self._pulls
            self._pushed, self._left = self._boxed and self.in_rounds, False
            self._asked = self._checked = 0
            if self._pushed:  # in rounds: see ``post`` in between_outer.cuh
                cuda.clear(self._held["front"])
                self.params.edges_from = 0
                self.params.edges_to = len(self.part.out.outer.columns)
                self._run("front")
            if self._boxed:
                self._box("outer")
            self._run("level")
            self.depth += 1
            self._ready.record()
        # the caller's device is the exchange's, which may be another
        yield self._bins()
        cuda.cupy().cuda.get_current_stream().wait_event(self._ready)
        yield self._mask

    def checks(self, report: Any = None) -> list[int]:
        """Return the last level's outer and inner edge checks, then ``extras``.

        report: that of a level on a stream, see ``counted``
        """
        sent = self._checked
        if report is not None:
            sent = int(report[len(COUNTED) + CHECKED])
        elif self._outer.nn and not (self._pulls or self.in_rounds):
            sent = int(self._sizes.wait()[CHECKED])
        level = min(self.depth, ROWS - 1)
        with self.device:
            inner = self._counts[:, level : level + 1].get().astype(np.int64)
        tails = tail_counts(inner)
        return [sent, int(inner[0, 0]), *(tails[name][0] for name in self.extras)]

    def _box(self, kernel: str) -> None:
        """Fill the boxes; start copying their sizes to the host."""
        cuda.clear(self._control)
        self._run(kernel)
        self._tell_sizes()

    def _tell_sizes(self, *, replies: bool = False) -> None:
        """Start copying the sizes of boxes, or of replies, to the host."""
        self.params.item_step, self.params.replying = 0, replies
        self._run("tell_sizes")
        self.params.replying = 0
        self._sizes.begin()

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
            left = self._asked < len(self.part.into.outer.columns)
            self._boxed = bool(self._outer.open) and left
            if self._boxed and self.in_rounds:
                self._ask_some()
            elif self._boxed:
                self._box("ask")
        return self._bins(QUESTIONS)

    def _ask_some(self) -> None:
        """Put questions for the next outer edges into boxes, as many as fit."""
        p, every = self.params, len(self.part.into.outer.columns)
        p.edges_from = self._asked
        while True:
            p.edges_to = min(self._asked + self._span, every)
            self._run("empty")
            self._box("ask")
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
            self._run("empty")
            self._boxed = self._pushed = self._left
            if self._boxed:
                self._box("outer")
        return self._bins()

    def take(self, items: Sequence[tuple[int, Any]]) -> None:
        """Merge the items of a round that is not the last; see ``DomainSearch``."""
        with self.device:
            self._admit(None, *self._by_kind(items))

    def _by_kind(self, items: Sequence[tuple[int, Any]]) -> tuple[list[Any], list[Any]]:
        """Return the pushes, and the answers, among the items that have arrived."""
        arrays = [array for _, array in items]
        return ([], arrays) if self._pulls else (arrays, [])

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
            self._boxed = bool(questions)
            self._run("empty")
            for _, items in questions:
                self._take(kernel, items)
            self._tell_sizes(replies=a_word == ANSWERS)
        return self._bins(a_word)

    def accept(self, bits: Any, items: Sequence[tuple[int, Any]]) -> None:
        """Make all vertices that were found here or elsewhere the next frontier."""
        with self.device:
            mask = None
            if bits is not None and self.params.dwords:
                mask = brought_here(bits)[None]
            self._admit(mask, *self._by_kind(items))
            cuda.clear(self._control)
            self._run("settle")
            self._work.begin()

    def ask_parents(self, turn: int = 0) -> Bins:
        """Return this part's questions for parents of delegates, after all levels."""
        p, step, count = self.params, self._owned_at_once, len(self.part.owned)
        with self.device:
            self._boxed = True
            # mutant: (turn, turn + 1) -> (0, 1) : test_levels_in_rounds
            p.owned_from, p.owned_to = (min(k * step, count) for k in (turn, turn + 1))
            if turn:
                self._run("empty")
            self._box("ask_parents")
        return self._bins()

    def answer_parents(self, questions: Sequence[tuple[int, Any]]) -> Bins:
        """Return answers with the parents that this part knows; see ``answers``."""
        return self._reply("answer_parents", questions)

    def take_parents(self, answers: Sequence[tuple[int, Any]]) -> None:
        """Accept the parents that other domains know."""
        with self.device:
            for _, items in answers:
                self._take("take_parents", items)

    @property
    def form(self) -> int | None:
        """Key of a level's launches; None if no later search can reuse them."""
        if self._counting or self.own.sought or self.params.lost:
            return None
        return int(self.own.snapshot)

    def loop(
        self,
        memory: NvshmemMemory,
        world: World,
        ranks: Ids,
        forced: DirectionName | None,
        pull_share: int,
    ) -> BetweenLoop:
        """Return these searches in one launch each (collective).

        ranks: see ``BetweenLoop``
        forced, pull_share: see ``search.direction.DirectionPolicy``. Raises OutOfMemory
        on all ranks if messages from others do not fit.
        """
        self._choose_by(forced, pull_share)
        return BetweenLoop(self, memory, world, ranks)

    def follow(
        self,
        gathered: Any,
        report: Any,
        forced: DirectionName | None,
        pull_share: int,
    ) -> None:
        """Make levels choose directions by counts of all parts.

        gathered: uint64 [parts, words], memory for these counts
        report: NumPy, pinned, [2, 2 counts + sizes]; ``choose`` copies the counts of
        all parts, the own counts and ``sizes`` to its rows in turn, to the first row at
        the start of a search
        forced, pull_share: see ``search.direction.DirectionPolicy``; the first level of
        a normal root pushes unless it is forced
        """
        self._choose_by(forced, pull_share)
        self.params.gathered = gathered.data.ptr
        self.params.report = report.ctypes.data

    def _choose_by(self, forced: DirectionName | None, pull_share: int) -> None:
        """Set the rule by which devices choose directions; see ``DirectionPolicy``."""
        ways = {None: PUSHES | ASKS, "push": PUSHES, "pull": ASKS}
        self.params.rule, self.params.pull_share = ways[forced], pull_share

    def begin_level(self, *, pushes: bool, asks: bool) -> None:
        """Begin a level and its messages to other parts on the current stream.

        Afterwards the messages are in ``mask`` and in boxes. If it may both push
        and ask, the counts decide.
        """
        if pushes:
            self._run("outer", PUSHES)
        self._run("level", GOES)
        if asks:
            self._run("ask", ASKS)

    def room(self, part: int) -> int:
        """Return the words of the box for a part, as many as of its box for this."""
        return int(self.box_at[part + 1] - self.box_at[part]) - 1

    def box(self, part: int, words: int) -> Any:
        """Return words of the box for a part; the first describes the others."""
        start = int(self.box_at[part])
        return self._held["outbox"][start : start + words]

    def answer_words(self, words: int) -> int:
        """Return the number of words of the answers to ``words`` words of questions."""
        return -(-words * QUESTIONS // ANSWERS)

    def answers_to(self, part: int, words: int) -> Any:
        """Return words of the answers to a part; the first describes the others."""
        start = int(self.reply_at[part])
        return self._held["replies"][start : start + words]

    def pieces(self, part: int) -> list[slice]:
        """Return which words of a mask have delegates that a part also searches."""
        domains = self.part.domain.of
        own, words = domains.lanes_of(self.part.index), len(self._mask) // domains.lanes
        common = [lane for lane in domains.lanes_of(part) if lane in own]
        # mutant: common -> common[:1]
        #   : test_between_kernels::test_domains_of_several_devices
        return [slice(lane * words, (lane + 1) * words) for lane in common]

    def told(self, boxes: Any, *, parents: bool) -> None:
        """Note the sizes of boxes in ``sizes``, and empty the boxes of this part.

        boxes: uint64 [others, words], the boxes that came from other parts
        """
        p = self.params
        p.items, (p.boxes, p.item_step) = boxes.data.ptr, boxes.shape
        self._run("tell_sizes", 0 if parents else GOES)

    def ask(self) -> None:
        """Put the questions for parents of delegates into boxes."""
        self._run("ask_parents")

    def reply(
        self, questions: Any, *, parents: bool = False, whole: bool = False
    ) -> None:
        """Put the answers to the questions of other parts into boxes.

        parents: whether the questions are for parents of delegates
        whole: whether whole boxes came, because counts said ``over``
        """
        if parents:
            self._take("answer_parents", questions)
        else:
            self._take("answer", questions, 0 if whole else ASKS)

    def learn(self, answers: Any) -> None:
        """Accept parents of delegates, after ``finish``; see ``_take``."""
        self._take("late_parents", answers)

    def end_level(
        self,
        masks: Any,
        items: Sequence[Any],
        answers: Sequence[Any],
        *,
        first: int,
        pulled: bool = False,
    ) -> None:
        """Mark the vertices that all parts found, and count them in ``counts``.

        masks: uint64 [other domains, words], None if no delegates came
        items: what other parts pushed; answers: answers of other parts; see ``_take``
        first: words of a box that have come, where counts say ``over`` if there are
        more; 0 if nothing more comes
        pulled: whether the level pulled, where first is 0
        """
        p = self.params
        does = (GOES, PUSHES, ASKS) if first else (0, 0, 0)
        self._admit(masks, items, answers, *does)
        p.first, p.way = first, 0 if first else ASKS if pulled else PUSHES
        self._run("settle", does[0])
        p.first = p.way = 0

    def choose(self) -> None:
        """Choose the next level by the gathered counts; clears counts and sizes."""
        self._run("choose")

    def counted(self, report: Any) -> LevelCounts:
        """Return the counts of all parts, from one row of the report."""
        counts = report[: len(COUNTED)].tolist()
        work = self._work_of(counts)
        times = len(self.part.domain.of)  # all domains count them
        return LevelCounts(
            # mutant: times -> self.part.domain.devices
            #   : test_ends_and_records_of_several_devices
            work._replace(delegates=work.delegates // times),
            *[counts[at] for at in AT],
        )
