"""The contracts of an engine: searches of a whole graph, or of one domain by levels.

A *vertex number* is the row of a normal vertex in its part (see ``partition.part``).
Results are indexed by local id.

An engine declares its abilities in attributes of its class (``Engine``), and implements
only the methods that these abilities require.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import (
    Any,
    ClassVar,
    Generic,
    NamedTuple,
    Protocol,
    TypeAlias,
    TypeVar,
)

import numpy as np

from distbfs.device import cuda
from distbfs.distinct import distinct
from distbfs.errors import UsageError
from distbfs.exchange.bins import Bins
from distbfs.options import SearchOptions, check_choice, depth_limit
from distbfs.types import Array, Choice, Ids, Root, Stop, Words

TAIL_BYTES = "tail_bytes"  # count of engines that read columns in host memory
TAIL_COUNTS = ("tail_edges", TAIL_BYTES)  # of a level, where rows have tails
PRUNED = "pruned"  # count of engines that prune trees: found without being searched


@dataclass(frozen=True)
class LevelRecord:
    """One level of a search that an engine ran without an exchange.

    direction: the engine's name for the kind of level
    frontier: number of vertices whose rows were read: frontier vertices in a push,
    unvisited ones in a pull
    checks: number of edge checks; found: number of vertices found
    seconds: wall time; extra: further counts of the engine, by name
    """

    direction: str
    frontier: int
    checks: int
    found: int
    seconds: float
    extra: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Until:
    """The conditions for the early end of a search.

    depth: the last level whose vertices are wanted, None for all
    targets: int64 [k], ids; the search ends with the level that finds the last of them;
    an empty array means the same as None
    """

    depth: int | None = None
    targets: Ids | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", depth_limit("depth_limit", self.depth))
        if self.targets is not None and not len(self.targets):
            object.__setattr__(self, "targets", None)

    def beyond(self, root: Root, n: int) -> Until:
        """Return these conditions with each target once, ascending, without roots.

        Roots are found before the first level: if all targets are, nothing follows it.

        n: number of vertices

        Raises UsageError for a target that is not a vertex.
        """
        if self.targets is None:
            return self
        targets: Ids = distinct(np.asarray(self.targets, dtype=np.int64))
        for target in targets[[0, -1]].tolist():
            if not 0 <= target < n:
                raise UsageError(f"target is {target}; allowed: 0 to {n - 1}")
        others = targets[~np.isin(targets, root)]
        # mutant: Until(0) -> Until() : test_until_fast::test_levels_and_targets
        return Until(self.depth, others) if len(others) else Until(0)


WHOLE = Until()


@dataclass
class WholeResult:
    """Levels and parents of one search; arrays stay valid until the next search.

    level: by vertex id, [n], -1 = unreached, or None if not requested. In host memory
    int32; on a device CuPy int8, if no level exceeds 126, or int32, and by number,
    [active], if internal ids were requested
    parent: the same, int32, or None if not requested
    levels: number of levels that were run; in host memory, the last finds nothing
    unless the search ended early
    seconds: device time between events, None in host memory
    give: hands the arrays over to the caller, so that the next search writes to others;
    None if they must be copied instead
    order: integers [reached], ids in the order of a queue that scans the part's rows
    from left to right, or None if unknown
    """

    level: Any
    parent: Any
    levels: int
    seconds: Any = None
    records: list[LevelRecord] = field(default_factory=list)
    give: Callable[[], None] | None = None
    order: Array | None = None


class ShortestPath(NamedTuple):
    """A path from the nearest of some sources to a target.

    vertices: int64 [k], ids from source to target, empty if there is no path
    checks: number of edge checks
    """

    vertices: Ids
    checks: int = 0


NO_PATH = ShortestPath(np.zeros(0, dtype=np.int64))


FindPath: TypeAlias = Callable[[Root, int, "Stop | None"], ShortestPath | None]
"""Finds a shortest path from a vertex, or the nearest of a set, to a target.

