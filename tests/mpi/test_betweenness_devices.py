"""Betweenness over parts on emulated devices of ranks that are processes."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "engines" / "emulated"))

from emulated_device import EmulatedDevice, Kernels, compiler
from graphs import NAMED
from sessions import open_tuples
from wholes import check_betweenness

from distbfs.multisearch.base import RunOptions
from distbfs.multisearch.searchers import PartsSearcher
from distbfs.search import choose as choosing
from distbfs.search.choose import Request


@pytest.mark.parametrize("threshold", [2, 1 << 30])
@pytest.mark.parametrize("name", ["two-hubs", "two-components", "isolated"])
def test_a_device_of_each_rank(world, monkeypatch, name, threshold):
    """Each is a domain; messages go through MPI."""
    if compiler() is None:
        pytest.skip("no C++ compiler")
    device = EmulatedDevice(Kernels())
    device.install(monkeypatch)
    monkeypatch.setattr(choosing, "take_devices", lambda *_, **__: [0])
    monkeypatch.setattr(
        "distbfs.exchange.nccl_link.nccl_problem", lambda *_: "no NCCL here"
    )
    session = open_tuples(
        NAMED[name],
        world=world,
        request=Request(domain=1, divided=True),
        threshold=threshold,
        engine="xbfs",
        parents=False,
        exchange="host",
    )
    searcher = PartsSearcher(session, RunOptions())
    assert searcher.smallest == 512
    check_betweenness(searcher, NAMED[name])
    session.close()
    np.testing.assert_equal(device.arrays.fault, None)
