"""The contracts of an engine: a whole graph alone, or one part of many step by step.

A *vertex number* is the row of a normal vertex in its part (see ``partition.part``).
Results belong to local ids.

An engine with a true ``on_device`` is a ``DeviceEngine``: it searches a whole graph
that lies in device memory, leaves the results there and runs in one process.  Engines
without that attribute search the parts of any number of ranks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from distbfs.generate.hashing import Permutation
from distbfs.graph.device_graph import DeviceGraph
from distbfs.options import SearchOptions, depth_limit
from distbfs.partition.device_part import DevicePart
from distbfs.partition.layout import Placement
from distbfs.partition.part import Part
from distbfs.types import Array, DirectionName, Ids, Stop, Words


@dataclass(frozen=True)
class LevelRecord:
    """One level of a search that an engine ran alone.

    direction: the engine's name for what it did; frontier: vertices whose neighbours
    it looked at, the frontier in a push, the unvisited ones in a pull; checks: edge
    checks; found: vertices found; seconds: wall time; extra: what else it counts
    """

    direction: str
    frontier: int
    checks: int
    found: int
    seconds: float
    extra: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Until:
    """Where a search may end before it has reached all that it can.

    depth: the last level whose vertices are wanted, None for all
    targets: int64 [k], ids; the level that finds the last of them is the last one
    """

    depth: int | None = None
    targets: Ids | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", depth_limit("depth_limit", self.depth))


WHOLE = Until()


@dataclass
class WholeResult:
    """Levels and parents of one search; arrays stay valid until the next search.

    level: int32 [n] by vertex id, -1 = unreached
    parent: int32 [n] by vertex id, -1 = unreached, or None when not asked for
    levels: how many were run; the last finds nothing unless the search ended early
    order: integers [reached], ids as a queue takes them in that looks at the rows of
        the part from left to right, or None where that is not known
    """

    level: Array
    parent: Array | None
    levels: int
    records: list[LevelRecord] = field(default_factory=list)
    order: Array | None = None


class WholeSearch(Protocol):
    """Searches a graph that is one part without delegates."""

    def search(
        self,
        root: int,
        *,
        records: bool = False,
        until: Until = WHOLE,
        stop: Stop | None = None,
    ) -> WholeResult:
        """Search from a vertex id; an engine may go on after ``until``.

        stop: asked before each level, or before the first alone where the host does
        not see levels; SearchStopped where it said yes
        """


@dataclass
class Work:
    """What the next level of a part would cost; counts are added up over all parts.

    For each of dd, dn, nd: forward (FV, edges of the frontier), q (frontier vertices
    with such edges), s (unvisited vertices with such edges), u (unvisited vertices
    that could be found).  nn: FV alone.  Source: Pan et al. 2018, Section IV-B.
    """

    normals: int = 0
    delegates: int = 0
    nn: int = 0
    dd: tuple[int, int, int, int] = (0, 0, 0, 0)
    dn: tuple[int, int, int, int] = (0, 0, 0, 0)
    nd: tuple[int, int, int, int] = (0, 0, 0, 0)

    SIZE = 15

    def to_array(self) -> Ids:
        """Return the counts as int64 [15], for a sum over ranks."""
        return np.array(
            [self.normals, self.delegates, self.nn, *self.dd, *self.dn, *self.nd],
            dtype=np.int64,
        )

    @classmethod
    def from_array(cls, values: Array) -> Work:
        """Return the counts of an array made by ``to_array``."""
        v = [int(x) for x in values]
        return cls(
            v[0],
            v[1],
            v[2],
            (v[3], v[4], v[5], v[6]),
            (v[7], v[8], v[9], v[10]),
            (v[11], v[12], v[13], v[14]),
        )


class PartState(Protocol):
    """The state of a search on one part; every call is local.

    A level is: ``previsit``; ``launch``; the four visits in any order; ``new_mask`` and
    ``bins`` read; ``take_mask`` and ``take_normals`` called; ``end_level``.
    """

    part: Part | DevicePart

    def start(
        self, number: int | None, delegate: int | None, *, counting: bool = False
    ) -> None:
        """Forget the last search; set the root where this part knows it.

        number: the root's number if it is a normal vertex of this part;
        delegate: the root's delegate number if it is one (the same on all parts);
        counting: edge checks are wanted; else a visit may return 0.
        """

    def previsit(self) -> Work:
        """Form the queues of the next level and size its work in both directions."""

    def launch(self, directions: dict[str, DirectionName]) -> None:
        """Begin the visits of a level where they can run in the background."""

    def visit_nn(self) -> int:
        """Push the frontier's nn edges; returns edge checks, as all visits do."""

    def visit_nd(self, direction: DirectionName) -> int:
        """Find delegates from normal vertices."""

    def visit_dd(self, direction: DirectionName) -> int:
        """Find delegates from delegates."""

    def visit_dn(self, direction: DirectionName) -> int:
        """Find normal vertices from delegates."""

    def new_mask(self) -> Words:
        """Return the delegates that this part found, uint64 [ceil(d/64)]."""

    def bins(self) -> list[Array]:
        """Return what nn found on each other part, by part: numbers, uint32.

        A ``DevicePartSearch`` gives numbers and parents together, uint64.
        """

    def take_mask(self, mask: Words) -> None:
        """Accept the delegates found by all parts."""

    def take_normals(self, rank: int, numbers: Array) -> None:
        """Accept vertices of this part that parts of a rank found, as ``bins`` has."""

    def end_level(self) -> None:
        """Make what was found the frontier of the next level."""

    def result(self) -> tuple[Array, Array | None]:
        """Return (level int32 [local count], parent [local count] or None).

        By local id; parents are vertex ids, int32 or int64; valid until the next
        search.
        """


