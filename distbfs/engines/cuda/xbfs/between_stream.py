"""Levels between domains on a stream, which devices run without the host.

The actions of a level are stored in device memory (``Does`` in between.cuh), where
kernels read them that are launched before the host knows the actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from distbfs.engines.cuda.xbfs.between import BetweenLevels
from distbfs.engines.cuda.xbfs.between_loop import BetweenLoop
from distbfs.engines.cuda.xbfs.between_params import (
    ANSWERS,
    ASKS,
    COUNTED,
    GOES,
    PUSHES,
    QUESTIONS,
)
from distbfs.engines.streamed import LevelCounts
from distbfs.exchange.symmetric import NvshmemMemory
from distbfs.types import DirectionName, Ids, World

AT = [COUNTED.index(name) for name in LevelCounts._fields[1:]]


class BetweenSearch(BetweenLevels):
    """Searches on a device of a domain, by level or on the current stream.

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

    streamed = True

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

    def checks(self, report: Any) -> list[int]:
        """Return the last level's outer and inner edge checks, then ``extras``."""
        return self.checks_of(report[len(COUNTED) : 2 * len(COUNTED)])
