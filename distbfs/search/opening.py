"""Load a graph where it is searched, and create the session with its runner.

choose.py has chosen the place before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.build.cuda.inner_domains import inner_domains
from distbfs.device import cuda
from distbfs.engines.cuda.xbfs.domain import MemberSearch
from distbfs.errors import UsageError
from distbfs.exchange.peer_memory import PeerGroup
from distbfs.options import SearchOptions
from distbfs.partition.layout import Placement
from distbfs.plan.memory import readable
from distbfs.ranks.world import SoloWorld
from distbfs.search.choose import (
    NEEDS_SYMMETRIC,
    Choice,
    Request,
    Say,
    engine_for,
    kind_of,
    make_host_engine,
    set_problem,
)
from distbfs.search.domain import DomainDriver
from distbfs.search.domains import (
    choose_exchange,
    described,
    exchange_kind,
    split_by_domain,
)
from distbfs.search.holding import (
    Source,
    cut_anew,
    graph_on_device,
    held_back,
    held_graph,
    hold_device_parts,
    hold_domain,
    hold_host_parts,
    share_room,
    timed,
)
from distbfs.search.masked_rows import DomainRows, InnerRows
from distbfs.search.part_paths import PartPaths
from distbfs.search.paths import NoPaths, device_paths, host_paths
from distbfs.search.runners.between import BetweenDomains
from distbfs.search.runners.clock import ClockedRunner
from distbfs.search.runners.whole import OnDevice, OnDevices, OnHost, WholeRunner
from distbfs.search.session import Held, Separated, Session
from distbfs.timing import clock

if TYPE_CHECKING:
    from distbfs.build.cuda.domain import MemberRows
    from distbfs.build.cuda.room import Room
    from distbfs.graph.device_graph import DeviceGraph
    from distbfs.search.masked_rows import MaskedRows
    from distbfs.search.paths import PathFinder
    from distbfs.search.result import Names
    from distbfs.search.runners.base import Runner
    from distbfs.types import World

ON_DEVICES = NoPaths(
    "counts and sets of shortest paths are made on one device or on CPUs, not on "
    "several devices; search with --devices 1 or --engine openmp"
)
IN_HOST_MEMORY = NoPaths(
    "counts and sets of shortest paths need the whole graph on the device, and some of "
    "its edges are in host memory; search with --engine openmp"
)
LEARNT_FROM = 16  # searches of a session that predicts levels, when it opens


@dataclass(frozen=True)
class Opening:
    """A session in preparation; see ``prepare``."""

    world: World
    source: Source
    choice: Choice
    request: Request
    auto: bool
    say: Say
    held: Sequence[Held] = ()
    names: Names | None = None

    def open(self) -> Session:
        """Load the graph where it is searched; return its session (collective)."""
        return OPENERS[self.choice.place](self)

    def session(
        self,
        held: Held,
        runner: Runner,
        options: SearchOptions,
        describe: Callable[[], dict[str, Any]],
        why: str | None = None,
        paths: PathFinder = ON_DEVICES,
        rows: Callable[[], MaskedRows] | None = None,
    ) -> Session:
        """Return the session."""
        why = self.choice.why if why is None else why
        return Session(
            self.world,
            held,
            runner,
            options,
            describe=describe,
            notes=device_notes(self.world, held.devices),
            why=f"auto: {why}" if why and self.auto else why,
            names=self.names,
            one_source=set_problem(options.engine),
            paths=paths,
            rows=rows,
        )


def device_notes(world: World, devices: Sequence[int]) -> dict[str, str]:
    """Return the report's notes on devices: name -> text (collective)."""
    count = int(world.allreduce(np.array([len(set(devices))]))[0])
    if not devices:
        return {}
    about = cuda.describe()
    driver = f"{about['driver'] // 1000}.{about['driver'] % 1000 // 10}"
    return {
        "device": f"{count} x {about['device']}" if count > 1 else about["device"],
        "device memory": readable(about["memory_bytes"]),
        "CUDA driver": f"{driver}, CuPy {about['cupy']}",
        "time": "device events around each search, of the slowest device",
    }


def _open_host(opening: Opening) -> Session:
    """Open the parts of this rank in host memory."""
    world, choice = opening.world, opening.choice
    engine, options = make_host_engine(world, choice.options, opening.say)
    exchange, _ = choose_exchange(world, options.exchange.name)
    held = next((x for x in opening.held if x.parts), None)
    held = held or _host_parts(opening, options.threads)
    began = clock()
    first = held.parts[0]
    runner: Runner
    whole = first.layout.parts == 1 and not first.delegate_count
    paths: PathFinder = PartPaths(world, held.parts)
    if whole:
        paths = host_paths(world, first, engine.counter(first))
    if whole and not options.stepwise:
        runner = WholeRunner(world, OnHost(engine.whole(first)))
    else:
        if first.directed:
            raise UsageError(NEEDS_SYMMETRIC)
        placement = Placement(first.layout.parts, world.size)
        searches = [engine.domain(part, placement) for part in held.parts]
        runner = between_domains(world, searches, exchange, options, placement)
    held, describe = timed(held, began), engine.describe
    return opening.session(held, runner, options, describe, paths=paths)


