"""Long C calls that Ctrl-C, or an error in a signal handler, ends early.

Python runs the handlers of signals in its main thread, between two instructions, so
not during a call of C.  Kernels therefore ask (``team_ended`` in team.h) every 50 ms.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from distbfs.device.structures import ASK

if TYPE_CHECKING:
    from distbfs.types import Stop


class Question(ctypes.Structure):
    """The C view (``team_question`` in team.h)."""

    _fields_ = (
        ("ask", ASK),
        ("next", ctypes.c_double),
        ("ended", ctypes.c_int32),
        ("pad", ctypes.c_int32),
    )


@cache
def _asking(library: ctypes.CDLL) -> Callable[..., int | None]:
    """Return ``team_ask`` of a library."""
    ask = library.team_ask
    ask.argtypes, ask.restype = [ctypes.c_void_p], ctypes.c_void_p
    return ask


def _answers(stop: Stop | None, errors: list[BaseException]) -> Iterator[int]:
    """Yield answers to C, 1 to end, also where an exception is raised, which is kept.

    A generator, because the handler of a pending signal runs where it is resumed, which
    is inside ``try``; in a function it would run before any ``try`` begins.  It also
    runs where a loop goes back, so there is a loop inside ``try`` as well.
    """
    answer = 0
    while True:
        try:
            while True:
                yield answer
                answer = int(stop is not None and bool(stop()))
        except GeneratorExit:  # noqa: PERF203
            return
        except BaseException as error:  # noqa: BLE001
            errors.append(error)
            answer = 1


class LongCall:
    """Calls functions of a library; raises exceptions of handlers, and of ``stop``.

    What an ended call wrote is not to be read.  Elsewhere than in the main thread no
    signal is handled.

    stop: for C to call between levels (``self.stop``; a null pointer if None)
    often: also call it every 50 ms
    """

    def __init__(
        self, library: ctypes.CDLL, stop: Stop | None = None, *, often: bool = False
    ) -> None:
        self._ask, self._errors = _asking(library), list[BaseException]()
        self._busy = False
        self.stop = ASK() if stop is None else self._callback(stop)
        self._question: Question | None = None
        if often and stop is not None:
            self._question = Question(self.stop)
        elif threading.current_thread() is threading.main_thread():
            self._question = Question(self._callback(None))

    @classmethod
    def again(cls, library: ctypes.CDLL, stop: Stop | None = None) -> LongCall:
        """Return a caller used before, if there is one; making one takes 3 µs."""
        if (
            stop is not None
            or threading.current_thread() is not threading.main_thread()
        ):
            return cls(library, stop)
        call = _of_main_thread(library)
        if call._busy:  # a handler of a signal calls the library during a call
            return cls(library)
        question = call._question
        if question is not None:
            question.next, question.ended = 0.0, 0
        return call

    def _callback(self, stop: Stop | None) -> Any:
        answers = _answers(stop, self._errors)
        next(answers)  # now it waits inside ``try``
        return ASK(answers.__next__)

    @property
    def ended(self) -> bool:
        """Whether a call was ended early by ``stop``, asked often."""
        return self._question is not None and bool(self._question.ended)

    def __call__(self, function: Any, *arguments: Any) -> Any:
        """Call a function of the library."""
        ask, before, self._busy = self._ask, None, True
        own = None if self._question is None else ctypes.byref(self._question)
        try:  # also around this, after which a handler may raise
            before = ask(own)
            value = function(*arguments)
        finally:
            ask(before)
            self._busy = False
            if self._errors:  # which their tracebacks would keep, and what these hold
                error = self._errors[0]
                self._errors.clear()
                raise error
        return value


@cache
def _of_main_thread(library: ctypes.CDLL) -> LongCall:
    """Return the caller of a library for the main thread, without ``stop``."""
    return LongCall(library)
