"""Counters of a service, as JSON values and as text for Prometheus."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any

from distbfs.service.operations import Search

SECONDS = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
GTEPS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)
SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0)
KEPT = 4096  # values for quantiles and the rate
TEXT = "text/plain; version=0.0.4; charset=utf-8"


HISTOGRAMS = (
    ("queue_wait_seconds", "Time that a request waits in the queue.", SECONDS),
    ("search_seconds", "Time of a search, the slowest rank's.", SECONDS),
    ("batch_requests", "Requests that one search answers.", SIZES),
    ("batch_sources", "Distinct sources of such a batch.", SIZES),
    ("search_gteps", "1e9 traversed tuples a second, of bfs.", GTEPS),
)


class Histogram:
    """The last values, and for each bound the number of all values up to it.

    name: the metric's name in Prometheus, without "distbfs_"
    text: description of the metric
    """

    def __init__(self, name: str, text: str, bounds: Sequence[float]) -> None:
        self.name, self.text, self._bounds = f"distbfs_{name}", text, bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0
        self.last: deque[float] = deque(maxlen=KEPT)

    def add(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value
        self.last.append(value)

    def quantiles(self) -> dict[str, float | None]:
        """Return the median and 99th percentile of the last values; None if none."""
        values = sorted(self.last.copy())
        if not values:
            return {"p50": None, "p99": None}
        end = len(values) - 1
        return {"p50": values[end // 2], "p99": values[round(end * 0.99)]}

    def lines(self) -> Iterator[str]:
        """Yield the metric as lines of text for Prometheus."""
        yield from _heading(self.name, self.text, "histogram")
        *up_to, total = accumulate(self._counts)
        for bound, count in zip((*self._bounds, "+Inf"), (*up_to, total), strict=True):
            yield f'{self.name}_bucket{{le="{bound}"}} {count}.0'
        yield f"{self.name}_count {total}.0"
        yield f"{self.name}_sum {self._sum}"


def _heading(name: str, text: str, kind: str) -> tuple[str, str]:
    return f"# HELP {name} {text}", f"# TYPE {name} {kind}"


class Metrics:
    """Counts of one service; every method may be called from any thread."""

    def __init__(self) -> None:
        self.began = time.time()
        self._answers: Counter[tuple[str, str]] = Counter()
        self._histograms = {shown[0]: Histogram(*shown) for shown in HISTOGRAMS}
        self._ends: deque[float] = deque(maxlen=KEPT)  # of searches
        self._count = self._shared = 0
        self.last: Search | None = None
        self.gauges: dict[str, tuple[str, Callable[[], float]]] = {}  # text, value

    def answered(self, op: str, code: str, count: int = 1) -> None:
        """Count answers; ``code`` is "ok" or the code of an error."""
        self._answers[op, code] += count

    def observe(self, name: str, *values: float) -> None:
        """Record values of one of HISTOGRAMS."""
        for value in values:
            self._histograms[name].add(value)

    def searched(self, seconds: float, requests: int, sources: int) -> None:
        """Record a search from ``sources`` distinct sources that answers requests."""
        self._count += 1
        self._ends.append(time.monotonic())
        self._shared += requests if requests > 1 else 0
        self.observe("search_seconds", seconds)
        self.observe("batch_requests", requests)
        self.observe("batch_sources", sources)

    def traversed(self, search: Search) -> None:
        """Record the rate of a search that counted its input tuples."""
        self.last = search
        if search.seconds:
            self.observe("search_gteps", search.TEPS / 1e9)

    def as_dict(self) -> dict[str, Any]:
        """Return counts and times as JSON values.

        Times in seconds, and the requests that one search answered (``batch``), are the
        median and 99th percentile of the last requests and searches. ``rate`` is the
        number of searches a second over the last ten seconds, ``shared`` the number of
        requests that shared a search.
        """
        counts: dict[str, dict[str, int]] = {}
        for (op, code), count in sorted(self._answers.copy().items()):
            counts.setdefault(op, {})[code] = count
        now = time.monotonic()
        return {
            "uptime": time.time() - self.began,
            "answers": counts,
            "searches": self._count,
            "rate": sum(now - at <= 10 for at in self._ends.copy()) / 10,
            "shared": self._shared,
            "batch": self._histograms["batch_requests"].quantiles(),
            "queue_wait": self._histograms["queue_wait_seconds"].quantiles(),
            "search": self._histograms["search_seconds"].quantiles(),
            "last": self.last,
        }

    def text(self) -> bytes:
        """Return all metrics for Prometheus, of content type TEXT."""
        name = "distbfs_answers_total"
        lines = [*_heading(name, "Answers by operation and code.", "counter")]
        for (op, code), count in sorted(self._answers.copy().items()):
            lines.append(f'{name}{{code="{code}",op="{op}"}} {count}.0')
        for histogram in self._histograms.values():
            lines += histogram.lines()
        for name, (text, value) in self.gauges.items():
            lines += *_heading(name, text, "gauge"), f"{name} {float(value())}"
        return ("\n".join(lines) + "\n").encode()
