"""The Python interface: graphs through every door, searches by every engine on CPUs."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import networkx as nx
import numpy as np
import scipy.sparse as sp

import distbfs
from distbfs.engines.openmp import whole
from trials.checker import (
    Truth,
    Wrong,
    check_path,
    check_search,
    ended,
    equal,
)
from trials.shapes import draw_graph
from trials.trial import Trial

INTEGERS = ("int64", "int32", "uint32", "int16", "uint64", "uint8", ">i4")
LEVELS = ("int8", "int16", "int32")
SMALL = 4000  # vertices up to which each level may look at all of them
METHODS = {"openmp": ("", "fast", "push", "hybrid", "ordered"), "reference": ("",)}


def run(trial: Trial) -> None:
    """Make a graph and search it a few times."""
    truth = draw_graph(trial)
    door = trial.choose(edges, edges, scipy, networkx, dlpack)
    if truth.n and trial.seed % 8 == 5:
        door = file
    trial.note(door.__name__)
    graph, place = door(trial, truth)
    if trial.chance(0.1):
        graph = pickle.loads(pickle.dumps(graph))
    equal("form", graph.n, truth.n, "vertices of the graph")
    engines = ["auto", *METHODS["openmp"], "reference"]
    if truth.n > SMALL:
        engines.remove("reference")
    for _ in range(1 + trial.below(4) if truth.n else 0):
        search(trial, truth, graph, place, engines)


def search(
    trial: Trial, truth: Truth, graph: Any, place: np.ndarray, engines: list[str]
) -> None:
    """Search once and look at all that a result tells.

    place: of each vertex of the truth, its id in the graph
    engines: methods of openmp, "auto" or names of other engines
    """
    name = trial.choose(*engines)
    options: dict[str, Any] = {"engine": name}
    if name in METHODS["openmp"]:
        options = {"engine": "openmp", "method": name}
    ways = ("auto", "push") if name in ("push", "ordered") else ("auto", "push", "pull")
    options["direction"] = trial.choose("auto", *(ways if truth.n <= SMALL else ()))
    options["threads"] = trial.choose(0, 1, 1, 2, 3, 4)
    options["parents"] = parents = trial.chance(0.8)
    limit = trial.choose(None, None, None, 0, 1, 2, 5, truth.n, 1 << 62)
    targets = trial.vertices(truth.n, 4) if trial.chance(0.25) else None
    source = trial.below(truth.n)
    if trial.seed % 2:
        whole.SMALL = 0  # threads share the searches of all graphs
    names = range(truth.n) if graph.nodes is None else graph.nodes

    def name_of(vertex: int) -> Any:
        return names[int(place[vertex])]

    called = None if targets is None else [name_of(v) for v in targets]
    trial.note(f"from {source} ({name_of(source)!r}), {options}, {limit}, {targets}")
    result = distbfs.bfs(
        graph, name_of(source), depth_limit=limit, targets=called, **options
    )
    vertex = np.empty(truth.n, dtype=np.int64)
    vertex[place] = np.arange(truth.n)
    level, parent = result.to_numpy()
    equal(
        "form", str(result.level.dtype) in LEVELS, True, f"{result.level.dtype} levels"
    )
    equal("form", level.tolist(), result.level.tolist(), "levels")
    if parent is not None:
        if not ((parent >= -1) & (parent < truth.n)).all():
            raise Wrong("reached", f"parents outside of -1 to {truth.n - 1}")
        equal("form", parent.tolist(), result.parent.tolist(), "parents")
        parent = np.append(vertex, -1)[parent][place]
    level = level[place]
    check_search(
        truth, source, level, parent, parents=parents, limit=limit, targets=targets
    )
    wanted = ended(truth.levels(source), limit, targets)
    equal("count", result.reached, int((wanted >= 0).sum()), "reached")
    equal("count", result.depth, int(wanted.max()), "depth")
    depth = trial.below(result.depth + 2)
    at = {name_of(v) for v in np.flatnonzero(wanted == depth).tolist()}
    equal("frontier", set(result.frontier(depth).tolist()), at, f"level {depth}")
    if result.order is not None:
        order = vertex[result.order]
        equal("order", sorted(order), np.flatnonzero(wanted >= 0).tolist(), "vertices")
        equal("order", bool((np.diff(wanted[order]) >= 0).all()), True, "levels rise")
    if parents:
        equal("count", len(result.tree()), result.reached - 1, "edges of the tree")
        end = trial.choose(*np.flatnonzero(wanted >= 0).tolist())
        back = {name: k for k, name in enumerate(names)}
        way = [int(vertex[back[x]]) for x in result.path_to(name_of(end))]
        check_path(truth, way, source, end)
    trial.searches += 1


def array_of(trial: Trial, values: np.ndarray, kinds: tuple[str, ...]) -> np.ndarray:
    """Return integers in any dtype that holds them, strided, reversed or read-only."""
    top = int(values.max(initial=0))
    array = values.astype(trial.choose(*[k for k in kinds if top <= np.iinfo(k).max]))
    layout = trial.below(5)
    if layout == 1:
        array = np.repeat(array, 2)[::2]
    elif layout == 2:
        array = array[::-1].copy()[::-1]
    elif layout == 3:
        array = np.stack([array, array], axis=1)[:, 1]
    elif layout == 4:
        array.flags.writeable = False
    trial.note(f"{array.dtype}, layout {layout}")
    return array


def edges(trial: Trial, truth: Truth) -> tuple[Any, np.ndarray]:
    """Make a graph of two arrays or lists."""
    src, dst = (array_of(trial, truth.pairs[:, k], INTEGERS) for k in (0, 1))
    n = truth.n
    if len(src) and n == truth.pairs.max() + 1 and trial.chance(0.5):
        n = None
    ends = (src.tolist(), dst.tolist()) if trial.chance(0.2) else (src, dst)
    made = distbfs.Graph.from_edges(*ends, n=n, directed=truth.directed)
    return made, np.arange(truth.n)


def dlpack(trial: Trial, truth: Truth) -> tuple[Any, np.ndarray]:
    """Make a graph of arrays that speak DLPack, which knows this machine's order."""
    kinds = tuple(kind for kind in INTEGERS if kind[0] != ">")
    src, dst = (array_of(trial, truth.pairs[:, k], kinds) for k in (0, 1))
    ends = [x if x.flags.writeable else x.copy() for x in (src, dst)]
    made = distbfs.Graph.from_dlpack(*ends, n=truth.n, directed=truth.directed)
    return made, np.arange(truth.n)


