"""Long calls of C end where a handler of a signal, or ``stop``, raises."""

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from distbfs.device import cc
from distbfs.device.calls import LongCall

SOURCE = Path(__file__).with_name("team_checks.c")


MARKS = np.zeros(1 << 16, dtype=np.int64)  # of endless calls


class Rang(Exception):
    """What the handler of an alarm raises."""


@pytest.fixture(scope="module")
def library():
    made = cc.load(SOURCE)
    made.mark_all.restype = made.endless.restype = cc.ctypes.c_int64
    made.asking.restype = cc.ctypes.c_int64
    return made


@pytest.fixture
def alarm():
    """Return what lets a signal come soon; its handler calls ``function``."""
    before = signal.getsignal(signal.SIGUSR2)

    def soon(function):
        signal.signal(signal.SIGUSR2, lambda *_: function())
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR2)).start()

    yield soon
    signal.signal(signal.SIGUSR2, before)


def ring():
    raise Rang


def marked(library, threads):
    marks = np.zeros(1 << 16, dtype=np.int64)
    size = cc.ctypes.c_int64(1 << 16)
    total = library.mark_all(threads, size, cc.ctypes.c_int64(7), cc.pointer(marks))
    return total == 1 << 16 and bool((marks == 1).all())


@pytest.mark.parametrize("threads", [1, 3])
def test_a_handler_ends_a_call(library, alarm, threads, capfd):
    for _ in range(2):
        alarm(ring)
        with pytest.raises(Rang):
            LongCall(library)(library.endless, threads, cc.pointer(MARKS))
        assert marked(library, threads), "a later call does all of its work"
    assert capfd.readouterr().err == ""


def test_a_handler_that_returns_ends_nothing(library, alarm):
    heard = []
    alarm(lambda: heard.append(time.monotonic()))
    call = LongCall(
        library, lambda: bool(heard) and time.monotonic() > heard[0] + 0.2, often=True
    )
    assert call(library.endless, 2, cc.pointer(MARKS)) > 0
    assert call.ended
    assert time.monotonic() > heard[0] + 0.2


def test_a_signal_at_any_moment_of_an_answer(library, capfd):
    """A handler that runs outside ``try`` would have its exception ignored, with text.

    Most of them come while Python answers, each at another instruction.
    """
    before = signal.signal(signal.SIGALRM, lambda *_: ring())
    try:
        for k in range(1000):
            call = LongCall(library, lambda: False)
            with pytest.raises(Rang):
                call(library.asking, 20 + k % 100, call.stop)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert capfd.readouterr().err == ""


def test_stop_is_asked_often_in_any_thread(library, capfd):
    errors = []

    def stop():
        if threading.current_thread() is threading.main_thread():
            return True
        raise Rang

    def work():
        call = LongCall(library, stop, often=True)
        try:
            call(library.endless, 2, cc.pointer(MARKS))
        except Rang as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(errors) == 1
    work()
    assert len(errors) == 1
    assert capfd.readouterr().err == ""
