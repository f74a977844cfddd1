"""Load graphs where they are searched: from a store, from tuples, from a part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from distbfs.build.cuda.domain import construct_domain
from distbfs.build.cuda.graph import build
from distbfs.build.cuda.inner_part import ShareCounts
from distbfs.build.cuda.parts import construct_on_devices
from distbfs.build.cuda.room import Beside, Room, check_total, nothing_beside
from distbfs.build.cuda.seen import mask_bytes
from distbfs.build.host.kept import construct_kept
from distbfs.device import cuda
from distbfs.engines.cuda.common.graph_engine import graph_of_part
from distbfs.errors import OutOfMemory, UsageError
from distbfs.generate.counted import Counted
from distbfs.generate.hashing import permutation_by
from distbfs.options import BuildOptions, SearchOptions
from distbfs.partition.device_part import DevicePart
from distbfs.partition.layout import Layout, Placement
from distbfs.progress import Progress, Sum, no_progress
from distbfs.search.graph_rows import without_loops
from distbfs.search.held import Held
from distbfs.search.runners.seat import streams_bytes
from distbfs.search.shared_tuples import SharedTuples
from distbfs.search.vertices import (
    VertexMap,
    shard_of_device_part,
    shard_of_graph,
    shard_of_part,
    shard_of_rows,
)
from distbfs.store.cuda_graph import graph_of_store
from distbfs.store.cuda_part import part_of_store
from distbfs.store.cuda_rows import StoreRows, TupleEnds
from distbfs.store.hdf5 import ReadWatch, Store
from distbfs.store.tuples import (
    StoreTuples,
    permutation_of,
    spreading_seed,
    tuple_degrees_for,
)
from distbfs.timing import clock
from distbfs.types import World

if TYPE_CHECKING:
    from distbfs.generate.hashing import Permutation
    from distbfs.graph.device_graph import DeviceGraph
    from distbfs.partition.part import Part
    from distbfs.search.graph_input import HeldTuples
    from distbfs.types import Array, Ids, TupleSource


def watching(done: Sum) -> ReadWatch:
    """Return a callback that adds the bytes of slices read; see ``Store.load_part``."""

    def watch(name: str, array: Array, start: int, stop: int) -> None:  # noqa: ARG001
        done((stop - start) * array.itemsize)

    return watch


class OwnGraph(Protocol):
    """A graph of a Python program's own data (a ``search.graph.Graph``)."""

    nodes: Sequence[Any] | None

    @property
    def part(self) -> Part:
        """The graph as one part in host memory."""

    @property
    def lent_tuples(self) -> HeldTuples | None:
        """Edge tuples from which a device can build the graph, or None."""

    def id_of(self, vertex: Any) -> int:
        """Return the id of a vertex; UsageError for an unknown one."""

    def named(self, ids: Array) -> Array:
        """Return the names of vertices, int64 [k], as an array [k]."""

    def __contains__(self, vertex: object) -> bool: ...


@dataclass(frozen=True)
class Source:
    """The origin of a graph: a store, tuples, or a ``Graph`` of this process.

    parts: of a store, or to build from tuples; build: options of that
    buffer_bytes: of device memory for keys while building, None: what is free
    """

    n: int
    parts: int
    directed: bool = False
    store: Store | None = None
    tuples: TupleSource | None = None
    graph: OwnGraph | None = None
    build: BuildOptions = field(default_factory=BuildOptions)
    buffer_bytes: int | None = None
    progress: Progress = no_progress

    def any_tuples(self) -> TupleSource:
        """Return edge tuples of the graph, in input ids."""
        if self.tuples is not None:
            return self.tuples
        if self.store is None:
            raise UsageError("a Graph is searched on one device; store it for several")
        return StoreTuples(self.store)

    @contextmanager
    def telling(self, label: str, total: int = 0) -> Iterator[Sum]:
        """Yield a progress counter of long work; total: if known beforehand."""
        with self.progress(label, total) as tell:
            yield Sum(tell, total)