def file(trial: Trial, truth: Truth) -> tuple[Any, np.ndarray]:
    """Make a graph of a file, whose vertices have the ids that the file gives them."""
    matrix = trial.chance(0.5) or not len(truth.pairs)
    first = 1 if matrix else trial.choose(0, 1)
    head = "%%MatrixMarket matrix coordinate pattern general\n"
    head += f"{truth.n} {truth.n} {len(truth.pairs)}\n"
    lines = [f"{u} {v}\n" for u, v in (truth.pairs + first).tolist()]
    text = "".join([head * matrix, *lines])
    path = trial.write("drawn.mtx" if matrix else "drawn.txt", text.encode())
    options: dict[str, Any] = {"directed": truth.directed}
    if not matrix:
        options |= {"one_based": bool(first), "format": "edge-list", "n": truth.n}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = distbfs.Graph.from_file(path, **options)
    ids = list(range(first, first + truth.n))
    equal("form", list(graph), ids, "ids of the file")
    return graph, np.arange(truth.n)


def scipy(trial: Trial, truth: Truth) -> tuple[Any, np.ndarray]:
    """Make a graph of a sparse matrix or array, with any values, sorted or not."""
    u, v = truth.pairs.T
    n = truth.n
    values = trial.rng.integers(0, 3, len(u)).astype(trial.choose("i1", "f4", "f8"))
    form = trial.choose("csr", "csr", "csc", "coo", "raw", "raw", "lil")
    kind = trial.choose("matrix", "array")
    if form == "raw":  # rows in the order of the tuples, repeats and all
        order = np.argsort(u, kind="stable")
        offsets = np.append(0, np.cumsum(np.bincount(u, minlength=n)))
        wide = trial.choose(np.int32, np.int64)
        parts = values[order], v[order].astype(wide), offsets.astype(wide)
        made = getattr(sp, f"csr_{kind}")(parts, shape=(n, n))
    else:
        held = values if form in ("coo", "csr", "csc") else np.ones(len(u))
        made = getattr(sp, f"coo_{kind}")((held, (u, v)), shape=(n, n)).asformat(form)
    trial.note(f"{form}_{kind} {made.dtype}")
    before = made.copy()
    graph = distbfs.Graph.from_scipy(made, directed=truth.directed)
    if form == "raw":
        equal("input", made.indices.tolist(), before.indices.tolist(), "the matrix")
    return graph, np.arange(n)


def networkx(trial: Trial, truth: Truth) -> tuple[Any, np.ndarray]:
    """Make a graph of a NetworkX graph whose nodes have any names and order."""
    kinds = (
        (nx.DiGraph, nx.MultiDiGraph) if truth.directed else (nx.Graph, nx.MultiGraph)
    )
    made = trial.choose(*kinds)()
    names: list[Any] = list(range(truth.n))
    naming = trial.below(4)
    if naming == 1:
        names = [f"n{k}" for k in names]
    elif naming == 2:
        names = [(k, "x") if k % 3 else float(k) + 0.5 for k in names]
    elif naming == 3:
        names = [k - truth.n // 2 for k in names]
    order = np.arange(truth.n) if trial.chance(0.4) else trial.rng.permutation(truth.n)
    made.add_nodes_from(names[k] for k in order)
    made.add_edges_from((names[u], names[v]) for u, v in truth.pairs.tolist())
    place = np.empty(truth.n, dtype=np.int64)
    place[order] = np.arange(truth.n)
    return distbfs.Graph.from_networkx(made), place
