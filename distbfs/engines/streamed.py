"""The contract of a domain whose levels run on a stream while the host goes ahead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from distbfs.engines.base import DelegateSearch, PullingSearch, Work
from distbfs.types import Array, DirectionName


class LevelCounts(NamedTuple):
    """What all parts together have counted when a level has ended.

    over: whether a box had more than its first words; most: words that the fullest one
    had; unknown: items that the fullest box of ``ask`` has
    edges, found, left: of the frontier, 0 where they are not counted; its vertices;
    vertices that are left
    """

    work: Work
    over: int
    most: int
    unknown: int
    edges: int
    found: int
    left: int


class StreamedSearch(PullingSearch, DelegateSearch, Protocol):
    """A domain whose levels run on the current stream while the host goes ahead.

    Arrays are CuPy's, uint64.  A level is ``begin_level``; where there are boxes for
    other parts, ``told``, and of pulled ones ``reply``; ``end_level``; and ``choose``,
    when the counts of all parts are gathered: what the next level does follows from
    them on the device, so that it may be launched before the host knows.  It does
    nothing where the search is over, or waits.  A box is a word about it, and then what
    it has: items of a word, or questions of half a word, to which the answers come in
    their order.  The first words of each are sent before the host knows how many there
    are; the others are sent, and admitted (``take_from``, or ``reply_to`` and
    ``learn_from``) before a further ``end_level``, where counts say ``over``.  Then
    ``ask``, ``told``, ``reply`` and ``learn`` complete the parents of delegates.  What
    a level launches may be launched again as it was where ``form`` is the same.

    device: where it is
    others: parts of other domains, rising: those that boxes are for
    first: words of a box that are sent at once where nothing else is known
    depth: levels so far, to be raised with each
    counts: of the last level, to be gathered when it has ended, zeros before the first
    sizes: [2, parts], of the boxes for other parts and of those that came, the same
    mask: delegates that this device alone knows of; None: there are no delegates.
        To each other part its ``pieces`` are sent
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
        """What launches of a level depend on; None: on what no later search has."""

    def follow(
        self,
        gathered: Any,
        report: Any,
        forced: DirectionName | None,
        pull_share: int,
    ) -> None:
        """Let levels do what follows from the counts of all parts.

        gathered: [parts, words], where they will lie; report: NumPy, pinned, [2, 2
        counts + sizes], to which ``choose`` brings counts of all, own ones, and
        ``sizes``, to its halves in turn, beginning with the first of a search; forced,
        pull_share: as of ``search.direction.OuterPolicy``; the first level of a normal
        root pushes unless it is forced
        """

    def begin_level(self, *, pushes: bool, asks: bool) -> None:
        """Begin a level; it pushes, or asks; where both are set, as counts say."""

    def clear_counts(self) -> None:
        """Set ``counts`` and ``sizes`` to zeros, before the first level."""

    def room(self, part: int) -> int:
        """Return how many words the box for a part may have, and that of it for us."""

    def box(self, part: int, begin: int, end: int) -> Any:
        """Return words of the box for a part."""

    def pieces(self, part: int) -> Sequence[slice]:
        """Return which words of a mask are of delegates that another part has, too."""

    def told(self, boxes: Any, *, parents: bool) -> None:
        """Note all sizes in ``sizes``; boxes: [others, words] that came."""

    def reply(self, questions: Any, *, parents: bool) -> None:
        """Put answers into boxes; questions: boxes [k, words].

        parents: they are those of ``ask``
        """

    def reply_to(self, part: int, questions: Any, first: int) -> None:
        """Put answers into the box for a part, to what comes after ``first`` words."""

    def learn_from(self, part: int, answers: Any, first: int) -> None:
        """Admit a part's answers to such questions; both: uint64 [k]."""

    def take_from(self, part: int, items: Any) -> None:
        """Admit what a part pushed after the first words; uint64 [k]."""

    def ask(self) -> None:
        """Put the questions for the parents of delegates into boxes."""

    def learn(self, answers: Sequence[Any]) -> None:
        """Accept what other parts answered to them; each as questions."""

    def end_level(
        self,
        masks: Any,
        items: Sequence[Any],
        answers: Sequence[Any],
        *,
        first: int,
        pulls: bool | None,
    ) -> None:
        """Admit what all parts found, and count.

        masks: [other domains, words], their ``pieces`` filled, or None
        items, answers: what other parts pushed or answered, boxes [k, words]
        first: words of a box that came; 0: nothing more comes; else counts say
        ``over`` where it does; pulls: whether it did, None: as counts said
        """

    def choose(self) -> None:
        """Choose what the next level does; ``counts`` and ``sizes`` are zeros then."""

    def counted(self, report: Array) -> LevelCounts:
        """Return what all parts have counted; report: one half of it."""

    def checks(self, report: Array) -> Sequence[int]:
        """Return the edge checks of the last level, where they are counted."""
