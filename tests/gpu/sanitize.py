"""One search of each kind on small graphs, for compute-sanitizer.

Usage: sanitize.py [--list] [KIND[:GRAPH] ... | -KIND ...]; without kinds, all but
``sweep``; with -KIND, without this one, too; without a graph, all of them; with --list,
what there is to run, a line each.  Each array has an allocation of its own, so that the
first byte beyond it is found.
"""

import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from device_graphs import HostGraph  # noqa: E402
from device_parts import check, device_parts, driver_of  # noqa: E402
from fast_graphs import (  # noqa: E402
    HUGE,
    beside,
    chained,
    fault,
    graphs,
    host,
    path,
    roots_of,
    shuffled,
    star,
    untils,
    wanted_levels,
)
from graphs import complete, grid, kronecker, uniform  # noqa: E402
from resident_parts import NOTHING  # noqa: E402

from distbfs.build.cuda.graph import build  # noqa: E402
from distbfs.build.cuda.parts import construct_on_devices  # noqa: E402
from distbfs.build.cuda.room import LEAST_KEPT, Fit, Room  # noqa: E402
from distbfs.device import cuda  # noqa: E402
from distbfs.engines.base import WholeResult  # noqa: E402
from distbfs.engines.cuda.common.graph_engine import GraphEngine  # noqa: E402
from distbfs.engines.cuda.papers.xbfs import search as paper_search  # noqa: E402
from distbfs.engines.cuda.papers.xbfs.search import PaperSearch  # noqa: E402
from distbfs.engines.cuda.xbfs.cluster import ClusterSearch  # noqa: E402
from distbfs.engines.cuda.xbfs.search import FastSearch  # noqa: E402
from distbfs.generate.cuda import device_tuples  # noqa: E402
from distbfs.generate.kronecker import Kronecker  # noqa: E402
from distbfs.generate.road import Road  # noqa: E402
from distbfs.options import BuildOptions, Knobs, SearchOptions  # noqa: E402
from distbfs.partition.layout import Placement  # noqa: E402
from distbfs.ranks.world import SoloWorld  # noqa: E402
from distbfs.registry import ENGINES, lookup  # noqa: E402
from distbfs.store.cuda_graph import graph_of_store  # noqa: E402
from distbfs.store.hdf5 import open_store  # noqa: E402
from distbfs.store.write import write_graph  # noqa: E402
from distbfs.validation.cuda import validate_on_device  # noqa: E402

BLOCKS = 4  # of a grid: all have their turn soon, however slow each is

GRAPHS = {
    "kronecker": lambda: kronecker(9),
    "hub": lambda: shuffled(beside(star(3001), uniform(500, 1500))),
    "late": lambda: chained(complete(60), path(9), complete(90), path(5)),
    "grid": lambda: beside(grid(12), complete(40)),
    "cluster": lambda: shuffled(grid(7)),
}


def right(what, said):
    if said is not None:
        sys.exit(f"{what}: {said}")


def fast(name, **options):
    in_ids = options.get("in_ids", True)
    for graph, make in GRAPHS.items():
        made = HostGraph(make())
        search = FastSearch(made.graph, **options)
        for root, records in ((0, False), (int(made.vertices[-1]), True)):
            found = search.search(root, records=records)
            right(f"{name}, {graph}", fault(made, root, found, in_ids=in_ids))


def pulls(name):
    for overrides in (
        {"pull_edges": 20, "tile": 8, "hub_words": 0},
        {"mark_edges": 20, "pull_edges": HUGE, "hub_words": 4},
    ):
        fast(name, overrides=overrides)
        fast(name, overrides=overrides, in_ids=False)


def tails(name):
    """Rows with tails in host memory, each way of reading them."""
    ways = (
        {},
        {"mark_edges": 0, "pull_edges": HUGE},
        {"mark_edges": HUGE, "pull_edges": HUGE},
        {"pull_edges": 0},
        {"pull_tails": 1},
    )
    for graph, make in GRAPHS.items():
        made = HostGraph(make())
        roots = (0, int(made.vertices[-1]))
        for kept in (8, 20):
            split = made.split(kept)
            for in_ids in (True, False):
                for overrides in ways:
                    search = FastSearch(split, in_ids=in_ids, overrides=overrides)
                    for root, records in zip(roots, (False, True), strict=True):
                        result = search.search(root, records=records)
                        said = fault(made, root, result, in_ids=in_ids)
                        right(f"{name}, {graph}, {kept}, {overrides}", said)


