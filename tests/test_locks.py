"""Locks in forked children, and searches that take turns."""

import fcntl
import multiprocessing
import sys
import threading
import time
from contextlib import suppress
from importlib import import_module

import pytest
from waiting import ends, halted, in_child

from distbfs import leftovers
from distbfs.device.cache import exclusive
from distbfs.errors import UsageError
from distbfs.locks import ForkLock, SearchLock
from distbfs.partition.layout import Layout
from distbfs.ranks.world import SoloWorld
from distbfs.search.vertices import VertexMap
from distbfs.timing import COMPILING

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def holding(lock):
    """A call that holds a lock while it asks whether to stop."""

    def call(stop):
        with lock:
            stop()

    return call


@pytest.mark.parametrize("of_a_module", [False, True])
def test_a_child_finds_the_lock_of_another_thread_free(of_a_module, tmp_path):
    lock = leftovers._lock if of_a_module else ForkLock()

    def use():
        with lock:
            leftovers.note(tmp_path)

    with halted(holding(lock)):
        assert in_child(use) == 0
        with pytest.raises(AssertionError, match="it waits"):
            ends_at_once(use)
    assert ends(use) is None
    leftovers.forget(tmp_path)


def ends_at_once(function):
    """As ``ends``, but without patience."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("waiting.LONGEST", 0.1)
        ends(function)


def test_the_thread_that_forks_keeps_its_lock():
    lock = ForkLock()

    def use():
        with lock, pytest.raises(AssertionError, match="it waits"):
            ends_at_once(lock.__enter__)

    with lock:
        assert in_child(use) == 0


def test_a_search_within_a_search():
    lock = SearchLock()
    with lock, lock.search():
        assert not lock.torn
        with lock, pytest.raises(UsageError, match="cannot search its graph"):
            lock.search().__enter__()
    with lock.search():
        pass


def test_a_search_that_a_fork_tore():
    lock = SearchLock()

    def search():
        assert lock.torn
        with pytest.raises(UsageError, match="forked while a thread"):
            lock.search().__enter__()
        lock.mend()
        with lock.search():
            pass

    with halted(holding(lock.search())):
        assert in_child(search) == 0
    assert not lock.torn


def test_a_child_does_not_wait_for_a_compiler_of_its_parent():
    def clock():
        before = COMPILING.seconds
        time.sleep(0.01)
        assert COMPILING.seconds == before

    with halted(holding(COMPILING())):
        assert in_child(clock) == 0


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="they have no locks")
def test_a_child_does_not_wait_for_a_cached_property():
    def use():
        assert not VertexMap(SoloWorld(), Layout(4, 1), []).on_devices

    with halted(holding(vars(VertexMap)["on_devices"].lock)):
        assert in_child(use) == 0


def test_a_fork_waits_for_imports_of_other_threads(monkeypatch):
    """A child would wait for ever to import the same."""

    class Slow:
        def find_spec(self, name, *_):
            if name == "distbfs.late":
                begun.set()
                time.sleep(0.1)

    def imports():
        with suppress(ImportError):
            import_module("distbfs.late")

    begun = threading.Event()
    monkeypatch.setattr(sys, "meta_path", [Slow(), *sys.meta_path])
    thread = threading.Thread(target=imports)
    thread.start()
    begun.wait()
    assert in_child(imports) == 0
    thread.join()


def test_a_file_lock_is_free_while_a_child_lives(tmp_path):
    """Which has a copy of its descriptor."""
    path = tmp_path / "lock"

    def other():
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    context = multiprocessing.get_context("fork")
    released = context.Event()
    with exclusive(path):
        process = context.Process(target=released.wait, args=(20,))
        process.start()
        with pytest.raises(BlockingIOError):
            other()
    other()
    released.set()
    process.join()