def _host_parts(opening: Opening, threads: int) -> Held:
    """Load the parts of this rank to host memory (collective).

    Those of a store are repartitioned where their number does not divide by the ranks.
    """
    world, source, store = opening.world, opening.source, opening.source.store
    if store is None or not store.manifest.parts % world.size:
        return hold_host_parts(world, source)
    parts = store.manifest.parts
    how_many = "1 part is" if parts == 1 else f"{parts} parts are"
    opening.say(f"{how_many} repartitioned for {world.size} ranks")
    return cut_anew(world, source, store, threads)


def _open_device(opening: Opening) -> Session:
    """Open a graph on one device: of this rank, or of rank 0 for all."""
    world, options = opening.world, opening.choice.options
    held = next((x for x in opening.held if x.graph is not None), None)
    about: Any = None
    search, split = None, False
    why = opening.choice.why
    if world.rank == 0:
        engine = kind_of(options.engine)(options)
        if held is None:
            graph = graph_on_device(
                opening.source,
                engine,
                options,
                masked=opening.request.masked,
                beside=opening.request.beside,
            )
            held = held_graph(world, opening.source.n, graph)
        began = clock()
        if held.graph is None:
            raise UsageError("there is no graph on the device")
        if opening.auto and not opening.request.masked:
            options, chosen = engine_for(held.graph, options)
            why = f"{why}; {chosen}" if chosen else why
            engine = kind_of(options.engine)(options)
        search = OnDevice(engine.on_graph(held.graph), held.graph)
        timed(held, began)
        why = "; ".join(x for x in (why, where_rows_are(held.graph)) if x)
        split = held.graph.tails is not None
        about = {**engine.describe(), "internal_ids": options.internal_ids}
    about, why, name, split = world.broadcast([about, why, options.engine, split])
    options = replace(options, engine=name)
    held = held or held_graph(world, opening.source.n, None)
    held.host_parts = bringing(replace(opening, world=SoloWorld()))
    runner = WholeRunner(world, search, stepwise=options.stepwise)
    paths = IN_HOST_MEMORY if split else device_paths(world, held.graph)
    return opening.session(held, runner, options, lambda: dict(about), why, paths)


def bringing(opening: Opening) -> Callable[[], Held]:
    """Return a function that loads each rank's parts to host memory (collective)."""
    source, world = opening.source, opening.world
    if source.store is None:  # tuples are cut for any number of parts
        opening = replace(opening, source=replace(source, parts=world.size))
    return partial(_host_parts, opening, opening.choice.options.threads)


def where_rows_are(graph: DeviceGraph) -> str:
    """Describe the rows of a graph that are in host memory, "" if none is."""
    if graph.tails is None:
        return ""
    return in_host_memory(graph.held_back, graph.m, graph.tails.kept)


def in_host_memory(held_back: int, m: int, kept: int, devices: int = 1) -> str:
    """Return where edges are of which some are held back, in words."""
    size = readable(4 * held_back)
    if devices > 1:
        size += f", {readable(4 * held_back / devices)} a device"
    return (
        f"{held_back / m:.3g} of the edges are in host memory ({size}), beyond "
        f"{kept} of a row"
    )


def where_shares_are(world: World, rows: Sequence[MemberRows]) -> str:
    """Describe those of all devices of a domain (collective)."""
    held = np.array([sum(part.graph.held_back for part in rows)])
    held_back, tails = int(world.allreduce(held)[0]), rows[0].graph.tails
    if tails is None:
        return ""
    return in_host_memory(held_back, rows[0].edges, tails.kept, rows[0].layout.parts)


def _open_domain(opening: Opening) -> Session:
    """Open a graph on the devices of all ranks, which map each other's memory."""
    world, choice = opening.world, opening.choice
    held = next((x for x in opening.held if x.rows), None)
    engine = kind_of(choice.options.engine)(choice.options)
    held = held or hold_domain(
        world,
        opening.source,
        choice.devices,
        engine,
        choice.options,
        masked=opening.request.masked,
        beside=opening.request.beside,
    )
    held.host_parts = held.host_parts or bringing(opening)
    began = clock()
    searches = []
    for part, device in zip(held.rows, choice.devices, strict=True):
        with cuda.cupy().cuda.Device(device), cuda.memory_of("a search"):
            searches.append(MemberSearch(part, choice.options))
    driver = DomainDriver(world, searches, PeerGroup(world, choice.devices))
    runner = WholeRunner(world, OnDevices(driver))
    why = "; ".join(x for x in (choice.why, where_shares_are(world, held.rows)) if x)
    about, rows = engine.describe, partial(DomainRows, held.rows)
    held = timed(held, began)
    return opening.session(held, runner, choice.options, about, why, rows=rows)


