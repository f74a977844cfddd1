"""The contracts of an engine: a whole graph alone, or one domain of many by levels.

A *vertex number* is the row of a normal vertex in its part (see ``partition.part``).
Results belong to local ids.

What an engine can do it declares in attributes of its class (``Engine``); there are no
methods for what it cannot do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from distbfs.build.cuda.seen import SeenEdges
from distbfs.engines.path_counts import PathCounter
from distbfs.exchange.bins import Bins
from distbfs.graph.device_graph import DeviceGraph
from distbfs.options import SearchOptions, depth_limit
from distbfs.partition.layout import Placement
from distbfs.partition.part import Part
from distbfs.types import Array, Choice, Ids, Root, Stop, Words


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
    targets: int64 [k], ids; the level that finds the last of them is the last one; an
        empty array is the same as None
    """

    depth: int | None = None
    targets: Ids | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", depth_limit("depth_limit", self.depth))
        if self.targets is not None and not len(self.targets):
            object.__setattr__(self, "targets", None)


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
        root: Root,
        *,
        records: bool = False,
        until: Until = WHOLE,
        stop: Stop | None = None,
    ) -> WholeResult:
        """Search from a vertex id; an engine may go on after ``until``.

        root: or the ids of a set, of engines that take ``sets``; no target is among
            them
        stop: asked before each level, of a device as of ``DeviceSearch``; SearchStopped
            where it said yes
        """


class ViewingSearch(Protocol):
    """Searches of a part, alone or of several, that may see some of it only.

    What engines that declare ``masks`` make of parts in host memory.
    """

    def see(self, part: Part) -> None:
        """See the edges that the rows of a part tell of, in later searches.

        part: the one that is searched, as it is or with ``SeenRows`` for all its rows;
        both directions of an edge are alike, also where they lie on different parts,
        and a vertex that is not seen has no edge that is
        """


class Work(NamedTuple):
    """What the next level would cost; counts add up over all domains.

    normals, delegates: of the frontier; nn: FV, edges of the frontier.  For each of dd,
    dn, nd: forward (FV), q (frontier vertices with such edges), s (unvisited vertices
    with such edges), u (unvisited vertices that could be found).  targets: those of
    ``Until`` that are not reached yet.  open: unvisited normal vertices with edges that
    leave their part, where an engine pulls by these; then nn counts the vertices of the
    frontier that have some.  Source: Pan et al. 2018, Section IV-B.
    """

    normals: int = 0
    delegates: int = 0
    nn: int = 0
    dd_forward: int = 0
    dd_q: int = 0
    dd_s: int = 0
    dd_u: int = 0
    dn_forward: int = 0
    dn_q: int = 0
    dn_s: int = 0
    dn_u: int = 0
    nd_forward: int = 0
    nd_q: int = 0
    nd_s: int = 0
    nd_u: int = 0
    targets: int = 0
    open: int = 0


COUNTS = len(Work._fields)


@dataclass(frozen=True)
class Targets:
    """The targets of a search that one domain owns, each once.

    numbers: int64 [k], of normal vertices; delegates: int64 [l], delegate numbers
    """

    numbers: Ids
    delegates: Ids


CHOSEN = ("dd", "dn", "nd")  # subgraphs whose direction is chosen between levels


class Offer(Protocol):
    """Takes what a domain has to send, each once a level and as soon as it is there."""

    def normals(self, bins: Bins) -> None:
        """Offer what nn found on other parts, when that visit is done.

        Items: uint32, numbers of the part they go to; uint64, with parents, of engines
        that carry them.  They stay as they are until ``accept``.
        """

    def bits(self, mask: Words) -> None:
        """Offer the delegates that dd and nd found, uint64 [ceil(d/64)].

        They stay as they are until ``accept``.
        """