def bytes_of(store: Store, indices: Sequence[int]) -> int:
    """Return the bytes of some parts in memory."""
    return sum(store.part_bytes(index) for index in indices)


def hold_host_parts(world: World, source: Source) -> Held:
    """Load the parts of this rank to host memory (collective for tuples).

    Raises LaunchError where the parts do not divide by the ranks, ResourceError where
    memory is short.
    """
    if source.graph is not None:
        return held_parts(world, [source.graph.part], None)
    if source.store is None:
        return host_parts_built(world, source, source.parts, source.build, "building")
    store = source.store
    own_parts = Placement(store.manifest.parts, world.size).parts_of(world.rank)
    try:
        with source.telling("loading", bytes_of(store, own_parts)) as done:
            watch = watching(done)
            parts = [store.load_part(index, watch) for index in own_parts]
    except MemoryError as error:
        raise OutOfMemory(
            f"{store.folder}: the parts of rank {world.rank} hold "
            f"{bytes_of(store, own_parts)} bytes, and a search needs more: not "
            "enough memory"
        ) from error
    return held_parts(world, parts, permutation_of(store))


def cut_anew(world: World, source: Source, store: Store, threads: int) -> Held:
    """Build one part a rank from the edges of a store (collective)."""
    parts = world.size
    seed = spreading_seed(store, parts)
    ends = tuple_degrees_for(world, store, parts, seed)
    options = replace(source.build, permute_seed=seed, threads=threads)
    return host_parts_built(world, source, parts, options, "cutting anew", ends)


