"""Count the shortest paths between two vertices, and list some of them.

Run it with ``python count_paths.py``.  In a grid, all shortest ways from corner to
corner take the same steps in different orders: their number is a binomial coefficient.
"""

from math import comb

import numpy as np

import distbfs

SIDE = 40

vertex = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
right = np.stack([vertex[:, :-1].ravel(), vertex[:, 1:].ravel()], axis=1)
down = np.stack([vertex[:-1].ravel(), vertex[1:].ravel()], axis=1)
grid = distbfs.Graph.from_edges(np.concatenate([right, down]))
corner, opposite = 0, grid.n - 1

found = distbfs.bfs(grid, corner)
exact = found.path_count_to(opposite)  # an int of Python, of any size
print(f"{found.depth} steps, {exact} shortest paths")
print("as the formula says:", exact == comb(2 * SIDE - 2, SIDE - 1))

# the numbers of all vertices: beyond 2^64 rounded, as float64
counts = found.path_counts("float64").reshape(SIDE, SIDE)
print(f"to the middle: {float(counts[SIDE // 2, SIDE // 2]):.4g}")

some = list(found.all_paths_to(vertex[2, 2], limit=3))
for path in some:
    print("one of", found.path_count_to(vertex[2, 2]), "paths:", path)

# the edges of all these paths, without the paths
on_paths = found.predecessors_to(vertex[2, 2])
print(f"{len(on_paths)} edges lie on them")
