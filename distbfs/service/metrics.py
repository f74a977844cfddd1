"""Counters of a service; also Prometheus metrics if prometheus-client is installed."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any

from distbfs.errors import LibraryMissing
from distbfs.service.operations import Search

SECONDS = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1, 3, 10, 30)
GTEPS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3000)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
KEPT = 4096  # searches for quantiles and the rate


class Metrics:
    """Counts of one service; every method may be called from any thread."""

    def __init__(self) -> None:
        self.began = time.time()
        self._answers: Counter[tuple[str, str]] = Counter()
        self._waits: deque[float] = deque(maxlen=KEPT)
        self._searches: deque[tuple[float, float]] = deque(maxlen=KEPT)
        self._batches: deque[float] = deque(maxlen=KEPT)
        self._count = self._shared = 0
        self.last: Search | None = None
        self._shown: dict[str, Any] = {}
        self._registry: Any = None

    def expose(self) -> None:
        """Also keep Prometheus metrics; LibraryMissing without the package."""
        try:
            import prometheus_client as prometheus  # noqa: PLC0415
        except ImportError as error:
            raise LibraryMissing(
                "HTTP needs the extra 'serve'; pip install '.[serve]'"
            ) from error
        self._registry = registry = prometheus.CollectorRegistry()
        self._shown = {
            "answers": prometheus.Counter(
                "distbfs_answers",
                "Answers by operation and code.",
                ["op", "code"],
                registry=registry,
            ),
            "waits": prometheus.Histogram(
                "distbfs_queue_wait_seconds",
                "Time of a request in the queue.",
                buckets=SECONDS,
                registry=registry,
            ),
            "searches": prometheus.Histogram(
                "distbfs_search_seconds",
                "Time of a search, the slowest rank's.",
                buckets=SECONDS,
                registry=registry,
            ),
            "requests": prometheus.Histogram(
                "distbfs_batch_requests",
                "Requests that one search answers.",
                buckets=SIZES,
                registry=registry,
            ),
            "sources": prometheus.Histogram(
                "distbfs_batch_sources",
                "Distinct sources of such a batch.",
                buckets=SIZES,
                registry=registry,
            ),
            "gteps": prometheus.Histogram(
                "distbfs_search_gteps",
                "1e9 traversed input tuples a second, of bfs and multi_bfs.",
                buckets=GTEPS,
                registry=registry,
            ),
        }

    def gauge(self, name: str, text: str, value: Callable[[], float]) -> None:
        """Expose the value of a function under a name."""
        if self._registry is not None:
            import prometheus_client as prometheus  # noqa: PLC0415

            made = prometheus.Gauge(name, text, registry=self._registry)
            made.set_function(value)

    def answered(self, op: str, code: str, count: int = 1) -> None:
        """Count answers; ``code`` is "ok" or that of an error."""
        self._answers[op, code] += count
        if self._shown:
            self._shown["answers"].labels(op, code).inc(count)

    def waited(self, times: Sequence[float]) -> None:
        """Record the seconds that requests were in the queue."""
        self._waits.extend(times)
        if self._shown:
            for seconds in times:
                self._shown["waits"].observe(seconds)

    def batched(self, requests: int, sources: int) -> None:
        """Record the requests, and their distinct sources, that a search answers."""
        self._batches.append(requests)
        self._shared += requests if requests > 1 else 0
        if self._shown:
            self._shown["requests"].observe(requests)
            self._shown["sources"].observe(sources)

    def searched(self, seconds: float) -> None:
        """Record a search."""
        self._count += 1
        self._searches.append((time.monotonic(), seconds))
        if self._shown:
            self._shown["searches"].observe(seconds)

    def traversed(self, nedge: int, seconds: float) -> None:
        """Record the input tuples that a search traversed."""
        if self._shown and seconds:
            self._shown["gteps"].observe(nedge / seconds / 1e9)

    def as_dict(self) -> dict[str, Any]:
        """Return counts and times as JSON values.

        Times in seconds: median and 99th percentile of the last requests and searches;
        rate: searches a second over the last ten; shared: requests that shared a
        search; batch: requests that a search answered.
        """
        counts: dict[str, dict[str, int]] = {}
        for (op, code), count in sorted(dict(self._answers).items()):
            counts.setdefault(op, {})[code] = count
        searches = list(self._searches)
        now = time.monotonic()
        recent = sum(1 for at, _ in searches if now - at <= 10)
        return {
            "uptime": time.time() - self.began,
            "answers": counts,
            "searches": self._count,
            "rate": recent / 10,
            "shared": self._shared,
            "batch": quantiles(list(self._batches)),
            "queue_wait": quantiles(list(self._waits)),
            "search": quantiles([seconds for _, seconds in searches]),
            "last": self.last,
        }

    def text(self) -> tuple[bytes, str]:
        """Return the Prometheus text and its content type."""
        import prometheus_client as prometheus  # noqa: PLC0415

        return (
            prometheus.generate_latest(self._registry),
            prometheus.CONTENT_TYPE_LATEST,
        )


def quantiles(values: list[float]) -> dict[str, float | None]:
    """Return the median and the 99th percentile, None without values."""
    if not values:
        return {"p50": None, "p99": None}
    values.sort()
    last = len(values) - 1
    return {"p50": values[last // 2], "p99": values[round(last * 0.99)]}