def host_parts_built(
    world: World,
    source: Source,
    parts: int,
    options: BuildOptions,
    label: str,
    ends: dict[int, Ids] | None = None,
) -> Held:
    """Build parts in host memory from edge tuples (collective).

    ends: of the original input tuples, by part and local id, if these differ
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
            tuples, world, parts, options, take, counted, kept=True
        )
    held = held_parts(world, made, permutation_by(source.n, options.permute_seed))
    held.generation_seconds = summary.generation_seconds
    held.construction_seconds = summary.construction_seconds
    return held


def held_parts(
    world: World, parts: Sequence[Part], permutation: Permutation | None
) -> Held:
    """Wrap parts in host memory for a session (collective)."""
    first = parts[0]
    shards = [shard_of_part(part) for part in parts]
    return Held(
        VertexMap(world, first.layout, shards, permutation),
        parts=parts,
        edges=sum(part.edges for part in parts),
        threshold=first.threshold if first.delegate_count else None,
    )


def held_graph(world: World, n: int, graph: DeviceGraph | None) -> Held:
    """Wrap a graph on the device of one rank for a session.

    graph: None on the other ranks
    """
    if graph is None:
        return Held(VertexMap(world, Layout(n, 1), []))
    generation = graph.seconds.get("generation", 0.0)
    return Held(
        VertexMap(world, Layout(n, 1), [shard_of_graph(graph)]),
        graph=graph,
        devices=[int(graph.numbers.device)],
        edges=graph.m,
        generation_seconds=generation,
        construction_seconds=sum(graph.seconds.values()) - generation,
        facts={
            "graph": {
                "n": graph.n,
                "active": graph.active,
                "m": graph.m,
                "bytes": graph.nbytes,
                **held_back([graph]),
                "seconds": dict(graph.seconds),
            }
        },
    )


def held_back(graphs: Sequence[DeviceGraph]) -> dict[str, int]:
    """Return the sizes of rows in host memory, empty if there are none.

    graphs: of this rank's devices
    """
    tails = [graph.tails for graph in graphs if graph.tails is not None]
    if not tails:
        return {}
    held = sum(graph.held_back for graph in graphs)
    return {"held_back": held, "kept": tails[0].kept}


def graph_on_device(
    source: Source,
    engine: Any,
    options: SearchOptions,
    *,
    masked: bool = False,
    beside: Beside = nothing_beside,
) -> DeviceGraph:
    """Load a graph to the current device, in input ids.

    The rows of a store are assembled on the device as they are read. What does not fit
    beside the searches of the engine goes to host memory, if the engine supports that.

    masked: leave room for the bits of masked searches; beside: as in ``Request``
    """

    def state(n: int, active: int, m: int, at_least: Ids) -> int:
        need: int = engine.state_bytes(n, active, m, at_least) + beside(active, 1, 0)
        return need + masked * mask_bytes(n, active, m)

    form: dict[str, Any] = {"buffer_bytes": source.buffer_bytes, "room": None}
    if "device_memory" in engine.takes and not source.directed:
        memory = options.device_memory, options.host_memory
        form["room"] = Room(*memory, state)
    if source.graph is not None:
        lent = source.graph.lent_tuples
        if lent is None:
            part = without_loops(source.graph.part)
            return graph_of_part(engine.name, part, form["room"])
        form |= {"directed": source.directed, "distinct": lent.distinct}
        with source.telling("building") as done:
            return build(lent, **form, done=done)
    if source.store is None:
        form["directed"] = source.directed
        with source.telling("building") as done:
            return build(source.any_tuples(), **form, done=done)
    with source.telling("loading") as done:
        return graph_of_store(source.store, **form, done=done)


def hold_domain(
    world: World,
    source: Source,
    devices: Sequence[int],
    engine: Any,
    options: SearchOptions,
    *,
    masked: bool = False,
    beside: Beside = nothing_beside,
) -> Held:
    """Load a graph to the devices of all ranks as one domain (collective).

    What does not fit the devices beside the searches of the engine goes to host memory.

    devices: of this rank, each of which keeps its rows
    masked: leave room for the bits of masked searches; beside: as in ``Request``
    """
    store, shared = source.store, None
    if store is not None:
        with source.telling("loading") as done:
            shared = SharedTuples(world, store, devices, done)
    tuples = shared or source.any_tuples()
    count = world.size * len(devices)
    layout = Layout(source.n, count)

    def state(local: int, active: int, m: int, at_least: Ids) -> int:
        need: int = engine.member_bytes(layout, local, active, m, at_least)
        need += beside(active, count, 0)
        return need + masked * mask_bytes(local, active, m)

    with source.telling("building") as done:
        parts, summary = construct_domain(
            tuples,
            world,
            count,
            buffer_bytes=source.buffer_bytes,
            devices=devices,
            done=done,
            room=Room(options.device_memory, options.host_memory, state),
        )
    if shared is not None:
        for part in parts:
            with part.names.device, cuda.memory_of("the ends of input tuples"):
                part.take_ends(shared.ends.pop(part.index), shared.input_tuples)
        shared.close()  # not after an error
    return Held(
        VertexMap(world, layout, [shard_of_rows(x) for x in parts]),
        rows=parts,
        devices=devices,
        edges=sum(part.graph.m for part in parts),
        generation_seconds=summary.generation_seconds,
        construction_seconds=summary.construction_seconds,
        facts={
            "part": {
                "bytes": sum(part.graph.nbytes for part in parts),
                "making": summary.making,
                **held_back([part.graph for part in parts]),
            }
        },
    )


def hold_device_parts(
    world: World,
    source: Source,
    devices: Sequence[int],
    placement: Placement,
    room: Room | None = None,
) -> Held:
    """Load the degree-separated parts of this rank to its devices (collective).

    devices: of this rank, which take its parts in turn
    placement: of the parts, or of the shares of domains of several devices
    room: of each device, if rows that are made of them may have tails; a store whose
    parts a device has no room for beside these is read as tuples

    Raises OutOfMemory on all ranks for a graph that fits no memory of them together.
    """
    free = 0 if room is None else free_of(devices, room)

    def check(m: int) -> None:
        if room is not None:
            check_total(world, room, m, free)

    permutation, generation, construction = None, 0.0, 0.0
    made: dict[str, Any] = {}
    own_parts = placement.parts_of(world.rank)
    dealt = [devices[k % len(devices)] for k in range(len(own_parts))]
    store = source.store
    loads = store is not None and store.manifest.parts == placement.parts
    if store is not None and loads and room is not None:
        check(store.manifest.m)
        need = sum(
            store.part_bytes(k) + 4 * store.manifest.m // placement.parts
            for k in own_parts
        )
        loads = not world.allreduce(np.array([need > free]), "max")[0]
    if store is not None and loads:
        permutation = permutation_of(store)
        with source.telling("loading") as done:
            parts = parts_of_store(store, own_parts, dealt, done)
    else:
        with source.telling("building") as done:
            parts, summary = construct_on_devices(
                source.any_tuples(),
                world,
                placement,
                source.build,
                domains=source.parts,
                buffer_bytes=source.buffer_bytes,
                devices=dealt,
                done=done,
                check=check,
                room=room,
            )
        generation = summary.generation_seconds
        construction = summary.construction_seconds
        made["making"] = summary.making
        permutation = permutation_by(source.n, source.build.permute_seed)
        if store is not None:
            with source.telling("loading") as done:
                count_input_tuples(store, parts, done)
    first = parts[0]
    shards = [shard_of_device_part(part) for part in parts]
    return Held(
        VertexMap(world, first.layout, shards, permutation),
        device_parts=parts,
        devices=dealt,
        edges=sum(rows.edges for part in parts for rows in subgraphs(part)),
        threshold=first.threshold if first.delegate_count else None,
        generation_seconds=generation,
        construction_seconds=construction,
        facts={
            "part": {
                "bytes": sum(part.graph_bytes for part in parts),
                "delegates": first.delegate_count,
                "threshold": first.threshold,
                **made,
            }
        },
    )


def free_of(devices: Sequence[int], room: Room) -> int:
    """Return the bytes that devices have together for graphs and their searches."""
    free = 0
    for device in devices:
        with cuda.cupy().cuda.Device(device):
            free += max(room.free(), 0)
    return free


def share_room(
    engine: Any,
    options: SearchOptions,
    *,
    streamed: bool,
    masked: bool,
    beside: Beside,
) -> Room:
    """Return the memory limits of parts between domains, and of their searches.

    streamed, masked: leave room for levels on streams; for the bits of masked searches
    beside: as in ``Request``
    """

    def state(share: ShareCounts) -> int:
        need: int = engine.share_bytes(share)
        outer, domains = share.outer_edges, share.domains
        devices = domains.sizes[domains.domain_of(share.index)]
        need += beside(share.active, devices, share.targets)
        if streamed:
            box = int(max(outer.max(), share.owned.max()))
            need += streams_bytes(share.layout.parts, box, share.delegates)
        if masked:
            local = share.layout.local_count(share.index)
            need += mask_bytes(local, share.active, share.m) + 8 * share.targets
            need += mask_bytes(local, share.active, int(outer.sum()))
        return need

    return Room(options.device_memory, options.host_memory, state)


def count_input_tuples(store: Store, parts: Sequence[DevicePart], done: Sum) -> None:
    """Set the ends of the original tuples in parts built from a store's edges."""
    for part in parts:
        what = f"the ends of tuples of part {part.index}"
        with part.vertices.device, cuda.memory_of(what):
            ends = cuda.cupy().zeros(part.local_count, np.uint32)
            owner = TupleEnds(part.layout.parts, part.index, ends)
            StoreRows(store, (), ends=[owner], done=done)
            part.tuple_degrees = ends[part.vertices]


def subgraphs(part: DevicePart) -> tuple[Any, ...]:
    """Return nn, nd, dn and dd of a part."""
    return part.nn, part.nd, part.dn, part.dd


def parts_of_store(
    store: Store, indices: Sequence[int], devices: Sequence[int], done: Sum
) -> list[DevicePart]:
    """Load parts of a store to the memory of devices, one each."""
    parts = []
    for index, device in zip(indices, devices, strict=True):
        with cuda.cupy().cuda.Device(device), cuda.memory_of(f"part {index}"):
            parts.append(part_of_store(store, index, done))
    return parts


def timed(held: Held, began: float) -> Held:
    """Add the time since ``began`` to a graph's construction time."""
    held.construction_seconds += clock() - began
    return held
