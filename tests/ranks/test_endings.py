"""Exit codes, messages, the stop flag and the buffer, in this process."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest

from distbfs.errors import InputError, ResourceError, ValidationError
from distbfs.exchange.buffer import Buffer
from distbfs.ranks.endings import describe_error, exit_code, run_guarded
from distbfs.ranks.signals import StopFlag
from distbfs.ranks.world import SoloWorld


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ValidationError("x"), 1),
        (InputError("x"), 2),
        (ResourceError("x"), 3),
        (MemoryError(), 3),
        (ValueError("x"), 1),
        (KeyboardInterrupt(), 130),
        (SystemExit(), 0),
        (SystemExit(0), 0),
        (SystemExit(7), 7),
        (SystemExit(256), 1),
        (SystemExit(-1), 255),
        (SystemExit("text"), 1),
    ],
)
def test_exit_code(error: BaseException, code: int) -> None:
    assert exit_code(error) == code


def test_known_errors_are_one_line() -> None:
    text = describe_error(InputError("what\n where"), rank=3)
    assert text == "distbfs: rank 3: what where\n"
    assert describe_error(MemoryError()) == "distbfs: there is not enough memory\n"
    assert describe_error(KeyboardInterrupt()) == "distbfs: interrupted\n"
    quoting = describe_error(InputError("\x1b[2K\udcff" + "x" * 70_000))
    assert quoting.startswith(r"distbfs: \x1b[2K\udcffxxx")
    assert quoting.endswith("xxx...\n")
    assert len(quoting) < 4100


def test_other_errors_show_where() -> None:
    try:
        iter([]).__next__()
    except StopIteration as error:
        text = describe_error(error)
    assert "test_other_errors_show_where" in text
    assert "StopIteration" in text


def test_guard_alone(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> int:
        raise InputError("no such file")

    world = SoloWorld()
    assert run_guarded(world, lambda: None) == 0
    assert run_guarded(world, lambda: 1) == 1
    assert run_guarded(world, fail) == 2
    assert run_guarded(world, lambda: world.abort(0)) == 1
    assert capsys.readouterr().err == "distbfs: no such file\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_signal_only_sets_the_flag(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    world = SoloWorld()
    with StopFlag() as stop:
        assert not stop.requested
        assert not stop.agreed(world)
        os.kill(os.getpid(), number)
        time.sleep(0.01)
        assert stop.requested
        assert stop.agreed(world)
    assert stop.requested
    assert signal.getsignal(number) is before
    assert signal.set_wakeup_fd(-1) == -1


def test_request_by_the_program() -> None:
    with StopFlag() as stop:
        stop.request()
    assert stop.requested


def test_other_signals_are_left_alone() -> None:
    seen = []
    before = signal.signal(signal.SIGUSR2, lambda *_: seen.append(1))
    try:
        with StopFlag() as stop:
            os.kill(os.getpid(), signal.SIGUSR2)
            time.sleep(0.01)
            assert not stop.requested
    finally:
        signal.signal(signal.SIGUSR2, before)
    assert seen == [1]


def test_flag_in_another_thread_changes_nothing() -> None:
    before = signal.getsignal(signal.SIGTERM)
    found = []

    def use() -> None:
        with StopFlag() as stop:
            found.append((stop.requested, signal.getsignal(signal.SIGTERM)))

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert found == [(False, before)]


def test_buffer_grows_and_stays() -> None:
    buffer = Buffer(np.uint32)
    first = buffer.take(10)
    assert first.shape == (10,)
    assert first.dtype == np.uint32
    assert np.shares_memory(first, buffer.take(4))
    buffer.take(11)
    assert buffer.capacity == 15
    buffer.take(100)
    assert buffer.capacity == 100
    buffer.free()
    assert buffer.capacity == 0


def test_a_rank_is_named_once():
    """As where its error is raised on all ranks."""
    said = describe_error(InputError("rank 0: a.el:2: bad"), 0)
    assert said == describe_error(InputError("a.el:2: bad"), 0)
    other = describe_error(InputError("rank 1: no memory"), 0)
    assert "rank 0: rank 1: no memory" in other
