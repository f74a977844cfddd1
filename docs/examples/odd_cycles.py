"""Write a problem of your own: the shortest odd cycle through a graph.

Run it with ``python odd_cycles.py``.  A graph without odd cycles is bipartite: its
vertices can be put on two sides so that all edges lead across.  An odd cycle shows that
this is impossible.  A search from a vertex of the shortest odd cycle meets the cycle as
an edge between two vertices of one level d; the cycle has length 2 d + 1.  No search
meets a shorter one.  The problem looks at every edge of every search and keeps the
smallest length; distbfs does the searching.
"""

import numpy as np

import distbfs
from distbfs.generate.stencil import Stencil

NONE = np.iinfo(np.int32).max


def visit_vertex(s, i, u, v):
    """Look at edges (u, v) out of the frontiers of searches i, arrays [edges]."""
    level = s.depth_now
    inside = s.level[i, v] == level
    np.minimum.at(s.cycle, i[inside], 2 * level + 1)


CUDA = """  // the same on a GPU: one thread calls it for each edge
void visit_vertex(Search &s, u32 u, u32 v) {
    if (s.level[v] == s.depth) atomicMin(&s.cycle, int(2 * s.depth + 1));
}
"""

problem = distbfs.Problem(
    "odd cycles",
    state=(distbfs.State("cycle", "int32", per="search", fill=NONE),),
    functions={"visit_vertex": visit_vertex},
    cuda=CUDA,
)


def shortest_odd_cycle(graph: distbfs.Graph) -> int | None:
    """Return the length of the shortest odd cycle, None for a bipartite graph."""
    cycle = int(distbfs.search_many(graph, problem, range(graph.n))["cycle"].min())
    return None if cycle == NONE else cycle


made = Stencil(400, neighbours=4, dimensions=2)
u, v = made.tuples_at(np.arange(made.tuples))
grid = distbfs.Graph.from_edges(u, v, n=made.n)
print("a grid:", shortest_odd_cycle(grid))
wider = distbfs.Graph.from_edges([*u, 0], [*v, 3 * 20 + 3], n=made.n)
print("with an edge from (0, 0) to (3, 3):", shortest_odd_cycle(wider))
wrong = distbfs.Graph.from_edges([*u, 0], [*v, 3 * 20 + 5], n=made.n)
print("with an edge from (0, 0) to (5, 3):", shortest_odd_cycle(wrong))
