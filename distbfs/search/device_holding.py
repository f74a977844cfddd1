"""Loading of graphs to devices from a store, from tuples, or from a part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.build.cuda.domain import construct_domain, take_ends
from distbfs.build.cuda.graph import build
from distbfs.build.cuda.graph_of_rows import graph_of_part
from distbfs.build.cuda.kernels import OF_GRAPHS
from distbfs.build.cuda.parts import construct_on_devices
from distbfs.build.cuda.room import Room, check_total
from distbfs.build.cuda.seen import mask_table
from distbfs.device import cuda, nvrtc
from distbfs.device.array_table import total_bytes
from distbfs.exchange import peer_memory
from distbfs.generate.hashing import permutation_by
from distbfs.graph.device_graph import reversed_at_least
from distbfs.partition.layout import Layout, Placement
from distbfs.partition.part import Part
from distbfs.progress import Sum
from distbfs.search.graph_rows import without_loops
from distbfs.search.held import Held
from distbfs.search.holding import Source, held_back, held_parts, held_shares
from distbfs.search.runners.seat import streams_table
from distbfs.search.shared_tuples import SharedTuples, edge_bytes
from distbfs.store.cuda_files import TupleEnds
from distbfs.store.cuda_graph import graph_of_store
from distbfs.store.cuda_part import part_of_store
from distbfs.store.cuda_rows import StoreRows
from distbfs.store.hdf5 import Store
from distbfs.store.tuples import permutation_of
from distbfs.types import World

if TYPE_CHECKING:
    from distbfs.partition.share import Share, ShareCounts
    from distbfs.search.choose import Request


BESIDE_EDGES = 4  # free memory over that of shared edges: keys, rows, searches


def room_beside(
    engine: Any, request: Request, *, streamed: bool = False, turned: bool = False
) -> Room:
    """Return the memory limits of shares, and of their searches.

    streamed: leave room for levels on streams between domains; turned: searches are
    along reversed edges
    """

    def state(share: ShareCounts) -> int:
        if turned:
            turned_at_least = reversed_at_least(share.active, share.at_least)
            share = replace(share, at_least=turned_at_least)
        need: int = engine.search_bytes(share)
        need += request.beside(share)
        local, active, outer = share.local, share.active, share.outer_edges
        if streamed:
            owned = int(share.owned.max())
            table = streams_table(share.layout.parts, owned, share.delegates)
            need += total_bytes(table)
        if request.masked:
            of_outer = [] if outer is None else [int(outer.sum())]
            for columns in (share.m, *of_outer):
                table = mask_table(local, active, columns)
                need += (1 + share.directed) * total_bytes(table)
            need += 8 * share.targets
        return need

    options = engine.options
    return Room(options.device_memory, options.host_memory, state)


def hold_whole(
    world: World,
    source: Source,
    devices: Sequence[int],  # noqa: ARG001 - the current one
    engine: Any,
    request: Request,
) -> Held:
    """Load a graph to the device of rank 0, which it searches on behalf of all."""
    if world.rank > 0:
        return held_shares(world, Layout(source.n, 1), [])
    share = whole_on_device(source, engine, request)
    generation = share.seconds.get("generation", 0.0)
    return held_shares(
        world,
        share.layout,
        [share],
        generation_seconds=generation,
        construction_seconds=sum(share.seconds.values()) - generation,
        facts={
            "graph": {
                "n": share.n,
                "active": share.active,
                "m": share.m,
                "bytes": share.nbytes,
                **held_back([share]),
                "seconds": dict(share.seconds),
            }
        },
    )


def whole_on_device(source: Source, engine: Any, request: Request) -> Share:
    """Load a graph to the current device, with the vertex ids of the input.

    The rows of a store are assembled on the device as they are read. What does not fit
    beside the searches of the engine goes to host memory, if the engine supports that.
    """
    form: dict[str, Any] = {"buffer_bytes": source.buffer_bytes, "room": None}
    if "device_memory" in engine.takes:
        form["room"] = room_beside(engine, request, turned=source.turned)
        likely = engine.likely(source.n, directed=source.directed)
        nvrtc.ahead(cuda.architecture(), [*OF_GRAPHS, *likely])
    if source.graph is not None:
        lent = source.graph._tuples
        if lent is None:
            part = without_loops(source.graph._host_part)
            return graph_of_part(engine.name, part, form["room"])
        form |= {"directed": source.directed, "distinct": lent.distinct}
        with source.telling("building") as done:
            return build(lent, **form, done=done)
    if source.store is None:
        form["directed"] = source.directed
        with source.telling("building") as done:
            return build(source.any_tuples(), **form, done=done)
    with source.telling("loading") as done:
        share = graph_of_store(source.store, **form, done=done)
    return share.reversed() if source.turned else share


def hold_domain(
    world: World,
    source: Source,
    devices: Sequence[int],
    engine: Any,
    request: Request,
) -> Held:
    """Load a graph to the devices of all ranks as one domain (collective).

    What does not fit the devices beside the searches of the engine goes to host memory.

    devices: this rank's devices, each of which keeps its rows
    """
    store, shared, directed = source.store, None, source.directed
    if store is not None:
        with source.telling("loading") as done:
            shared = SharedTuples(world, store, devices, done)
    tuples = source.any_tuples(shared)
    count = world.size * len(devices)
    layout = Layout(source.n, count)
    with source.telling("building") as done:
        parts, summary = construct_domain(
            tuples,
            world,
            count,
            buffer_bytes=source.buffer_bytes,
            directed=directed,
            devices=devices,
            done=done,
            room=room_beside(engine, request),
        )
    if shared is not None:
        for part in () if source.turned else parts:
            with part.ids.device, cuda.memory_of("the ends of input tuples"):
                take_ends(part, shared.ends.pop(part.index), shared.input_tuples)
        shared.close()  # not after an error
    return held_shares(
        world,
        layout,
        parts,
        generation_seconds=summary.generation_seconds,
        construction_seconds=summary.construction_seconds,
        facts={
            "part": {
                "bytes": sum(part.nbytes for part in parts),
                "making": summary.making,
                **held_back(parts),
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

    devices: this rank's devices, to which its parts are dealt in turn
    placement: where the parts are, or the shares if domains have several devices
    room: memory limits of each device, if the rows that are made from the parts may
    have tails. A store is then read as tuples if a device has no room for both its
    parts and the rows.

    Raises OutOfMemory on all ranks if the graph does not fit their memory together.
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
    directed = source.directed
    loads = store is not None and store.manifest.parts == placement.parts
    loads = loads and not source.turned
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
        shared = None if store is None else shared_tuples(world, source, store, dealt)
        tuples = source.any_tuples(shared)
        with source.telling("building") as done:
            parts, summary = construct_on_devices(
                tuples,
                world,
                placement,
                replace(source.build, directed=directed),
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
        if shared is not None:
            shared.close()  # not after an error
        permutation = permutation_by(source.n, source.build.permute_seed)
        if store is not None and not source.turned:
            with source.telling("loading") as done:
                count_input_tuples(store, parts, done)
    first = parts[0]
    return held_parts(
        world,
        parts,
        permutation,
        "device_parts",
        devices=dealt,
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


def shared_tuples(
    world: World, source: Source, store: Store, devices: Sequence[int]
) -> SharedTuples | None:
    """Read the edges of a store to devices, which share the edges (collective).

    Returns None if the devices do not map each other's memory, or have no room for the
    edges beside the graph built from them.
    """
    own = sorted(set(devices))
    counts = {int(x[0]) for x in world.allgather(np.array([len(own)]))}
    if source.n > 1 << 32 or len(counts) > 1 or peer_memory.peer_problem(world, own):
        return None
    need = edge_bytes(store, world, len(own))
    short = False
    for device in own:
        with cuda.cupy().cuda.Device(device):
            short = short or cuda.free_bytes() < BESIDE_EDGES * need
    if world.allreduce(np.array([int(short)]), "max")[0]:
        return None
    with source.telling("loading") as done:
        return SharedTuples(world, store, own, done)


def free_of(devices: Sequence[int], room: Room) -> int:
    """Return the total bytes on the devices that graphs and their searches may take."""
    free = 0
    for device in devices:
        with cuda.cupy().cuda.Device(device):
            free += max(room.free(), 0)
    return free


def count_input_tuples(store: Store, parts: Sequence[Part], done: Sum) -> None:
    """Set the counts of input tuples' ends in parts built from a store's edges."""
    for part in parts:
        what = f"the ends of tuples of part {part.index}"
        with part.vertices.device, cuda.memory_of(what):
            ends = cuda.cupy().zeros(part.local_count, np.uint32)
            owner = TupleEnds(part.layout.parts, part.index, ends)
            StoreRows(store, (), ends=[owner], done=done)
            part.tuple_degrees = ends[part.vertices]


def parts_of_store(
    store: Store, indices: Sequence[int], devices: Sequence[int], done: Sum
) -> list[Part]:
    """Load parts of a store to the memory of devices, one part to each."""
    parts = []
    for index, device in zip(indices, devices, strict=True):
        with cuda.cupy().cuda.Device(device), cuda.memory_of(f"part {index}"):
            parts.append(part_of_store(store, index, done))
    return parts
