"""A graph that stays loaded and is searched many times."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from distbfs import registry
from distbfs.engines.base import (
    WHOLE,
    Engine,
    LevelRecord,
    Until,
    WholeSearch,
    on_device,
)
from distbfs.errors import CompilerMissing, UsageError
from distbfs.exchange.base import Exchange
from distbfs.exchange.choose import choose_exchange
from distbfs.generate.hashing import Permutation
from distbfs.options import SearchOptions
from distbfs.partition.layout import Layout, Placement
from distbfs.partition.part import Part
from distbfs.search.blocks import BlockMap, input_ids
from distbfs.search.driver import Driver
from distbfs.search.lookup import values_at
from distbfs.search.parents import ParentCost, ParentFinder
from distbfs.timing import Trace, kept
from distbfs.types import Array, Ids, Stop, World

NEEDS_SYMMETRIC = (
    "a search of parts, level by level, needs a symmetric graph, and this one is "
    "directed; search it in one process without --stepwise"
)
DEVICE_EXCHANGES = ("nccl", "cuda_aware", "p2p")
DEVICE_OPTIONS = {  # which engine has them
    **dict.fromkeys(("frontier", "balance", "asynchronous"), "xbfs-paper"),
    "knobs": "bfs4k",
    **dict.fromkeys(("internal_ids", "share_device"), "xbfs"),
}


@dataclass
class Outcome:
    """One search; its arrays stay until the next one.

    level[i]: int32, of the i-th part of this rank by local id
    parent[i]: int32 or int64, ids inside, or None when not asked for
    seconds: the slowest rank's wall time; phases: this rank's seconds
    wall: the host's wall time, where ``seconds`` is that of a device

    Of a DeviceSession the arrays are CuPy's; see there.
    """

    root: int
    level: Sequence[Any]
    parent: Sequence[Any]
    levels: int
    seconds: float
    records: list[dict[str, Any]] = field(default_factory=list)
    phases: dict[str, float] = field(default_factory=dict)
    parent_cost: ParentCost = field(default_factory=ParentCost)
    wall: float | None = None
    order: Any = None  # of an engine that runs alone, see WholeResult


class AnySession(Protocol):
    """What commands use of a graph that is searched, wherever it is.

    world: the ranks; layout: vertices and parts; extent: rows of all blocks together

    All methods but ``keep`` and ``close`` are collective.
    """

    world: World
    options: SearchOptions
    layout: Layout

    @property
    def extent(self) -> int:
        """Rows of all blocks together."""

    @property
    def mode(self) -> str:
        """How searches run: resident (the engine alone) or stepwise."""

    def describe(self) -> dict[str, Any]:
        """Return what searches run on, for reports (JSON values)."""

    def notes(self) -> dict[str, str]:
        """Return what the text of a report adds: name -> text."""

    def check(self, roots: Ids) -> None:
        """Raise UsageError for input ids, int64 [k], that cannot be searched from."""

    def search(
        self,
        root: int,
        *,
        records: bool = False,
        parents: bool = True,
        stop: Stop | None = None,
    ) -> Outcome:
        """Search from an input id.

        parents: False leaves them out of this search; stop: on all ranks or on none,
        asked before each level.  SearchStopped on all ranks where one said yes.
        """

    def watch(self, trace: Trace) -> None:
        """Keep the phases of searches in a trace from now on (local)."""

    def at(self, outcome: Outcome, ids: Ids) -> tuple[Array, Array | None]:
        """Return (level int32 [k], parent int64 [k] or None) of input ids, int64 [k].

        -1 for what was not reached; equal on all ranks.  All ids must be vertices.
        """

    def level_counts(self, outcome: Outcome) -> Ids:
        """Return how many vertices each level has, int64 [levels], on all ranks."""

    def keep(self, outcome: Outcome) -> Outcome:
        """Return a search whose results outlast the next one."""

    def room(self, most: int) -> int:
        """Return how many bytes kept results may take, up to ``most``."""

    def block(self, outcome: Outcome) -> tuple[Array, Array | None]:
        """Return this rank's block of the results on the host.

        Level int32, parent int64 or None; by input id, or by number where there are
        ``vertices``.
        """

    def vertices(self) -> Ids | None:
        """Return the input ids of the rows of blocks, None where rows are input ids."""

    def reached(self, outcome: Outcome) -> tuple[int, int]:
        """Return (vertices reached, largest level)."""

    def traversed(self, outcome: Outcome) -> int:
        """Return the input tuples with an end in the reached component."""

    def connected(self, ids: Ids) -> Array:
        """Return which input ids have a neighbour besides themselves, bool [k]."""

    def close(self) -> None:
        """Free what searches hold."""


def check_roots(roots: Ids, n: int) -> None:
    """Raise UsageError unless all roots, int64 [k], are vertices."""
    outside = roots[(roots < 0) | (roots >= n)]
    if len(outside):
        allowed = f"allowed: 0 to {n - 1}" if n else "the graph has none"
        raise UsageError(f"source {outside[0]} is not a vertex; {allowed}")


def records_of(records: Iterable[LevelRecord]) -> list[dict[str, Any]]:
    """Return the records of an engine that ran alone as JSON values."""
    found = []
    for k, record in enumerate(records, 1):
        told = {"level": k, **vars(record)}
        found.append(told | told.pop("extra"))
    return found


def outcome_copied(outcome: Outcome) -> Outcome:
    """Return a search with copies of its arrays."""
    return replace(
        outcome,
        level=[copied(level) for level in outcome.level],
        parent=[None if p is None else copied(p) for p in outcome.parent],
    )


def copied(array: Any) -> Any:
    """Return a copy of an array, on its device where it is on one."""
    with array.device if hasattr(array, "get") else nullcontext():
        return array.copy()


def refuse_device_options(options: SearchOptions, engine: str) -> None:
    """Raise UsageError for options that only engines on a device have."""
    usual = SearchOptions()
    for name, owner in DEVICE_OPTIONS.items():
        if getattr(options, name) != getattr(usual, name):
            raise UsageError(f"{name} is for engine {owner}; the engine is {engine}")


def make_engine(
    world: World, options: SearchOptions, say: Callable[[str], None]
) -> Engine:
    """Return the engine that is asked for (collective).

    ``auto`` is openmp; where any rank lacks a compiler it is reference, and ``say`` is
    told so.
    """
    if options.engine != "auto":
        kind = registry.lookup(registry.ENGINES, "engine", options.engine)
        if not on_device(kind):
            refuse_device_options(options, options.engine)
        named: Engine = kind(options)
        return named
    refuse_device_options(options, "openmp")
    reason = ""
    try:
        engine: Engine = registry.lookup(registry.ENGINES, "engine", "openmp")(options)
    except CompilerMissing as error:
        reason = str(error)
    missing = world.allreduce(np.array([1 if reason else 0]), "max")
    if not missing[0]:
        return engine
    say(f"engine reference: {reason or 'another rank has no C compiler'}")
    plain = replace(options, engine="reference", method="")
    fallback: Engine = registry.lookup(registry.ENGINES, "engine", "reference")(plain)
    return fallback


def make_exchange(
    world: World,
    placement: Placement,
    delegates: int,
    options: SearchOptions,
    *,
    item: npt.DTypeLike = np.uint32,
    on_device: bool = False,
    name: str = "",
) -> Exchange:
    """Return the exchange that is asked for (collective); see ``exchange.base``.

    name: in the registry, where it is chosen already
    """
    name = name or choose_exchange(world, options.exchange, on_device)[0]
    made: Exchange = registry.lookup(registry.EXCHANGES, "exchange", name)(
        world, placement, delegates, options, item=item, on_device=on_device
    )
    return made


class Session:
    """The parts of this rank with their engine; searches are collective.

    permutation: the hash that took input ids to ids inside, or None
    """

    def __init__(
        self,
        world: World,
        parts: Sequence[Part],
        options: SearchOptions,
        permutation: Permutation | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.world = world
        self.parts = list(parts)
        self.options = options
        self.permutation = permutation
        self.layout = parts[0].layout
        if options.exchange in DEVICE_EXCHANGES:
            raise UsageError(
                f"exchange '{options.exchange}' is for parts on devices, with engine "
                "xbfs; allowed: auto, solo, host"
            )
        self.engine = make_engine(world, options, say)
        self.exchange: Exchange | None = None
        self._whole: WholeSearch | None = None
        self._trace: Trace | None = None
        alone = self.layout.parts == 1 and not parts[0].delegate_count
        if options.stepwise and parts[0].directed:
            raise UsageError(NEEDS_SYMMETRIC)
        if alone and not options.stepwise:
            self._whole = self.engine.whole(parts[0])
        else:
            placement = Placement(self.layout.parts, world.size)
            searches: list[Any] = [self.engine.attach(p, placement) for p in parts]
            self.exchange = make_exchange(
                world, placement, parts[0].delegate_count, options
            )
            parents = ParentFinder(world, placement, searches)
            self._driver = Driver(world, searches, self.exchange, options, parents)
        self._block = BlockMap(world, self.layout, self.parts, permutation)

    @property
    def mode(self) -> str:
        """How searches run: resident (the engine alone) or stepwise."""
        return "resident" if self._whole else "stepwise"

    @property
    def extent(self) -> int:
        """Rows of all blocks together: vertices."""
        return self.layout.n

    def describe(self) -> dict[str, Any]:
        """Return what searches run on, for reports."""
        exchange = self.exchange.name if self.exchange else "none"
        told = {**self.engine.describe(), "mode": self.mode, "exchange": exchange}
        return told if self._whole else {**told, "method": "parts"}

    def notes(self) -> dict[str, str]:
        """Return what the text of a report adds: nothing."""
        return {}

    def check(self, roots: Ids) -> None:
        """Raise UsageError for what is no vertex."""
        check_roots(roots, self.layout.n)

    def search(
        self,
        root: int,
        *,
        records: bool = False,
        parents: bool = True,
        until: Until = WHOLE,
        stop: Stop | None = None,
    ) -> Outcome:
        """Search from an input id; UsageError where it is no vertex (collective).

        until: with targets inside, for a graph that the engine searches alone
        stop: see ``AnySession``
        """
        self.check(np.array([root]))
        if until is not WHOLE and self._whole is None:
            raise UsageError("a search of parts cannot end early")
        inside = root
        if self.permutation is not None:
            inside = int(self.permutation.forward(np.array([root]))[0])
        self.world.barrier()
        began = time.perf_counter()
        span = kept(self._trace, "search", root=root)
        with span:
            outcome = self._run(root, inside, records, parents, until, stop)
        self.world.barrier()
        seconds = np.array([time.perf_counter() - began])
        outcome.seconds = float(self.world.allreduce(seconds, "max")[0])
        return outcome

    def _run(
        self,
        root: int,
        inside: int,
        records: bool,
        parents: bool,
        until: Until,
        stop: Stop | None,
    ) -> Outcome:
        if self._whole is not None:
            whole = self._whole.search(inside, records=records, until=until, stop=stop)
            return Outcome(
                root,
                [whole.level],
                [whole.parent if parents else None],
                whole.levels,
                0.0,
                records_of(whole.records),
                order=whole.order,
            )
        result = self._driver.search(
            inside, records=records, parents=parents, stop=stop
        )
        return Outcome(
            root,
            result.level,
            list(result.parent),
            result.levels,
            0.0,
            [record.as_dict() for record in result.records],
            result.seconds,
            result.parent_cost,
        )

    def watch(self, trace: Trace) -> None:
        """Keep the phases of searches in a trace from now on."""
        self._trace = trace
        if self._whole is None:
            self._driver.trace = trace

    def at(self, outcome: Outcome, ids: Ids) -> tuple[Array, Array | None]:
        """Return level and parent of input ids (collective); see ``AnySession``."""
        where = (self.world, self.layout, self.permutation)
        return values_at(*where, outcome.level, outcome.parent, ids)

    def level_counts(self, outcome: Outcome) -> Ids:
        """Return how many vertices each level has, int64 [levels] (collective)."""
        mine = [np.bincount(level[level >= 0]) for level in outcome.level]
        # one more than outcome.levels where the search ended early
        depth = self.world.allreduce(np.array([max(map(len, mine))]), "max")[0]
        counts = np.zeros(depth, dtype=np.int64)
        for found in mine:
            counts[: len(found)] += found
        return self.world.allreduce(counts)

    def keep(self, outcome: Outcome) -> Outcome:
        """Return a search whose results outlast the next one."""
        return outcome_copied(outcome)

    def room(self, most: int) -> int:
        """Return the bytes that kept results may take."""
        return most

    def vertices(self) -> None:
        """Return None: rows of blocks are input ids."""

    def block(self, outcome: Outcome) -> tuple[Array, Array | None]:
        """Return this rank's block of the results in input ids (collective).

        Rank r has the ids ``slice_bounds(n, size, r)``: level int32, parent int64.
        """
        level = self._block.gather(outcome.level)
        if any(parent is None for parent in outcome.parent):
            return level, None
        parents = [
            input_ids(np.asarray(parent, dtype=np.int64), self.permutation)
            for parent in outcome.parent
        ]
        return level, self._block.gather(parents)

    def reached(self, outcome: Outcome) -> tuple[int, int]:
        """Return (vertices reached, largest level) (collective)."""
        count = sum(int((level >= 0).sum()) for level in outcome.level)
        deepest = [int(level.max(initial=-1)) for level in outcome.level]
        total = self.world.allreduce(np.array([count]))
        most = self.world.allreduce(np.array([max(deepest, default=-1)]), "max")
        return int(total[0]), int(most[0])

    def traversed(self, outcome: Outcome) -> int:
        """Return the input tuples with an end in the reached component (collective).

        Loops and repeats count; each tuple once: half the ends at reached vertices.
        """
        ends = 0
        for part, level in zip(self.parts, outcome.level, strict=True):
            by_number = level[part.vertices] >= 0
            ends += int(part.tuple_degrees[by_number].sum())
        return int(self.world.allreduce(np.array([ends]))[0]) // 2

    def connected(self, ids: Ids) -> Array:
        """Return which input ids have a neighbour besides themselves (collective).

        ids: int64, equal on all ranks; bool of the same length, equal on all ranks.
        """
        inside = ids if self.permutation is None else self.permutation.forward(ids)
        found = np.zeros(len(ids), dtype=np.uint8)
        for part in self.parts:
            by_local = np.empty(part.local_count, dtype=bool)
            by_local[part.vertices] = part.degrees > 0
            here = self.layout.part_of(inside) == part.index
            found[here] = by_local[self.layout.local_of(inside[here])]
        seen: Array = self.world.allreduce(found, "max").astype(np.bool_)
        return seen

    def close(self) -> None:
        """Free buffers and pending requests."""
        if self.exchange is not None:
            self.exchange.close()
