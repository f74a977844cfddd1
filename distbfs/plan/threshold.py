"""The degree threshold TH: the cost of a search between domains, and the best TH.

The model uses only the number of vertices of each degree (n, m) and p.  It is a random
graph of these degrees, whose edges join their ends at random.  With c_k vertices of
degree k, and q_t the chance that the end of an edge is a vertex that was not reached
within t levels by any other edge,

    q_0 = 1,  q_1 = 1 - r / m,  q_t+1 = q_1 sum_k (k c_k / m) q_t^(k-1)

from a root of degree r, and c_k (q_t-1^k - q_t^k) vertices of degree k are found on
level t, on all levels that find half a vertex or more.  Sums over normal vertices are
over k <= TH; s = sum k c_k / m is the chance that an end is normal, f = (p-1)/p that it
is in another part.

    nn edges         s^2 m, of which f are outer edges
    with outer edges a normal vertex of degree k is one with chance 1 - (1 - s f)^k
    a level pulls    where 4 (frontier vertices with outer edges) are more than the
                     unvisited ones, or 16 with delegates, as ``search.direction``;
                     else it pushes
    numbers pushed   (p-1) c_k (1 - (1 - a/p)^k), once each to a part; a: chance that an
                     end is normal and was on a level that pushed
    questions        c_k k x^(k-1) u, each with an answer; o, u: chances that an end is
                     outer and in the frontier, or not reached before it; x = q_t+1 +
                     o: not reached by this level's inner edges
    parents          of delegates, on all levels: their own part asks p-1 others where
                     it found none, c_k (w_t v_t-1 - q_t^k), and those that did answer,
                     (p-1) c_k w_t q_t-1^(k(p-2)/p) (w_t-1 - w_t); w = q^(k/p) for the
                     ends there, v = q^(k(p-1)/p) for the others.  At most: hubs that
                     are joined to hubs more than at random are found by all parts

Bytes that a part sends over the levels of a search; reductions in slices and gathers
count 2 f times (every part sends and gets each slice of the others):

    masks    d / 8 2 f on each level until all delegates are found
    parents  8 (questions + answers) / p
    normals  (8 numbers + 4 questions + 1/8 answers) / p; numbers with ids of parents
    work     visits of a device: d, and (edges that are read + 3 questions
             + numbers) / p

The time is bytes / bandwidth + work / rate + levels latency, with the constants below;
the cost of the inner graph hardly depends on TH and is left out.
Sources: Pan, Pearce, Owens 2018, Sections III and V, for the data sent; Newman 2002,
"Spread of epidemic disease on networks", for q_t.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from distbfs.graph.degrees import DegreeHistogram
from distbfs.plan.pull_shares import OUTER, OUTER_WITH_HUBS
from distbfs.types import Array, Floats

RATE = 5e10  # visits a second; searches level by level on one H200, scales 25 and 26
BANDWIDTH = 25e9  # bytes a second between ranks: one 200 Gbit/s link a device
LATENCY = 3e-5  # seconds a level: starting kernels, one small reduction

# mutant: PART = 4 -> PART = 8 : test_the_suggestion_is_the_least_of_all
DELEGATES_PER_PART = 4  # d <= 4 n / p, so that they take the memory of some vertices
# mutant: SPREAD = 2 -> SPREAD = 0 : test_without_hubs_there_are_no_delegates
SPREAD = 2  # variance of degrees over their mean, 1 in a graph of random edges
ITEM = 8  # bytes: a number, and the id of its parent
QUESTION = 4 + 1 / 8  # a local id; the bit that answers it
ROOTS = 8  # their degrees are quantiles of those of the vertices with edges
MOST_LEVELS = 64  # the levels after these are left out
FEW_DEGREES = 256  # a class each; of more, classes are CLASSES an octave from FINE on
FINE, CLASSES = 64, 16
LEAST = 1e-300
COUNTED = ("pushed_edges", "items", "questions", "parents")  # in a search


@dataclass(frozen=True)
class ThresholdCost:
    """Expected cost of a threshold in a search between domains.

    delegates: number d of delegates; outer_edges: number of nn edges between parts
    levels, mask_levels: number of all levels, and of levels with masks, mean over roots
    pushed_edges: number of outer edges that pushes read
    items, questions: number that all parts send in a search
    parents: number of questions and answers about the parents of delegates
    bytes: bytes that a part sends in a search, by kind; seconds: of a search, by kind
    """

    threshold: int
    delegates: int
    outer_edges: float
    levels: float
    mask_levels: float
    pushed_edges: float
    items: float
    questions: float
    parents: float
    bytes: dict[str, float]
    seconds: dict[str, float]

    @property
    def total(self) -> float:
        """Seconds of a search, without the work in the inner graph."""
        return sum(self.seconds.values())


def expected_nn(histogram: DegreeHistogram, threshold: int) -> float:
    """Estimate |Enn| on the assumption that edges join their ends at random.

    The estimate (sum of normal degrees)^2 / m is a little high for Kronecker graphs.
    """
    normal = histogram.degrees <= threshold
    ends = float((histogram.degrees[normal] * histogram.counts[normal]).sum())
    return ends * ends / max(histogram.m, 1)


def weigh_thresholds(
    histogram: DegreeHistogram,
    parts: int,
    thresholds: Sequence[int],
) -> list[ThresholdCost]:
    """Estimate the cost of each threshold for a search over parts; fast."""
    at = np.asarray(thresholds, dtype=np.int64)
    degrees, counts, last = degree_classes(histogram, at)
    search = _Search(degrees, counts, last <= at[:, None], parts)
    for root in typical_roots(degrees, counts):
        search.add(unreached(degrees, counts, root))
    return [
        price(
            histogram,
            parts,
            threshold,
            expected_nn(histogram, threshold) * (parts - 1) / parts,
            search.levels,
            float(search.mask_levels[k]),
            search.counts[:, k].tolist(),
        )
        for k, threshold in enumerate(at.tolist())
    ]


def price(
    histogram: DegreeHistogram,
    parts: int,
    threshold: int,
    outer_edges: float,
    levels: float,
    mask_levels: float,
    counts: Sequence[float],
) -> ThresholdCost:
    """Return the cost of searches with the given counts.

    counts: totals of all parts: pushed edges, items, questions, and questions and
    answers about the parents of delegates
    """
    d, shared = histogram.above(threshold), 2 * (parts - 1) / parts
    pushed, items, questions, parents = counts
    volumes = {
        "masks": mask_levels * d / 8 * shared,
        "parents": ITEM * parents / parts,
        "normals": (ITEM * items + QUESTION * questions) / parts,
    }
    visits = d + (pushed + 3 * questions + items) / parts
    seconds = {name: size / BANDWIDTH for name, size in volumes.items()}
    seconds |= {"work": visits / RATE, "latency": levels * LATENCY}
    return ThresholdCost(
        threshold=threshold,
        delegates=d,
        outer_edges=outer_edges,
        levels=levels,
        mask_levels=mask_levels,
        bytes=volumes,
        seconds=seconds,
        **dict(zip(COUNTED, counts, strict=True)),
    )


def suggest_threshold(histogram: DegreeHistogram, parts: int) -> int:
    """Return the threshold with the least modelled time on devices, with d <= 4n/p.

    One part needs no delegates: its threshold is the largest degree. The same holds for
    a graph whose degrees vary no more than by chance: none of its vertices is a hub,
    and its degrees do not show the number of its levels (roads, random edges). If there
    are many degrees, thresholds are compared at classes of degrees. Ranks broadcast the
    threshold, since processors may round differently.
    """
    spread = histogram.summary()
    if parts == 1 or spread["deviation"] ** 2 <= SPREAD * spread["mean"]:
        return histogram.largest
    last = degree_classes(histogram, np.zeros(0, dtype=np.int64))[2]
    limit = DELEGATES_PER_PART * histogram.n / parts
    thresholds = [t for t in (0, *last.tolist()) if histogram.above(t) <= limit]
    costs = weigh_thresholds(histogram, parts, thresholds)
    # mutant: min -> max : test_the_suggestion_is_the_least_of_all
    return min(costs, key=lambda cost: (cost.total, cost.delegates)).threshold


def suggest_host_threshold(histogram: DegreeHistogram, parts: int) -> int:
    """Return the threshold for stores and host memory: fewest bytes with d <= 4n/p.

    Engines for such parts push every nn edge, even inside a part, so an nn edge costs
    time as well as memory. A delegate costs bytes on every part. If there is one part,
    there are no delegates.
    """
    if parts == 1 or not len(histogram.degrees):
        return histogram.largest
    thresholds = np.union1d(0, histogram.degrees)
    ends = np.cumsum(histogram.degrees * histogram.counts)
    below = np.cumsum(histogram.counts)
    at = np.searchsorted(histogram.degrees, thresholds, side="right")
    d = histogram.n - np.concatenate([[0], below])[at]
    nn = np.concatenate([[0], ends])[at] ** 2.0 / max(histogram.m, 1)
    few = d <= DELEGATES_PER_PART * histogram.n / parts
    stored = np.where(few, 8 * d * parts + 4 * nn, np.inf)  # bytes that depend on TH
    return int(thresholds[np.argmin(stored)])


def degree_classes(
    histogram: DegreeHistogram, thresholds: Array
) -> tuple[Floats, Floats, Array]:
    """Return (mean degree, number of vertices, largest degree) of classes of degrees.

    Degrees are above 0. No class has degrees on both sides of a threshold.
    """
    some = histogram.degrees > 0
    degrees, counts = histogram.degrees[some], histogram.counts[some].astype(float)
    if len(degrees) <= FEW_DEGREES:
        return degrees.astype(float), counts, degrees
    octaves = np.log2(np.maximum(degrees, FINE) / FINE)
    steps = np.minimum(degrees, FINE) + np.floor(CLASSES * octaves).astype(np.int64)
    sides = np.searchsorted(np.sort(thresholds), degrees)
    new = np.diff(steps, prepend=-1) + np.diff(sides, prepend=0) > 0
    first = np.flatnonzero(new)
    sizes = np.add.reduceat(counts, first)
    means = np.add.reduceat(counts * degrees, first) / sizes
    return means, sizes, degrees[np.append(first[1:], len(degrees)) - 1]


def typical_roots(degrees: Floats, counts: Floats, number: int = ROOTS) -> list[float]:
    """Return the degrees of typical roots."""
    below = np.cumsum(counts)
    if not len(below):
        return []
    shares = (np.arange(number) + 0.5) / number
    return [float(k) for k in degrees[np.searchsorted(below, shares * below[-1])]]


def unreached(
    degrees: Floats, counts: Floats, root: float, beyond: float | None = None
) -> Floats:
    """Return q_t of every level of a search from a root of a given degree.

    beyond: number of edges from its neighbours to other vertices, if known
    """
    ends = degrees * counts
    q = [1.0, 1 - root / ends.sum()]
    if beyond is not None:
        q.append(max(q[1] - beyond / ends.sum(), 0.0))
    while len(q) <= MOST_LEVELS:
        q.append(q[1] * float(ends @ q[-1] ** (degrees - 1)) / ends.sum())
        if counts @ (q[-2] ** degrees - q[-1] ** degrees) < 0.5:
            break
    return np.array(q)


class _Search:
    """Expected counts of a search, mean over the roots.

    Takes classes of vertices, and whether each is normal: bool [thresholds, classes].
    counts: pushed edges, items, questions, and questions and answers about the parents
    of delegates, float64 [4, thresholds]
    """

    def __init__(
        self, degrees: Floats, counts: Floats, normal: Array, parts: int
    ) -> None:
        self._degrees, self._parts = degrees, parts
        m = float(degrees @ counts)
        self._normal = np.where(normal, counts, 0.0)
        self._hubs = np.where(normal, 0.0, counts)
        hubs = self._hubs.any(axis=1)
        self._shares = np.where(hubs, OUTER_WITH_HUBS, OUTER)
        self._ends = self._normal * degrees / max(m, 1.0)
        self._away = (parts - 1) / parts
        self._outer_share = self._ends.sum(axis=1) * self._away
        self._leaving = self._normal * (1 - self._power(1 - self._outer_share))
        self.levels, self.mask_levels = 0.0, np.zeros(len(normal))
        self.counts = np.zeros((4, len(normal)))

    def _power(self, base: Floats) -> Floats:
        """Return base^k, float64 [thresholds, classes]; base: [thresholds]."""
        logs = np.log(np.maximum(base, LEAST))
        return np.exp(logs[:, None] * self._degrees)

    def add(self, q: Floats) -> None:
        """Add the counts of a search with the levels ``q``."""
        degrees, normal, others = self._degrees, self._normal, self._parts - 1
        self.levels += (len(q) - 1) / ROOTS
        left, onward = q[:, None] ** degrees, q[:, None] ** (degrees - 1)
        hidden = left[:-1] @ self._hubs.T  # delegates not yet found before each level
        self.mask_levels += (hidden >= 0.5).sum(axis=0) / ROOTS
        a = np.zeros_like(self._outer_share)
        for t in range(1, len(q) - 1):
            new = left[t - 1] - left[t]
            pulls = self._shares * (self._leaving @ new) > self._leaving @ left[t]
            o = self._away * (self._ends @ (onward[t - 1] - onward[t]))
            u = self._away * (self._ends @ onward[t - 1])
            x = np.maximum(q[t + 1] + o, LEAST)
            before = self._power(1 - a / self._parts)
            a = a + np.where(pulls, 0.0, self._ends @ new)
            named = before - self._power(1 - a / self._parts)
            level = (
                ~pulls * self._outer_share * (normal @ (new * degrees)),
                others * (normal * named).sum(axis=1),
                pulls * u * ((normal * self._power(x)) @ degrees) / x,
            )
            self.counts[:3] += np.stack(level) / ROOTS
        self.counts[3] += others * self._hubs @ self._asked(q) / ROOTS

    def _asked(self, q: Floats) -> Floats:
        """Return the messages about the parent of a delegate, float64 [classes].

        These are the questions of the part that owns the delegate, and the answers of
        parts that found it.
        """
        p = self._parts
        here, beside = (q[:, None] ** (self._degrees * x / p) for x in (1, p - 2))
        before, after = here[:-1], here[1:]
        questions = after * beside[:-1] * before - q[1:, None] ** self._degrees
        answers = after * beside[:-1] * (before - after)
        return np.asarray((questions + answers).sum(axis=0))
