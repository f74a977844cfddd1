"""Search a road network with some edges and vertices closed.

Run it with ``python closed_roads.py``.  Each road has a height limit and the hours when
it opens and closes.  ``where=`` keeps only roads that meet a condition; flags close
single vertices.  The graph itself stays as it is, so each question costs one search.
"""

import numpy as np
import pandas as pd

import distbfs

SIDE = 60
random = np.random.default_rng(7)

# streets of a town: a grid, with attributes for each street
vertex = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
u = np.concatenate([vertex[:, :-1].ravel(), vertex[:-1].ravel()])
v = np.concatenate([vertex[:, 1:].ravel(), vertex[1:].ravel()])
streets = pd.DataFrame({"u": u, "v": v})
streets["height"] = random.choice([2.5, 3.5, 4.5], len(u), p=[0.25, 0.25, 0.5])
streets["opens"] = random.choice([0, 6, 9], len(u), p=[0.75, 0.15, 0.1])
streets["closes"] = random.choice([24, 22, 18], len(u), p=[0.75, 0.15, 0.1])
town = distbfs.Graph.from_pandas(streets, "u", "v", keep=["height", "opens", "closes"])
home, goal = 0, town.n - 1


def steps(**seen: object) -> int:
    """Return the number of streets from home to the goal, -1 without a way."""
    found = distbfs.bfs(town, home, "openmp", **seen)
    return int(found.to_numpy()[0][goal])


everything = steps()
lorry = steps(where="height >= 3")
late = steps(where="opens <= 22 and closes > 22")
lorry_late = steps(where="height >= 3 and opens <= 22 and closes > 22")
print(f"all streets: {everything} from home to the goal")
print(f"those open to a lorry of 3 m: {lorry}")
print(f"those open after ten in the evening: {late}")
print(f"both: {lorry_late}")

# two markets close rows of crossings: the way leads around them
free = np.ones((SIDE, SIDE), dtype=bool)
free[SIDE // 3, :-1] = free[2 * SIDE // 3, 1:] = False
markets = town.view(vertices=free.ravel())  # kept: many searches may use it
around = steps(view=markets)
print(f"around the markets: {around}")