class DomainSearch(Protocol):
    """The search of one domain of several, level by level; every call is local.

    A level is ``work``, ``advance``, ``accept``, in this order, also where this domain
    has no work.

    part: what the domain holds
    directions: the subgraphs whose direction is chosen between levels; an engine may
        choose the others by itself
    visits: what ``advance`` returns edge checks of; the first sends vertices to others
    carries_parents: what is sent has its parents with it, and the methods are those of
        a ``CarryingSearch``; else of an ``AskingSearch``
    streamed: it is a ``StreamedSearch``
    """

    part: Any
    directions: tuple[str, ...]
    visits: tuple[str, ...]
    carries_parents: bool
    streamed: bool

    def start(
        self,
        local: Root | None,
        delegate: Root | None,
        *,
        counting: bool = False,
        targets: Targets | None = None,
    ) -> None:
        """Forget the last search; set the root where this part knows it.

        local: the root's local id if it is a normal vertex of this part;
        delegate: the root's delegate number if it is one (the same on all parts);
        of a set both are arrays, which may be empty;
        counting: edge checks are wanted; else ``advance`` may return 0
        targets: to be counted in ``work`` until they are reached
        """

    def work(self) -> Ids:
        """Size the next level, whose frontier was found last.

        Returns the counts of ``Work``, int64 [COUNTS], valid until the next call.
        """

    def advance(self, choice: Choice, offer: Offer) -> Sequence[int]:
        """Run a level inside the domain; what is to be sent is offered meanwhile.

        choice: the direction of each of ``directions``.  Returns edge checks of each of
        ``visits``.
        """

    def accept(self, bits: Words | None, normals: Sequence[tuple[int, Array]]) -> None:
        """Make what this and all other parts found the frontier of the next level.

        bits: delegates found by all parts, uint64 [ceil(d/64)], None: by none
        normals: (source rank, numbers as ``Offer.normals`` has them) of this part
        """

    def finish(self) -> tuple[Array, Array | None]:
        """Return (level int32 [local count], parent [local count] or None).

        By local id, -1 = unreached; parents are vertex ids, int32 or int64; valid until
        the next search.
        """


class PullingSearch(DomainSearch, Protocol):
    """A domain whose edges to others go both ways: ``directions`` has their name.

    Where they are pulled, ``advance`` offers no normals; ``questions`` of all domains
    are exchanged, then their ``answers``, which ``accept`` takes.
    """

    def questions(self) -> Bins:
        """Return what this domain asks other parts, when ``advance`` was called."""

    def answers(self, questions: Sequence[tuple[int, Array]]) -> Bins:
        """Return what this domain answers other parts.

        questions: (source rank, what parts of it ask)
        """

    def accept(
        self,
        bits: Words | None,
        normals: Sequence[tuple[int, Array]],
        answers: Sequence[tuple[int, Array]] = (),
    ) -> None:
        """Make what all parts found the frontier; answers as normals, or instead."""


class AskingSearch(DomainSearch, Protocol):
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


class CarryingSearch(DomainSearch, Protocol):
    """A part on a device: arrays are CuPy's, and what is sent carries its parent.

    asks_for_delegates: it is a ``DelegateSearch``, else a ``MaximumSearch``
    """

    asks_for_delegates: bool


class MaximumSearch(CarryingSearch, Protocol):
    """Every part tells its parent of every delegate; the largest id serves."""

    def delegate_parents(self) -> Any:
        """Return the parents (vertex ids) of delegates that this part found, [d].

        -1 for the others; int32 or int64.
        """

    def take_delegate_parents(self, parents: Any) -> None:
        """Accept the parents of all reached delegates, as above."""


class DelegateSearch(CarryingSearch, Protocol):
    """A part asks for the parents of its delegates that others found, and it did not.

    Questions and answers are exchanged as normals are; uint64 items.
    """

    def ask_parents(self) -> Bins:
        """Return what this part asks others, when all levels are done."""

    def answer_parents(self, questions: Sequence[tuple[int, Array]]) -> Bins:
        """Return the parents that this part knows; questions: (source rank, items)."""

    def take_parents(self, answers: Sequence[tuple[int, Array]]) -> None:
        """Accept answers, of which there may be several for a delegate."""