def ends(name):
    """By method fast and by one cluster, to levels and targets."""
    for graph, make in GRAPHS.items():
        made = HostGraph(make())
        root = int(made.vertices[-1])
        for options in ({}, {"in_ids": False}):
            in_ids = options.get("in_ids", True)
            search = FastSearch(made.graph, **options)
            for until in untils(wanted_levels(made, root), root):
                found = search.search(root, until=until)
                said = fault(made, root, found, in_ids=in_ids, until=until)
                right(f"{name}, {graph}, {until}", said)


def cluster(name):
    cp = cuda.cupy()
    for source in (grid(9), shuffled(path(50)), shuffled(grid(6))):
        made = HostGraph(source)
        level = cp.zeros(source.n, cp.int32)
        parent = cp.zeros(source.n, cp.int32)
        search = ClusterSearch(made.graph, level, parent, in_ids=True)
        for root in (0, source.n - 1):
            depth, seconds, complete_ = search.search(root)
            right(name, None if complete_ else "gave up")
            found = WholeResult(level, parent, depth + 1, seconds)
            right(name, fault(made, root, found))


def paper(name):
    paper_search.MAX_BLOCKS = 1
    for graph in ("kronecker", "hub"):
        made = HostGraph(GRAPHS[graph]())
        search = PaperSearch(made.graph)
        for root in (0, made.active - 1):
            made.check(root, search.search(root))


def builds(name):
    for source in (Kronecker(8, 8, 1), Road(600), host("random").source):
        build(source)
        build(source, wide=True)