It is called with internal ids and ``stop``, as ``WholeSearch.search`` is; results of
earlier searches are not overwritten.  None means that a search must find the path.
"""


class Query(NamedTuple):
    """What is asked of one search beside its root.

    records: whether to count and time each level
    parents: whether parents are wanted, if searches find them
    until: the end of the search, equal on all ranks
    stop: called before each level; on devices between launches and, from 1 ms on,
    during a launch; the kernel reads its answer between levels (``StopWord``). If it
    returns True while levels are left, the search raises SearchStopped.
    """

    records: bool = False
    parents: bool = True
    until: Until = WHOLE
    stop: Stop | None = None


Answer_co = TypeVar("Answer_co", covariant=True)


class Searching(ABC, Generic[Answer_co]):
    """Searches one graph, one search after the other.

    path: the search for a path with fewer edge checks than ``search``, or None
    """

    path: FindPath | None = None

    def search(self, root: Root, **asked: Any) -> Answer_co:
        """Search from a root; asked: the fields of ``Query``."""
        return self.answer(root, Query(**asked))

    @abstractmethod
    def answer(self, root: Root, query: Query) -> Answer_co:
        """Search from an internal id, or from several."""


class WholeSearch(Searching[WholeResult]):
    """Searches a graph of one part without delegates, in host memory or on a device.

    In host memory, a search may continue beyond ``until``. The root is a vertex id or,
    for engines with ``sets``, ids; no target is among them. Some search by vertex
    number instead: then targets are numbers, too, levels are int32, and results are by
    number, [active].
    """

    def see(self, view: Any) -> None:
        """Restrict later searches to some edges (``masks``).

        view: in host memory the searched part, unchanged or with ``SeenRows`` for all
        its rows; on a device ``SeenEdges``, None for all edges. Both directions of an
        edge must be equally visible, even on different parts, and so must its places in
        rows of edges out and in; a hidden vertex must have no visible edge.
        """
        raise NotImplementedError


class Work(NamedTuple):
    """Predicted work of the next level; counts add up over all domains.

    normals, delegates: numbers of normal vertices and of delegates in the frontier
    nn: FV, number of nn edges of the frontier
    dd, dn, nd: for each of these, forward (FV), q (frontier vertices with such edges),
    s (unvisited vertices with such edges), u (unvisited vertices that could be found)
    targets: number of the targets of ``Until`` that have not been reached
    open: number of unvisited normal vertices with edges to other parts, for engines
    that pull along these; nn is then the number of frontier vertices with such edges

    Source: Pan et al. 2018, Section IV-B.
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

    numbers: int64 [k], numbers of normal vertices; delegates: int64 [l], delegate
    numbers
    hung: int64 [j], delegate numbers for targets among the leaves that are left out;
    such a target is reached one level after its delegate
    """

    numbers: Ids
    delegates: Ids
    hung: Ids


CHOSEN = ("dd", "dn", "nd")  # subgraphs whose direction is chosen between levels
INNER = "inner"  # edges inside a part; dd_forward, dd_u: prices of push and pull
OUTER = "outer"  # edges that leave a part, in both directions


OWN = "own"  # each part finds the parents of its vertices
ASKED = "asked"  # a part asks others for the parents of delegates that only they found
LARGEST = "largest"  # all parts report parents of delegates; the largest id is taken


class DomainSearch(Protocol):
    """The search of one domain of several, level by level; every call is local.

    A level consists of ``work``, ``advance``, ``accept``, in this order, even if this
    domain has no work, and of ``checks`` if edge checks are counted. What else is
    called depends on the attributes:

    part: the part of the domain
    directions: the subgraphs whose direction is chosen between levels; the engine may
    choose those of other subgraphs itself. If OUTER is among them, edges to other
    domains are pushed or pulled: when they are pulled, ``advance`` yields no normals,
    the ``questions`` of all domains are exchanged, then their ``answers``, which are
    passed to ``accept``.
    visits: names of the edge checks of a level; the first visit sends vertices to other
    domains
    extras: names of the further counts that ``checks`` returns after these
    parents: who finds the parents of delegates, one of OWN, ASKED and LARGEST
    streamed: whether levels may run on streams, see ``engines.streamed``
    in_rounds: whether boxes for others may have less room than a level needs; equal on
    all domains. Items that did not fit are sent in further rounds, as long as any
    domain has ``more``: after a push, those of ``rest``; after a pull, further
    ``questions``. ``take`` receives the items of each round except the last,
    ``accept`` those of the last.
    leaves: whether it leaves out normal vertices whose only edge leads to a delegate;
    they get level and parent in ``finish``
    """

    part: Any
    directions: tuple[str, ...]
    visits: tuple[str, ...]
    extras: tuple[str, ...]
    parents: str
    streamed: bool
    in_rounds: bool
    leaves: bool

    def see(self, part: Any) -> None:
        """Restrict later searches to the edges that a view shows (``masks``).

        part: see ``WholeSearch.see`` and ``Engine``
        """

    def start(
        self,
        local: Root | None,
        delegate: Root | None,
        *,
        counting: bool = False,
        targets: Targets | None = None,
    ) -> None:
        """Reset the search; set the root where this part has it.

        local: the root's local id if it is a normal vertex of this part
        delegate: the root's delegate number if it is a delegate (the same on all parts)
        For a set of roots, both are arrays, possibly empty.
        counting: whether to count edge checks
        targets: vertices that ``work`` counts until they are reached
        """

    def work(self) -> Ids:
        """Measure the next level, whose frontier is what the last level found.

        Returns the counts of ``Work``, int64 [COUNTS], valid until the next call.
        """

    def advance(self, choice: Choice) -> Iterator[Bins | Words]:
        """Run a level inside the domain; yield outgoing data as it becomes ready.

        First the vertices that nn found on other parts, as ``Bins``: an item is uint64,
        its upper 32 bits are a number in the receiving part, the lower 32 bits stand
        for the parent. Then the delegates that dd and nd found, uint64 [ceil(d/64)].
        The arrays stay unchanged until ``accept``.

        choice: the direction of each subgraph in ``directions``
        """

    def checks(self) -> Sequence[int]:
        """Return the edge checks of each of ``visits``, and ``extras``, of a level.

        Call it after ``accept``, and only if the search counts.
        """

    def accept(self, bits: Words | None, items: Sequence[tuple[int, Array]]) -> None:
        """Merge what all parts found into the frontier of the next level.

        bits: delegates that any part found, uint64 [ceil(d/64)], None if there are none
        items: (source rank, items as in ``advance``) for this part; in a pull of edges
        to other domains, the answers to its questions
        """

    def finish(self) -> tuple[Array, Array | None]:
        """Return (level int32 [local count], parent [local count] or None).

        Both are by local id, -1 = unreached; parents are vertex ids, int32 or int64.
        The arrays are valid until the next search.
        """

    def check(self) -> None:
        """Raise DistbfsError if ``finish`` failed (``leaves``), once all have ended."""

    def hung(self, numbers: Ids) -> tuple[Ids, Ids]:
        """Return (numbers that are not left out, delegates of the ``leaves``).

        numbers: int64 [k], as in ``Targets``. The delegates are vertex ids, int64, each
        once.
        """

    def questions(self) -> Bins:
        """Return this domain's questions to other parts, after ``advance``."""

    def answers(self, questions: Sequence[tuple[int, Array]]) -> Bins:
        """Return this domain's answers to other parts.

        questions: (source rank, questions of its parts)
        """

    def more(self) -> bool:
        """Return whether more must be sent; call it when a round has arrived."""

    def rest(self) -> Bins:
        """Return pushed vertices that have not fitted yet, as in ``advance``."""

    def take(self, items: Sequence[tuple[int, Array]]) -> None:
        """Merge the items received in a round, as in ``accept``."""

    def delegate_parents(self) -> Array:
        """Return the parents (vertex ids) of delegates that this part found, [d].

        Delegates that it did not find have -1; int32 or int64, in host memory.
        """

    def take_delegate_parents(self, parents: Array) -> None:
        """Set the parents of all reached delegates, in host memory."""

    parent_rounds: int
    """Number of rounds of questions for parents, equal on all parts."""

    def ask_parents(self, turn: int = 0) -> Bins:
        """Return this part's questions to other parts, after the last level.

        Questions and answers are exchanged like normals, as uint64 items.

        turn: index of the round
        """

    def answer_parents(self, questions: Sequence[tuple[int, Array]]) -> Bins:
        """Return the parents that this part knows; questions: (source rank, items)."""

    def take_parents(self, answers: Sequence[tuple[int, Array]]) -> None:
        """Set parents from answers, of which a delegate may have several."""


