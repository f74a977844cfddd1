"""Levels between domains whose host goes ahead of the device.

Everything of a level runs on the stream of the exchange, from its second time on as a
CUDA graph.  What a level does follows on the device from what all parts have counted;
so the host launches the next one before it waits for those counts.  Where a box had
more than the first items, which are sent before their number is known, the level that
was launched does nothing, and the others follow.  MPI takes no part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from distbfs.device import cuda
from distbfs.search.direction import PULL_SHARE

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
            self._gathered = empty((ranks, search.counts.size), np.uint64)
            self._masks: Any = None
            if search.mask is not None:
                self._masks = empty((ranks, search.mask.size), np.uint64)
        search.follow(self._gathered, forced, PULL_SHARE)
        self._both_ways = forced != "push"
        self._slots = [Slot(self._gathered, search.sizes) for _ in range(2)]
        self._slot = self._slots[0]  # of the last level
        self._turn = 0  # the slot of the next launch
        self._launched: Form | None = None  # ahead

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
    def levels(self) -> Iterator[None]:
        """Run the levels of a search inside."""
        search, stream = self._search, self._exchange.stream
        with self.stream():
            cuda.clear(search.counts, stream)
            cuda.clear(search.sizes, stream)
            try:
                yield
            finally:
                self._drop()

    def level(
        self, *, sends: bool, pull: bool, reduces: bool, counting: bool, ahead: bool
    ) -> Sequence[int]:
        """Run one level; where they are counted, return edge checks.

        sends: whether a domain may have something for another; pull: how
        reduces: whether there are delegates left to find
        ahead: whether the next level may be launched before this one has ended
        """
        search, numbers = self._search, "questions" if pull else "normals"
        masks = reduces and search.mask is not None
        if self._launched is None:
            asks = self._both_ways if ahead else pull
            self._start(Form(ahead or sends, asks, masks))
        form, self._launched = cast("Form", self._launched), None
        self._slot = self._slots[self._turn ^ 1]
        self._count(numbers, form)
        search.depth += 1
        if ahead:
            self._start(form._replace(masks=masks))
        counts = self._wait()
        if search.is_over(counts):
            self._drop()  # it does nothing
            some, items, answers = self._rest(numbers, pull=pull)
            if some:
                search.end_level(None, items, answers, last=True)
            self._gather(self._slot)
            self._slot.read.record(self._exchange.stream)
            counts = self._wait()
        return search.checks_of(counts[self._rank]) if counting else ()

    def work(self) -> Work:
        """Return the work of all domains, when a level has ended."""
        return self._search.work_of_all(self._slot.counts)

    def _start(self, form: Form) -> None:
        """Launch a level."""
        slot, kind = self._slots[self._turn], (*form, self._turn)
        self._replays(kind, self._search.form, lambda: self._launch(form, slot))
        slot.read.record(self._exchange.stream)
        self._turn ^= 1
        self._launched = form

    def _drop(self) -> None:
        """Forget what was launched ahead."""
        if self._launched is not None:
            self._count("normals", self._launched)
        self._launched = None

    def _launch(self, form: Form, slot: Slot) -> None:
        """Launch a level, with the first items of each box."""
        search, exchange = self._search, self._exchange
        search.begin_level()
        gathers = [(search.mask, self._masks)] * form.masks
        if form.sends:
            exchange.cross(gathers, *self._first(self._boxes))
            search.told(self._boxes, parents=False)
        elif gathers:
            exchange.cross(gathers)
        asks = form.sends and form.asks
        if asks:
            search.reply(self._boxes, parents=False, last=False)
            exchange.cross((), *self._first(self._replies))
        masks = self._masks if form.masks else None
        items, answers = [self._boxes] * form.sends, [self._replies] * asks
        search.end_level(masks, items, answers, last=False)
        self._gather(slot)

    def _count(self, numbers: str, form: Form) -> None:
        """Count what a launch has sent; numbers: its kind."""
        count, size = self._exchange.traffic.count, 8 * (1 + self._search.first)
        if form.masks:
            count(self._search.mask.nbytes, "masks")
        answers = numbers if numbers == "parents" else "answers"
        kinds = [numbers] * form.sends + [answers] * (form.sends and form.asks)
        for kind in kinds * len(self._others):
            count(size, kind, part=0)

    def _first(self, into: Any) -> tuple[list[tuple[int, Any]], list[tuple[int, Any]]]:
        """Return the first items for other ranks, and where theirs go."""
        end, others = 1 + self._search.first, self._others
        leaving = [(rank, self._search.box(part, 0, end)) for rank, part in others]
        return leaving, [(rank, into[rank]) for rank, _ in others]

    def complete(self) -> None:
        """Complete the parents of delegates, after the last level."""
        search, slot = self._search, self._slots[0]
        with self.stream():
            self._slot = slot
            self._replays("parents", search.form, lambda: self._launch_parents(slot))
            slot.read.record(self._exchange.stream)
            self._count("parents", Form(sends=True, asks=True, masks=False))
            self._wait()
            search.learn(self._rest("parents", pull=True)[2])

    def _launch_parents(self, slot: Slot) -> None:
        """Launch questions and answers for parents, the first ones of each box."""
        search, exchange = self._search, self._exchange
        search.ask()
        exchange.cross((), *self._first(self._boxes))
        search.told(self._boxes, parents=True)
        search.reply(self._boxes, parents=True, last=False)
        exchange.cross((), *self._first(self._replies))
        search.learn([self._replies])
        slot.fetch_sizes(exchange.stream)

    def _rest(self, numbers: str, *, pull: bool) -> tuple[bool, list[Any], list[Any]]:
        """Exchange what the first items have left; numbers: its kind.

        Returns (whether this rank has part in it, items, answers).
        """
        search, first = self._search, self._search.first
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
        """Gather what all parts have counted, and begin to bring it to the host."""
        search, exchange = self._search, self._exchange
        exchange.cross([(search.counts, self._gathered)])
        slot.fetch(exchange.stream)
        search.choose()

    def _wait(self) -> Array:
        """Wait for the last level; return the counts, uint64 [ranks, words]."""
        self._exchange.wait(self._slot.read)
        return self._slot.counts


class Form(NamedTuple):
    """What a launch of a level has.

    sends: boxes for other parts; asks: which may have questions; masks: of delegates
    """

    sends: bool
    asks: bool
    masks: bool


class Slot:
    """What the host reads of a level; one each for two under way.

    counts: uint64 [ranks, words]; sizes: uint64 [2 * parts]; read: they are here
    """

    def __init__(self, gathered: Any, sizes: Any) -> None:
        self._arrays = gathered, sizes
        self.sizes = cuda.pinned_empty(sizes.size, np.uint64)
        counts = cuda.pinned_empty(gathered.size, np.uint64)
        self.counts = counts.reshape(gathered.shape)
        self.read = cuda.cupy().cuda.Event(disable_timing=True)

    def fetch(self, stream: Any) -> None:
        """Begin to copy both."""
        cuda.copy_to_host(self._arrays[0], self.counts, stream)
        self.fetch_sizes(stream)

    def fetch_sizes(self, stream: Any) -> None:
        """Begin to copy the sizes alone."""
        cuda.copy_to_host(self._arrays[1], self.sizes, stream)


class Replays:
    """What is launched on a stream, as a CUDA graph from its second time on.

    The first time also makes what is made at first use.  stream: None: none is captured
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._graphs: dict[Any, Any] = {}

    def __call__(self, kind: Any, form: Any, launch: Callable[[], None]) -> None:
        """Do ``launch``; kind, form: what it depends on; form None: just once."""
        key = kind, form
        if key in self._graphs:
            self._graphs[key].launch(self._stream)
            return
        launch()
        if self._stream is None or form is None:
            return
        self._stream.begin_capture()
        try:
            launch()
        finally:
            graph = self._stream.end_capture()
        self._graphs[key] = graph
