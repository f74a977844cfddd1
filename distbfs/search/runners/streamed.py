"""Levels between domains whose host goes ahead of the device.

Everything of a level runs on the stream of the exchange, from its second time on as a
CUDA graph.  What a level does follows on the device from what all parts have counted;
so the host launches the next one before it waits for those counts.  Where a box had
more than the first items, which are sent before their number is known, the level that
was launched does nothing, and the others follow; levels that are like some that had
more send as many at first (``Expected``).  MPI takes no part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from distbfs.device import cuda
from distbfs.search.direction import PULL_SHARE
from distbfs.search.runners.expected import Expected, LevelKey

WIDEST = 1 << 26  # items of all boxes that are sent at first

if TYPE_CHECKING:
    from distbfs.engines.base import StreamedSearch, Work
    from distbfs.exchange.base import StreamedExchange
    from distbfs.partition.layout import Placement
    from distbfs.types import Array, DirectionName, World


class StreamedLevels:
    """The levels of the part of this rank; all ranks have one."""

    def __init__(
        self,
        world: World,
        placement: Placement,
        search: StreamedSearch,
        exchange: StreamedExchange,
        forced: DirectionName | None,
    ) -> None:
        self._rank, ranks = world.rank, world.size
        parts = [placement.parts_of(rank)[0] for rank in range(ranks)]
        self._others = [(k, part) for k, part in enumerate(parts) if k != world.rank]
        self._search, self._exchange = search, exchange
        self._replays = Replays(exchange.stream if exchange.captures else None)
        words, empty = 1 + search.first, cuda.cupy().zeros
        with cuda.memory_of("boxes of other parts"):
            self._boxes = empty((ranks, words), np.uint64)
            self._replies = empty((ranks, words), np.uint64)
            self._wide = empty((2, 0), np.uint64)  # both, with room for more items
            self._gathered = empty((ranks, search.counts.size), np.uint64)
            self._masks: Any = None
            if search.mask is not None:
                self._masks = empty((ranks, search.mask.size), np.uint64)
        search.follow(self._gathered, forced, PULL_SHARE)
        self._forced = forced
        self._slots = [Slot(self._gathered, search.sizes) for _ in range(2)]
        self._slot = self._slots[0]  # of the last level
        self._turn = 0  # the slot of the next launch
        self._launched: Launched | None = None  # ahead
        self._expected = Expected(search.first, WIDEST // ranks)
        self._known = LevelKey.of_root(None)  # of the last level whose counts are here

    @contextmanager
    def stream(self) -> Iterator[None]:
        """Run what is inside on the stream of the exchange, in the caller's order."""
        cp, exchange = cuda.cupy(), self._exchange
        exchange.follow()
        with exchange.stream:
            yield
        done = cp.cuda.Event(disable_timing=True)
        done.record(exchange.stream)
        cp.cuda.get_current_stream().wait_event(done)

    @contextmanager
    def levels(self, delegate: int | None) -> Iterator[None]:
        """Run the levels of a search inside; delegate: number of the root."""
        with self.stream():
            self._search.clear_counts()
            self._known = LevelKey.of_root(delegate)
            try:
                yield
            finally:
                self._drop()
            self._prepare()

    def _prepare(self) -> None:
        """Capture every form of a level that one was launched of, of this search."""
        search, ways = self._search, [(True, True), (True, False), (False, True)]
        if not self._replays.begun(search.form):
            return
        masks = [False] if search.mask is None else [True, False]
        for way, mask, turn in product(ways, masks, range(2)):
            form, slot = Form(*way, mask), self._slots[turn]
            launch = partial(self._launch, form, search.first, slot)
            self._replays.capture((*form, turn), search.form, launch)

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
        self._slot = self._slots[self._turn ^ 1]
        self._count(numbers, form, this.items)
        search.depth += 1
        if ahead:
            self._start(None, masks=masks)
        counts = self._wait()
        if search.is_over(counts):
            self._drop()  # it does nothing
            some, items, answers = self._rest(numbers, this.items, pull=pulls)
            if some:
                search.end_level(None, items, answers, first=0)
            self._gather(self._slot)
            self._slot.read.record(self._exchange.stream)
            counts = self._wait()
        if this.key is not None:
            self._expected.learn(this.key, search.most(counts), chosen)
        self._known = LevelKey.of(*search.progress(counts))
        return search.checks_of(counts[self._rank]) if counting else ()

    def work(self) -> Work:
        """Return the work of all domains, when a level has ended."""
        return self._search.work_of_all(self._slot.counts)

    def _start(self, way: DirectionName | None, *, masks: bool) -> None:
        """Launch a level; way: None where it is not known yet."""
        search, slot = self._search, self._slots[self._turn]
        key = self._known if way is None else None
        items, likely = self._expected.level(key)
        way = self._forced or way or likely
        form = Form(way != "pull", way != "push", masks)
        again = search.form if items == search.first else None
        kind = (*form, self._turn)
        self._replays(kind, again, lambda: self._launch(form, items, slot))
        slot.read.record(self._exchange.stream)
        self._turn ^= 1
        self._launched = Launched(form, items, key)
        self._known = self._known.after_root()

    def _drop(self) -> None:
        """Forget what was launched ahead."""
        if self._launched is not None:
            self._count("normals", self._launched.form, self._launched.items)
        self._launched = None

    def _launch(self, form: Form, items: int, slot: Slot) -> None:
        """Launch a level, with the first ``items`` of each box."""
        search, exchange = self._search, self._exchange
        boxes, replies = self._space(items)
        search.report(slot.words)
        search.begin_level(pushes=form.pushes, asks=form.asks)
        gathers = [(search.mask, self._masks)] * form.masks
        exchange.cross(gathers, *self._first(boxes))
        search.told(boxes, parents=False)
        if form.asks:
            search.reply(boxes, parents=False, last=False)
            exchange.cross((), *self._first(replies))
        masks = self._masks if form.masks else None
        came, answers = [boxes] * form.pushes, [replies] * form.asks
        search.end_level(masks, came, answers, first=items)
        self._gather(slot)

    def _space(self, items: int) -> tuple[Any, Any]:
        """Return where boxes of other parts, and replies, come; [ranks, 1 + items]."""
        if items == self._search.first:
            return self._boxes, self._replies
        ranks, words = len(self._boxes), 1 + items
        if self._wide.shape[1] < ranks * words:
            with cuda.memory_of("boxes of other parts"):
                self._wide = cuda.cupy().empty((2, ranks * words), np.uint64)
        boxes, replies = (one[: ranks * words].reshape(ranks, -1) for one in self._wide)
        for own in (boxes[self._rank, :1], replies[self._rank, :1]):
            cuda.clear(own, self._exchange.stream)  # nothing comes from here
        return boxes, replies

    def _sent(self, part: int, items: int) -> int:
        """Return the words that are sent to a part, or come from it, at first."""
        return 1 + min(items, self._search.room(part))

    def _count(self, numbers: str, form: Form, items: int) -> None:
        """Count what a launch has sent; numbers: its kind."""
        count = self._exchange.traffic.count
        if form.masks:
            count(self._search.mask.nbytes, "masks")
        answers = numbers if numbers == "parents" else "answers"
        kinds = [numbers] + [answers] * form.asks
        for _, part in self._others:
            for kind in kinds:
                count(8 * self._sent(part, items), kind, part=0)

    def _first(self, into: Any) -> tuple[list[tuple[int, Any]], list[tuple[int, Any]]]:
        """Return the first items for other ranks, and where theirs go."""
        items, box = into.shape[1] - 1, self._search.box
        ends = [(rank, part, self._sent(part, items)) for rank, part in self._others]
        leaving = [(rank, box(part, 0, end)) for rank, part, end in ends]
        return leaving, [(rank, into[rank, :end]) for rank, _, end in ends]

    def complete(self) -> None:
        """Complete the parents of delegates, after the last level."""
        search, slot = self._search, self._slots[0]
        with self.stream():
            self._slot = slot
            self._replays("parents", search.form, lambda: self._launch_parents(slot))
            slot.read.record(self._exchange.stream)
            form = Form(pushes=False, asks=True, masks=False)
            self._count("parents", form, search.first)
            self._wait()
            search.learn(self._rest("parents", search.first, pull=True)[2])

    def _launch_parents(self, slot: Slot) -> None:
        """Launch questions and answers for parents, the first ones of each box."""
        search, exchange = self._search, self._exchange
        search.report(slot.words)
        search.ask()
        exchange.cross((), *self._first(self._boxes))
        search.told(self._boxes, parents=True)
        search.reply(self._boxes, parents=True, last=False)
        exchange.cross((), *self._first(self._replies))
        search.learn([self._replies])

    def _rest(
        self, numbers: str, first: int, *, pull: bool
    ) -> tuple[bool, list[Any], list[Any]]:
        """Exchange what the first items have left; numbers: its kind.

        Returns (whether this rank has part in it, items, answers).
        """
        search = self._search
        own, came = self._slot.sizes.astype(np.int64).reshape(2, -1)
        left = [
            (k, p, int(own[p]) - first, int(came[k]) - first) for k, p in self._others
        ]
        away = [(rank, part, rest) for rank, part, rest, _ in left if rest > 0]
        rests = [(rank, part, rest) for rank, part, _, rest in left if rest > 0]
        leaving = [
            (rank, search.box(part, 1 + first, 1 + first + rest))
            for rank, part, rest in away
        ]
        items, _ = self._swap(leaving, [(k, rest) for k, _, rest in rests], numbers)
        if not pull:
            return bool(away or rests), [items] * bool(rests), []
        parents = numbers == "parents"
        if rests:
            search.reply(items, parents=parents, last=True)
        leaving = [(k, search.box(part, 0, 1 + rest)) for k, part, rest in rests]
        coming = [(rank, 1 + rest) for rank, _, rest in away]
        _, answers = self._swap(leaving, coming, numbers if parents else "answers")
        return bool(away or rests), [], [array[None] for array in answers]

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

    def _gather(self, slot: Slot) -> None:
        """Gather what all parts have counted, which then is brought to the host."""
        search = self._search
        self._exchange.cross([(search.counts, self._gathered)])
        search.report(slot.words)
        search.choose()

    def _wait(self) -> Array:
        """Wait for the last level; return the counts, uint64 [ranks, words]."""
        self._exchange.wait(self._slot.read)
        return self._slot.counts


