"""Pieces of a file, processed in threads ahead of the consumer, in order."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from distbfs.device.cc import thread_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

MOST_WORKERS = 8

Job = TypeVar("Job")
Room = TypeVar("Room")
Found = TypeVar("Found")


def workers() -> int:
    """Return the number of threads per file."""
    return min(thread_count(), MOST_WORKERS)


def in_order(
    work: Callable[[Job, Room], Found],
    jobs: Iterable[Job],
    room: Callable[[], Room],
) -> Iterator[Found]:
    """Yield ``work(job, room)`` for all jobs in order; threads run ahead.

    work: function of a job and its output that releases the interpreter lock most of
    the time
    room: function that allocates an output, called once per thread and once more; an
    output is reused once the next result is requested
    """
    count = workers()
    free = [room() for _ in range(count + 1)]
    under_way: deque[tuple[Room, Future[Found]]] = deque()
    with ThreadPoolExecutor(count) as pool:
        try:
            for job in jobs:
                if not free:
                    used_room, first = under_way.popleft()
                    yield first.result()
                    free.append(used_room)
                own_room = free.pop()
                under_way.append((own_room, pool.submit(work, job, own_room)))
            while under_way:
                yield under_way.popleft()[1].result()
        finally:
            for _, future in under_way:
                future.cancel()