@dataclass
class DeviceResult:
    """One search; arrays stay in device memory, valid until the next search.

    level: CuPy int8, of levels to 126, or int32; -1 = unreached
    parent: CuPy int32, -1 = unreached, or None
    Both by id [n]; by number [active] where internal ids were asked for.
    levels: the largest level and one
    seconds: device time between events; launches: kernels that it took
    give: lets the caller keep the arrays: the next search writes to others; None where
        they must be copied
    """

    level: Any
    parent: Any
    levels: int
    seconds: float
    launches: int
    records: list[LevelRecord] = field(default_factory=list)
    give: Callable[[], None] | None = None


class DeviceSearch(Protocol):
    """Searches a graph that is on the device."""

    graph: DeviceGraph
    in_ids: bool

    def search(
        self,
        root: Root,
        *,
        records: bool = False,
        until: Until = WHOLE,
        stop: Stop | None = None,
    ) -> DeviceResult:
        """Search from a vertex id; the result ends with the last level of ``until``.

        root: as of ``WholeSearch``
        stop: asked between launches, and while one runs from 1 ms on; its kernel looks
            at the answer between levels (``StopWord``).  SearchStopped where it said
            yes and there were levels left.
        """


class MaskedSearch(DeviceSearch, Protocol):
    """Searches that may see some edges only, of engines that declare ``masks``."""

    def see(self, view: SeenEdges | None) -> None:
        """See some edges in later searches; None: all.

        Both directions of an edge are alike, and a vertex that is not seen has no edge
        that is.
        """


@dataclass(frozen=True)
class NoOptions:
    """Of an engine without options of its own."""


class Engine(Protocol):
    """Makes searches; one per rank.

    on_device: graphs and results lie in the memory of CUDA devices
    alone: searches whole graphs, in one part without delegates
    domains: searches parts level by level, a ``DomainEngine``
    directed: searches directed graphs, too
    masks: searches may see some vertices and edges only: a ``ViewingSearch`` of parts
        in host memory, a ``MaskedSearch`` of a graph on one device
    sets: searches from several vertices at once, too
    takes: which of stepwise, internal_ids, device_memory, host_memory and the factors
        of directions it knows; with device_memory it searches a graph on one device
        whose rows have tails in host memory, and has ``state_bytes``
    needless: options of exchanges that would do nothing, where it has domains
    own: a dataclass, the options of the engine alone
    devices: how many may search one graph together without such levels
    """

    name: str
    methods: tuple[str, ...]
    on_device: bool
    alone: bool
    domains: bool
    directed: bool
    masks: bool
    sets: bool
    takes: tuple[str, ...]
    own: type
    devices: int

    def __init__(self, options: SearchOptions) -> None:
        """Check the options; UsageError names what is allowed."""

    def describe(self) -> dict[str, Any]:
        """Return what the engine runs on, for reports (JSON values)."""


class DomainEngine(Engine, Protocol):
    """Searches parts level by level."""

    def domain(self, part: Any, placement: Placement) -> DomainSearch:
        """Prepare the search of one part, level by level.

        part: a ``Part``, or a ``DevicePart`` for an engine on devices.  Raises
        UsageError for options that such searches do not have.
        """


class HostEngine(DomainEngine, Protocol):
    """Searches parts in host memory, level by level or alone."""

    def whole(self, part: Part) -> WholeSearch:
        """Prepare the search of a graph that is one part without delegates."""

    def counter(self, part: Part) -> PathCounter:
        """Prepare what counts the shortest paths of a graph that is one such part."""


class DeviceEngine(Engine, Protocol):
    """Searches graphs in the memory of one device.

    ``__init__`` raises DeviceMissing where there is no device.
    """

    def on_graph(self, graph: DeviceGraph) -> DeviceSearch:
        """Prepare the searches of a graph in device memory.

        Raises ResourceError, with what is needed and what there is, where the device
        has not the memory.
        """


def on_device(engine: object) -> bool:
    """Return whether an engine, or its class, searches in the memory of devices."""
    return bool(getattr(engine, "on_device", False))
