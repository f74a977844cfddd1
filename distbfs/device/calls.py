"""Long C calls that Ctrl-C, or an error in a signal handler, can end early.

Python runs signal handlers in its main thread, between two of its instructions, and so
not during a C call.  Kernels therefore ask every 50 ms whether to end (``team_ended``
in team.h).
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distbfs.device.structures import ASK, structure

if TYPE_CHECKING:
    from distbfs.types import Stop

SOURCE = Path(__file__).with_name("team.h")


@cache
def _kind_of_question() -> Any:
    return structure(SOURCE, "team_question")


def _question(ask: Any) -> Any:
    """Return the structure for the calls of ``ask``, which it keeps alive."""
    question = _kind_of_question()()
    question.ask = ask
    return question


@cache
def _asking(library: ctypes.CDLL) -> Callable[..., int | None]:
    """Return the function ``team_ask`` of a library."""
    ask = library.team_ask
    ask.argtypes, ask.restype = [ctypes.c_void_p], ctypes.c_void_p
    return ask


def _answers(stop: Stop | None, errors: list[BaseException]) -> Iterator[int]:
    """Yield answers to C: 1 to end the call, also after an exception, which is kept.

    It is a generator, because Python runs the handler of a pending signal where a
    generator is resumed, which is inside ``try``; in a function, the handler would run
    before ``try`` begins.  Handlers also run at the end of each pass through a loop, so
    there is a loop inside ``try`` as well.
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
    """Calls functions of a library; raises exceptions of handlers and of ``stop``.

    Do not read the results of a call that was ended.  Signals are handled only in the
    main thread.

    stop: a function that C calls between levels (``self.stop``; a null pointer if None)
    often: whether to call it every 50 ms as well
    """

    def __init__(
        self, library: ctypes.CDLL, stop: Stop | None = None, *, often: bool = False
    ) -> None:
        self._ask, self._errors = _asking(library), list[BaseException]()
        self._busy = False
        self.stop = ASK() if stop is None else self._callback(stop)
        self._question: Any = None
        if often and stop is not None:
            self._question = _question(self.stop)
        elif threading.current_thread() is threading.main_thread():
            self._question = _question(self._callback(None))

    @classmethod
    def again(cls, library: ctypes.CDLL, stop: Stop | None = None) -> LongCall:
        """Return a caller, an existing one if possible, since making one takes 3 µs."""
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
        """Whether a call was ended early by ``stop`` while it was called ``often``."""
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
    """Return the main thread's caller of a library, without ``stop``."""
    return LongCall(library)
