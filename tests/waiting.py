"""Calls that would wait for ever if locks were wrong, and forked children."""

import os
import signal
import threading
from contextlib import contextmanager

LONGEST = 20  # seconds


def ends(function):
    """Return what a function returns, called in a thread that may be left waiting."""
    got = []

    def call():
        try:
            got.append((function(), None))
        except Exception as error:  # noqa: BLE001
            got.append((None, error))

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(LONGEST)
    assert got, "it waits"
    value, error = got[0]
    if error is not None:
        raise error
    return value


def in_child(function):
    """Call a function in a forked child; return 0, 1 if it raises, -14 if it waits."""
    child = os.fork()
    if not child:
        code = 1
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(LONGEST)
            function()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@contextmanager
def halted(call):
    """Hold ``call(stop)`` in another thread where it first calls ``stop``."""
    inside, leave = threading.Event(), threading.Event()

    def stop(*_):
        inside.set()
        leave.wait(LONGEST)
        return False

    thread = threading.Thread(target=call, args=(stop,), daemon=True)
    thread.start()
    assert inside.wait(LONGEST)
    try:
        yield
    finally:
        leave.set()
        thread.join(LONGEST)
        assert not thread.is_alive()
