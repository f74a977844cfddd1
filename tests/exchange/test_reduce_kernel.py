"""The kernel that ORs masks, run on the CPU."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "engines" / "emulated"))

import emulated_device
from emulated_device import EmulatedDevice, Kernels, compiler

from distbfs.device import cuda, programs
from distbfs.exchange.nccl import BLOCK, REDUCE


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    if compiler() is None:
        pytest.skip("no C++ compiler")
    return Kernels()


@pytest.mark.parametrize("grid", [1, 3])
@pytest.mark.parametrize(
    ("count", "words"), [(1, 1), (2, 255), (3, 256), (9, 257), (5, 2000)]
)
def test_or_of_rows(
    kernels: Any, count: int, words: int, grid: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = ("-include", str(emulated_device.HERE / "cuda_on_cpu.hpp"))
    flags = (*emulated_device.FLAGS, *header)
    monkeypatch.setattr(emulated_device, "FLAGS", flags)
    device = EmulatedDevice(kernels)
    device.install(monkeypatch)
    stride = words + 3
    generator = np.random.default_rng(words)
    rows = generator.integers(0, 1 << 63, (count, stride), np.uint64)
    cp = cuda.cupy()
    given, out = cp.asarray(rows.ravel()), cp.empty(words, np.uint64)
    numbers = (np.uint64(x) for x in (count, stride, words))
    programs.Module(REDUCE).kernel("or_rows")(grid, BLOCK, given, *numbers, out)
    np.testing.assert_array_equal(out, np.bitwise_or.reduce(rows)[:words])
    np.testing.assert_array_equal(given, rows.ravel())
