"""Opening of graphs on devices: loads a graph and makes a session with its runner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.build.cuda.inner_domains import inner_domains
from distbfs.device import cuda
from distbfs.engines.cuda.xbfs.domain import MemberSearch
from distbfs.errors import UsageError
from distbfs.exchange.peer_memory import PeerGroup
from distbfs.partition.layout import Placement
from distbfs.plan.memory import readable
from distbfs.ranks.world import SoloWorld
from distbfs.search.choose import because, kind_of
from distbfs.search.device_holding import (
    hold_device_parts,
    hold_domain,
    hold_whole,
    room_beside,
)
from distbfs.search.device_masks import DeviceMasks
from distbfs.search.device_paths import DevicePaths
from distbfs.search.domain import DomainDriver
from distbfs.search.domain_group import DomainGroup
from distbfs.search.domains import described, exchange_kind
from distbfs.search.held import Held, Separated
from distbfs.search.holding import Source, held_back
from distbfs.search.opening import ON_DEVICES, Opening, between_domains, bringing
from distbfs.search.paths import NoPaths
from distbfs.search.runners.whole import OnDevice, OnFirst
from distbfs.search.session import Session
from distbfs.timing import clock

if TYPE_CHECKING:
    from distbfs.build.cuda.room import Room
    from distbfs.options import SearchOptions
    from distbfs.partition.share import Share
    from distbfs.search.paths import PathFinder
    from distbfs.search.runners.base import Runner
    from distbfs.types import World

ROOTS_TRIED = 128  # for one with edges

IN_HOST_MEMORY = NoPaths(
    "counts and sets of shortest paths need the whole graph on the device, and some of "
    "its edges are in host memory; search with --engine openmp"
)


def open_shares(opening: Opening) -> Session:
    """Open a graph on one device, on behalf of all ranks, or on those of a domain.

    The devices of a domain map each other's memory.
    """
    world, choice = opening.world, opening.choice
    options, why, whole = choice.options, choice.why, choice.place == "device"
    ranks: World = SoloWorld() if whole else world
    engine = kind_of(options.engine)(options)
    held = opening.held_as("shares", ranks.size * len(choice.devices))
    if held is None:
        hold = hold_whole if whole else hold_domain
        held = hold(world, opening.source, choice.devices, engine, opening.request)
    began, shares = clock(), held.shares
    if shares:
        why = because(why, where_rows_are(ranks, shares))
    about = engine.describe()
    paths: PathFinder = ON_DEVICES
    if whole:
        split = bool(shares) and shares[0].out.tails is not None
        about["internal_ids"] = options.internal_ids
        about, why, split = world.broadcast([about, why, split])
        paths = IN_HOST_MEMORY if split else DevicePaths(world, shares)
        runner = whole_runner(world, engine, shares)
    else:
        runner = domain_runner(world, choice.devices, options, shares)
    held.construction_seconds += clock() - began
    load = bringing(replace(opening, world=ranks))
    masks = DeviceMasks(held.vertices, load, ranks, shares)
    return opening.session(
        held, runner, options, lambda: dict(about), why, paths, masks
    )


def whole_runner(world: World, engine: Any, shares: Sequence[Share]) -> Runner:
    """Return the runner of a graph that one device of rank 0 holds."""
    runner: Runner | None = None
    if shares:
        by_id = shares[0].by_id if engine.options.internal_ids else None
        runner = OnDevice(engine.on_graph(shares[0]), by_id)
    return OnFirst(world, runner) if runner is None or world.size > 1 else runner


def domain_runner(
    world: World,
    devices: Sequence[int],
    options: SearchOptions,
    shares: Sequence[Share],
) -> Runner:
    """Return the runner of the devices of a domain (collective)."""
    searches = []
    for share, device in zip(shares, devices, strict=True):
        with cuda.cupy().cuda.Device(device), cuda.memory_of("a search"):
            searches.append(MemberSearch(share, options))
    return DomainDriver(world, searches, PeerGroup(world, devices))


def where_rows_are(world: World, shares: Sequence[Share]) -> str:
    """Describe what all devices have in host memory; "" if nothing (collective).

    shares: those of this rank's devices
    """
    counts = [(x.held_back, x.m * (1 + x.directed), 1, 0) for x in shares]
    outer = [side.outer for share in shares for side in share.sides]
    counts += [(0, len(x.columns), 0, x.host_bytes) for x in outer if x is not None]
    sums = world.allreduce(np.array(counts).sum(axis=0)).tolist()
    held_back, m, devices, far = sums
    tails, words = shares[0].out.tails, []
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


def open_separated(opening: Opening) -> Session:
    """Open degree-separated parts on devices, with an exchange between domains."""
    world, choice = opening.world, opening.choice
    options = choice.options
    source, placement = shares_of(opening)
    # mutant: device_parts -> shares : test_what_is_held_on_devices_serves_other_options
    held = opening.held_as("device_parts")
    keep = held is not None or opening.request.keep
    engine = kind_of(options.engine)(options)
    room = None
    if "device_memory" in engine.takes:
        streamed = exchange_kind(choice.exchange).streamed
        room = room_beside(engine, opening.request, streamed=streamed)
    held = held or hold_device_parts(world, source, choice.devices, placement, room)
    for part in held.device_parts:
        part.kept = part.kept and keep
    began = clock()
    closing: list[Callable[[], None]] = []
    why, shares = choice.why, []
    if room is not None:
        searches = split_searches(world, placement, engine, held, room, closing)
        shares = [search.part for search in searches]
        why = because(why, where_rows_are(world, shares))
    else:
        searches = []
        for part in held.device_parts:
            with part.vertices.device:
                searches.append(engine.domain(part, placement))
    if not keep:
        held.device_parts = ()
    runner = between_domains(
        world, searches, choice.exchange, options, placement, held.devices
    )
    why = because(why, runner.why)
    held.construction_seconds += clock() - began
    masks = None
    if shares:
        masks = DeviceMasks(held.vertices, bringing(opening), world, shares)
    about = engine.describe
    session = opening.session(held, runner, options, about, why, masks=masks)
    if shares:
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
    domains, searches = placement.domains, dict[int, Any]()
    group = DomainGroup(world, held.devices, placement)
    closing.append(group.close)
    parts = [[held.device_parts[x] for x in places] for places, _ in group.domains]
    inner = inner_domains(parts, domains, group.ranks, world, room)
    for (places, peers), shares in zip(group.domains, inner, strict=True):
        several = peers if max(domains.sizes) > 1 else None
        made = engine.of_shares(shares, group.ranks, several)
        searches.update(zip(places, made, strict=True))
    held.facts["part"] |= held_back([x for shares in inner for x in shares])
    return [searches[place] for place in sorted(searches)]
