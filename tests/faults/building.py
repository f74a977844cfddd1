"""Ranks whose emulated devices send each other tuples; a device of rank 1 fails.

``building.py``
"""

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path += [str(TESTS), str(TESTS / "gpu"), str(TESTS / "engines" / "emulated")]

import pytest  # noqa: E402
from constructed_parts import on_devices  # noqa: E402
from emulated_device import EmulatedDevice, Kernels  # noqa: E402
from graphs import Tuples, kronecker  # noqa: E402

from distbfs.build.cuda import shares  # noqa: E402
from distbfs.errors import InputError  # noqa: E402
from distbfs.ranks.world import run_guarded, start  # noqa: E402

world = start()


class CutShort(Tuples):
    """The last share of all cannot be read to its end."""

    def chunks(self, first, last):
        if last == self.tuples:
            raise InputError("edges: the file was cut short")
        return super().chunks(first, last)


def build():
    EmulatedDevice.check = lambda *_: None  # several threads
    EmulatedDevice(Kernels(small=True)).install(pytest.MonkeyPatch())
    shares.CHUNK = 60
    source = CutShort(128, kronecker(7).u, kronecker(7).v)
    on_devices(source, 2 * world.size, world, devices=[0, 1], making="share")
    print("done")


sys.exit(run_guarded(world, build))
