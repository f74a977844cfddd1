"""The graphs of the papers: the generator nearest to each, beside what was published.

Published values are those of the papers' tables; clustering coefficients and highest
degrees that these do not give are of the SNAP collection.  Edges are stored ones, both
directions.  A file of the graph itself goes before the generator (--graph NAME=FILE).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from distbfs.device.take import take
from distbfs.engines.cuda.papers.bfs4k.knobs import degrees_of
from distbfs.engines.cuda.papers.xbfs.search import PaperSearch
from distbfs.generate.chung_lu import ChungLu
from distbfs.generate.forest_fire import ForestFire
from distbfs.generate.geometric import Geometric
from distbfs.generate.kronecker import Kronecker
from distbfs.generate.rmat import RmatB, RmatER, RmatG
from distbfs.generate.road import Road
from distbfs.generate.small_world import SmallWorld
from distbfs.generate.stencil import Stencil
from distbfs.generate.triangulation import Triangulation
from distbfs.generate.uniform import Uniform
from distbfs.partition.share import Share
from distbfs.types import TupleSource

SAMPLE = 20_000  # wedges, of which the clustering coefficient is estimated
SWEEPS = 4
Make = Callable[[int, float], TupleSource]  # of vertices and mean degree


@dataclass(frozen=True)
class Published:
    """A graph of a paper: vertices, stored edges, how it is made, what is known.

    exact: the generator is the paper's, not a likeness
    highest, deviation: of degrees; diameter: as the paper has it; clustering: average
    """

    n: float
    m: float
    make: Make
    exact: bool = False
    highest: float | None = None
    deviation: float | None = None
    diameter: float | None = None
    clustering: float | None = None

    def source(self, most: int | None) -> TupleSource:
        """Return the tuples; most: vertices, halved until there are no more."""
        n = int(self.n)
        while most is not None and n > most:
            n //= 2
        return self.make(n, self.m / self.n)


def web(
    exponent: float, highest: int, inside: float = 0.2, community: int = 24
) -> Make:
    """Return a function that makes graphs of power-law degrees and communities."""
    return lambda n, degree: ChungLu(
        n, degree, exponent, min(highest, max(n // 4, 1)), inside, community
    )


def mesh(dimensions: int, neighbours: int) -> Make:
    """Return a function that makes a stencil."""
    return lambda n, _: Stencil(n, neighbours, dimensions)


def scaled(kind: Any, factor: int) -> Make:
    """Return a function that makes a graph of 2^scale vertices, the nearest scale."""
    return lambda n, _: kind(max(round(np.log2(n)), 1), factor)


def ring(neighbours: int, rewired: float) -> Make:
    """Return a function that makes a small world."""
    return lambda n, _: SmallWorld(n, neighbours, rewired)


def flat(n: int, degree: float) -> TupleSource:
    """Return independent uniform ends."""
    return Uniform.of_size(n, degree=degree)


def road(n: int, _: float) -> TupleSource:
    """Return a thinned grid of chains."""
    return Road(n)


def fire(n: int, _: float) -> TupleSource:
    """Return Gen-ForestFire (f: 0.35, b: 0.32, which is 0.914 of f)."""
    return ForestFire(n, 0.35, 0.914)


def triangles(n: int, _: float) -> TupleSource:
    """Return a triangulated square."""
    return Triangulation(n)


# fmt: off
M = 1e6
BFS4K = {
    "Amazon0505": Published(0.41 * M, 3.4 * M, ring(8, 0.1), False, 10, 3.1, 40, 0.41),
    "web-Google": Published(0.9 * M, 5.1 * M, web(2.7, 456, 0.4, 10), False, 456, 6.5,
        34, 0.51),
    "com-youtube": Published(1.2 * M, 6.0 * M, web(2.2, 38_000, 0.05), False, 28_754,
        50.2, 24, 0.081),
    "as-skitter": Published(1.7 * M, 22.2 * M, web(2.15, 46_000, 0.2), False, 35_455,
        136.9, 31, 0.258),
    "roadNet-CA": Published(2.0 * M, 5.5 * M, road, False, 12, 1.0, 865, 0.046),
    "soc-LiveJournal1": Published(4.8 * M, 69.0 * M, web(2.6, 20_293, 0.3), False,
        20_293, 36.1, 19, 0.274),
    "Gen-ForestFire": Published(1.0 * M, 7.3 * M, fire, True, 2_416, 38.3, 19),
    "Gen-SmallWorld": Published(2.0 * M, 40.0 * M, ring(20, 0.3), True, 32, 2.3, 7),
    "europa.osm": Published(50.9 * M, 108.1 * M, road, False, 13, 0.5, 30_102),
    "hugehubbles-00020": Published(21.2 * M, 63.6 * M, mesh(2, 4), False, 3, 0.0,
        7_905),
    "nlpkt160": Published(8.3 * M, 221.2 * M, mesh(3, 26), False, 27, 2.7, 162),
    "audikw1": Published(0.94 * M, 76.7 * M, mesh(3, 80), False, 344, 42.4, 81),
    "cage15": Published(5.2 * M, 94.0 * M, mesh(5, 18), False, 46, 5.7, 56),
    "kkt_power": Published(2.1 * M, 13.0 * M, ring(6, 0.03), False, 95, 7.5, 49),
    "coPapersCiteseer": Published(0.434 * M, 32.1 * M, web(2.05, 1_188, 0.3, 100),
        False, 1_188, 101.3, 34),
    "kron_g500-logn20": Published(1 << 20, 100.7 * M, scaled(Kronecker, 48), True,
        413_378, 1_033.2, 7),
    "random.2Mv.128Me": Published(2.0 * M, 128.0 * M, flat, True, 183, 10.6, 5),
    "rmat.2Mv.128Me": Published(1 << 21, 128.0 * M, scaled(RmatG, 32), True, 8_785,
        136.8, 5),
}
CS406 = {
    "coPapers": BFS4K["coPapersCiteseer"],
    "rmat-er": Published(1 << 24, 268 * M, scaled(RmatER, 8), True),
    "rmat-b": Published(1 << 24, 268 * M, scaled(RmatB, 8), True),
    "europe": BFS4K["europa.osm"],
    "wiki": Published(2.1 * M, 33.6 * M, web(2.2, 50_000)),
}
MCLAUGHLIN = {
    "333SP": Published(3_712_815, 22_217_266, triangles),
    "adaptive": Published(6_815_744, 27_248_640, mesh(2, 4)),
    "as-Skitter": BFS4K["as-skitter"],
    "auto": Published(448_695, 6_629_222, mesh(3, 14)),
    "delaunay_n21": Published(2_097_152, 12_582_816, triangles),
    "ecology1": Published(1_000_000, 3_996_000, mesh(2, 4), exact=True),
    "hollywood-2009": Published(1_139_905, 115_031_232, web(2.3, 11_467, 0.5, 60),
        highest=11_467),
    "kron_g500-logn19": Published(524_288, 43_561_574, scaled(Kronecker, 48),
        exact=True),
    "ldoor": Published(952_203, 45_570_272, mesh(2, 48), highest=76),
    "rgg_n_2_21_s0": Published(2_097_152, 28_975_990, Geometric, exact=True),
    "roadNet-CA": BFS4K["roadNet-CA"],
    "thermal2": Published(1_227_087, 7_352_268, mesh(2, 6)),
}
XBFS = {
    "DB": Published(3_966_924, 2 * 13_820_853, web(2.2, 470_000, 0.1)),
    "DP": Published(4_000_150, 2 * 8_649_016, web(2.9, 900, 0.3, 6)),
    "EW": Published(21_504_191, 2 * 266_769_613, web(2.15, 500_000, 0.1)),
    "FR": Published(65_608_357, 2 * 710_869_285, web(2.8, 5_214, 0.2), highest=5_214,
        clustering=0.162),
    "LJ": Published(4_036_538, 2 * 34_681_190, web(2.6, 14_815, 0.3), highest=14_815,
        clustering=0.284),
    "OR": Published(3_072_626, 2 * 117_185_083, web(2.7, 33_313, 0.2), highest=33_313,
        clustering=0.167),
    "TR": Published(27_665_730, 2 * 140_613_762, web(2.1, 1_000_000, 0.0)),
    "US": Published(3_774_768, 2 * 16_518_947, web(4.0, 793, 0.15), highest=793,
        clustering=0.076),
    "WK": Published(18_268_992, 2 * 172_183_984, web(2.15, 600_000, 0.1)),
    "WL": Published(12_150_976, 2 * 378_142_420, web(2.3, 700_000, 0.1)),
}
PAN = {"friendster, 1/8": Published(67e6 / 8, 5.17e9 / 8, web(2.8, 5_214, 0.2))}
# fmt: on
BY_PAPER = {
    "bfs4k": BFS4K,
    "cs406": CS406,
    "mclaughlin": MCLAUGHLIN,
    "xbfs": XBFS,
    "pan": PAN,
}


def clustering(graph: Share, seed: int = 1, sample: int = SAMPLE) -> float:
    """Return the average clustering coefficient over all n vertices, estimated.

    One pair of neighbours of each sampled vertex is looked up; vertices with fewer
    than two neighbours count as 0.
    """
    rng = np.random.default_rng(seed)
    chosen = rng.integers(0, graph.n, sample)
    chosen = np.sort(chosen[chosen < graph.active])  # as many as have edges
    if not len(chosen):
        return 0.0

    def at(array: Any, where: Any) -> Any:
        return take(array, where).astype(np.int64)

    begin, end = at(graph.out.offsets, chosen), at(graph.out.offsets, chosen + 1)
    able = end - begin >= 2
    begin, degree = begin[able], (end - begin)[able]
    one = (rng.random(len(degree)) * degree).astype(np.int64)
    other = (rng.random(len(degree)) * (degree - 1)).astype(np.int64)
    other += other >= one
    u, v = at(graph.out.columns, begin + one), at(graph.out.columns, begin + other)
    low, stop = at(graph.out.offsets, u), at(graph.out.offsets, u + 1)
    high = stop.copy()
    while (low < high).any():  # where v is, or would be, in the row of u
        middle = (low + high) // 2
        right = (low < high) & (at(graph.out.columns, middle) < v)
        low, high = np.where(right, middle + 1, low), np.where(right, high, middle)
    inside = low < stop
    hits = inside & (at(graph.out.columns, np.where(inside, low, 0)) == v)
    return float(hits.sum()) / sample


def properties(graph: Share, number: int) -> dict[str, Any]:
    """Return properties of a graph; number: a vertex of the largest component.

    The diameter is a lower bound, of searches back and forth.
    """
    degrees = degrees_of(graph)
    search = PaperSearch(graph, parents=False)
    farthest, searches = -1, 0
    while searches < SWEEPS:
        level = search.search(number).level
        searches += 1
        number = int(level.argmax())
        depth = int(level[number])
        if depth <= farthest:
            break
        farthest = depth
    del search
    share = graph.active / graph.n
    squares = degrees.deviation**2 + degrees.average**2
    mean = graph.m / graph.n
    return {
        "vertices": graph.n,
        "with_edges": graph.active,
        "edges": graph.m,
        "mean_degree": mean,
        "deviation": max(squares * share - mean**2, 0.0) ** 0.5,
        "highest": degrees.maximum,
        "diameter_at_least": farthest,
        "searches": searches,
        "clustering": clustering(graph),
    }
