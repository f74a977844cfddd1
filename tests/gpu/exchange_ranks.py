"""Exchanges of device arrays between the ranks that were started, on real devices.

    mpiexec -n 2 python tests/gpu/exchange_ranks.py check nccl-device host-device
    ... kill KIND     rank 1 is killed while the others wait for it
    ... raise KIND    rank 1 fails while the others wait for it
    ... same KIND     all ranks on the first device
    ... choose        prints what --exchange auto is
    ... time KIND...  prints microseconds a level, by words of a mask and numbers sent

The test files of this folder import ``check``.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from itertools import product
from pathlib import Path

import numpy as np
import pytest

sys.path += [str(Path(__file__).resolve().parents[k]) for k in (1, 2)]
sys.path.append(str(Path(__file__).resolve().parents[1] / "mpi"))

from test_exchange_contract import (
    bins_of,
    exchange_of,
    expected_normals,
    host,
    mine,
    random_level,
    run_level,
    same_normals,
)

from distbfs.device import cuda
from distbfs.errors import InputError, LaunchError
from distbfs.exchange import nccl
from distbfs.options import ExchangeOptions
from distbfs.partition.layout import Placement
from distbfs.ranks.world import run_guarded, start
from distbfs.registry import EXCHANGES, lookup
from distbfs.search.domains import choose_exchange

FLAGS = (False, True)
REDUCTIONS = ("blocking", "nonblocking")


def big_level(parts, seed, words, most):
    """Masks of so many words; bins of up to ``most`` numbers, some empty."""
    generator = np.random.default_rng([parts, seed])
    masks = list(generator.integers(0, 1 << 63, (parts, words), np.uint64))
    bins = []
    for _ in range(parts):
        counts = generator.integers(0, most, parts) * generator.integers(0, 2, parts)
        bins.append([generator.integers(0, 1 << 60, n, np.uint64) for n in counts])
    return masks, bins


def look(exchange, world, level, unique):
    mask, received = run_level(exchange, world, level)
    np.testing.assert_array_equal(host(mask), np.bitwise_or.reduce(level[0]))
    same_normals(received, expected_normals(world, level[1]), unique=unique)


def check(world, kind, per_rank):
    """Levels of all pairs of options and all sizes, and maxima; collective."""
    parts = per_rank * world.size
    for together, unique, reduce in product(FLAGS, FLAGS, REDUCTIONS):
        options = {
            "local_all2all": together,
            "uniquify": unique,
            "mask_reduce": reduce,
        }
        with exchange_of(kind, world, per_rank, **options) as exchange:
            for seed in range(5):
                look(exchange, world, random_level(parts, seed), unique)
        words = 50_000
        with exchange_of(kind, world, per_rank, 64 * words, **options) as exchange:
            for seed, some in enumerate((1000, 300_000, 20, 40_000)):
                most = some * 16 // max(16, parts**2)  # all ranks make all bins
                look(exchange, world, big_level(parts, seed, words, most), unique)


def check_all(world, kind):
    """LaunchError where the exchange does not serve these ranks."""
    try:
        for per_rank in (1, 2):
            check(world, kind, per_rank)
        if kind == "nccl-device":
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(nccl, "sliced", lambda words, ranks: True)
                check(world, kind, 1)
    except pytest.skip.Exception as refusal:
        raise LaunchError(str(refusal)) from None


def wait_for_lost(world, kind, what):
    with exchange_of(kind, world, 1, mask_reduce="nonblocking") as exchange:
        look(exchange, world, random_level(world.size, 1), False)
        if world.rank == 1:
            time.sleep(1)
            print(f"lost at {time.monotonic():.3f}", flush=True)
            time.sleep(0.1)  # so that the launcher has read it
            if what == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            raise InputError("this rank fails")
        exchange.start_masks(mine(world, random_level(world.size, 2)[0]))
        exchange.finish_masks()


def timed(world, kind):
    """Print the time of levels; every rank sends the same to each."""
    cp = cuda.cupy()
    for words, count in product((64, 16_384, 131_072, 1 << 20), (0, 1000, 1 << 20)):
        per_pair = count // world.size
        options = {"mask_reduce": "nonblocking"}
        with exchange_of(kind, world, 1, 64 * words, **options) as made:
            exchange = made.exchange
            masks = [cp.zeros(words, np.uint64)]
            row = [np.zeros(per_pair, np.uint64)] * world.size
            bins = [bins_of(row, cp.asarray)]
            seconds = []
            for _ in range(30):
                world.barrier()
                begin = time.perf_counter()
                exchange.start_normals(bins)
                exchange.start_masks(masks)
                exchange.finish_masks()
                exchange.finish_normals()
                cp.cuda.get_current_stream().synchronize()
                seconds.append(time.perf_counter() - begin)
        told = {
            "exchange": kind,
            "ranks": world.size,
            "words": words,
            "sent": per_pair * world.size,
            "sliced": nccl.sliced(words, world.size),
            "microseconds": round(1e6 * float(np.median(seconds)), 1),
        }
        if world.rank == 0:
            print(json.dumps(told), flush=True)


def main():
    what, *kinds = sys.argv[1:]
    world = start()
    cp = cuda.cupy()
    count = cp.cuda.runtime.getDeviceCount()
    device = 0 if what == "same" else world.local_rank % count
    cp.cuda.Device(device).use()
    if what == "choose":
        name, why = choose_exchange(world, "auto", [device])
        if world.rank == 0:
            print(f"{name}: {why}")
    for kind in kinds:
        if what == "check":
            check_all(world, kind)
            if world.rank == 0:
                print(f"{kind} is right", flush=True)
        elif what == "same":
            factory = lookup(EXCHANGES, "exchange", kind.partition("-")[0])
            placement = Placement(world.size, world.size)
            factory(world, placement, 64, ExchangeOptions(), on_device=True).close()
        elif what == "time":
            timed(world, kind)
        else:
            wait_for_lost(world, kind, what)


if __name__ == "__main__":
    raise SystemExit(run_guarded(None, main))
