"""The contract of a domain whose levels run on a stream, ahead of the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from distbfs.engines.base import DelegateSearch, PullingSearch, StartedSearch, Work
from distbfs.exchange.base import SymmetricMemory
from distbfs.exchange.traffic import Traffic
from distbfs.types import Array, DirectionName, World

MOST_STREAMED = 64  # parts: each level sends first words to all, even if empty
FIRST = 1 << 14  # words for all others together that are sent before sizes are known
LEAST_FIRST = 64  # and for one


def streams_serve(parts: int) -> bool:
    """Return whether levels of ``parts`` parts may run on streams."""
    return 1 < parts <= MOST_STREAMED


def first_words(boxes: int) -> int:
    """Return the number of words of a box that are sent before its size is known."""
    return max(FIRST // max(boxes, 1), LEAST_FIRST)


class LevelCounts(NamedTuple):
    """Counts of all parts at the end of a level.

    over: whether any box had more than its first words
    unknown: items in the fullest box of ``ask``
    """

    work: Work
    over: int
    unknown: int


class StreamedSearch(PullingSearch, DelegateSearch, Protocol):
    """A domain whose levels run on the current stream while the host goes ahead.

    Arrays are CuPy uint64. A level calls ``begin_level``; ``told`` with the boxes
    received from other parts, and ``reply`` if they hold questions; ``end_level``; and,
    once the counts of all parts are gathered, ``choose``, by which the device derives
    the next level from the counts. So the next level may be launched before the host
    knows them; it does nothing if the search has ended or must wait.

    A box is one word with its size, then its contents: items of one word, or questions,
    several per word, whose answers come in the same order. The first words of each box
    are sent before the host knows how many there are. If counts say ``over``, the
    others are sent and merged (``take_from``, or ``reply_to`` and ``learn_from``)
    before another ``end_level``. After the last level, ``ask``, ``told``, ``reply`` and
    ``learn`` complete the parents of delegates; ``finish`` may write results on another
    stream before ``learn``. The launches of a level may be repeated unchanged as long
    as ``form`` is the same.

    device: the device of the domain
    others: the parts of other domains, ascending, to which boxes are sent
    first: number of words of a box that are sent at once by default
    depth: number of levels so far; the caller raises it with each level
    counts: counts of the last level, to be gathered when it has ended; zeros before the
    first
    sizes: [2, parts], sizes of the boxes sent and received
    mask: the delegates that this device itself found, None without delegates; each
    other part gets its ``pieces``
    """

    device: Any
    others: Sequence[int]
    first: int
    depth: int
    counts: Any
    sizes: Any
    mask: Any

    @property
    def form(self) -> int | None:
        """Key of a level's launches; None if no later search can reuse them."""

    def follow(
        self,
        gathered: Any,
        report: Any,
        forced: DirectionName | None,
        pull_share: int,
    ) -> None:
        """Derive later levels from the counts of all parts.

        gathered: [parts, words], memory for these counts
        report: NumPy, pinned, [2, 2 counts + sizes]; ``choose`` copies the counts of
        all parts, the own counts and ``sizes`` to its rows in turn, to the first row at
        the start of a search
        forced, pull_share: see ``search.direction.OuterPolicy``; the first level of a
        normal root pushes unless it is forced
        """

    def begin_level(self, *, pushes: bool, asks: bool) -> None:
        """Start a level that may push or ask; the counts decide."""

    def room(self, part: int) -> int:
        """Return the capacity in words of the boxes to and from a part."""

    def box(self, part: int, begin: int, end: int) -> Any:
        """Return the words begin … end-1 of the box for a part."""

    def answer_words(self, words: int) -> int:
        """Return the words of the answers to ``words`` words of questions."""

    def answers_to(self, part: int, begin: int, end: int) -> Any:
        """Return the words begin … end-1 of the answers to a part, as in ``box``."""

    def pieces(self, part: int) -> Sequence[slice]:
        """Return which words of a mask cover delegates that a part has as well."""

    def told(self, boxes: Any, *, parents: bool) -> None:
        """Store the sizes of received boxes in ``sizes``; boxes: [others, words]."""

    def reply(self, questions: Any, *, parents: bool) -> None:
        """Write answers to questions, boxes [k, words].

        parents: whether the questions are those of ``ask``, whose answers go to boxes
        """

    def reply_to(self, part: int, questions: Any, first: int) -> None:
        """Write answers to a part's questions after the first ``first`` words."""

    def learn_from(self, part: int, answers: Any, first: int) -> None:
        """Merge a part's answers to the questions after the first words; uint64."""

    def take_from(self, part: int, items: Any) -> None:
        """Merge the items that a part pushed after the first words; uint64 [k]."""

    def ask(self) -> None:
        """Write the questions for the parents of delegates into boxes."""

    def learn(self, answers: Any) -> None:
        """Set parents in results that ``finish`` wrote; answers: boxes [k, words]."""

    def end_level(
        self,
        masks: Any,
        items: Sequence[Any],
        answers: Sequence[Any],
        *,
        first: int,
        pulled: bool = False,
    ) -> None:
        """Merge what all parts found, and count.

        masks: [other domains, words] with their ``pieces`` filled, or None
        items, answers: boxes that other parts pushed or answered, [k, words] each
        first: number of words of a box that were sent, 0 for the whole box; counts say
        ``over`` if a box has more
        pulled: whether the level pulled, where first is 0; else the counts decide
        """

    def choose(self) -> None:
        """Choose the next level; resets ``counts`` and ``sizes`` to zeros."""

    def counted(self, report: Array) -> LevelCounts:
        """Return the counts of all parts; report: one row of it."""

    def checks(self, report: Array) -> Sequence[int]:
        """Return the edge checks of the last level, if they are counted."""


class Loop(StartedSearch, Protocol):
    """All levels of a search, parents and results, in one launch on a device.

    Nothing is counted, so ``start`` takes no targets.
    """

    def run(self, hidden: int, traffic: Traffic, *, parents: bool) -> tuple[int, float]:
        """Run a search that was started (collective); the search's ``finish`` follows.

        hidden: number of delegates that are not roots
        parents: whether parents of delegates are wanted; traffic: counts the data sent

        Returns (number of levels, seconds of this device). Raises DistbfsError if
        another domain did not answer in time.
        """


class LoopedSearch(StreamedSearch, Protocol):
    """A domain of one device whose searches may be one launch."""

    def loop(
        self,
        memory: SymmetricMemory,
        world: World,
        forced: DirectionName | None,
        pull_share: int,
    ) -> Loop:
        """Return a ``Loop``, which runs each search in one launch (collective).

        forced, pull_share: see ``search.direction.OuterPolicy``

        Raises OutOfMemory on all ranks if messages from others do not fit.
        """
