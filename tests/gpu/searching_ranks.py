"""Ranks that search parts on their devices, one of which may fail; see the test.

mpiexec -n 2 python tests/gpu/searching_ranks.py check nccl host domain first
... brief HOW    fewer graphs; a part on each device
... kill HOW     rank 1 is killed while all search
... stall HOW    rank 1 is stopped while all search, which a watch sees
... memory HOW   rank 1 finds its device full
"""

import os
import signal
import sys
import threading
import time
from functools import cache
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE.parents[1]), str(HERE.parent), str(HERE)]

from directed_hosts import arcs_of  # noqa: E402
from fast_graphs import beside, path, shuffled, star  # noqa: E402
from graphs import (  # noqa: E402
    build,
    check_search,
    grid,
    kronecker,
    random_tuples,
    some_roots,
    uniform,
)
from sessions import open_tuples  # noqa: E402

from distbfs.device import cuda  # noqa: E402
from distbfs.errors import ResourceError  # noqa: E402
from distbfs.exchange.device_choice import take_devices  # noqa: E402
from distbfs.generate.kronecker import Kronecker  # noqa: E402
from distbfs.multisearch.apps import betweenness  # noqa: E402
from distbfs.multisearch.base import RunOptions  # noqa: E402
from distbfs.multisearch.problem import Problem, State  # noqa: E402
from distbfs.multisearch.searchers import PartsSearcher  # noqa: E402
from distbfs.ranks.watch import Watch  # noqa: E402
from distbfs.ranks.world import run_guarded, start  # noqa: E402
from distbfs.search.choose import Request  # noqa: E402
from distbfs.service.shared_traversal import MOST, batch_searcher  # noqa: E402
from distbfs.store.whole import NO_DELEGATES  # noqa: E402

GRAPHS = {
    "kronecker": kronecker(12),
    "uniform": uniform(3000, 20_000),
    "hub": shuffled(beside(star(3000), uniform(2000, 5000))),
    "path": shuffled(path(300)),
    "grid": grid(40),
    "random": random_tuples(900, 1200, 5),
    "arcs": arcs_of(kronecker(11)),
}
LEVELS = Problem(
    "levels and sums",
    (
        State("level", "int16", "pair", -1),
        State("reached", "int64", "search"),
        State("reached_from", "int64", "vertex"),
        State("harmonic_from", "float64", "vertex"),
    ),
    bits=True,
)
LOSSES = {"kill": signal.SIGKILL, "stall": signal.SIGSTOP}
PATIENCE = 3.0  # seconds
BRIEF = ("kronecker", "random", "arcs")
WHOLE = ("domain", "first")  # ways without an exchange
SEVERAL = ("pairs", "uneven", "launched")  # domains of several devices
STREAMS = ("streams", "streamed pairs")  # of ranks with several devices, by NCCL
THRESHOLDS = (0, 6, 40, 1 << 30)
SEVERAL_VARIANTS = (
    {},
    {"parents": False},
    {"direction": "push"},
    {"direction": "pull"},
)
VARIANTS = (
    *SEVERAL_VARIANTS[1:],
    {"mask_reduce": "nonblocking"},
    {"local_all2all": True},
    {"engine": "pan"},
    {"engine": "pan", "parents": False},
    {"engine": "pan", "local_all2all": True, "uniquify": True},
)