class PartSearch(PartState, Protocol):
    """A part in host memory, whose parents are completed by questions and answers."""

    part: Part

    def adopt_delegates(self) -> None:
        """Give delivered vertices a delegate parent where a neighbour can be one."""

    def unresolved(self) -> tuple[Array, Array]:
        """Return (numbers uint32 [k], ranks int32 [k]) of vertices without a parent.

        Another part found them, one of those of that rank, and no delegate can be
        their parent.
        """

    def level_of(self, numbers: Array) -> Array:
        """Return the level of vertices by number, int32, -1 = unreached."""

    def set_parents(self, numbers: Array, parents: Ids) -> None:
        """Set the parents (vertex ids) of vertices by number."""

    def parents_wanted(self) -> Ids:
        """Return the reached delegates of this part that it found no parent of, [k]."""

    def parents_of(self, delegates: Ids) -> Ids:
        """Return the parents of delegates that this part found, int64 [k].

        Vertex ids, -1 where another part found the delegate.
        """

    def set_delegate_parents(self, delegates: Ids, parents: Ids) -> None:
        """Set the parents (vertex ids) of delegates that this part owns."""


class DevicePartSearch(PartState, Protocol):
    """A part on a device: arrays are CuPy's, and what is sent carries its parent."""

    part: DevicePart

    def delegate_parents(self) -> Any:
        """Return the parents (vertex ids) of delegates that this part found, [d].

        -1 for the others; int32 or int64.
        """

    def take_delegate_parents(self, parents: Any) -> None:
        """Accept the parents of all reached delegates, as above."""


@dataclass
class DeviceResult:
    """One search; arrays stay in device memory, valid until the next search.

    level: CuPy int8, of levels to 126, or int32; -1 = unreached
    parent: CuPy int32, -1 = unreached, or None
    Both by id [n]; by number [active] where internal ids were asked for.
    levels: the largest level and one
    seconds: device time between events; launches: kernels that it took
    """

    level: Any
    parent: Any
    levels: int
    seconds: float
    launches: int
    records: list[LevelRecord] = field(default_factory=list)


class DeviceSearch(Protocol):
    """Searches a graph that is on the device."""

    graph: DeviceGraph
    in_ids: bool

    def search(self, root: int, *, records: bool = False) -> DeviceResult:
        """Search from a vertex id."""


class Engine(Protocol):
    """Makes searches for parts; one per rank."""

    name: str
    methods: tuple[str, ...]

    def __init__(self, options: SearchOptions) -> None:
        """Check the options; UsageError names what is allowed."""

    def whole(self, part: Part) -> WholeSearch:
        """Prepare the search of a graph that is one part without delegates."""

    def attach(self, part: Part, placement: Placement) -> PartState:
        """Prepare the stepwise search of one part."""

    def describe(self) -> dict[str, Any]:
        """Return what the engine runs on, for reports (JSON values)."""


class DeviceEngine(Engine, Protocol):
    """Searches graphs in the memory of one device (see the top of this file).

    ``__init__`` raises DeviceMissing where there is no device.
    """

    on_device: bool

    @staticmethod
    def check(options: SearchOptions, *, whole: bool) -> None:
        """Raise UsageError for options that do not fit what is searched.

        whole: a graph in one part without delegates, else parts
        """

    @staticmethod
    def for_directed(options: SearchOptions) -> SearchOptions:
        """Return options with a method that searches directed graphs.

        Raises UsageError where another one is asked for.
        """

    def graph_of(
        self,
        part: Part,
        source: dict[str, Any] | None = None,
        permutation: Permutation | None = None,
    ) -> DeviceGraph:
        """Return a part that is a whole graph as a graph in device memory.

        source: what recreates the tuples; permutation: what took input ids to the ids
        of the part, to be undone: ids of the graph are the input's
        """

    def on_part(self, part: DevicePart, placement: Placement) -> DevicePartSearch:
        """Prepare the stepwise search of one part in device memory."""

    def on_level(self, part: DevicePart, placement: Placement) -> Any:
        """Prepare the search of one part whose levels run without the host.

        Returns an ``engines.cuda.level.LevelPart``.
        """

    def on_graph(self, graph: DeviceGraph) -> DeviceSearch:
        """Prepare the searches of a graph in device memory.

        Raises ResourceError, with what is needed and what there is, where the device
        has not the memory.
        """


def on_device(engine: object) -> bool:
    """Return whether an engine, or its class, is a ``DeviceEngine``."""
    return bool(getattr(engine, "on_device", False))
