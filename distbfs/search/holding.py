"""Loading of graphs to where they are searched, from a store, tuples or a part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from distbfs.build.host.kept import construct_kept
from distbfs.errors import OutOfMemory, UsageError
from distbfs.generate.derived import Counted, Turned
from distbfs.generate.hashing import permutation_by
from distbfs.options import BuildOptions
from distbfs.partition.layout import Layout, Placement
from distbfs.progress import Progress, Sum, no_progress
from distbfs.search.held import Held
from distbfs.search.store_names import VertexNames
from distbfs.search.vertices import VertexMap, shard_of_part, shard_of_share
from distbfs.search.view import seen_ends
from distbfs.store.hdf5 import Store
from distbfs.store.owned_rows import load_rows
from distbfs.store.tuples import (
    StoreTuples,
    permutation_of,
    spreading_seed,
    tuple_degrees_for,
)
from distbfs.store.whole import whole_graph, whole_part
from distbfs.types import World

if TYPE_CHECKING:
    from distbfs.generate.hashing import Permutation
    from distbfs.partition.part import Part
    from distbfs.partition.share import Share
    from distbfs.search.graph_input import HeldTuples
    from distbfs.types import Ids, TupleSource


class OwnGraph(VertexNames, Protocol):
    """A graph of a Python program's own data (a ``search.graph.Graph``)."""

    nodes: Sequence[Any] | None

    _tuples: HeldTuples | None
    """Edge tuples in device memory that the graph is built from, or None."""

    @property
    def _host_part(self) -> Part:
        """The graph as one part in host memory."""

    def reversed(self) -> OwnGraph:
        """Return the graph with all edges reversed."""


@dataclass(frozen=True)
class Source:
    """The origin of a graph: a store, tuples, or a ``Graph`` of this process.

    parts: number of parts of a store, or to build from tuples; build: options of
    building them
    turned: whether a directed store is searched along reversed edges
    buffer_bytes: device memory for keys while building, None for all that is free
    """

    n: int
    parts: int
    directed: bool = False
    turned: bool = False
    store: Store | None = None
    tuples: TupleSource | None = None
    graph: OwnGraph | None = None
    build: BuildOptions = field(default_factory=BuildOptions)
    buffer_bytes: int | None = None
    progress: Progress = no_progress

    def reversed(self) -> Source:
        """Return the graph with all edges reversed.

        Raises UsageError if edges lead both ways.
        """
        if not self.directed:
            raise UsageError("edges lead both ways; reverse is for directed graphs")
        if self.graph is not None:
            return replace(self, graph=self.graph.reversed())
        if self.tuples is not None:
            return replace(self, tuples=Turned(self.tuples))
        return replace(self, turned=True)

    def as_asked(self, part: Part) -> Part:
        """Return a part of the store, with its edges reversed if requested."""
        return part.reversed() if self.turned else part

    def any_tuples(self, edges: TupleSource | None = None) -> TupleSource:
        """Return edge tuples of the graph, in input ids.

        edges: those of the store, if they are on devices already
        """
        if self.tuples is not None:
            return self.tuples
        if self.store is None:
            raise UsageError("a Graph is searched on one device; store it for several")
        edges = edges or StoreTuples(self.store)
        return Turned(edges) if self.turned else edges

    @property
    def most_edges(self) -> int:
        """Number of stored directed edges, or the most that the tuples can give."""
        if self.store is not None:
            return self.store.manifest.m
        return self.input_tuples * (1 if self.directed else 2)

    @property
    def input_tuples(self) -> int:
        """Number of edge tuples that the graph was built from, or will be."""
        if self.store is not None:
            return self.store.manifest.tuples
        return self.any_tuples().tuples

    @property
    def is_whole(self) -> bool:
        """Whether a store has the graph in one part without delegates."""
        about = None if self.store is None else self.store.manifest
        return about is not None and about.parts == 1 and not about.delegates

    def whole_part(self) -> Part:
        """Return the graph as one part without delegates, in input ids."""
        if self.store is not None:
            return self.as_asked(whole_graph(self.store))
        return whole_part(self.any_tuples(), directed=self.directed)

    @contextmanager
    def telling(self, label: str, total: int = 0) -> Iterator[Sum]:
        """Yield a progress counter of long work."""
        with self.progress(label, total) as tell:
            yield Sum(tell, total)


