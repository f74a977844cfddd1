"""Wall-clock timing of named phases, and a trace of when each of them ran."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Span:
    """What happened from ``begin`` to ``end``, seconds of ``time.perf_counter``."""

    name: str
    begin: float
    end: float
    values: dict[str, Any] = field(default_factory=dict)


class Trace:
    """Keeps what happened when on this rank, the last ``limit`` spans.

    push, pop: called with the name at the start and without it at the end of each
    span, to show it elsewhere (NVTX ranges on a GPU)
    """

    def __init__(
        self,
        limit: int = 1 << 20,
        push: Callable[[str], object] | None = None,
        pop: Callable[[], object] | None = None,
    ) -> None:
        self.spans: deque[Span] = deque(maxlen=limit)
        self._push, self._pop = push, pop

    @contextmanager
    def __call__(self, name: str, **values: Any) -> Iterator[None]:
        """Keep the time of a ``with`` block; values are JSON's."""
        if self._push is not None:
            self._push(name)
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.spans.append(Span(name, begin, time.perf_counter(), values))
            if self._pop is not None:
                self._pop()


def kept(trace: Trace | None, name: str, **values: Any) -> AbstractContextManager[None]:
    """Keep the time of a ``with`` block where there is a trace."""
    return nullcontext() if trace is None else trace(name, **values)


class Stopwatch:
    """Adds up seconds per phase; phases may be entered any number of times.

    trace: keeps every phase with its time as well
    """

    def __init__(self, trace: Trace | None = None) -> None:
        self.seconds: dict[str, float] = {}
        self._trace = trace

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        """Count the time of a ``with`` block towards ``phase``."""
        start = time.perf_counter()
        try:
            with kept(self._trace, phase):
                yield
        finally:
            self.add(phase, time.perf_counter() - start)

    def add(self, phase: str, seconds: float) -> None:
        """Count seconds towards a phase."""
        self.seconds[phase] = self.seconds.get(phase, 0.0) + seconds

    def get(self, phase: str) -> float:
        """Return the seconds of a phase so far."""
        return self.seconds.get(phase, 0.0)

    def reset(self) -> dict[str, float]:
        """Return the seconds so far and start again from nothing."""
        taken, self.seconds = self.seconds, {}
        return taken
