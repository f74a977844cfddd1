"""Puts a fault into the package where CAMPAIGN_FAULT names one."""
# ruff: noqa: PLC0415, C901

import os
import signal
import time
from dataclasses import replace


def engine_fault(name):
    """Let engine reference give wrong results of whole graphs."""
    import numpy as np

    from distbfs.engines.reference import ReferenceEngine, ReferenceWhole

    answer, whole = ReferenceWhole.answer, ReferenceEngine.whole

    def wrong(self, root, query):
        result = answer(self, root, query)
        level, parent = result.level.copy(), result.parent
        parent = None if parent is None else parent.copy()
        deep = np.flatnonzero(level > 1)
        other = np.flatnonzero(level < 0)
        if name == "level" and len(deep):
            level[deep[0]] += 1
        elif name == "form":
            level = level.astype(np.int64)
        elif parent is None:
            pass
        elif name == "source" and len(deep):
            parent[root] = parent[deep[0]]
        elif name == "reached" and len(other):
            parent[other[-1]] = root
        elif name == "step" and len(deep):
            parent[deep[-1]] = root
        elif name == "edge":
            give_far_parent(self._part, level, parent)
        return replace(result, level=level, parent=parent)

    def give_far_parent(part, level, parent):
        """Give a vertex a parent of the right level to which no edge leads."""
        number = np.empty(part.layout.n, dtype=np.int64)
        number[part.vertices] = np.arange(part.layout.n)
        for child in np.flatnonzero(level > 0).tolist():
            row = number[child]
            near = part.pulled.columns[
                int(part.pulled.offsets[row]) : int(part.pulled.offsets[row + 1])
            ]
            above = np.flatnonzero(level == level[child] - 1)
            far = np.setdiff1d(above, part.vertices[near])
            if len(far):
                parent[child] = far[0]
                return

    def without_an_edge(self, part):
        columns = part.nn.columns.copy()
        if len(columns):  # a loop in the place of the last edge of a vertex
            row = int(np.searchsorted(part.nn.offsets, len(columns) - 1, "right")) - 1
            columns[-1] = row
        return whole(self, replace(part, nn=replace(part.nn, columns=columns)))

    if name == "lost":
        ReferenceEngine.whole = without_an_edge
    else:
        ReferenceWhole.answer = wrong


def session_fault(name):
    """Let sessions end searches elsewhere, or keep no copies."""
    from distbfs.search import result_arrays
    from distbfs.search.session import Session

    until = Session._until

    def wrong(self, depth_limit, targets):
        if name == "limit" and depth_limit is not None:
            depth_limit += 1
        if name == "target" and targets is not None:
            targets = list(targets)[:-1]
        return until(self, depth_limit, targets)

    Session._until = wrong
    if name == "kept":
        result_arrays.copied = lambda array: array


def raise_in_search(*_, **__):
    raise RuntimeError("a fault")


def put(name):
    """Put the fault into the package."""
    if name == "count":
        from distbfs.search.result import Result

        nedge = Result.nedge.fget
        Result.nedge = property(lambda self: nedge(self) + 1)
    elif name in ("error", "crash", "time"):
        from distbfs.search.graph import Graph

        ends = {
            "error": raise_in_search,
            "crash": lambda *_, **__: os.kill(os.getpid(), signal.SIGSEGV),
            "time": lambda *_, **__: time.sleep(999),
        }
        Graph._session = ends[name]
    elif name in ("limit", "target", "kept"):
        session_fault(name)
    elif name == "turn":
        from distbfs.locks import ForkLock

        ForkLock.__enter__ = ForkLock.__exit__ = lambda *_: None
    elif name == "order":
        from distbfs.networkx_backend.graph import BackendGraph

        edges = BackendGraph.tree_edges
        BackendGraph.tree_edges = lambda self, *a, **k: iter(
            sorted(edges(self, *a, **k), key=str)
        )
    elif name == "betweenness":
        from distbfs.multisearch.apps import betweenness

        scaled = betweenness.scaled
        betweenness.scaled = lambda *a, **k: scaled(*a, **k) * 1.0001
    elif name == "refusal":
        from distbfs.search import graph as library

        library.check_ends = lambda src, dst, n: library.HeldTuples(src, dst, n or 9)
    elif name == "digest":
        from distbfs.store import chunks

        def unchecked(dataset, name, digest, place=None):
            values = dataset[:]
            if place is not None:
                out = place(0, len(values))
                out[:] = values
                values = out
            yield 0, values

        chunks.slices = unchecked
    elif name == "export":
        from distbfs.store.tuples import StoreTuples

        edges = StoreTuples.edges
        StoreTuples.edges = lambda self: (pairs[:-1] for pairs in edges(self))
    else:
        engine_fault(name)


if os.environ.get("CAMPAIGN_FAULT"):
    put(os.environ["CAMPAIGN_FAULT"])