def hold_host_parts(
    world: World, source: Source, *, owned: bool = False, by_rows: bool = False
) -> Held:
    """Load the parts of this rank to host memory (collective for tuples).

    owned: whether parts built from tuples own rows; by_rows: whether each rank takes
    rows of the only part of a store

    Raises LaunchError if the number of parts is not a multiple of the number of ranks,
    ResourceError if memory runs out.
    """
    if source.graph is not None:
        return held_parts(world, [source.graph._host_part], None)
    if source.store is None:
        return host_parts_built(
            world, source, source.parts, source.build, "building", owned=owned
        )
    store, rank = source.store, world.rank
    own = [0]
    if not by_rows:
        own = Placement(store.manifest.parts, world.size).parts_of(rank)
    nbytes, parts = sum(store.part_bytes(index) for index in own), []
    try:
        with source.telling("loading", nbytes) as done:
            for index in own:
                if by_rows:
                    part = load_rows(store, world.size, rank, done)
                else:
                    part = store.load_part(index, done)
                parts.append(source.as_asked(part))
            if source.turned:  # delegates have edges in all parts
                parts = [
                    replace(part, tuple_degrees=ends)
                    # mutant: seen_ends(world, parts) ->
                    #   [x.tuple_degrees for x in parts]
                    #   : test_directed_ranks::test_reversed_edges
                    for part, ends in zip(parts, seen_ends(world, parts), strict=True)
                ]
    except MemoryError as error:
        raise OutOfMemory(
            f"{store.folder}: the parts of rank {rank} hold {nbytes} bytes, and a "
            "search needs more: not enough memory"
        ) from error
    return held_parts(world, parts, permutation_of(store))


def cut_anew(
    world: World, source: Source, store: Store, threads: int, *, owned: bool = False
) -> Held:
    """Build one part per rank from the edges of a store (collective).

    owned: whether parts own rows
    """
    parts, ends = world.size, None
    seed = spreading_seed(store, parts)
    options = replace(
        source.build, permute_seed=seed, threads=threads, directed=source.directed
    )
    if not source.turned:
        ends = tuple_degrees_for(world, store, parts, seed)
    return host_parts_built(
        world, source, parts, options, "cutting anew", ends, owned=owned
    )


def host_parts_built(
    world: World,
    source: Source,
    parts: int,
    options: BuildOptions,
    label: str,
    ends: dict[int, Ids] | None = None,
    *,
    owned: bool = False,
) -> Held:
    """Build parts in host memory from edge tuples (collective).

    owned: whether the parts own rows, see ``construct``
    ends: number of ends of the original input tuples, by part and local id, if these
    tuples differ from the edges
    """
    made: list[Part] = []

    def take(part: Part) -> None:
        if ends is not None:
            part.tuple_degrees[:] = ends.pop(part.index)[part.vertices]
        made.append(part)

    tuples = source.any_tuples()
    with source.progress(label, tuples.tuples // world.size) as tell:
        counted = Counted(tuples, tell)
        summary = construct_kept(
            tuples, world, parts, options, take, counted, kept=True, owned=owned
        )
    return held_parts(
        world,
        made,
        permutation_by(source.n, options.permute_seed),
        generation_seconds=summary.generation_seconds,
        construction_seconds=summary.construction_seconds,
    )


def held_parts(
    world: World,
    parts: Sequence[Part],
    permutation: Permutation | None,
    memory: str = "parts",
    **about: Any,
) -> Held:
    """Wrap the parts of this rank for a session.

    memory: the field of ``Held`` for them; about: its others, such as times and facts
    """
    first = parts[0]
    shards = [shard_of_part(part) for part in parts]
    about[memory] = parts
    return Held(
        VertexMap(world, first.layout, shards, permutation),
        edges=sum(part.edges for part in parts),
        threshold=first.threshold if first.delegate_count else None,
        **about,
    )


def held_shares(
    world: World, layout: Layout, shares: Sequence[Share], **about: Any
) -> Held:
    """Wrap the shares of this rank's devices, possibly none, for a session.

    about: fields of ``Held``, such as times and facts
    """
    return Held(
        VertexMap(world, layout, [shard_of_share(share) for share in shares]),
        shares=shares,
        devices=[share.cuda_device for share in shares],
        edges=sum(share.m for share in shares),
        **about,
    )


def held_back(shares: Sequence[Share]) -> dict[str, int]:
    """Return the sizes of rows in host memory, empty if there are none.

    shares: those of this rank's devices
    """
    tails = [x.out.tails for x in shares if x.out.tails is not None]
    if not tails:
        return {}
    held = sum(share.held_back for share in shares)
    return {"held_back": held, "kept": tails[0].kept}