@dataclass(frozen=True)
class NoOptions:
    """Marks an engine without options of its own."""


class Engine:
    """Creates searches; one per rank. Subclasses declare their abilities.

    on_device: whether graphs and results are in the memory of CUDA devices; if not, it
    has ``path_sums(level, depth, dtype)``, see ``PathSums``
    whole_graphs: whether it searches whole graphs: on a device those in its memory, by
    ``on_graph(graph)``, else one part without delegates, by ``whole(part)``; both
    return a ``WholeSearch``
    domains: whether it searches parts level by level: ``domain(part, placement)``
    returns a ``DomainSearch`` of a ``Part``
    directed: whether it searches directed graphs as well
    masks: whether it searches views of a graph. Its searches then have ``see``, which
    takes a part in host memory or, on devices, ``SeenEdges``.
    sets: whether it searches from several vertices at once as well
    takes: the options that it supports among stepwise, internal_ids, device_memory,
    host_memory and the factors of directions. With device_memory, it searches graphs
    whose rows have tails in host memory, and has ``likely``, the kernels that may be
    compiled before the graph exists, and ``search_bytes``, the bytes of searches of a
    share from ``ShareCounts``; if it has ``domains``, also ``of_shares``.
    needless: for engines with domains, options of exchanges that have no effect
    own: a dataclass with the engine's own options
    devices: the number of devices that may search one graph together without exchanges
    """

    name: ClassVar[str]
    methods: ClassVar[tuple[str, ...]]  # the first is the default
    takes: ClassVar[tuple[str, ...]] = ()
    needless: ClassVar[tuple[str, ...]] = ()
    own: ClassVar[type] = NoOptions
    on_device = whole_graphs = domains = directed = masks = sets = False
    devices = 1

    def __init__(self, options: SearchOptions) -> None:
        """Check the options; raise UsageError, which names the allowed ones.

        Raises DeviceMissing if the engine needs a device and there is none.
        """
        self.options, self.method = options, options.method or self.methods[0]
        self.check()
        if self.on_device:
            cuda.cupy()

    def check(self) -> None:
        """Raise UsageError for option values that the engine does not support."""
        check_choice("method", self.method, self.methods)

    def describe(self) -> dict[str, Any]:
        """Return the engine's hardware and settings, for reports (JSON values)."""
        device = cuda.describe() if self.on_device else {}
        return {"engine": self.name, "method": self.method, "threads": 1, **device}


def on_device(engine: object) -> bool:
    """Return whether an engine, or its class, searches graphs in device memory."""
    return bool(getattr(engine, "on_device", False))
