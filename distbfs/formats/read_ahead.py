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
Found = TypeVar("Found")


def in_order(work: Callable[[Job], Found], jobs: Iterable[Job]) -> Iterator[Found]:
    """Yield ``work(job)`` for all jobs in order; threads run ahead.

    work: function that releases the interpreter lock most of the time
    """
    count = min(thread_count(), MOST_WORKERS)
    under_way: deque[Future[Found]] = deque()
    with ThreadPoolExecutor(count) as pool:
        for job in jobs:
            under_way.append(pool.submit(work, job))
            if len(under_way) > count:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()
