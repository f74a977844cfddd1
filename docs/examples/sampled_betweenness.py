"""Estimate betweenness from a sample of sources, and see when the sample is enough.

Run it with ``python sampled_betweenness.py``.  Exact betweenness needs a search from
every vertex.  A sample of sources finds the vertices that most shortest paths pass with
far fewer searches; double the sample until these vertices no longer change.
"""

import numpy as np

import distbfs
from distbfs.generate.chung_lu import ChungLu

TOP = 10

made = ChungLu(4000, degree=6, highest=200, seed=9)
graph = distbfs.Graph.from_edges(*made.tuples_at(np.arange(made.tuples)), n=made.n)
order = np.random.default_rng(6).permutation(graph.n)  # samples hold smaller ones


def top(values: np.ndarray) -> list[int]:
    """Return the vertices of the largest values, the largest first."""
    return np.argsort(-values, kind="stable")[:TOP].tolist()


size, last, stable = 64, [], 0
while stable < 2 and size < graph.n:
    estimate = distbfs.betweenness(graph, order[:size])
    same = len(set(last) & set(top(estimate)))
    print(f"{size:5} sources: {same:2} of the first {TOP} as before")
    stable = stable + 1 if same >= TOP - 1 else 0
    last, size = top(estimate), size * 2

exact = distbfs.betweenness(graph)
common = len(set(last) & set(top(exact)))
print(f"exact, {graph.n} sources: {common} of these {TOP} are right")