def validation(name):
    for source in (Kronecker(8, 8, 1), Road(600)):
        graph = build(source)
        search = FastSearch(graph)
        for root in (0, source.n // 2):
            found = search.search(root)
            tuples = device_tuples(source)
            told = validate_on_device(tuples, root, found.level, found.parent)
            right(name, None if told.valid else told.errors)


def stores(name):
    """Stores of one part and of three, whole and in passes."""
    source = kronecker(9)
    with tempfile.TemporaryDirectory() as folder:
        for parts in (1, 3):
            path = Path(folder) / str(parts)
            options = BuildOptions(threshold=8, permute_seed=2 if parts > 1 else None)
            write_graph(SoloWorld(), source, path, parts, options)
            wanted = build(source).m
            for buffer_bytes in (None, 1 << 15):
                made = graph_of_store(open_store(path), buffer_bytes=buffer_bytes)
                right(name, None if made.m == wanted else f"{made.m}, not {wanted}")
            built = Path(folder) / f"{parts} by a device"
            write_graph(SoloWorld(), source, built, parts, options, devices=[0])
            made = graph_of_store(open_store(built))
            right(name, None if made.m == wanted else f"{made.m}, not {wanted}")


def sweep(name):
    """Every graph of the tests, each direction and some thresholds."""
    options = [{"direction": way} for way in ("auto", "push", "pull")]
    options += [{"overrides": {"pull_edges": 20}}, {"overrides": {"mark_edges": 20}}]
    wrong = 0
    for graph in graphs():
        made = host(graph)
        for in_ids in (True, False):
            for given in options:
                search = FastSearch(made.graph, in_ids=in_ids, **given)
                for root in roots_of(made, 2):
                    for records in (False, True):
                        found = search.search(root, records=records)
                        said = fault(made, root, found, in_ids=in_ids)
                        if said is not None:
                            wrong += 1
                            print(f"{graph}, {root=}, {in_ids=}, {given}: {said}")
        print(f"{name}, {graph}: done", flush=True)
    right(name, f"{wrong} wrong" if wrong else None)


def engines():
    """(name, class) of the engines for whole graphs, without bfs4k."""
    kinds = {engine: lookup(ENGINES, "engine", engine) for engine in ENGINES}
    kinds.pop("bfs4k")
    return [item for item in kinds.items() if issubclass(item[1], GraphEngine)]


def bfs4k(name):
    """Engine bfs4k, by knobs that force each way, and ended by depths and targets.

    Threads race for the entries of its hash table (bfs4k_repeats.cuh), as published:
    racecheck says so.
    """
    only = [("bfs4k", lookup(ENGINES, "engine", "bfs4k"))]
    forced = Knobs(k4=0, k5=0, k1=2), Knobs(k4=1, k5=0), Knobs(k2=5, k3=1)
    for way in ({}, *({"knobs": knobs} for knobs in forced)):
        by_engines(name, only, **way)
    until(name, only)


def between(name):
    """Parts between domains, both engines, by each direction."""
    for make in GRAPHS.values():
        source = make()
        for engine in ("xbfs", "pan"):
            for direction in ("auto", "push", "pull"):
                placed = device_parts(source, 2, threshold=12)
                driver = driver_of(placed, engine=engine, direction=direction)
                for root in (0, source.n - 1):
                    check(driver, source, root)


def tails_between(name):
    """Parts between domains whose rows have tails in host memory."""
    most, Fit.most = Fit.most, lambda _: LEAST_KEPT
    room = Room(None, None, NOTHING)
    for make in GRAPHS.values():
        source = make()
        placed, _ = construct_on_devices(
            source, SoloWorld(), Placement(2, 1), BuildOptions(12), room=room
        )
        for direction in ("auto", "push", "pull"):
            driver = driver_of(placed, "xbfs", room, direction=direction)
            for root in (0, source.n - 1):
                check(driver, source, root)
            driver.close()
    Fit.most = most


def by_engines(name, those=None, **way):
    for engine, kind in those or engines():
        for method in kind.methods:
            options = SearchOptions.named(engine=engine, method=method, **way)
            for graph, make in GRAPHS.items():
                made = HostGraph(make())
                search = kind(options).on_graph(made.graph)
                for records in (False, True):
                    found = search.search(0, records=records)
                    right(f"{name}, {engine}, {graph}", fault(made, 0, found))


def until(name, those=None):
    """Engines for whole graphs, ended by depths and targets."""
    for engine, kind in those or engines():
        for method in kind.methods:
            options = SearchOptions(engine=engine, method=method)
            for graph, make in GRAPHS.items():
                made = HostGraph(make())
                search = kind(options).on_graph(made.graph)
                for end in untils(wanted_levels(made, 0), 0):
                    found = search.search(0, until=end)
                    said = fault(made, 0, found, until=end)
                    right(f"{name}, {engine}, {graph}, {end}", said)


KINDS = {
    "engines": by_engines,
    "engines-until": until,
    "bfs4k": bfs4k,
    "fast-ids": fast,
    "fast-numbers": lambda name: fast(name, in_ids=False),
    "fast-push": lambda name: fast(name, direction="push"),
    "fast-pull": lambda name: fast(name, direction="pull"),
    "fast-forced": pulls,
    "fast-until": ends,
    "tails": tails,
    "tails-between": tails_between,
    "between": between,
    "cluster": cluster,
    "paper": paper,
    "build": builds,
    "store": stores,
    "validate": validation,
    "sweep": sweep,
}


ONCE = {
    "cluster",
    "paper",
    "store",
    "build",
    "validate",
    "sweep",
}  # graphs of their own


def wanted(names):
    """The kinds that are asked for, each with one graph where it is run on several."""
    without = {"sweep", *(name[1:] for name in names if name[0] == "-")}
    names = [name for name in names if name[0] != "-"]
    asked = [name.partition(":")[0] for name in names]
    unknown = [name for name in (*asked, *without) if name not in KINDS]
    if unknown:
        sys.exit(f"unknown kind {unknown[0]}; allowed: {', '.join(KINDS)}")
    for name in names or [name for name in KINDS if name not in without]:
        if ":" in name or name in ONCE:
            yield name
        else:
            yield from (f"{name}:{graph}" for graph in GRAPHS)


def main(names):
    listing = "--list" in names
    kinds = list(wanted([name for name in names if name != "--list"]))
    if listing:
        print(*kinds, sep="\n")
        return
    cuda.cupy().cuda.set_allocator(None)
    cuda.multiprocessors = lambda: BLOCKS
    search(kinds)


def search(kinds):
    """Run kinds, each with the graph that it names or with all, and say so."""
    every = dict(GRAPHS)
    for name in kinds:
        kind, _, only = name.partition(":")
        GRAPHS.clear()
        GRAPHS.update({only: every[only]} if only else every)
        begin = time.monotonic()
        KINDS[kind](name)
        print(f"{time.monotonic() - begin:.0f} s, {name}: right", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
