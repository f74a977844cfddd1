"""Gates of several ranks, which are threads; the driver is none."""

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
        self.waits, self.code = [], 0

    def cuStreamWaitValue32_v2(self, stream, address, value, how):
        self.waits.append((address.value, value.value))
        return self.code


@pytest.fixture
def driver(monkeypatch):
    stand_in = Driver()
    monkeypatch.setattr(cuda, "driver", lambda: stand_in)
    monkeypatch.setattr(cuda, "pinned_empty", np.empty)
    return stand_in


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
    return turns


@pytest.mark.parametrize("ranks", [1, 3])
def test_devices_wait_until_all_ranks_open(driver, ranks):
    assert on_ranks(ranks, rounds) == [[0, 1, 1, 2, 2, 3]] * ranks
    assert sorted(value for _, value in driver.waits) == sorted([1, 2, 3] * ranks)
    assert len({word for word, _ in driver.waits}) == ranks


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
