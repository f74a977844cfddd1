"""What a search must find, by a textbook search; shares no code with distbfs.

Rules:
    form     levels are int32 [n], parents int64 [n] or left out as asked
    level    the level of each vertex is its distance, -1 where it is not reached
    source   the source is its own parent
    reached  a parent is -1 exactly where the level is
    step     a parent is one level nearer to the source
    edge     an edge leads from the parent to the vertex
    count    reached, depth and nedge are those counted from the tuples
"""

from __future__ import annotations

from collections import deque
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np


class Wrong(Exception):  # noqa: N818
    """An answer breaks a rule."""

    def __init__(self, rule: str, text: str) -> None:
        super().__init__(f"{rule}: {text}")
        self.rule = rule


class Truth:
    """A graph as the tuples that it was made of.

    n: vertices; pairs: int64 [k, 2], loops and repeats too
    directed: whether a tuple leads from its first end to its second alone
    """

    def __init__(self, n: int, pairs: Any, directed: bool = False) -> None:
        self.n, self.directed = int(n), directed
        self.pairs = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
        self._levels: dict[int, np.ndarray] = {}

    def __repr__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        return f"{kind}, {self.n} vertices, {len(self.pairs)} tuples"

    @cached_property
    def neighbours(self) -> list[list[int]]:
        """Where the edges out of each vertex lead."""
        lists: list[list[int]] = [[] for _ in range(self.n)]
        for u, v in self.pairs.tolist():
            lists[u].append(v)
            if not self.directed:
                lists[v].append(u)
        return lists

    @cached_property
    def codes(self) -> np.ndarray:
        """Every edge u -> v as u * n + v, rising."""
        u, v = self.pairs.T
        codes = u * self.n + v
        if not self.directed:
            codes = np.concatenate([codes, v * self.n + u])
        return np.unique(codes)

    @property
    def simple(self) -> set[tuple[int, int]]:
        """Edges without loops and repeats; u < v where they are undirected."""
        pairs = [(u, v) for u, v in self.pairs.tolist() if u != v]
        if self.directed:
            return set(pairs)
        return {(min(pair), max(pair)) for pair in pairs}

    def levels(self, source: int) -> np.ndarray:
        """Return distances from a vertex, -1 where there is no path."""
        if source not in self._levels:
            level = [-1] * self.n
            level[source] = 0
            queue = deque([source])
            while queue:
                u = queue.popleft()
                for v in self.neighbours[u]:
                    if level[v] < 0:
                        level[v] = level[u] + 1
                        queue.append(v)
            self._levels[source] = np.array(level, dtype=np.int64)
        return self._levels[source]

    def nedge(self, source: int) -> int:
        """Return the tuples that a search goes through, as Graph500 counts."""
        return self.nedge_of(self.levels(source))

    def nedge_of(self, level: np.ndarray) -> int:
        """Return the same of levels of a search that may have ended early.

        A tuple of which one end alone was reached counts half, the sum rounded down.
        """
        reached = level >= 0
        u, v = self.pairs.T
        if self.directed:
            return int(reached[u].sum())
        return (int(reached[u].sum()) + int(reached[v].sum())) // 2

    def linked(self, u: int, v: int) -> bool:
        """Return whether an edge leads from one vertex to another."""
        return v in self.neighbours[u]

    def turned(self) -> Truth:
        """Return the graph with every edge turned round."""
        return Truth(self.n, self.pairs[:, ::-1], self.directed)

    def text(self) -> str:
        """Return the graph as lines: what it is, then a tuple each."""
        lines = [f"{u} {v}" for u, v in self.pairs.tolist()]
        return "\n".join([f"# {self!r}", *lines]) + "\n"


def ended(level: np.ndarray, limit: int | None, targets: Any = None) -> np.ndarray:
    """Return levels of a search that ends at a level or with the last target."""
    last = limit
    if targets is not None and len(targets):
        ends = level[list(targets)]
        if (ends >= 0).all():
            last = int(ends.max()) if last is None else min(last, int(ends.max()))
    return level if last is None else np.where(level > last, -1, level)


