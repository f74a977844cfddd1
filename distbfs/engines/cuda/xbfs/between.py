"""Searches between domains that the host leads level by level (between.cu).

Method fast searches the inner graph of one device; several devices synchronise inside a
level.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from distbfs.device import cuda
from distbfs.device.arrays import brought_here
from distbfs.engines.base import ASKED, Offer, Targets, Work
from distbfs.engines.cuda.xbfs.between_params import (
    ANSWERS,
    COUNTED,
    QUESTIONS,
)
from distbfs.engines.cuda.xbfs.between_share import CHECKED, OVER, BetweenShare
from distbfs.engines.cuda.xbfs.shared import SharedMemory
from distbfs.exchange.bins import Bins
from distbfs.partition.share import Share
from distbfs.types import Choice, Ids, Root


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


class BetweenLevels(BetweenShare):
    """Searches level by level on the current device; a ``DomainSearch``.

    Items that it sends are uint64; see between_outer.cuh.
    """

    parents = ASKED
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

    def _settle(self) -> None:
        """Make the vertices that were found the frontier; send counts to the host."""
        cuda.clear(self._control)
        self._run("settle")
        self._work.begin()

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

    def advance(self, choice: Choice, offer: Offer) -> Sequence[int]:
        """Begin a level; reading its edge checks waits for its end."""
        with self.device:
            self._pulls = choice["outer"] == "pull"
            self._boxed = bool(self._outer.nn) and not self._pulls
            self._pushed, self._left = self._boxed and self.in_rounds, False
            self._asked = self._checked = 0
            if self._pushed:
                self._mark_front()
            if self._boxed:
                self._box("outer")
            self._run("level")
            self.depth += 1
            self._ready.record()
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

    def _mark_front(self) -> None:
        """Mark the frontier for the rounds of a push; see ``post`` in between_outer."""
        cuda.clear(self._held["front"])
        p = self.params
        p.edges_from, p.edges_to = 0, len(self.part.out.outer.columns)
        self._run("front")

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
            self._settle()

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
