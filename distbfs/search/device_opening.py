"""Opening of graphs on devices: loads a graph and makes a session with its runner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.build.cuda.inner_domains import inner_domains
from distbfs.device import cuda
from distbfs.engines.cuda.common.device_rows import DeviceRows
from distbfs.engines.cuda.common.paths import DeviceCounter
from distbfs.engines.cuda.xbfs.domain import MemberSearch
from distbfs.errors import UsageError
from distbfs.exchange.peer_memory import PeerGroup
from distbfs.partition.layout import Placement
from distbfs.partition.share import Share
from distbfs.plan.memory import readable
from distbfs.ranks.world import SoloWorld
from distbfs.search.choose import because, kind_of
from distbfs.search.device_holding import (
    graph_on_device,
    hold_device_parts,
    hold_domain,
    share_room,
)
from distbfs.search.domain import DomainDriver
from distbfs.search.domains import described, exchange_kind, split_by_domain
from distbfs.search.held import Held, Separated
from distbfs.search.holding import Source, held_back, held_graph, timed
from distbfs.search.masked_rows import MaskedRows
from distbfs.search.opening import Opening, between_domains, bringing
from distbfs.search.paths import NoPaths, WholePaths, WholeRows
from distbfs.search.runners.clock import ClockedDomains
from distbfs.search.runners.whole import OnDevice, OnFirst
from distbfs.search.session import Session
from distbfs.search.sight import DeviceMasks
from distbfs.timing import clock

if TYPE_CHECKING:
    from distbfs.build.cuda.room import Room
    from distbfs.partition.share import Outer, Share
    from distbfs.search.runners.base import Runner
    from distbfs.types import World

ROOTS_TRIED = 128  # for one with edges

IN_HOST_MEMORY = NoPaths(
    "counts and sets of shortest paths need the whole graph on the device, and some of "
    "its edges are in host memory; search with --engine openmp"
)


def open_device(opening: Opening) -> Session:
    """Open a graph on one device of this rank, or of rank 0 on behalf of all."""
    world, options = opening.world, opening.choice.options
    held = opening.held_as("graph")
    about: Any = None
    search, split = None, False
    why = opening.choice.why
    if world.rank == 0:
        engine = kind_of(options.engine)(options)
        if held is None:
            graph = graph_on_device(opening.source, engine, opening.request)
            held = held_graph(world, opening.source.n, graph)
        began = clock()
        if held.graph is None:
            raise UsageError("there is no graph on the device")
        made = engine.on_graph(held.graph)
        by_id = held.graph.by_id
        search = OnDevice(made, by_id if options.internal_ids else None)
        timed(held, began)
        why = because(why, where_rows_are(SoloWorld(), [held.graph]))
        split = held.graph.tails is not None
        about = {**engine.describe(), "internal_ids": options.internal_ids}
    about, why, split = world.broadcast([about, why, split])
    held = held or held_graph(world, opening.source.n, None)
    held.host_parts = bringing(replace(opening, world=SoloWorld()))
    runner: Runner = OnFirst(world, search)
    if search is not None and world.size == 1:
        runner = search
    paths = IN_HOST_MEMORY if split else device_paths(world, held.graph)
    shares = [] if held.graph is None else [held.graph]
    masks = DeviceMasks(held, partial(MaskedRows, SoloWorld(), shares))
    return opening.session(
        held, runner, options, lambda: dict(about), why, paths, masks
    )


def where_rows_are(
    world: World, graphs: Sequence[Share], outer: Sequence[Outer] = ()
) -> str:
    """Describe what all devices have in host memory; "" if nothing (collective).

    graphs: on this rank's devices; outer: their edges to other domains
    """
    counts = [(x.held_back, x.m * (1 + x.directed), 1, 0) for x in graphs]
    counts += [(0, len(x.columns), 0, x.host_bytes) for x in outer]
    sums = world.allreduce(np.array(counts).sum(axis=0)).tolist()
    held_back, m, devices, far = sums
    tails, words = graphs[0].tails, []
    if tails is not None:
        size = readable(4 * held_back)
        if devices > 1:
            size += f", {readable(4 * held_back / devices)} a device"
        words.append(
            f"{held_back / m:.3g} of the edges are in host memory ({size}), beyond "
            f"{tails.kept} of a row"
        )
    if far:
        words.append(f"{readable(far)} of edges between domains are in host memory")
    return "; ".join(words)


def open_domain(opening: Opening) -> Session:
    """Open a graph on the devices of all ranks, which map each other's memory."""
    world, choice = opening.world, opening.choice
    engine = kind_of(choice.options.engine)(choice.options)
    held = opening.held_as("rows") or hold_domain(
        world, opening.source, choice.devices, engine, opening.request
    )
    held.host_parts = held.host_parts or bringing(opening)
    began = clock()
    searches = []
    for part, device in zip(held.rows, choice.devices, strict=True):
        with cuda.cupy().cuda.Device(device), cuda.memory_of("a search"):
            searches.append(MemberSearch(part, choice.options))
    runner = DomainDriver(world, searches, PeerGroup(world, choice.devices))
    why = because(choice.why, where_rows_are(world, held.rows))
    about, rows = engine.describe, partial(MaskedRows, world, held.rows)
    held = timed(held, began)
    masks = DeviceMasks(held, rows)
    return opening.session(held, runner, choice.options, about, why, masks=masks)