def session_of(world, source, how, parts, threshold, engine="xbfs", **options):
    """The session of a graph on the devices of these ranks.

    how: "domain", the devices of all ranks together; "first", that of rank 0; level by
    level in domains of two devices, "pairs", or "uneven", of two and one of a process,
    or of one less than all ranks and one; "launched", in domains of two in one launch
    on each device; "streams", in domains of one device, or "streamed pairs", of two, of
    ranks that may have several; or the exchange between so many parts
    """
    request = Request(parts, "--parts")
    if how in STREAMS:
        request = Request(domain=1 + STREAMS.index(how))
        options = {"exchange": "nccl", **options}
    elif how in SEVERAL:
        request = Request(domain=2)
        if how == "uneven" and world.size == 1:
            request = Request(devices=[0, 1, 2], domain=2)
        elif how == "uneven":
            request = Request(devices=[world.rank])
            world.hosts = ["a"] * (world.size - 1) + ["b"]
        options = {"exchange": "nvshmem" if how == "launched" else "host", **options}
    elif how in WHOLE:
        devices = None
        if how == "domain":
            devices = world.size * len(take_devices(world, share=True))
        request = Request(domain=devices)
    else:
        options = {"exchange": how, **options}
    return open_tuples(
        source,
        world=world,
        request=request,
        threshold=threshold,
        directed=getattr(source, "directed", False),
        engine=engine,
        share_device=True,
        **options,
    )


def check_whole(world, how, names):
    """Compare searches of one domain with the reference."""
    for k, name in enumerate(names):
        graph = GRAPHS[name]
        for more in ({}, WHOLE_VARIANTS[k % len(WHOLE_VARIANTS)]):
            session = session_of(world, graph, how, None, None, **more)
            for root in some_roots(graph, 4):
                compare(world, session, graph, int(root))
            if how == "domain" and not more:
                compare_many(world, session, graph)
                compare_together(session, graph)
            session.close()
        if world.rank == 0:
            print(name, how, session.why, flush=True)