class Form(NamedTuple):
    """What a launch of a level has.

    pushes, asks: what boxes for other parts may have; masks: of delegates
    """

    pushes: bool
    asks: bool
    masks: bool


class Launched(NamedTuple):
    """A level that was launched.

    items: of a box, sent at first; key: of the level before the one before it
    """

    form: Form
    items: int
    key: LevelKey | None


class Slot:
    """What the host reads of a level; one each for two under way.

    counts: uint64 [ranks, words]; sizes: uint64 [2 * parts]; words: both, in pinned
    memory that the device writes; read: they are here
    """

    def __init__(self, gathered: Any, sizes: Any) -> None:
        count = gathered.size
        self.words = cuda.pinned_empty(count + sizes.size, np.uint64)
        self.counts = self.words[:count].reshape(gathered.shape)
        self.sizes = self.words[count:]
        self.read = cuda.cupy().cuda.Event(disable_timing=True)


class Replays:
    """What is launched on a stream, as a CUDA graph from its second time on.

    The first time also makes what is made at first use.  stream: None: none is captured
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._graphs: dict[Any, Any] = {}
        self._begun: set[Any] = set()

    def __call__(self, kind: Any, form: Any, launch: Callable[[], None]) -> None:
        """Do ``launch``; kind, form: what it depends on; form None: just once."""
        key = kind, form
        if key in self._graphs:
            self._graphs[key].launch(self._stream)
            return
        launch()
        if self._stream is None or form is None:
            return
        self._begun.add(form)
        self.capture(kind, form, launch)

    def begun(self, form: Any) -> bool:
        """Return whether something of a form was captured since the last call."""
        begun = form in self._begun
        self._begun.discard(form)
        return begun

    def capture(self, kind: Any, form: Any, launch: Callable[[], None]) -> None:
        """Capture what is launched the next time, unless that was done."""
        key = kind, form
        if key in self._graphs:
            return
        self._stream.begin_capture()
        try:
            launch()
        finally:
            graph = self._stream.end_capture()
        self._graphs[key] = graph