def open_separated(opening: Opening) -> Session:
    """Open degree-separated parts on devices, with an exchange between domains."""
    world, choice = opening.world, opening.choice
    options = choice.options
    source, placement = shares_of(opening)
    # mutant: device_parts -> rows : test_what_is_held_on_devices_serves_other_options
    held = opening.held_as("device_parts")
    keep = held is not None or opening.request.keep
    engine = kind_of(options.engine)(options)
    room = None
    if "device_memory" in engine.takes:
        streamed = exchange_kind(choice.exchange).streamed
        room = share_room(engine, opening.request, streamed=streamed)
    held = held or hold_device_parts(world, source, choice.devices, placement, room)
    for part in held.device_parts:
        part.kept = part.kept and keep
    began = clock()
    closing: list[Callable[[], None]] = []
    why = choice.why
    if room is not None:
        searches = split_searches(world, placement, engine, held, room, closing)
        shares = [search.part for search in searches]
        outer = [side for share in shares for side in share.outer_sides]
        why = because(why, where_rows_are(world, shares, outer))
    else:
        searches = []
        for part in held.device_parts:
            with part.vertices.device:
                searches.append(engine.domain(part, placement))
    if not keep:
        held.device_parts = ()
    held.host_parts = held.host_parts or bringing(opening)
    rows = partial(MaskedRows, world, [search.part for search in searches])
    timed_by = partial(ClockedDomains, held.devices)
    runner = between_domains(
        world, searches, choice.exchange, options, placement, timed_by
    )
    why = because(why, runner.why)
    held, about = timed(held, began), engine.describe
    masks = DeviceMasks(held, rows)
    session = opening.session(held, runner, options, about, why, masks=masks)
    if room is not None:
        shares = [search.part for search in searches]
        session.separated = Separated(shares, placement, runner.exchange)
    session.at_close.extend(closing)
    if runner.captures:
        warm_up(runner, session)
    return session


def warm_up(runner: Runner, session: Session) -> None:
    """Search once, which captures the launches of later searches (collective)."""
    n, vertices = session.n, session.vertices
    ids = np.random.default_rng(1).integers(max(n, 1), size=ROOTS_TRIED)
    for vertex in ids[vertices.connected(ids)][:1] if n else ():
        runner.search(vertices.one_inside(int(vertex)))


def shares_of(opening: Opening) -> tuple[Source, Placement]:
    """Return the source with its parts, and the placement of one share per device.

    If domains have one device each, the source may have any number of parts, equal on
    each rank. Raises UsageError for other numbers.
    """
    world, source, placement = opening.world, opening.source, opening.choice.placement
    if placement is None:
        raise UsageError("there are no devices to search between")
    domains, wanted = placement.domains, opening.request.parts
    if max(domains.sizes) > 1:
        if wanted not in (None, 1, len(domains)):
            raise UsageError(
                f"parts is {wanted}; {domains.shares} devices in {described(domains)} "
                f"have {len(domains)}"
            )
    elif source.store is None or source.directed:  # whose stores are read as edges
        parts = wanted or domains.shares
        if parts != domains.shares:
            placement = Placement(parts, world.size)
    elif source.parts % world.size == 0 and source.parts != domains.shares:
        placement = Placement(source.parts, world.size)
    return replace(source, parts=len(placement.domains)), placement


def split_searches(
    world: World,
    placement: Placement,
    engine: Any,
    held: Held,
    room: Room | None,
    closing: list[Callable[[], None]],
) -> list[Any]:
    """Create the searches of this rank's devices (collective).

    room: memory limits of each device; what exceeds them goes to host memory; None if
    all must be on the devices
    closing: receives functions that free shared resources, to be called in reverse
    order
    """
    domains = placement.domains
    several = max(domains.sizes) > 1
    ranks: World = SoloWorld()
    if several:
        ranks = split_by_domain(world, placement)
        closing.append(ranks.free)
    groups = list(placement.places_of(world.rank).values())
    parts = [[held.device_parts[place] for place in places] for places in groups]
    searches: dict[int, Any] = {}
    inner = inner_domains(parts, domains, ranks, world, room)
    for places, shares in zip(groups, inner, strict=True):
        group = None
        if several:
            group = PeerGroup(ranks, [held.devices[place] for place in places])
            closing.append(group.close)
        made = engine.of_shares(shares, ranks, group)
        searches.update(zip(places, made, strict=True))
    held.facts["part"] |= held_back([x for shares in inner for x in shares])
    return [searches[place] for place in sorted(searches)]


def rows_of_graph(graph: Share) -> WholeRows:
    """Wrap a graph in device memory."""
    out = DeviceRows(graph.offsets, graph.columns)
    return WholeRows(
        out,
        DeviceRows(*graph.pulled) if graph.directed else out,
        graph.directed,
        graph.vertices,
        lambda vertex: int(graph.local_numbers(np.array([vertex]))[0]),
    )


def device_paths(world: World, graph: Share | None) -> WholePaths:
    """Return the path finder of a graph on the device of one rank.

    graph: None on the other ranks
    """
    if graph is None:
        return WholePaths(world, None, None)
    return WholePaths(world, rows_of_graph(graph), DeviceCounter(graph))
