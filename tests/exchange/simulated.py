"""One rank of a pretended world (``scripts/simulated_world``); prints JSON.

simulated.py calls RANKS...   the calls into MPI a level takes, by number of ranks
simulated.py ahead            what arrives while another rank is a level ahead
"""

import json
import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[2] / "scripts"))

from simulated_world import TAGS, Mirror, Simulated

from distbfs.exchange.bins import Bins
from distbfs.exchange.host import HostExchange
from distbfs.exchange.partners import Partners
from distbfs.options import ExchangeOptions
from distbfs.partition.layout import Placement
from distbfs.ranks.launcher import RankLaunch
from distbfs.ranks.mpi import MpiWorld, load_mpi

LEVELS, PARTNERS = 12, 4


class Peer:
    """The communicator of another rank; what it sends lies in that of this one.

    Both make the same duplicates in the same order.
    """

    def __init__(self, mirror, rank):
        self._mirror, self._rank, self._duplicates = mirror, rank, iter(mirror.made)

    def __getattr__(self, name):
        return getattr(self._mirror, name)

    def Dup(self):
        return Peer(next(self._duplicates), self._rank)

    def Get_rank(self):
        return self._rank

    def Reduce_scatter_block(self, sent, coming):
        coming[0] = 0

    def Isend(self, values, rank, tag=0):
        assert rank == 0
        self._mirror.early += 1
        return self._mirror._real.Isend(values, 0, self._rank * TAGS + tag)


def bins_for(ranks, parts, value):
    """A number for each of some parts."""
    ends = np.cumsum(np.isin(np.arange(parts), ranks))
    items = np.full(len(ranks), value, np.uint64)
    return [Bins(items, lambda: (np.append(0, ends[:-1]), ends))]


def calls_of(ranks):
    """Calls into MPI a level, with partners and without, of all exchanges."""
    simulated = Simulated(ranks, LEVELS, PARTNERS)
    counted = simulated.comm.calls
    counted.clear()
    found = simulated.runner.search(0, parents=False)
    assert found.level[0][:LEVELS].tolist() == list(range(LEVELS))
    calls = {"search": dict(counted)}
    sent = simulated.exchange.traffic.sent
    partners = Partners(simulated.world)
    for name, to in (("some", range(1, 1 + PARTNERS)), ("none", ())):
        bins = bins_for(list(to), ranks, 5)
        counted.clear()
        leaving = simulated.exchange._deal(bins)
        partners.sizes(leaving, simulated.placement.per_rank)
        calls[f"device {name}"] = dict(counted)
        counted.clear()
        simulated.exchange.start_normals(bins)
        arrived = simulated.exchange.finish_normals()
        assert arrived == [[(rank, np.array([5])) for rank in to]]
        calls[f"host {name}"] = dict(counted)
    assert (simulated.exchange.traffic.sent - sent)[:, 1].sum() == PARTNERS
    partners.free()
    simulated.close()
    return calls


def ahead():
    """Rank 3 is through with a level, and sends of the next, when this one receives."""
    mirror, options = Mirror(4), ExchangeOptions()
    own, other = [
        HostExchange(MpiWorld(comm), Placement(4, 4), 0, options)
        for comm in (mirror, Peer(mirror, 3))
    ]
    levels = []
    for value in (10, 20, 30):
        if value == 10:
            other.start_normals(bins_for([], 4, 0))
            other.finish_normals()
        other.start_normals(bins_for([0], 4, value + 1))  # of the level after this one
        own.start_normals(bins_for([1, 2], 4, value))
        (arrived,) = own.finish_normals()
        levels.append([(rank, array.tolist()) for rank, array in arrived])
    return levels


if __name__ == "__main__":
    load_mpi(RankLaunch("MPI", 0, 1, exact=False))
    what, *sizes = sys.argv[1:]
    print(json.dumps(ahead() if what == "ahead" else [calls_of(int(x)) for x in sizes]))
