"""Search a graph from a program that runs on several ranks.

Run it with ``mpirun -n 4 python mpi_search.py``, or under Slurm with ``srun``; it needs
mpi4py.  Each rank makes its share of the edges and holds a part of the graph.  All
ranks of a session call its functions together.  ``distbfs.open("graph", comm=...)``
opens a store instead.
"""

import numpy as np
from mpi4py import MPI

import distbfs
from distbfs.generate.kronecker import Kronecker

world = MPI.COMM_WORLD
half = world.Split(color=world.rank % 2)  # a communicator of half the ranks


def search(comm: MPI.Comm, scale: int, source: int) -> tuple[int, int, np.ndarray]:
    """Return vertices reached, depth, and how many vertices each level has."""
    tuples = Kronecker(scale, seed=1)
    with distbfs.open(tuples, comm=comm) as session:
        found = session.search(source)
        level, _ = found.to_numpy()  # of this rank's block of vertices
        counts = np.zeros(found.depth + 1, dtype=np.int64)
        np.add.at(counts, level[level >= 0], 1)
        comm.Allreduce(MPI.IN_PLACE, counts)
        return found.reached, found.depth, counts


# all ranks together
reached, depth, counts = search(world, scale=12, source=3)
if world.rank == 0:
    print(f"{world.size} ranks: {reached} vertices on levels {counts.tolist()}")

# two groups of ranks, each with a graph of its own
mine = search(half, scale=10 + world.rank % 2, source=3)
for group in world.gather((world.rank % 2, *mine[:2])) or []:
    print("group {}: {} vertices reached, depth {}".format(*group))
half.Free()
