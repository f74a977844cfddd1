"""Levels between domains whose host goes ahead of the device.

Everything of a level runs on the stream of the exchange, once it was captured as a
CUDA graph.  What a level does follows on the device from what all parts have counted;
so the host launches the next one before it waits for those counts.  Where a box had
more than the first words, which are sent before their number is known, the level that
was launched does nothing, and the others follow; levels that are like some that had
more send as many at first (``Expected``).  MPI takes no part.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from distbfs.device import cuda
from distbfs.search.runners.expected import Expected, LevelKey

WIDEST = 1 << 26  # words of all boxes that are sent at first
WIDEST_CAPTURED = 1 << 19  # of one; the launch of more is hidden by what there is to do
LEAST_UNKNOWN = 1 << 13  # questions for parents that a launch has room for

if TYPE_CHECKING:
    from distbfs.engines.base import Work
    from distbfs.engines.streamed import LevelCounts, StreamedSearch
    from distbfs.exchange.base import StreamedExchange
    from distbfs.partition.layout import Placement
    from distbfs.search.direction import OuterPolicy
    from distbfs.types import Array, DirectionName, World


class StreamedLevels:
    """The levels of the part of this rank; all ranks have one."""

    def __init__(
        self,
        world: World,
        placement: Placement,
        search: StreamedSearch,
        exchange: StreamedExchange,
        policy: OuterPolicy,
    ) -> None:
        self._rank, self._ranks = world.rank, world.size
        parts = [placement.parts_of(rank)[0] for rank in range(self._ranks)]
        self._others = [(k, part) for k, part in enumerate(parts) if k != world.rank]
        self._search, self._exchange = search, exchange
        self._replays = Replays(exchange.stream if exchange.captures else None)
        self._spaces: dict[int, Any] = {}  # of boxes of so many words
        cp = cuda.cupy()
        with cuda.memory_of("boxes of other parts"):
            self._gathered = cp.empty((self._ranks, search.counts.size), np.uint64)
            self._masks: Any = None
            if search.mask is not None:
                self._masks = cp.empty((self._ranks, search.mask.size), np.uint64)
        size = 2 * search.counts.size + search.sizes.size
        report = cuda.pinned_empty(2 * size, np.uint64).reshape(2, size)
        report[...] = 0
        self._forced = policy.forced
        share = policy.share
        search.follow(self._gathered, world.rank, report, policy.forced, share)
        self._slots = [Slot(half) for half in report]
        self._slot = self._slots[0]  # of the last level
        self._counted = search.counted(report[0])  # the same
        self._turn = 0  # the slot of the next launch
        self._launched: Launched | None = None  # ahead
        self._expected = Expected(search.first, WIDEST // self._ranks)
        self._known = LevelKey.of_root(None)  # of the last level whose counts are here
        self._volumes: dict[int, int] = {}  # bytes of the first words of all boxes
        self._done = cp.cuda.Event(disable_timing=True)
        self._most_unknown = 0

    @contextmanager
    def stream(self) -> Iterator[None]:
        """Run what is inside on the stream of the exchange, in the caller's order."""
        exchange = self._exchange
        exchange.follow()
        with exchange.stream:
            yield
        self._done.record(exchange.stream)
        cuda.cupy().cuda.get_current_stream().wait_event(self._done)

    @contextmanager
    def levels(self, delegate: int | None) -> Iterator[None]:
        """Run the levels of a search inside; delegate: number of the root."""
        with self.stream():
            self._search.clear_counts()
            self._turn = 0
            self._counted = self._counted._replace(unknown=0)
            self._known = LevelKey.of_root(delegate)
            try:
                yield
            finally:
                self._drop()

    def level(
        self, *, pull: bool, reduces: bool, counting: bool, ahead: bool
    ) -> Sequence[int]:
        """Run one level; where they are counted, return edge checks.

        pull: how what one domain has for another is found, where that is known
        reduces: whether there are delegates left to find
        ahead: whether the next level may be launched before this one has ended
        """
        search, masks = self._search, reduces and self._search.mask is not None
        chosen: DirectionName = "pull" if pull else "push"
        if self._launched is None:
            self._start(None if ahead else chosen, masks=masks)
        this, self._launched = cast("Launched", self._launched), None
        form = this.form
        pulls = form.asks and (pull or not form.pushes)
        numbers = "questions" if pulls else "normals"
        self._count(numbers, form, this.words)
        search.depth += 1
        if ahead:
            self._start(None, masks=masks)
        counted = self._wait(this.slot)
        if counted.over:
            self._drop()  # it does nothing
            some, items = self._rest(numbers, this.words, pull=pulls)
            if some:
                search.end_level(None, items, (), first=0, pulls=pulls)
            self._gather()
            counted = self._wait(self._mark())
        if this.key is not None:
            self._expected.learn(this.key, counted.most, chosen)
        self._known = LevelKey.of(counted.edges, counted.found, counted.left)
        return search.checks(self._slot.report) if counting else ()

    def work(self) -> Work:
        """Return the work of all domains, when a level has ended."""
        return self._counted.work

    def _start(self, way: DirectionName | None, *, masks: bool) -> None:
        """Launch a level; way: None where it is not known yet."""
        search = self._search
        key = self._known if way is None else None
        words, likely = self._expected.level(key)
        way = self._forced or way or likely
        form = Form(way != "pull", way != "push", masks)
        self._replays((form, words), search.form, partial(self._launch, form, words))
        self._launched = Launched(form, words, key, self._mark())
        self._known = self._known.after_root()

    def _mark(self) -> Slot:
        """Return the slot of what was launched last, to be waited for."""
        slot = self._slots[self._turn]
        slot.read.record(self._exchange.stream)
        self._turn ^= 1
        return slot

    def _drop(self) -> None:
        """Forget what was launched ahead."""
        if self._launched is not None:
            self._count("normals", self._launched.form, self._launched.words)
        self._launched = None

    def _launch(self, form: Form, words: int) -> None:
        """Launch a level, with the first ``words`` of each box."""
        search, exchange = self._search, self._exchange
        boxes, replies = self._space(words)
        search.begin_level(pushes=form.pushes, asks=form.asks)
        gathers = [(search.mask, self._masks)] * form.masks
        exchange.cross(gathers, *self._first(boxes))
        search.told(boxes, parents=False)
        if form.asks:
            search.reply(boxes, parents=False)
            exchange.cross((), *self._first(replies))
        masks = self._masks if form.masks else None
        came, answers = [boxes] * form.pushes, [replies] * form.asks
        pulls = None if form.pushes and form.asks else form.asks
        search.end_level(masks, came, answers, first=words, pulls=pulls)
        self._gather()

    def _space(self, words: int) -> tuple[Any, Any]:
        """Return where boxes of other parts, and replies, come; [ranks, 1 + words]."""
        ranks, room = self._ranks, 1 << (words - 1).bit_length()
        space = self._spaces.get(room)
        if space is None:
            with cuda.memory_of("boxes of other parts"):
                space = cuda.cupy().empty((2, ranks * (1 + room)), np.uint64)
            self._spaces[room] = space
        boxes, replies = (one[: ranks * (1 + words)] for one in space)
        return boxes.reshape(ranks, -1), replies.reshape(ranks, -1)

    def _sent(self, part: int, words: int) -> int:
        """Return the words that are sent to a part, or come from it, at first."""
        return 1 + min(words, self._search.room(part))

    def _count(self, numbers: str, form: Form, words: int) -> None:
        """Count what a launch has sent; numbers: its kind."""
        count = self._exchange.traffic.count
        if form.masks:
            count(self._search.mask.nbytes, "masks")
        answers = numbers if numbers == "parents" else "answers"
        size = self._volumes.get(words)
        if size is None:
            sizes = [8 * self._sent(part, words) for _, part in self._others]
            size = self._volumes[words] = sum(sizes)
        for kind in [numbers] + [answers] * form.asks:
            count(size, kind, part=0, messages=len(self._others))

    def _first(self, into: Any) -> tuple[list[tuple[int, Any]], list[tuple[int, Any]]]:
        """Return the first words for other ranks, and where theirs go."""
        words, box = into.shape[1] - 1, self._search.box
        ends = [(rank, part, self._sent(part, words)) for rank, part in self._others]
        leaving = [(rank, box(part, 0, end)) for rank, part, end in ends]
        return leaving, [(rank, into[rank, :end]) for rank, _, end in ends]

    def complete(self) -> None:
        """Complete the parents of delegates, after the last level.

        All boxes have room for what was counted, so the host need not wait.
        """
        form, unknown = self._search.form, max(self._counted.unknown, LEAST_UNKNOWN)
        words = 1 << (unknown - 1).bit_length()  # few sizes, as few graphs
        launch = partial(self._launch_parents, words)
        with self.stream():
            self._replays(("parents", words), form, launch)
        self._most_unknown = max(self._most_unknown, words)
        self._count("parents", Form(pushes=False, asks=True, masks=False), words)

    def _launch_parents(self, words: int) -> None:
        """Launch questions and answers for parents, so many words of each box."""
        search, exchange = self._search, self._exchange
        boxes, replies = self._space(words)
        search.ask()
        exchange.cross((), *self._first(boxes))
        search.told(boxes, parents=True)
        search.reply(boxes, parents=True)
        exchange.cross((), *self._first(replies))
        search.learn([replies])

    def wait(self) -> None:
        """Wait for what was launched last; prepare later searches before that."""
        self._prepare()
        self._exchange.wait(self._done)

    def _prepare(self) -> None:
        """Capture whatever may be launched, by what searches had so far."""
        search, replays = self._search, self._replays
        first, *others = self._expected.sizes()
        others = [words for words in others if words <= WIDEST_CAPTURED]
        kinds = len(others), self._most_unknown
        if search.form is None or not replays.lacks(search.form, kinds):
            return
        ways = [(True, False), (False, True)]
        masks = [False] if search.mask is None else [True, False]
        levels = [(True, True, mask, first) for mask in masks]
        every = product(ways, masks, [first, *others])
        levels += [(*way, mask, words) for way, mask, words in every]
        for *has, words in levels:
            form = Form(*has)
            self._space(words)
            launch = partial(self._launch, form, words)
            replays.capture((form, words), search.form, launch)
        words = LEAST_UNKNOWN
        while words <= self._most_unknown:
            self._space(words)
            launch = partial(self._launch_parents, words)
            replays.capture(("parents", words), search.form, launch)
            words *= 2

    def _rest(self, numbers: str, first: int, *, pull: bool) -> tuple[bool, list[Any]]:
        """Exchange what the first words have left; numbers: its kind.

        Returns (whether this rank has part in it, items that were pushed).
        """
        search = self._search
        sizes = self._slot.report[2 * search.counts.size :].astype(np.int64)
        own, came = (-(-sizes // 2) if pull else sizes).reshape(2, -1) - first
        left = [(k, p, int(own[p]), int(came[k])) for k, p in self._others]
        away = [(rank, part, rest) for rank, part, rest, _ in left if rest > 0]
        rests = [(rank, part, rest) for rank, part, _, rest in left if rest > 0]
        some = bool(away or rests)
        leaving = self._after(first, away)
        items, each = self._swap(leaving, [(k, rest) for k, _, rest in rests], numbers)
        if not pull:
            return some, [items] * bool(rests)
        for (_, part, _), questions in zip(rests, each, strict=True):
            search.reply_to(part, questions, first)
        leaving = self._after(first, rests)
        _, each = self._swap(leaving, [(k, rest) for k, _, rest in away], "answers")
        for (_, part, _), answers in zip(away, each, strict=True):
            search.learn_from(part, answers, first)
        return some, []

    def _after(
        self, first: int, rests: list[tuple[int, int, int]]
    ) -> list[tuple[int, Any]]:
        """Return what boxes have after the first words; rests: (rank, part, words)."""
        box = self._search.box
        return [(k, box(p, 1 + first, 1 + first + rest)) for k, p, rest in rests]

    def _swap(
        self, leaving: list[tuple[int, Any]], coming: list[tuple[int, int]], kind: str
    ) -> tuple[Any, list[Any]]:
        """Send arrays to ranks; return what comes, as one array and that of each.

        coming: (rank, how much)
        """
        exchange, places, start = self._exchange, [], 0
        space = exchange.room(sum([size for _, size in coming]))
        for rank, size in coming:
            places.append((rank, space[start : start + size]))
            start += size
        exchange.cross((), leaving, places)
        for _, array in leaving:
            exchange.traffic.count(array.nbytes, kind, part=0)
        return space, [array for _, array in places]

    def _gather(self) -> None:
        """Gather what all parts have counted, which then is brought to the host."""
        self._exchange.cross([(self._search.counts, self._gathered)])
        self._search.choose()

    def _wait(self, slot: Slot) -> LevelCounts:
        """Wait for a level; return what was counted."""
        self._slot = slot
        self._exchange.wait(slot.read)
        self._counted = self._search.counted(slot.report)
        return self._counted


class Form(NamedTuple):
    """What a launch of a level has.

    pushes, asks: what boxes for other parts may have; masks: of delegates
    """

    pushes: bool
    asks: bool
    masks: bool


class Slot:
    """What the host reads of a level; one each for two under way.

    report: uint64, pinned, see ``StreamedSearch.follow``; read: it is here
    """

    def __init__(self, report: Array) -> None:
        self.report = report
        self.read = cuda.cupy().cuda.Event(disable_timing=True)


class Launched(NamedTuple):
    """A level that was launched.

    words: of a box, sent at first; key: of the level before the one before it
    """

    form: Form
    words: int
    key: LevelKey | None
    slot: Slot


class Replays:
    """What is launched on a stream, as a CUDA graph once it was captured.

    stream: None: nothing is
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._graphs: dict[Hashable, Any] = {}
        self._kinds: dict[int, Hashable] = {}  # by form

    def __call__(
        self, kind: Hashable, form: int | None, launch: Callable[[], None]
    ) -> None:
        """Do ``launch``; kind, form: what it depends on; form None: just once."""
        graph = self._graphs.get((kind, form))
        if graph is None:
            launch()
        else:
            graph.launch(self._stream)

    def lacks(self, form: int, kinds: Hashable) -> bool:
        """Return whether there may be something to capture.

        kinds: changes where there are more kinds than before
        """
        lacks = self._stream is not None and self._kinds.get(form) != kinds
        self._kinds[form] = kinds
        return lacks

    def capture(self, kind: Hashable, form: int, launch: Callable[[], None]) -> None:
        """Capture what ``launch`` does, unless that was done.

        What is made at first use must have been made: something like it has run.
        """
        if (kind, form) in self._graphs:
            return
        self._stream.begin_capture()
        try:
            with self._stream:
                launch()
        finally:
            graph = self._stream.end_capture()
        graph.upload(self._stream)
        self._graphs[kind, form] = graph
