"""Push or pull for each subgraph, from counts that all ranks share.

Source: Pan, Pearce, Owens 2018, Section IV-B.
"""

from __future__ import annotations

from collections.abc import Sequence

from distbfs.engines.base import INNER, OUTER, Work
from distbfs.options import Factors, SearchOptions
from distbfs.plan import pull_shares
from distbfs.types import DirectionName


def backward_work(q: int, s: int, u: int) -> float:
    """Return BV = |U| (q + s) / q, the expected edge checks of a pull.

    q: frontier vertices, s: unvisited vertices of the forward graph, u: unvisited
    vertices of the reverse graph.  Infinite where there is no frontier.
    """
    return u * (q + s) / q if q else float("inf")


def decide(
    present: DirectionName, forward: float, backward: float, factors: Factors
) -> DirectionName:
    """Return the direction of the next level of one subgraph."""
    # mutant: forward > -> forward < : test_direction
    if present == "push" and forward > factors.to_pull * backward:
        return "pull"
    if present == "pull" and forward < factors.to_push * backward:
        return "push"
    return present


class DirectionPolicy:
    """Chooses the directions of subgraphs between levels of a search.

    dd, dn and nd turn when the expected edge checks of the other direction are fewer by
    a factor. The direction of inner edges is that of the lower price, which parts
    report. For outer edges: in a pull, every unvisited vertex that the inner graph did
    not reach asks about all of its neighbours in other parts; in a push, frontier
    vertices send the ids of theirs. Where levels are launched ahead, devices choose by
    the same rule (``choose`` in between.cu).

    directions: the subgraphs; delegates: whether the graph has delegates
    forced: the direction of every level, None if the policy chooses
    share: see ``pull_shares``
    """

    def __init__(
        self, directions: Sequence[str], options: SearchOptions, *, delegates: bool
    ) -> None:
        self.share = pull_shares.OUTER_WITH_HUBS if delegates else pull_shares.OUTER
        ways: dict[str, DirectionName] = {"push": "push", "pull": "pull"}
        self.forced = ways.get(options.direction)
        self._directions, self._factors = directions, options.factors
        self._present: dict[str, DirectionName] = {}

    def start(self) -> None:
        """Start a search: push everywhere, unless one direction is forced."""
        self._present = dict.fromkeys(self._directions, self.forced or "push")

    def choose(self, work: Work) -> dict[str, DirectionName]:
        """Return the directions of the next level, from counts summed over all ranks.

        The dictionary is valid until the next call.
        """
        if self.forced is None:
            for name in self._directions:
                self._present[name] = self._next(name, work)
        return self._present

    def _next(self, name: str, work: Work) -> DirectionName:
        """Return the next direction of one subgraph."""
        if name == OUTER:
            # mutant: work.nn * self.share > work.open -> False
            #   : test_few_unvisited_vertices_ask
            return "pull" if work.nn * self.share > work.open else "push"
        if name == INNER:
            # mutant: work.dd_u < -> work.dd_u > : test_pulls_of_directed_parts
            return "pull" if work.dd_u < work.dd_forward else "push"
        at = Work._fields.index(f"{name}_forward")
        forward, *reverse = work[at : at + 4]
        # mutant: getattr(self._factors, name) -> self._factors.dd : test_direction
        factors: Factors = getattr(self._factors, name)
        return decide(self._present[name], forward, backward_work(*reverse), factors)
