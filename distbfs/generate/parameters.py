"""Parameters of a graph family besides its size and seed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Parameter:
    """A numeric parameter of families, and an option of ``generate``.

    name: name of the argument; kind: int or float
    low, high: allowed range, None for no bound; above: whether ``low`` itself is
    excluded
    usual: the default; if None, the family chooses it, as ``shown`` describes
    """

    name: str
    kind: type
    help: str
    low: float
    high: float | None = None
    above: bool = False
    usual: float | None = None
    shown: str = ""


EDGE_FACTOR = Parameter("edge_factor", int, "Tuples per vertex", 1, 4096, usual=16)
NEIGHBOURS = Parameter(
    "neighbours",
    int,
    "Nearest vertices on the ring or grid, on all sides",
    2,
    shown="small-world: 20; stencil: 6",
)
DEGREE = Parameter(
    "degree",
    float,
    "Mean degree",
    0,
    8192,
    above=True,
    shown="geometric: radius .55 (ln n / n)^.5; chung-lu: 16",
)
