"""Measure the backend beside NetworkX on random graphs, with and without conversion.

Graphs are uniform, of ten edges a node.  NetworkX and the backend alternate in one run;
medians and their ratios are printed.  "converted" includes the conversion of the graph,
"cached" finds it on the graph.

    python scripts/bench_networkx.py --edges 10000 100000 1000000
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import networkx as nx

from distbfs.networkx_backend import backend
from distbfs.networkx_backend.info import FUNCTIONS
from distbfs.report.tables import print_table

EDGES_A_NODE = 10
CALLS: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    **dict.fromkeys(FUNCTIONS, lambda g: (g, 0)),
    "bidirectional_shortest_path": lambda g: (g, 0, len(g) - 1),
    "connected_components": lambda g: (g,),
    "descendants_at_distance": lambda g: (g, 0, 3),
    "has_path": lambda g: (g, 0, len(g) - 1),
    "is_bipartite": lambda g: (g,),
    "is_connected": lambda g: (g,),
    "multi_source_dijkstra_path": lambda g: (g, [0, 1, 2], None, None),
    "multi_source_dijkstra_path_length": lambda g: (g, [0, 1, 2], None, None),
}
DIRECTED = (
    *("is_strongly_connected", "is_weakly_connected"),
    "weakly_connected_components",
)
for name in {*backend.MANY_SEARCHES, *DIRECTED} - {"eccentricity"}:
    del CALLS[name]  # they search from all nodes, or need a directed graph


def finish(result: Any) -> None:
    """Exhaust an iterator."""
    if isinstance(result, Iterator):
        deque(result, maxlen=0)


def timed(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    finish(call())
    return time.perf_counter() - began


def measure(edges: int, repeats: int) -> list[dict[str, Any]]:
    """Return the medians of each function on one graph."""
    graph = nx.gnm_random_graph(max(edges // EDGES_A_NODE, 2), edges, seed=1)
    cached = backend.convert_from_nx(graph)
    rows = []
    for name, arguments in CALLS.items():
        theirs, ours = getattr(nx, name), getattr(backend, name)

        def converted(ours: Any = ours, arguments: Any = arguments) -> Any:
            return ours(*arguments(backend.convert_from_nx(graph)))

        finish(ours(*arguments(cached)))  # compiles, and starts threads
        times: dict[str, list[float]] = {"networkx": [], "cached": [], "converted": []}
        for _ in range(repeats):
            times["networkx"].append(
                timed(lambda f=theirs, a=arguments: f(*a(graph), backend="networkx"))
            )
            times["cached"].append(timed(lambda f=ours, a=arguments: f(*a(cached))))
            times["converted"].append(timed(converted))
        medians = {k: statistics.median(v) for k, v in times.items()}
        rows.append(
            {
                "edges": edges,
                "function": name,
                **{f"{k}_seconds": v for k, v in medians.items()},
                "speedup_cached": medians["networkx"] / medians["cached"],
                "speedup_converted": medians["networkx"] / medians["converted"],
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edges", type=int, nargs="+", default=[10**4, 10**5, 10**6])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rows = [row for edges in args.edges for row in measure(edges, args.repeats)]
    if args.json:
        print(json.dumps(rows, indent=1))
        return
    print_table(tuple(rows[0]), [list(row.values()) for row in rows])


if __name__ == "__main__":
    main()
