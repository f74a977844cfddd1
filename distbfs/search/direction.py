"""Push or pull for each subgraph, from counts that all ranks share.

Source: Pan, Pearce, Owens 2018, Section IV-B.
"""

from __future__ import annotations

from typing import Protocol

from distbfs.engines.base import CHOSEN, INNER, OUTER, Work
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


class Policy(Protocol):
    """Chooses directions between levels, from counts that all ranks share."""

    def start(self) -> None:
        """Start a search."""

    def choose(self, work: Work) -> dict[str, DirectionName]:
        """Return the directions of the next level."""


class DirectionPolicy:
    """Chooses the directions of dd, dn and nd during one search.

    present: the directions chosen last
    """

    def __init__(self, options: SearchOptions) -> None:
        forced: DirectionName = "pull" if options.direction == "pull" else "push"
        self._first: dict[str, DirectionName] = dict.fromkeys(CHOSEN, forced)
        self.present = dict(self._first)
        self._rules: list[tuple[str, int, Factors]] = []  # with places in Work
        if options.direction == "auto":
            for name in CHOSEN:
                at = Work._fields.index(f"{name}_forward")
                # mutant: getattr(options.factors, name) -> options.factors.dd
                #   : test_direction
                self._rules.append((name, at, getattr(options.factors, name)))

    def start(self) -> None:
        """Start a search: push everywhere, unless one direction is forced."""
        self.present.update(self._first)

    def choose(self, work: Work) -> dict[str, DirectionName]:
        """Return ``present`` for the next level, from counts summed over all ranks."""
        present = self.present
        for name, at, factors in self._rules:
            backward = backward_work(work[at + 1], work[at + 2], work[at + 3])
            present[name] = decide(present[name], work[at], backward, factors)
        return present


class PricePolicy:
    """Chooses the direction of inner edges by the costs that parts report."""

    def __init__(self, options: SearchOptions) -> None:
        ways: dict[str, DirectionName] = {"push": "push", "pull": "pull"}
        self._forced = ways.get(options.direction)

    def start(self) -> None:
        """Start a search."""

    def choose(self, work: Work) -> dict[str, DirectionName]:
        """Return the direction for the next level."""
        # mutant: work.dd_u < -> work.dd_u > : test_pulls_of_directed_parts
        pull = work.dd_u < work.dd_forward
        return {INNER: self._forced or ("pull" if pull else "push")}


class OuterPolicy:
    """Chooses the direction of the edges that lead to other parts.

    In a pull, every unvisited vertex that the inner graph did not reach asks about all
    of its neighbours in other parts; in a push, frontier vertices send the ids of
    theirs. Where levels are launched ahead, devices choose by the same rule (``choose``
    in between.cu).

    delegates: whether the graph has delegates
    forced: the direction of every level, None if the policy chooses
    share: see ``pull_shares``
    """

    def __init__(self, options: SearchOptions, *, delegates: bool) -> None:
        self.share = pull_shares.OUTER_WITH_HUBS if delegates else pull_shares.OUTER
        self.forced: DirectionName | None = None
        if options.direction == "pull":
            self.forced = "pull"
        if options.direction == "push":
            self.forced = "push"

    def start(self) -> None:
        """Start a search."""

    def choose(self, work: Work) -> dict[str, DirectionName]:
        """Return the direction for the next level."""
        # mutant: work.nn * self.share > work.open -> False
        #   : test_few_unvisited_vertices_ask
        pull = work.nn * self.share > work.open
        return {OUTER: self.forced or ("pull" if pull else "push")}


class PartPolicy:
    """Chooses the directions of outer and inner edges, where a level has both."""

    def __init__(self, outer: OuterPolicy, inner: PricePolicy) -> None:
        self._outer, self._inner = outer, inner

    def start(self) -> None:
        """Start a search."""

    def choose(self, work: Work) -> dict[str, DirectionName]:
        """Return the directions for the next level."""
        return self._outer.choose(work) | self._inner.choose(work)


def policy_of(
    directions: tuple[str, ...], options: SearchOptions, *, delegates: bool
) -> Policy:
    """Return the policy for the directions that an engine names."""
    if directions == CHOSEN:
        return DirectionPolicy(options)
    outer = OuterPolicy(options, delegates=delegates)
    return PartPolicy(outer, PricePolicy(options)) if INNER in directions else outer