def check(world, exchange, names, per_rank, first):
    """Compare levels with the reference, and parents by their levels.

    Each graph meets two TH, at one of them a variant; TH, numbers of parts and variants
    take turns.

    first: variant
    """
    for at, name in enumerate(names):
        graph = GRAPHS[name]
        others = VARIANTS[(first + at) % len(VARIANTS)]
        if graph.directed and others.get("engine") == "pan":
            others = {"direction": "pull"}
        thresholds = (at, at + 1 + at // len(THRESHOLDS))
        for turn, (k, more) in enumerate(zip(thresholds, ({}, others), strict=True)):
            threshold = THRESHOLDS[k % len(THRESHOLDS)]
            parts = per_rank[(at + turn) % len(per_rank)] * world.size
            session = session_of(world, graph, exchange, parts, threshold, **more)
            for root in some_roots(graph, 3):
                compare(world, session, graph, int(root))
            if not more:
                compare_many(world, session, graph)
            used = session.describe()["exchange"]
            session.close()
            if world.rank == 0:
                print(name, parts // world.size, exchange, used, flush=True)


def check_several(world, how, names):
    """Compare searches of domains of several devices with the reference."""
    for at, name in enumerate(names):
        graph = GRAPHS[name]
        for k, threshold in enumerate(THRESHOLDS):
            more = SEVERAL_VARIANTS[(at + k) % len(SEVERAL_VARIANTS)]
            session = session_of(world, graph, how, None, threshold, **more)
            for root in some_roots(graph, 4):
                compare(world, session, graph, int(root))
            if not more:
                compare_many(world, session, graph)
            session.close()
        if world.rank == 0:
            print(name, how, session.why, flush=True)


def check_all(world, how, names, per_rank, first=0):
    """Compare in the way that fits, with the variants from the first on."""
    if how in (*SEVERAL, *STREAMS):
        check_several(world, how, names)
    elif how in WHOLE:
        check_whole(world, how, names)
    else:
        check(world, how, names, per_rank, first)


WHOLE_VARIANTS = (
    {"internal_ids": True},
    {"parents": False},
    {"direction": "push"},
    {"direction": "pull"},
)


@cache
def distances(graph, root):
    """Levels by the reference."""
    return graph.distances(root)


def dependencies(graph, sources):
    """Sums of Brandes' dependencies by the kernel for CPUs, float64 [n]."""
    [part], _ = build(graph, 1, threshold=NO_DELEGATES, directed=graph.directed)
    return betweenness.dependencies(part, sources, RunOptions())


def compare(world, session, graph, root):
    """One search; every rank looks at all results."""
    found = session.search(root)
    level, parent = found.to_numpy()
    levels = np.concatenate(world.allgather(level))
    parents = None
    if parent is not None:
        parents = np.concatenate(world.allgather(parent))
    wanted = check_search(graph, root, levels, parents)
    assert (found.reached, found.depth) == ((wanted >= 0).sum(), wanted.max())
    assert found.nedge == graph.ends[wanted >= 0].sum() // 2


def compare_many(world, session, graph):
    """Traversals of many searches, of two widths; rank 0 has all levels."""
    on = PartsSearcher(session, RunOptions())
    assert on.smallest == 512, "they take turns"
    for count in (9, 140):
        sources = np.random.default_rng(count).integers(0, graph.n, count)
        results = on.run(LEVELS, sources)
        wanted = np.stack([distances(graph, root) for root in sources.tolist()])
        reached = wanted >= 0
        np.testing.assert_array_equal(results["reached"], reached.sum(axis=1))
        np.testing.assert_array_equal(results["reached_from"], reached.sum(axis=0))
        near = np.divide(1, wanted, out=np.zeros(wanted.shape), where=wanted > 0)
        np.testing.assert_allclose(results["harmonic_from"], near.sum(axis=0), 1e-12)
        if world.rank == 0:
            np.testing.assert_array_equal(results["level"], wanted)
    sources = np.random.default_rng(1).permutation(graph.n)[:40]
    sums = on.dependencies(sources)
    np.testing.assert_allclose(sums, dependencies(graph, sources), 1e-9, 1e-9)


def compare_together(session, graph):
    """Searches that share a traversal; every rank has all levels."""
    at_once = batch_searcher(session)
    sources = np.random.default_rng(1).permutation(graph.n)[:MOST].tolist()
    asked = [(root, list(range(graph.n))) for root in sources]
    for _ in range(2):
        _, answers = at_once.levels(asked, lambda: False)
        for (root, _), levels in zip(asked, answers, strict=True):
            np.testing.assert_array_equal(levels, graph.distances(root))


def tell_loss():
    """Print when this rank is lost."""
    print(f"lost at {time.monotonic():.3f}", flush=True)
    time.sleep(0.1)  # so that the launcher has read it


def end_this_rank(by):
    """Tell when, and be killed or stopped by a signal."""
    tell_loss()
    os.kill(os.getpid(), by)


def search_for_ever(world, how, what):
    """Search until rank 1 is gone, or silent for the patience of the others."""
    if what == "memory" and world.rank == 1:
        cuda.free_bytes = lambda: 200 << 20  # a full one would fail other tests, too
    scale = 22 if what == "memory" else 20
    parts = None if how in WHOLE else world.size
    try:
        session = session_of(world, Kronecker(scale, 16, 1), how, parts, 32)
    except ResourceError:
        tell_loss()
        raise
    session.search(3)
    if what in LOSSES and world.rank == 1:
        threading.Timer(1.0, end_this_rank, [LOSSES[what]]).start()
    if world.rank == 0:
        print("searching", flush=True)
    with Watch(world, PATIENCE if what == "stall" else None, lambda: False):
        for _ in range(200_000):
            session.search(3)


def main():
    """Do what the command line says."""
    what, *ways = sys.argv[1:]
    world = start(grace=1)
    take_devices(world, share=True)
    for at, how in enumerate(ways):
        if what == "brief":
            check_all(world, how, BRIEF, [len(take_devices(world, share=True))])
        elif what == "check":
            check_all(world, how, GRAPHS, [1, 2], 3 * at)
        else:
            search_for_ever(world, how, what)
        if world.rank == 0:
            print(f"{how} is right", flush=True)


if __name__ == "__main__":
    raise SystemExit(run_guarded(None, main))
