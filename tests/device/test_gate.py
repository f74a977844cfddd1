"""Gates of several ranks, which are threads; the driver is none."""

import ctypes
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from worlds import on_ranks

from distbfs.device import cuda, gate
from distbfs.device.gate import Gate
from distbfs.errors import ResourceError
from distbfs.ranks.world import SoloWorld


class Driver:
    """Gives the host's address as the device's, and notes what streams wait for."""

    def __init__(self):
        self.waits, self.registered, self.code = [], 0, 0

    def cuMemHostRegister_v2(self, at, size, flags):
        self.registered += 1
        return 0

    def cuMemHostUnregister(self, at):
        self.registered -= 1
        return 0

    def cuMemHostGetDevicePointer_v2(self, there, at, flags):
        ctypes.cast(there, ctypes.POINTER(ctypes.c_uint64))[0] = at.value
        return 0

    def cuStreamWaitValue32_v2(self, stream, address, value, how):
        self.waits.append((address.value, value.value))
        return self.code


class Pinned:
    """As CuPy's pinned memory: a buffer with an address."""

    def __new__(cls, size):
        held = (ctypes.c_char * size)()
        return Memory(held)


class Memory(np.ndarray):
    """Bytes that tell their address."""

    def __new__(cls, held):
        return np.frombuffer(held, np.uint8).view(cls)

    @property
    def ptr(self):
        return self.ctypes.data


@pytest.fixture
def driver(monkeypatch):
    stand_in = Driver()
    monkeypatch.setattr(cuda, "driver", lambda: stand_in)
    module = SimpleNamespace(cuda=SimpleNamespace(alloc_pinned_memory=Pinned))
    monkeypatch.setattr(cuda, "cupy", lambda: module)
    return stand_in


def pages():
    return set(Path(gate.SHARED).glob("distbfs-*"))


def seen(one):
    return int(one._word[0])


def rounds(world):
    """What a rank sees of the word before and after each opening."""
    gate, turns = Gate(world), []
    for _ in range(3):
        gate.hold()
        world.barrier()
        turns.append(seen(gate))
        world.barrier()
        gate.open()
        world.barrier()
        turns.append(seen(gate))
    world.barrier()
    shared = gate._page is not None
    gate.close()
    return turns, shared


def test_one_rank(driver):
    assert rounds(SoloWorld()) == ([0, 1, 1, 2, 2, 3], False)
    assert [value for _, value in driver.waits] == [1, 2, 3]


def test_all_ranks_wait_for_one_word(driver):
    before = pages()
    turns = on_ranks(3, rounds)
    assert turns == [([0, 1, 1, 2, 2, 3], True)] * 3
    assert sorted(value for _, value in driver.waits) == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert pages() == before
    assert driver.registered == 0


@pytest.mark.parametrize("broken", [0, 1])
def test_ranks_without_shared_memory_have_words_of_their_own(
    driver, monkeypatch, broken
):
    page = gate.Page

    def made(path):
        if bool(path) == bool(broken):
            raise OSError("no room")
        return page(path)

    before = pages()
    monkeypatch.setattr(gate, "Page", made)
    assert on_ranks(2, rounds) == [([0, 1, 1, 2, 2, 3], False)] * 2
    assert pages() == before
    assert driver.registered == 0


def test_a_device_that_cannot_wait(driver):
    one = Gate(SoloWorld())
    driver.code = gate.NOT_SUPPORTED
    one.hold()
    driver.code = 1
    driver.cuGetErrorString = lambda code, text: 0
    with pytest.raises(ResourceError, match="waiting for the other devices"):
        one.hold()
    one.release()
    assert seen(one) == 1
