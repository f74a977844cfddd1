"""The bytes that a part takes, estimated in advance.

Array sizes follow from a few counts (``PartShape``), which are exact if they come from
a manifest, and expected values if they come from a degree histogram. Other memory
(building, sessions) is estimated from the statements that allocate it, with constants
whose names say what they count.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from distbfs.device.array_table import ArrayPlan, ArrayTable, total_bytes
from distbfs.device.control_groups import memory_limits
from distbfs.generate.expected import expected_histogram
from distbfs.graph.degrees import DegreeHistogram
from distbfs.partition.delegates import DENSE_VERTICES
from distbfs.partition.layout import Layout
from distbfs.partition.part import KIND, mask_words, names_of, part_table
from distbfs.types import SUBGRAPHS, World

if TYPE_CHECKING:
    from distbfs.partition.share import ShareCounts

# bytes at the peak of a build: raw keys and their columns, which stay while Distributor
# makes the rest
RAW_KEY = 8.4  # keys, with reserve for the uneven share of a rank
COLUMN = 4  # of a stored edge, 8 from 2^32 vertices on
NN_EDGE = 56  # arrays of 4 and 8 while numbers are requested and rows are ordered
ND_KEY, DD_KEY = 8, 4  # keys that wait meanwhile
DD_EDGE = 16  # keys of one direction 4, of both 8, columns 4
PIECES = 80 << 20  # scratch of block-wise work on rows, with several parts
VERTEX = 64  # degrees, ends of tuples, numbering, offsets of this part
SHARE = 0.8  # of a machine's memory that graphs or results may fill
INDEXED_VERTEX = 4  # of the whole graph, up to DENSE_VERTICES (DelegateNumbers)
PROCESS = 96 << 20  # interpreter, libraries, chunks of tuples under way

# bytes of a session besides engine and parts (search.session, search.runners)
MAPPING_VERTEX = 40  # BlockMap, during its construction
FINISHED_DELEGATE = 32  # while delegates get their parents


PAIR_BYTES = 8  # of an edge in device memory, while a graph is built


# the bytes that a device is to have left beside one search of its share
Beside: TypeAlias = "Callable[[ShareCounts], int]"


def nothing_beside(*_: object) -> int:
    """Return 0, for devices that need memory for one search only."""
    return 0


@dataclass(frozen=True)
class PartShape:
    """The counts that determine the array sizes of one part.

    n, parts, delegates: numbers of vertices, parts and delegates of the whole graph
    directed: whether edges lead one way; edges are then stored by both ends
    domain: number of devices that share memory, each with a part; equal in all domains
    local: number of vertices of the part; active: of its normal vertices with edges;
    owned: of its delegates
    edges: number of stored directed edges of each subgraph; see ``part.edges_in``
    nd_sources: number of rows of nd with edges
    edges_away: number of nn edges to other domains; None to assume that ends were dealt
    at random
    targets: number of vertices of other domains to which nn edges of the part lead
    """

    n: int
    parts: int
    delegates: int
    local: int
    active: int
    owned: int
    edges: Mapping[str, int]
    nd_sources: int
    targets: int | None = None
    domain: int = 1
    edges_away: int | None = None
    directed: bool = False

    @property
    def outer(self) -> int:
        """Number of nn edges to other domains."""
        if self.edges_away is not None:
            return self.edges_away
        return self.edges["nn"] * (self.parts - self.domain) // self.parts

    @property
    def stored_edges(self) -> int:
        """Number of edges of the four subgraphs."""
        return sum(self.edges[name] for name in SUBGRAPHS)

    @property
    def whole(self) -> bool:
        """Whether the part is the whole graph without delegates."""
        return self.parts == 1 and not self.delegates


def array_bytes(shape: PartShape) -> dict[str, int]:
    """Return the bytes of every stored array of a part, by dataset name."""
    table = part_table(
        shape.local,
        shape.delegates,
        shape.edges,
        parts=shape.parts,
        nd_sources=shape.nd_sources,
        directed=shape.directed,
    )
    return {name: plan.nbytes for name, plan in table.items()}


def subgraph_bytes(shape: PartShape) -> dict[str, int]:
    """Return the bytes of each subgraph, including its last offset, out and in."""
    sizes = array_bytes(shape)
    totals = dict.fromkeys(SUBGRAPHS, 0)
    for name in names_of(directed=shape.directed, delegates=shape.delegates):
        totals[KIND[name]] += sizes[f"{name}/offsets"] + sizes[f"{name}/columns"]
    return totals


def formula_bytes(n: int, m: int, parts: int, delegates: int, nn: int) -> int:
    """Return the bytes by Table I (Pan et al. 2018): 8n + 8dp + 4m + 4|Enn|."""
    return 8 * n + 8 * delegates * parts + 4 * m + 4 * nn


def build_bytes(shape: PartShape, tuples: int) -> int:
    """Estimate the peak memory of a rank that builds only this part.

    tuples: number of tuples of the whole graph

    The peak is the largest of three: while raw keys are sorted into columns, while the
    numbers of nn columns are requested, and while dd is transposed.
    """
    raw = RAW_KEY * 2 * tuples / shape.parts
    fixed = VERTEX * shape.local + PROCESS
    edges = shape.edges
    stored = shape.stored_edges * (1 + shape.directed)
    columns = (COLUMN if shape.n <= 1 << 32 else 2 * COLUMN) * stored
    if shape.whole:
        return math.ceil(raw + columns) + fixed
    fixed += PIECES
    fixed += INDEXED_VERTEX * shape.n if shape.n <= DENSE_VERTICES else 0
    asking = NN_EDGE * edges["nn"] + ND_KEY * edges["nd"] + DD_KEY * edges["dd"]
    made = 8 * edges["nn"] + 4 * (edges["nd"] + edges["dn"])
    separating = max(asking, DD_EDGE * edges["dd"] + made)
    return math.ceil(columns + max(raw, separating)) + fixed


def session_bytes(shape: PartShape) -> tuple[int, int]:
    """Estimate the (permanent, temporary) bytes of a session without its engine."""
    moment, delegates = MAPPING_VERTEX * shape.local, shape.delegates
    kept: ArrayTable = {
        "order": ArrayPlan(np.int64, shape.local),  # of BlockMap, on several ranks
        "place": ArrayPlan(np.int64, shape.local),  # of BlockMap
    }
    if not shape.whole:
        moment = max(moment, FINISHED_DELEGATE * delegates)
        kept |= {
            "numbers": ArrayPlan(np.uint32, shape.local),  # of Part
            "delegates": ArrayPlan(np.int64, (2, delegates)),  # of DelegateNumbers
            "masks": ArrayPlan(np.uint64, (2, mask_words(delegates))),
            "messages": ArrayPlan(np.uint64, (2, shape.outer)),  # at most
        }
    return total_bytes(kept), moment


def expected_degrees(scale: int, edge_factor: float) -> DegreeHistogram:
    """Return the expected degrees of a Kronecker graph, rounded to whole vertices.

    For the out edges or the in edges of a directed graph, pass half the edge factor.
    """
    degrees, vertices = expected_histogram(scale, edge_factor)
    below = np.minimum(np.round(np.cumsum(vertices)).astype(np.int64), 1 << scale)
    below[-1] = 1 << scale
    counts = np.diff(below, prepend=0)
    occur = counts > 0
    return DegreeHistogram(degrees[occur], counts[occur])


def expected_shape(
    histogram: DegreeHistogram,
    parts: int,
    threshold: int,
    nn_edges: float,
    domain: int = 1,
) -> PartShape:
    """Return the mean part of a graph, rounded up.

    nn_edges: expected number of nn edges of the whole graph; domain: see ``PartShape``

    Raises UsageError if a part would have too many vertices.
    """
    n, m, d = histogram.n, histogram.m, histogram.above(threshold)
    local = Layout(n, parts).local_count(0)
    some = (histogram.degrees > 0) & (histogram.degrees <= threshold)
    degrees, counts = histogram.degrees[some], histogram.counts[some]
    ends, active = int((degrees * counts).sum()), int(counts.sum())
    nn = min(nn_edges, ends) if d else ends
    # the neighbours of a vertex are assumed normal independently of each other
    with_nd = float(counts @ (1 - (nn / max(ends, 1)) ** degrees))
    away = (parts - domain) / parts
    # chance that an end is outer, and of a vertex of a certain part
    share = nn / max(ends, 1) / parts
    targets = float(counts @ (1 - (1 - share) ** degrees)) * away
    nd = ends - nn
    edges = {"nn": nn, "nd": nd, "dn": nd, "dd": m - ends - nd}
    return PartShape(
        n=n,
        parts=parts,
        delegates=d,
        local=local,
        active=-(-active // parts),
        owned=-(-d // parts),
        edges={k: math.ceil(max(e, 0) / parts) for k, e in edges.items()},
        nd_sources=math.ceil(with_nd / parts),
        domain=domain,
        targets=math.ceil(targets),
    )


def one_way(shape: PartShape, share: float = 0.5) -> PartShape:
    """Return the part of a directed graph, from that of sums of degrees out and in.

    share: number of arcs over the sum of these degrees
    """
    edges = {name: math.ceil(share * count) for name, count in shape.edges.items()}
    return replace(shape, edges=edges, directed=True)


def memory_limit() -> int | None:
    """Return the bytes that control groups allow this process, None for no limit."""
    return min(memory_limits(), default=None)


def machine_memory() -> tuple[int, str]:
    """Return (bytes that this process may use, "physical" or "cgroup limit")."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = min(memory_limits(), default=physical)
    return (limit, "cgroup limit") if limit < physical else (physical, "physical")


def may_fill(world: World | None = None) -> tuple[int, str]:
    """Return the bytes that graphs and results of this rank may take, and the limit.

    world: the ranks, None for a single process

    All ranks of a host get the same number.
    """
    (have, kind), ranks = machine_memory(), 1
    if world is not None:
        ranks = world.hosts.count(world.hosts[world.rank])
    return int(SHARE * have / ranks), f"{SHARE:.0%} of {kind}"


def readable(count: float, *, needed: bool = False) -> str:
    """Format a number of bytes ("12.3 MiB"); needed: whether to round it up."""
    unit = "B"
    for larger in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        if count < 1024:
            break
        count, unit = count / 1024, larger
    if unit == "B":
        return f"{count:.0f} B"
    return f"{math.ceil(10 * count - 1e-9) / 10 if needed else count:.1f} {unit}"
