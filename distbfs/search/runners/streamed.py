"""Levels between domains whose host goes ahead of the device.

Everything of a level runs on the stream of the exchange, from its second time on as a
CUDA graph.  The host waits once, at its end, for what all parts have counted; where a
box had more than the first items, which are sent before their number is known, the
others follow, and the host waits again.  MPI takes no part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cuda

if TYPE_CHECKING:
    from distbfs.engines.base import StreamedSearch, Work
    from distbfs.exchange.base import StreamedExchange
    from distbfs.partition.layout import Placement
    from distbfs.types import Array, World


class StreamedLevels:
    """The levels of the part of this rank; all ranks have one."""

    def __init__(
        self,
        world: World,
        placement: Placement,
        search: StreamedSearch,
        exchange: StreamedExchange,
    ) -> None:
        self._rank, ranks = world.rank, world.size
        parts = [placement.parts_of(rank)[0] for rank in range(ranks)]
        self._others = [(k, part) for k, part in enumerate(parts) if k != world.rank]
        self._search, self._exchange = search, exchange
        self._read = cuda.cupy().cuda.Event(disable_timing=True)
        self._replays = Replays(exchange.stream if exchange.captures else None)
        words, empty = 1 + search.first, cuda.cupy().zeros
        with cuda.memory_of("boxes of other parts"):
            self._boxes = empty((ranks, words), np.uint64)
            self._replies = empty((ranks, words), np.uint64)
            self._gathered = empty((ranks, search.counts.size), np.uint64)
            self._masks: Any = None
            if search.mask is not None:
                self._masks = empty((ranks, search.mask.size), np.uint64)
        self._counts = cuda.pinned_empty(self._gathered.size, np.uint64)
        self._sizes = cuda.pinned_empty(search.sizes.size, np.uint64)

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

    def level(
        self, *, sends: bool, pull: bool, reduces: bool, counting: bool
    ) -> Sequence[int]:
        """Run one level; where they are counted, return edge checks.

        sends: whether a domain may have something for another; pull: how
        reduces: whether there are delegates left to find
        """
        search = self._search
        push, pull = sends and not pull, sends and pull
        numbers = "questions" if pull else "normals"
        masks = reduces and search.mask is not None
        self._replays(
            (push, pull, masks),
            search.form,
            lambda: self._launch(push=push, pull=pull, masks=masks),
        )
        search.depth += 1
        if masks:
            self._exchange.traffic.count(search.mask.nbytes, "masks")
        if sends:
            self._count(numbers)
        counts = self._wait()
        if search.is_over(counts):
            some, items, answers = self._rest(numbers, pull=pull)
            if some:
                search.end_level(None, items, answers, last=True)
            self._gather()
            counts = self._wait()
        return search.checks_of(counts[self._rank]) if counting else ()

    def work(self) -> Work:
        """Return the work of all domains, when a level has ended."""
        return self._search.work_of_all(self._of_ranks())

    def _launch(self, *, push: bool, pull: bool, masks: bool) -> None:
        """Launch a level, with the first items of each box."""
        search, exchange = self._search, self._exchange
        search.begin_level(push=push, pull=pull)
        gathers = [(search.mask, self._masks)] * masks
        if push or pull:
            exchange.cross(gathers, *self._first(self._boxes))
            search.told(self._boxes)
        elif gathers:
            exchange.cross(gathers)
        if pull:
            search.reply(self._boxes, parents=False)
            exchange.cross((), *self._first(self._replies))
        items, answers = [self._boxes] * push, [self._replies] * pull
        arrived = self._masks if masks else None
        search.end_level(arrived, items, answers, last=False)
        self._gather()

    def _count(self, numbers: str) -> None:
        """Count what a launch has sent; numbers: its kind."""
        answers = {"questions": ["answers"], "parents": ["parents"]}
        for kind in [numbers, *answers.get(numbers, [])] * len(self._others):
            size = 8 * (1 + self._search.first)
            self._exchange.traffic.count(size, kind, part=0)

    def _first(self, into: Any) -> tuple[list[tuple[int, Any]], list[tuple[int, Any]]]:
        """Return the first items for other ranks, and where theirs go."""
        end, others = 1 + self._search.first, self._others
        leaving = [(rank, self._search.box(part, 0, end)) for rank, part in others]
        return leaving, [(rank, into[rank]) for rank, _ in others]

    def complete(self) -> None:
        """Complete the parents of delegates, after the last level."""
        search = self._search
        with self.stream():
            self._replays("parents", search.form, self._launch_parents)
            self._count("parents")
            self._wait()
            search.learn(self._rest("parents", pull=True)[2])

    def _launch_parents(self) -> None:
        """Launch questions and answers for parents, the first ones of each box."""
        search, exchange = self._search, self._exchange
        search.ask()
        exchange.cross((), *self._first(self._boxes))
        search.told(self._boxes)
        search.reply(self._boxes, parents=True)
        exchange.cross((), *self._first(self._replies))
        search.learn([self._replies])
        self._fetch()

    def _rest(self, numbers: str, *, pull: bool) -> tuple[bool, list[Any], list[Any]]:
        """Exchange what the first items have left; numbers: its kind.

        Returns (whether this rank has part in it, items, answers).
        """
        search, first = self._search, self._search.first
        own, came = self._sizes.astype(np.int64).reshape(2, -1)
        away = [(k, part, int(own[part]) - first) for k, part in self._others]
        away = [(rank, part, rest) for rank, part, rest in away if rest > 0]
        rests = [(k, part, int(came[k]) - first) for k, part in self._others]
        rests = [(rank, part, rest) for rank, part, rest in rests if rest > 0]
        leaving = [
            (rank, search.box(part, 1 + first, 1 + first + rest))
            for rank, part, rest in away
        ]
        items, _ = self._swap(leaving, [(k, rest) for k, _, rest in rests], numbers)
        if not pull:
            return bool(away or rests), [items] * bool(rests), []
        parents = numbers == "parents"
        if rests:
            search.reply(items, parents=parents)
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

    def _gather(self) -> None:
        """Gather what all parts have counted, and begin to bring it to the host."""
        self._exchange.cross([(self._search.counts, self._gathered)])
        cuda.copy_to_host(self._gathered, self._counts, self._exchange.stream)
        self._fetch()

    def _fetch(self) -> None:
        """Begin to bring the sizes of boxes to the host."""
        cuda.copy_to_host(self._search.sizes, self._sizes, self._exchange.stream)

    def _wait(self) -> Array:
        """Wait for it; return the counts, uint64 [ranks, words]."""
        self._read.record(self._exchange.stream)
        self._exchange.wait(self._read)
        return self._of_ranks()

    def _of_ranks(self) -> Array:
        return self._counts.reshape(self._gathered.shape)


class Replays:
    """What is launched on a stream, as a CUDA graph from its second time on.

    The first time makes what is made at first use.  stream: None: nothing is captured
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._graphs: dict[Any, Any] = {}

    def __call__(self, kind: Any, form: Any, launch: Callable[[], None]) -> None:
        """Do ``launch``; kind, form: what it depends on; form None: just once."""
        key = kind, form
        if self._stream is None or form is None or key not in self._graphs:
            self._graphs[key] = None
            launch()
            return
        if self._graphs[key] is None:
            self._stream.begin_capture()
            try:
                launch()
            finally:
                self._graphs[key] = self._stream.end_capture()
        self._graphs[key].launch(self._stream)
