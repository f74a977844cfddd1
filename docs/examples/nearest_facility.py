"""Find for every place of a town the nearest hospital, by one search.

Run it with ``python nearest_facility.py``.  A search from all hospitals at once gives
each vertex the distance from the nearest one; parents lead back to that hospital.
"""

import numpy as np

import distbfs
from distbfs.generate.road import Road

road = Road(vertices=50_000, seed=11)
u, v = road.tuples_at(np.arange(road.tuples))
graph = distbfs.Graph.from_edges(u, v, n=road.n)

hospitals = np.random.default_rng(4).choice(graph.n, 5, replace=False)
found = distbfs.bfs(graph, hospitals)
level, parent = found.to_numpy()

# a vertex has the hospital of its parent: each round doubles the steps back
nearest = np.where(level < 0, np.arange(graph.n), parent)
for _ in range(found.depth.bit_length()):
    nearest = nearest[nearest]
nearest[level < 0] = -1

for hospital in found.sources:
    served = nearest == hospital
    print(
        f"hospital {hospital:5}: {served.sum():5} vertices, "
        f"the farthest {level[served].max()} segments away"
    )
print(f"without a way to a hospital: {(level < 0).sum()} vertices")

# where a new one would help most: the vertex that is farthest from all
remote = int(level.argmax())
better = distbfs.bfs(graph, [*hospitals.tolist(), remote], parents=False)
print(f"a new hospital at {remote}: {found.depth} segments become {better.depth}")
