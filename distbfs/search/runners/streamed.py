"""Levels between domains that the host launches ahead of the devices.

All steps of a level run on the streams of the exchange, one per device, captured as
CUDA graphs in the first searches. The devices derive each level from the counts of all
parts; so the host launches the next level before it waits for those counts. The first
words of each box are sent before their number is known. If a box has more, the level
launched ahead does nothing, and whole boxes follow. MPI is not used.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cuda
from distbfs.search.runners.replays import Replays
from distbfs.search.runners.seat import LEAST_UNKNOWN, Seat

if TYPE_CHECKING:
    from distbfs.engines.base import Work
    from distbfs.engines.cuda.xbfs.between import BetweenSearch
    from distbfs.engines.streamed import LevelCounts
    from distbfs.exchange.nccl_streams import NcclStreams
    from distbfs.partition.layout import Domains
    from distbfs.search.direction import DirectionPolicy
    from distbfs.search.runners.seat import Boxes

    Piece = tuple[int, int, Any]  # place, part, array


class StreamedLevels:
    """The levels of this rank's parts, each of which has its own device."""

    def __init__(
        self,
        searches: Sequence[BetweenSearch],
        streams: NcclStreams,
        domains: Domains,
        policy: DirectionPolicy,
    ) -> None:
        self._exchange = streams
        self._here: Callable[[int], AbstractContextManager[None]] = streams.here
        self._seats: list[Seat] = []
        for place, search in enumerate(searches):
            with streams.here(place):
                stream = streams.streams[place]
                self._seats.append(Seat(place, search, stream, domains, policy))
        every = [(x.place, *piece) for x in self._seats for piece in x.mask_pieces]
        # pieces of masks to send, and places of received ones
        self._masks: tuple[list[Piece], list[Piece]] = (
            [(place, part, own) for place, part, own, _ in every],
            [(place, part, there) for place, part, _, there in every],
        )
        streams.connect([seat.others for seat in self._seats])
        self._first = self._seats[0].search  # every part has the counts of all
        captured = streams.streams if streams.captures else ()
        self._replays = Replays(captured, streams.here, streams.link.wait)
        # what boxes may contain: pushed vertices, questions
        self._pushes, self._asks = policy.forced != "pull", policy.forced != "push"
        self._counted = self._first.counted(self._seats[0].reports[0])
        self._slot = self._turn = 0  # of the last level; of the next launch
        self._asked = 0  # words of the boxes of parents that were requested
        self._launched: tuple[bool, int] | None = None  # ahead: masks, slot
        self._words = self._first.first  # of each box, sent at first

    @contextmanager
    def stream(self) -> Iterator[None]:
        """Run the enclosed calls on the exchange's streams, in the callers' order."""
        self._exchange.link.follow()
        yield
        for seat in self._seats:
            seat.done.record(seat.stream)
            with seat.search.device:
                cuda.cupy().cuda.get_current_stream().wait_event(seat.done)

    @contextmanager
    def levels(self) -> Iterator[None]:
        """Run the levels of a search in a block."""
        with self.stream():
            self._turn = self._asked = 0
            self._counted = self._counted._replace(unknown=0)
            try:
                yield
            finally:
                self._drop()

    def level(
        self, *, pull: bool, reduces: bool, counting: bool, ahead: bool
    ) -> list[Sequence[int]]:
        """Run one level; return the edge checks of each part if ``counting``.

        pull: direction between domains, where it is known
        reduces: whether there are delegates left to find
        ahead: whether the next level may be launched before this one has ended
        """
        masks = reduces and self._first.mask is not None
        with_masks, slot = self._launched or self._start(masks=masks)
        self._launched = None
        pulls = self._asks and (pull or not self._pushes)
        numbers = "questions" if pulls else "normals"
        self._count(numbers, self._words, masks=with_masks, asks=self._asks)
        for seat in self._seats:
            seat.search.depth += 1
        if ahead:
            self._launched = self._start(masks=masks)
        if self._wait(slot).over:
            self._drop()  # the level ahead does nothing
            self._replays.land()
            self._rest(numbers, pull=pulls)
            self._gather()
            self._wait(self._mark())
        if not counting:
            return []
        return [x.search.checks(x.reports[self._slot]) for x in self._seats]

    def forget(self) -> None:
        """Drop captured levels, since parts see other edges from now on."""
        self._replays.forget()

    def work(self) -> Work:
        """Return the work of all domains, after the level has ended."""
        return self._counted.work

    def _each(self, do: Callable[[Seat], object]) -> None:
        """Call a function for each part, with its device and stream current."""
        for seat in self._seats:
            with self._here(seat.place):
                do(seat)

    def _start(self, *, masks: bool) -> tuple[bool, int]:
        """Launch a level; return whether masks are exchanged, and its report's slot."""
        self._replays(masks, self._form(), partial(self._launch, masks=masks))
        return masks, self._mark()

    def _form(self) -> Hashable:
        """Return the key of launches, None if no later search can reuse them."""
        forms = tuple([seat.search.form for seat in self._seats])
        return None if None in forms else forms

    def _mark(self) -> int:
        """Return the slot of the last launch, to wait for."""
        turn = self._turn
        for seat in self._seats:
            seat.reads[turn].record(seat.stream)
        self._turn ^= 1
        return turn

    def _drop(self) -> None:
        """Discard the level that was launched ahead."""
        if self._launched is not None:
            masks, _ = self._launched
            self._count("normals", self._words, masks=masks, asks=self._asks)
        self._launched = None

    def _launch(self, *, masks: bool) -> None:
        """Launch a level, with the first words of each box."""
        words = self._words
        came, replied = self._spaces(words, self._first.answer_words(words))

        def begin(seat: Seat) -> None:
            seat.search.begin_level(pushes=self._pushes, asks=self._asks)

        def end(seat: Seat) -> None:
            boxes = [came[seat.place]] * self._pushes
            answers = [replied[seat.place]] * self._asks
            there = seat.masks if masks else None
            seat.search.end_level(there, boxes, answers, first=words)

        self._each(begin)
        self._first_words(came, words, *(self._masks if masks else ()))
        self._each(lambda seat: seat.search.told(came[seat.place], parents=False))
        if self._asks:
            self._each(lambda seat: seat.search.reply(came[seat.place], parents=False))
            self._first_words(replied, words, answers=True)
        self._each(end)
        self._gather()

    def _spaces(self, words: int, replies: int) -> tuple[list[Any], list[Any]]:
        """Return the buffers for boxes and replies of these lengths, by place."""
        pairs = []
        for seat in self._seats:
            with self._here(seat.place):
                pairs.append(seat.space(words, replies))
        boxes, answers = zip(*pairs, strict=True)
        return list(boxes), list(answers)

    def _first_words(
        self,
        into: list[Any],
        words: int,
        leaving: Sequence[Piece] = (),
        coming: Sequence[Piece] = (),
        *,
        answers: bool = False,
    ) -> None:
        """Send the first words of boxes, after the other data in ``leaving``.

        into: buffers for the words of other parts, [others, 1 + words], by place
        answers: whether to send the answers to the first words instead
        """
        away, back = [*leaving], [*coming]
        for seat, space in zip(self._seats, into, strict=True):
            box = seat.search.answers_to if answers else seat.search.box
            length = seat.answered if answers else seat.sent
            for row, part in enumerate(seat.others):
                end = length(part, words)
                away.append((seat.place, part, box(part, end)))
                back.append((seat.place, part, space[row, :end]))
        self._exchange.cross((), away, back)

    def _count(self, numbers: str, words: int, *, masks: bool, asks: bool) -> None:
        """Count the traffic of a launch; numbers: the kind of its messages."""
        count = self._exchange.traffic.count
        for seat in self._seats:
            place, messages = seat.place, len(seat.others)
            size, answers = seat.volumes(words)
            if masks:
                pieces = len(seat.mask_pieces)
                count(seat.mask_bytes, "masks", part=place, messages=pieces)
            count(size, numbers, part=place, messages=messages)
            back = (size, numbers) if numbers == "parents" else (answers, "answers")
            if asks:
                count(*back, part=place, messages=messages)

    def complete(self) -> None:
        """Ask for the parents of delegates, after the last level; ``wait`` sets them.

        Boxes are large enough for the counted items, so the host need not wait.
        """
        form, unknown = self._form(), max(self._counted.unknown, LEAST_UNKNOWN)
        words = 1 << (unknown - 1).bit_length()  # few sizes, so few graphs
        launch = partial(self._launch_parents, words)
        self._replays(("parents", words), form, launch)
        self._count("parents", words, masks=False, asks=True)
        self._asked = words

    def _launch_parents(self, words: int) -> None:
        """Launch questions and answers for parents, ``words`` words per box."""
        came, replied = self._spaces(words, words)
        self._each(lambda seat: seat.search.ask())
        self._first_words(came, words)
        self._each(lambda seat: seat.search.told(came[seat.place], parents=True))
        self._each(lambda seat: seat.search.reply(came[seat.place], parents=True))
        self._first_words(replied, words)

    def wait(self) -> None:
        """Wait for the last launch; capture graphs for later searches meanwhile.

        Parents that were asked for are set first, in the results that the caller's
        stream writes.
        """
        if self._asked:
            _, replied = self._spaces(self._asked, self._asked)
            self._asked = 0
            with self.stream():
                self._each(lambda seat: seat.search.learn(replied[seat.place]))
        self._prepare()
        for seat in self._seats:
            self._exchange.link.wait(seat.done)

    def _prepare(self) -> None:
        """Capture all launches that may follow."""
        replays, form = self._replays, self._form()
        if form is None or not replays.lacks(form):
            return
        self._spaces(self._words, self._words)
        for masks in (False, True) if self._first.mask is not None else (False,):
            replays.capture(masks, form, partial(self._launch, masks=masks))
        self._spaces(LEAST_UNKNOWN, LEAST_UNKNOWN)
        launch = partial(self._launch_parents, LEAST_UNKNOWN)
        replays.capture(("parents", LEAST_UNKNOWN), form, launch)

    def _rest(self, numbers: str, *, pull: bool) -> None:
        """Exchange whole boxes where they have more words; numbers: kind of these."""
        pairs = [seat.over(self._slot, self._words, pull=pull) for seat in self._seats]
        leaving, coming = ([pair[k] for pair in pairs] for k in range(2))
        came = self._swap(numbers, leaving, coming)
        if pull:
            for seat, boxes in zip(self._seats, came, strict=True):
                with self._here(seat.place):
                    seat.search.reply(boxes, whole=True)
            came = self._swap("answers", coming, leaving)
        for seat, own, boxes in zip(self._seats, pairs, came, strict=True):
            if not any(own):
                continue  # that has ended the level
            with self._here(seat.place):
                some = ((), [boxes]) if pull else ([boxes], ())
                seat.search.end_level(None, *some, first=0, pulled=pull)

    def _swap(self, kind: str, leaving: list[Boxes], coming: list[Boxes]) -> list[Any]:
        """Send whole boxes, or the answers to them; return those received, by place.

        leaving, coming: parts and the words of their boxes, by place
        """
        away, back, every = [], [], []
        answers = kind == "answers"
        length = self._first.answer_words if answers else int
        for seat, own, there in zip(self._seats, leaving, coming, strict=True):
            place, search = seat.place, seat.search
            box = search.answers_to if answers else search.box
            for part, words in own:
                array = box(part, 1 + length(words - 1))
                away.append((place, part, array))
                self._exchange.traffic.count(array.nbytes, kind, part=place)
            ends = np.cumsum([1 + length(words - 1) for _, words in there]).tolist()
            with self._here(place):
                whole = self._exchange.room(place, ends[-1] if ends else 0)
            for (part, _), begin, end in zip(there, [0, *ends], ends, strict=False):
                back.append((place, part, whole[begin:end]))
            every.append(whole)
        self._exchange.cross((), away, back)
        return every

    def _gather(self) -> None:
        """Gather the counts of all parts and start their copy to the host."""
        counts = [(x.place, x.search.counts, x.gathered) for x in self._seats]
        self._exchange.cross(counts)
        self._each(lambda seat: seat.search.choose())

    def _wait(self, slot: int) -> LevelCounts:
        """Wait for a level; return its counts."""
        self._slot = slot
        for seat in self._seats:
            self._exchange.link.wait(seat.reads[slot])
        self._counted = self._first.counted(self._seats[0].reports[slot])
        return self._counted