def _open_separated(opening: Opening) -> Session:
    """Open degree-separated parts on devices, with an exchange between domains."""
    world, choice = opening.world, opening.choice
    options = choice.options
    source, placement = shares_of(opening)
    # mutant: device_parts -> rows : test_what_is_held_on_devices_serves_other_options
    held = next((x for x in opening.held if x.device_parts), None)
    keep = held is not None or opening.request.keep
    engine = kind_of(options.engine)(options)
    room = None
    if "device_memory" in engine.takes:
        streamed = exchange_kind(choice.exchange).streamed
        room = share_room(
            engine,
            options,
            streamed=streamed,
            masked=opening.request.masked,
            beside=opening.request.beside,
        )
    held = held or hold_device_parts(world, source, choice.devices, placement, room)
    for part in held.device_parts:
        part.kept = part.kept and keep
    began = clock()
    closing: list[Callable[[], None]] = []
    why = choice.why
    if room is not None:
        searches = split_searches(world, placement, engine, held, room, closing)
        why = "; ".join(x for x in (why, where_inner_rows_are(world, searches)) if x)
    else:
        searches = []
        for part in held.device_parts:
            with part.vertices.device:
                searches.append(engine.domain(part, placement))
    if not keep:
        held.device_parts = ()
    held.host_parts = held.host_parts or bringing(opening)
    rows: Callable[[], MaskedRows] | None = None
    if engine.masks:
        rows = partial(InnerRows, world, [search.part for search in searches])
    runner = between_domains(world, searches, choice.exchange, options, placement)
    why = "; ".join(x for x in (why, runner.why) if x)
    clocked = ClockedRunner(world, runner, held.devices)
    held, about = timed(held, began), engine.describe
    session = opening.session(held, clocked, options, about, why, rows=rows)
    if room is not None:
        shares = [search.part for search in searches]
        session.separated = Separated(shares, placement, runner.exchange)
    session.at_close.extend(closing)
    if runner.predicts:
        learn_levels(clocked, session)
    return session


def learn_levels(runner: Runner, session: Session) -> None:
    """Search from some vertices, so that later searches expect boxes (collective).

    Launches of their sizes are captured then, too.
    """
    n = session.n
    ids = np.random.default_rng(LEARNT_FROM).integers(max(n, 1), size=8 * LEARNT_FROM)
    vertices = session.vertices
    for vertex in ids[vertices.connected(ids)][:LEARNT_FROM] if n else ():
        runner.search(vertices.one_inside(int(vertex)))


def shares_of(opening: Opening) -> tuple[Source, Placement]:
    """Return the source with its parts, and the placement of shares, one a device.

    With domains of one device any number of parts is possible, the same on each rank.
    Raises UsageError for an impossible number.
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
    elif source.store is None:
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
    room: Room,
    closing: list[Callable[[], None]],
) -> list[Any]:
    """Create the searches of this rank's devices (collective).

    room: of each device; what does not fit there goes to host memory
    closing: receives the cleanups of their shared resources, to be run last first
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
    graphs = [share.graph for shares in inner for share in shares]
    held.facts["part"] |= held_back(graphs)
    return [searches[place] for place in sorted(searches)]


def where_inner_rows_are(world: World, searches: Sequence[Any]) -> str:
    """Describe the rows of all domains that are in host memory (collective)."""
    parts = [search.part for search in searches]
    counts = [
        (x.graph.held_back, x.graph.m + len(x.outer.columns), 1, x.outer.host_bytes)
        for x in parts
    ]
    sums = world.allreduce(np.array(counts).sum(axis=0)).tolist()
    held_back, m, devices, outer = sums
    tails, words = parts[0].graph.tails, []
    if tails is not None:
        words.append(in_host_memory(held_back, m, tails.kept, devices))
    if outer:
        words.append(f"{readable(outer)} of edges between domains are in host memory")
    return "; ".join(words)


OPENERS: dict[str, Callable[[Opening], Session]] = {
    "host": _open_host,
    "device": _open_device,
    "first": _open_device,
    "domain": _open_domain,
    "separated": _open_separated,
}


def between_domains(
    world: World,
    searches: Sequence[Any],
    exchange: str,
    options: SearchOptions,
    placement: Placement,
) -> BetweenDomains:
    """Create the runner between the domains of all ranks (collective)."""
    part = searches[0].part
    on_device = kind_of(options.engine).on_device
    made = exchange_kind(exchange)(
        world,
        placement,
        part.delegate_count,
        options.exchange,
        item=np.uint64 if on_device else np.uint32,
        on_device=on_device,
    )
    return BetweenDomains(world, searches, made, options, placement)
