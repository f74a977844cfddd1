"""An application, an engine and an exchange: a file and a line of the registry each."""

APP = '''"""Edges out of what each source reaches."""

from dataclasses import dataclass

import numpy as np

from distbfs.multisearch.application import Application
from distbfs.multisearch.base import Results
from distbfs.multisearch.problem import Problem, State
from distbfs.options import SEARCH, option


def count(s, i, u, v):
    np.add.at(s.looks, i, np.uint64(1))


CUDA = """
void visit_vertex(Search &s, u32 u, u32 v) {
    atomicAdd(&s.looks, 1ull);
}
"""
PROBLEM = Problem(
    "reach", (State("looks", "uint64", "search"),), {"visit_vertex": count}, CUDA
)


def run(task, *, times):
    edges = task.searcher.run(PROBLEM, task.sources)["looks"] * np.uint64(times)
    return Results({"edges": edges}, {"edges": edges.tolist()})


@dataclass(frozen=True)
class ReachOptions:
    """Options of reach.

    times: What edges count.
    """

    times: int = option(SEARCH, default=1, low=1)


APP = Application(
    "reach",
    "edges out of what each source reaches",
    run,
    ReachOptions,
)
'''

ENGINE = '''"""Breadth-first search with a queue of Python."""

import numpy as np

from distbfs.engines.base import Engine, WholeResult, WholeSearch
from distbfs.engines.path_sums import PathSums
from distbfs.errors import SearchStopped


class QueueEngine(Engine):
    name = "queue"
    methods = ("list",)
    whole_graphs = directed = True

    def whole(self, part):
        return QueueSearch(part, self.options.parents)

    def path_sums(self, level, depth, dtype):
        return PathSums(level, depth, dtype)


class QueueSearch(WholeSearch):
    def __init__(self, part, parents):
        self.part, self.parents = part, parents

    def answer(self, root, query):
        part, until, stop = self.part, query.until, query.stop
        ids, rows = part.vertices.astype(np.int64), part.nn
        level = np.full(part.layout.n, -1, dtype=np.int32)
        parent = np.full(part.layout.n, -1, dtype=np.int32)
        level[root], parent[root] = 0, root
        queue, levels = [int(part.numbers[root])], 0
        while queue and levels != until.depth:
            if stop is not None and stop():
                raise SearchStopped(f"the search was stopped at level {levels}")
            frontier, queue, levels = queue, [], levels + 1
            for u in frontier:
                if u >= len(rows.offsets) - 1:
                    continue
                for v in rows.columns[rows.offsets[u] : rows.offsets[u + 1]].tolist():
                    if level[ids[v]] < 0:
                        level[ids[v]], parent[ids[v]] = levels, ids[u]
                        queue.append(v)
        return WholeResult(level, parent if self.parents else None, levels)
'''

EXCHANGE = '''"""The exchange through host memory, which counts levels."""

from distbfs.exchange.host import HostExchange


class CountingExchange(HostExchange):
    name = "counting"
    levels = 0

    def start_normals(self, bins):
        self.levels += 1
        super().start_normals(bins)

    def close(self):
        super().close()
        if self.levels and not self._world.rank:
            print(f"counting: {self.levels} levels")
            self.levels = 0
'''
