"""Levels between domains whose host goes ahead of the device.

Everything of a level runs on the stream of the exchange: the host waits for how much
parts have for each other, and, at its end, for what all have counted.  MPI takes no
part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from distbfs.device import cuda

if TYPE_CHECKING:
    from distbfs.engines.base import StreamedSearch, Work
    from distbfs.exchange.base import StreamedExchange
    from distbfs.partition.layout import Placement
    from distbfs.types import Ids, World


class StreamedLevels:
    """The levels of the part of this rank; all ranks have one."""

    def __init__(
        self,
        world: World,
        placement: Placement,
        search: StreamedSearch,
        exchange: StreamedExchange,
    ) -> None:
        self._rank, self._size = world.rank, world.size
        self._parts = [placement.parts_of(rank)[0] for rank in range(world.size)]
        self._search, self._exchange = search, exchange
        self._copies: dict[int, cuda.HostCopy] = {}
        self._read = cuda.cupy().cuda.Event(disable_timing=True)
        self._controls: Any = None

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

    def level(self, *, sends: bool, pull: bool, counting: bool) -> Sequence[int]:
        """Run one level; where they are counted, wait for edge checks and return them.

        sends: whether a domain may have something for another; pull: how
        """
        search, exchange = self._search, self._exchange
        search.begin_level(push=sends and not pull, pull=sends and pull)
        controls, *masks = exchange.share(search.shared)
        items: list[Any] = []
        answers: list[tuple[Any, Any]] = []
        if sends:
            self._fetch(controls)
            sizes = search.sizes_of(self._wait())[:, self._parts]
            if sizes.any():  # the same on all ranks
                with exchange.traffic.of("questions" if pull else "normals"):
                    items = [array for _, array in self._swap(sizes)]
                if pull:
                    items, answers = [], self._answers(items, sizes)
        search.end_level(masks[0] if masks else None, items, answers)
        (controls,) = exchange.share(search.shared[:1])
        self._fetch(controls)
        return search.checks_of(self._wait()[self._rank]) if counting else ()

    def work(self) -> Work:
        """Return the work of all domains, when a level has ended."""
        return self._search.work_of_all(self._wait())

    def _answers(self, questions: Sequence[Any], sizes: Ids) -> list[tuple[Any, Any]]:
        """Return (answers, how many of them) of ranks; sizes: of questions, [from, to].

        There are not more answers than questions.
        """
        search = self._search
        search.reply(questions)
        (controls,) = self._exchange.share(search.shared[:1])
        with self._exchange.traffic.of("answers"):
            answers = self._swap(sizes.T)
        return [(array, self._size_of(controls, rank)) for rank, array in answers]

    def _swap(self, sizes: Ids) -> list[tuple[int, Any]]:
        """Exchange boxes; sizes: [from, to]."""
        mine = sizes[self._rank]
        leaving = [
            (rank, self._search.box(self._parts[rank], int(mine[rank])))
            for rank in range(self._size)
            if mine[rank]
        ]
        return self._exchange.swap(leaving, sizes[:, self._rank].tolist())

    def _size_of(self, controls: Any, rank: int) -> Any:
        """Return how much a rank has for this one, uint64 [1] on the device."""
        at = self._search.size_at(self._parts[self._rank])
        return controls[rank, at : at + 1]

    def _fetch(self, controls: Any) -> None:
        """Begin to copy what all ranks have counted to the host."""
        key = int(controls.data.ptr)
        if key not in self._copies:
            self._copies[key] = cuda.HostCopy(controls.ravel())
        self._copies[key].begin(self._exchange.stream)
        self._controls = self._copies[key].pinned.reshape(self._size, -1)
        self._read.record(self._exchange.stream)

    def _wait(self) -> Any:
        """Wait for what was fetched; NumPy uint64 [ranks, words]."""
        self._exchange.wait(self._read)
        return self._controls