def check_counts(truth: Truth, source: int, counts: dict[str, Any]) -> None:
    """Raise Wrong unless reached, depth and nedge are those of a search."""
    level = truth.levels(source)
    wanted = {
        "reached": int((level >= 0).sum()),
        "depth": int(level.max()),
        "nedge": truth.nedge(source),
    }
    for name in wanted.keys() & counts.keys():
        if counts[name] != wanted[name]:
            raise Wrong(
                "count", f"{name} is {counts[name]}, not {wanted[name]}, from {source}"
            )


def check_search(
    truth: Truth,
    source: int,
    level: Any,
    parent: Any,
    *,
    parents: bool = True,
    limit: int | None = None,
    targets: Any = None,
) -> None:
    """Raise Wrong unless levels and parents are those of a search from a vertex."""
    wanted = ended(truth.levels(source), limit, targets)
    if level.dtype != np.int32 or level.shape != (truth.n,):
        raise Wrong("form", f"levels are {level.dtype} {level.shape}, n = {truth.n}")
    first_wrong("level", level != wanted, source, found=level, wanted=wanted)
    if (parent is not None) != parents:
        raise Wrong("form", f"parents were {'' if parents else 'not '}asked for")
    if parent is None:
        return
    if parent.dtype != np.int64 or parent.shape != (truth.n,):
        raise Wrong("form", f"parents are {parent.dtype} {parent.shape}")
    if parent[source] != source:
        raise Wrong("source", f"the parent of source {source} is {parent[source]}")
    lost = (parent < 0) != (wanted < 0)
    lost |= (parent < -1) | (parent >= truth.n)
    first_wrong("reached", lost, source, parent=parent, level=wanted)
    child = np.flatnonzero(wanted > 0)
    above = parent[child]
    far = np.zeros(truth.n, dtype=bool)
    far[child] = wanted[above] != wanted[child] - 1
    first_wrong("step", far, source, parent=parent, level=wanted)
    loose = np.zeros(truth.n, dtype=bool)
    loose[child] = ~np.isin(above * truth.n + child, truth.codes)
    first_wrong("edge", loose, source, parent=parent)


def first_wrong(rule: str, bad: np.ndarray, source: int, **arrays: Any) -> None:
    """Raise Wrong with the first vertex that is marked."""
    if bad.any():
        at = int(np.argmax(bad))
        values = ", ".join(f"{name} {array[at]}" for name, array in arrays.items())
        raise Wrong(
            rule,
            f"vertex {at}: {values}, from {source} ({int(bad.sum())} such vertices)",
        )


def check_path(truth: Truth, path: Any, source: int, target: int) -> None:
    """Raise Wrong unless vertices are a shortest path, None if there is none."""
    level = int(truth.levels(source)[target])
    if path is None or level < 0:
        if path is not None or level >= 0:
            raise Wrong("path", f"{path} from {source} to {target}, distance {level}")
        return
    fits = len(path) == level + 1 and (path[0], path[-1]) == (source, target)
    steps = pairwise(path)
    if not fits or not all(truth.linked(u, v) for u, v in steps):
        raise Wrong("path", f"{path} from {source} to {target}, distance {level}")


def equal(rule: str, actual: Any, expected: Any, where: str = "") -> None:
    """Raise Wrong unless two values are the same."""
    if actual != expected:
        raise Wrong(rule, f"{where}: {actual!r:.300}, not {expected!r:.300}")


def close(rule: str, actual: Any, expected: Any, where: str = "") -> None:
    """Raise Wrong unless two arrays of numbers agree, NaN with NaN."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    if actual.shape != expected.shape:
        raise Wrong(rule, f"{where}: shape {actual.shape}, not {expected.shape}")
    bad = ~np.isclose(actual, expected, rtol=1e-9, atol=1e-12, equal_nan=True)
    if bad.any():
        at = tuple(int(x[0]) for x in np.nonzero(bad))
        raise Wrong(rule, f"{where} at {at}: {actual[at]}, not {expected[at]}")
