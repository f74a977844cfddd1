"""Ranks that search parts on their devices, one of which may fail; see the test.

mpiexec -n 2 python tests/gpu/searching_ranks.py check nccl host resident
... brief EXCHANGE    fewer graphs; a part on each device
... kill EXCHANGE     rank 1 is killed while all search
... memory EXCHANGE   rank 1 finds its device full
"""

import os
import signal
import sys
import threading
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE.parents[1]), str(HERE.parent), str(HERE)]

from distbfs.search.device_parts import DevicePartsSession  # noqa: E402
from distbfs.search.device_resident import ResidentSession  # noqa: E402
from fast_graphs import beside, path, shuffled, star  # noqa: E402
from graphs import check_search, grid, kronecker, random_tuples, some_roots, uniform  # noqa: E402

from distbfs.device import cuda  # noqa: E402
from distbfs.engines.cuda.pan import PanEngine  # noqa: E402
from distbfs.engines.cuda.xbfs import XbfsEngine  # noqa: E402
from distbfs.exchange.placing import take_devices  # noqa: E402
from distbfs.exchange.world import run_guarded, start  # noqa: E402
from distbfs.generate.kronecker import Kronecker  # noqa: E402
from distbfs.options import BuildOptions, SearchOptions  # noqa: E402
from distbfs.partition.device_construct import construct_on_devices  # noqa: E402
from distbfs.partition.device_resident import construct_resident  # noqa: E402

GRAPHS = {
    "kronecker": kronecker(12),
    "uniform": uniform(3000, 20_000),
    "hub": shuffled(beside(star(3000), uniform(2000, 5000))),
    "path": shuffled(path(300)),
    "grid": grid(40),
    "random": random_tuples(900, 1200, 5),
}
BRIEF = ("kronecker", "random")
THRESHOLDS = (0, 6, 40, 1 << 30)
VARIANTS = (
    {},
    {"parents": False},
    {"direction": "push"},
    {"direction": "pull"},
    {"mask_reduce": "nonblocking"},
    {"local_all2all": True, "uniquify": True},
)


def session_of(
    world, source, devices, per_rank, threshold, *, resident=False, **options
):
    """The session over parts of a graph, dealt out to the devices of each rank."""
    engine = "xbfs" if resident else "pan"
    options = SearchOptions(engine=engine, share_device=True, **options)
    if resident:
        many = per_rank * world.size
        parts, _ = construct_resident(source, world, many, devices=devices[:per_rank])
        return ResidentSession(world, XbfsEngine(options), parts, options)
    parts, _ = construct_on_devices(
        source,
        world,
        per_rank * world.size,
        BuildOptions(threshold=threshold),
        devices=[devices[k % len(devices)] for k in range(per_rank)],
    )
    return DevicePartsSession(world, PanEngine(options), parts, options)


def check_resident(world, devices, names):
    """The same for searches that run whole on the devices, a part on each."""
    for name in names:
        graph = GRAPHS[name]
        for more in RESIDENT:
            session = session_of(
                world, graph, devices, len(devices), None, resident=True, **more
            )
            for root in some_roots(graph, 4):
                compare(world, session, graph, int(root))
            session.close()
        if world.rank == 0:
            print(name, "resident", flush=True)


def check(world, devices, exchange):
    """Compare levels with the reference, and parents by their levels."""
    for name in GRAPHS:
        for threshold in THRESHOLDS:
            for per_rank in (1, 2):
                plain = name in ("random", "uniform")
                variants = VARIANTS if plain else VARIANTS[:2]
                check_parts(
                    world, devices, exchange, name, threshold, per_rank, variants
                )


def check_parts(world, devices, exchange, name, threshold, per_rank, variants):
    """The same for one graph in so many parts a rank."""
    graph = GRAPHS[name]
    for more in variants:
        told = {"exchange": exchange, **more}
        session = session_of(world, graph, devices, per_rank, threshold, **told)
        for root in some_roots(graph, 3):
            compare(world, session, graph, int(root))
        used = session.describe()["exchange"]
        session.close()
    if world.rank == 0:
        print(name, per_rank, exchange, used, flush=True)


def brief(world, devices, exchange):
    """What takes less time, with a part on each device of this rank."""
    if exchange == "resident":
        check_resident(world, devices, BRIEF)
        return
    for name in BRIEF:
        check_parts(world, devices, exchange, name, 6, len(devices), VARIANTS)


RESIDENT = (
    {},
    {"internal_ids": True},
    {"parents": False},
    {"direction": "push"},
    {"direction": "pull"},
)


def compare(world, session, graph, root):
    """One search; every rank looks at all results."""
    found = session.search(root)
    level, parent = session.block(found)
    levels = np.concatenate(world.allgather(level))
    parents = None
    if parent is not None:
        parents = np.concatenate(world.allgather(parent))
    check_search(graph, root, levels, parents)


def search_for_ever(world, devices, exchange, what):
    """Search until rank 1 is gone."""
    if what == "memory" and world.rank == 1:
        cp = cuda.cupy()
        free = int(cp.cuda.runtime.memGetInfo()[0])
        held = cp.cuda.runtime.malloc(free - (200 << 20))
        assert held
    scale = 22 if what == "memory" else 20
    told = {"exchange": exchange}
    if exchange == "resident":
        told = {"resident": True}
    session = session_of(world, Kronecker(scale, 16, 1), devices, 1, 32, **told)
    session.search(3)
    if what == "kill" and world.rank == 1:
        threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGKILL)).start()
    if world.rank == 0:
        print("searching", flush=True)
    for _ in range(200_000):
        session.search(3)


def main():
    """Do what the command line says."""
    what, *exchanges = sys.argv[1:]
    world = start(grace=1)
    devices = take_devices(world, share=True)
    for exchange in exchanges:
        if what == "brief":
            brief(world, devices, exchange)
        elif what == "check" and exchange == "resident":
            check_resident(world, devices, GRAPHS)
        elif what == "check":
            check(world, devices, exchange)
        else:
            search_for_ever(world, devices, exchange, what)
        if world.rank == 0:
            print(f"{exchange} is right", flush=True)


if __name__ == "__main__":
    raise SystemExit(run_guarded(None, main))
