"""Wall-clock timing of named phases, and a trace of their spans."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from distbfs.locks import ForkLock


@dataclass(frozen=True)
class Span:
    """A phase from ``begin`` to ``end``, seconds of ``time.perf_counter``."""

    name: str
    begin: float
    end: float
    values: dict[str, Any] = field(default_factory=dict)


class Trace:
    """Records the phases of this rank, up to the last ``limit`` spans.

    push, pop: called at the start of each span, with its name, and at its end, to show
    it elsewhere (such as NVTX ranges on a GPU)
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
    def __call__(self, name: str, **values: Any) -> Iterator[dict[str, Any]]:
        """Record the time of a ``with`` block, which may add JSON values to it."""
        if self._push is not None:
            self._push(name)
        begin = time.perf_counter()
        try:
            yield values
        finally:
            self.spans.append(Span(name, begin, time.perf_counter(), values))
            if self._pop is not None:
                self._pop()


def kept(
    trace: Trace | None, name: str, **values: Any
) -> AbstractContextManager[dict[str, Any] | None]:
    """Record the time of a ``with`` block if there is a trace; see ``Trace``."""
    return nullcontext() if trace is None else trace(name, **values)


class Aside(ForkLock):
    """Time that all phases exclude, in any thread; the lock guards its sums."""

    def __init__(self) -> None:
        super().__init__()
        self._inside = 0
        self._began = self._spent = 0.0

    def renew(self) -> None:
        """Forget the threads of the parent process; see ``ForkLock``."""
        super().renew()
        self._inside = 0

    @property
    def seconds(self) -> float:
        """Return the seconds so far, in which overlapping times count once."""
        with self:
            now = time.perf_counter() - self._began if self._inside else 0.0
            return self._spent + now

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Exclude the time of a ``with`` block."""
        with self:
            if not self._inside:
                self._began = time.perf_counter()
            self._inside += 1
        try:
            yield
        finally:
            with self:
                self._inside -= 1
                if not self._inside:
                    self._spent += time.perf_counter() - self._began


COMPILING = Aside()  # kernels, at first use


def clock() -> float:
    """Return seconds of a clock that stops while kernels are compiled."""
    return time.perf_counter() - COMPILING.seconds


class Stopwatch:
    """Sums seconds per phase, by ``clock``; phases may be entered again.

    trace: records every phase as well
    """

    def __init__(self, trace: Trace | None = None) -> None:
        self.seconds: dict[str, float] = {}
        self._trace = trace

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        """Count the time of a ``with`` block towards ``phase``."""
        start = clock()
        try:
            with kept(self._trace, phase):
                yield
        finally:
            self.add(phase, clock() - start)

    def add(self, phase: str, seconds: float) -> None:
        """Count seconds towards a phase."""
        self.seconds[phase] = self.seconds.get(phase, 0.0) + seconds

    def get(self, phase: str) -> float:
        """Return the seconds of a phase so far."""
        return self.seconds.get(phase, 0.0)
