"""Push or pull, for each subgraph by itself, from counts that all ranks share.

Source: Pan, Pearce, Owens 2018, Section IV-B.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from distbfs.engines.base import Work
from distbfs.options import Factors, SearchOptions
from distbfs.types import DirectionName

CHOOSING = ("dd", "dn", "nd")


def backward_work(q: int, s: int, u: int) -> float:
    """Return BV = |U| (q + s) / q, the parents to look at until one is found.

    q: frontier vertices, s: unvisited vertices of the forward graph, u: unvisited
    vertices of the reverse graph.  Infinite where there is no frontier.
    """
    return u * (q + s) / q if q else float("inf")


def decide(
    present: DirectionName, forward: float, backward: float, factors: Factors
) -> DirectionName:
    """Return the direction of the next level of one subgraph."""
    if present == "push" and forward > factors.to_pull * backward:
        return "pull"
    if present == "pull" and forward < factors.to_push * backward:
        return "push"
    return present


@dataclass
class DirectionPolicy:
    """The directions of dd, dn and nd through one search."""

    options: SearchOptions
    present: dict[str, DirectionName] = field(default_factory=dict)

    def start(self) -> None:
        """Begin a search: all push, unless one direction is forced."""
        forced: DirectionName = "pull" if self.options.direction == "pull" else "push"
        self.present = dict.fromkeys(CHOOSING, forced)

    def choose(self, work: Work) -> dict[str, DirectionName]:
        """Return the directions of the next level from globally added counts."""
        if self.options.direction == "auto":
            for name in CHOOSING:
                forward, q, s, u = getattr(work, name)
                backward = backward_work(q, s, u)
                factors: Factors = getattr(self.options, name)
                self.present[name] = decide(
                    self.present[name], forward, backward, factors
                )
        return dict(self.present)
