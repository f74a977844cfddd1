"""Devices of several ranks that send each other tuples through MPI, by the emulator."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "gpu"))
sys.path.append(str(Path(__file__).resolve().parents[1] / "engines" / "emulated"))

from constructed_parts import on_devices
from emulated_device import EmulatedDevice, Kernels, compiler
from graphs import kronecker

from distbfs.build.cuda import shares
from distbfs.generate import cuda as device_tuples

NARROW = ("vertices", "numbers", "tuple_degrees")


@pytest.fixture
def several_threads(monkeypatch):
    """An emulated device that several threads of a rank use."""
    if compiler() is None:
        pytest.skip("no C++ compiler")
    monkeypatch.setattr(EmulatedDevice, "check", lambda *_: None)
    EmulatedDevice(Kernels()).install(monkeypatch)


@pytest.mark.parametrize("id_bits", [32, 64])
@pytest.mark.parametrize("buffer_bytes", [None, 3000])
def test_both_ways(world, several_threads, monkeypatch, buffer_bytes, id_bits):
    """The last device to come talks to the other ranks, from any thread."""
    monkeypatch.setattr(shares, "CHUNK", 60)
    if id_bits == 64:
        monkeypatch.setattr(device_tuples, "NARROW", 1)
    source, parts = kronecker(7), 4 * world.size
    options = {"threshold": 9, "devices": [0, 1] * 2, "buffer_bytes": buffer_bytes}
    shared, summary = on_devices(source, parts, world, making="share", **options)
    made, other = on_devices(source, parts, world, making="all", **options)
    assert (summary.m, summary.loops) == (other.m, other.loops)
    assert (summary.making, other.making) == ("share", "all")
    for one, another in zip(shared, made, strict=True):
        for name in NARROW:
            np.testing.assert_array_equal(getattr(one, name), getattr(another, name))
        for name in ("nn", "nd", "dn", "dd"):
            rows, wanted = getattr(one, name), getattr(another, name)
            np.testing.assert_array_equal(rows.offsets, wanted.offsets)
            np.testing.assert_array_equal(rows.columns, wanted.columns)
