"""How a graph is searched: engine, runner and exchange, from facts and options.

The one module that chooses.  ``choose`` says which and why; ``open_source`` brings the
graph to where it is searched and hands the session its runner.

=========  ========================================================================
place      what searches
=========  ========================================================================
host       threads of each rank: one part whole, several between domains
device     the one device of the one rank, whole
first      the first device of rank 0, whole, while the other ranks wait
domain     the devices of all ranks together, whole: they map each other's memory
separated  engine pan, between domains of one device each
=========  ========================================================================
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from distbfs import registry
from distbfs.device import cuda
from distbfs.engines.cuda.resident import ResidentSearch
from distbfs.errors import CompilerMissing, DeviceMissing, LaunchError, UsageError
from distbfs.exchange.agree import first_reason, gather_texts
from distbfs.exchange.link import nccl_problem
from distbfs.exchange.mpi import MpiWorld
from distbfs.exchange.peers import PeerGroup, peer_problem
from distbfs.exchange.placing import take_devices
from distbfs.exchange.world import SoloWorld
from distbfs.graph.device_graph import MAX_VERTICES
from distbfs.options import (
    EXCHANGE_OPTIONS,
    FACTOR_OPTIONS,
    BuildOptions,
    SearchOptions,
    check_range,
)
from distbfs.partition.layout import Placement
from distbfs.partition.memory import readable
from distbfs.search.holding import (
    Source,
    graph_on_device,
    held_graph,
    hold_device_parts,
    hold_domain,
    hold_host_parts,
    timed,
)
from distbfs.search.resident_driver import ResidentDriver
from distbfs.search.runners.between import BetweenDomains
from distbfs.search.runners.clock import ClockedRunner
from distbfs.search.runners.whole import OnDevice, OnDevices, OnHost, WholeRunner
from distbfs.search.session import Held, Session
from distbfs.store.hdf5 import open_store

if TYPE_CHECKING:
    from distbfs.graph.device_graph import DeviceGraph
    from distbfs.search.result import Names
    from distbfs.search.runners.base import Runner
    from distbfs.types import World

Say: TypeAlias = Callable[[str], None]

NEEDS_SYMMETRIC = (
    "a search between domains needs a symmetric graph, and this one is directed; "
    "search it in one process without --stepwise"
)
DIRECTED = "xbfs-paper"  # what auto takes for directed graphs on a device
MOST_DEVICES = 8  # of a domain
MANY_LEVELS = 256  # from which what a level costs at least is what counts
HIGH_AVERAGE = 16.0  # edges of a vertex from which a virtual warp has work
WIDE = 1 << 20  # edges a level from which a level's least time does not count
DEVICE_EXCHANGES = ("nccl", "cuda_aware")
BETWEEN_OPTIONS = (*EXCHANGE_OPTIONS, *FACTOR_OPTIONS, "balance")
DEVICE_OPTIONS = ("frontier", "balance", "asynchronous", "knobs", "internal_ids")
OWNED = (*BETWEEN_OPTIONS, *DEVICE_OPTIONS, "stepwise")  # of some engines
ALONE_BELOW = 1 << 24  # vertices: a meeting of devices costs more than they save
MOST_VERTICES = (1 << 32) - (1 << 24)  # of a domain: positions have 32 bits


@dataclass(frozen=True)
class Choice:
    """What searches, on all ranks alike.

    place: see the top of this file; devices: of this rank; why: what it was taken for
    """

    place: str
    options: SearchOptions
    devices: tuple[int, ...] = ()
    exchange: str = "none"
    why: str = ""


@dataclass(frozen=True)
class Request:
    """What is asked for besides an engine and its options.

    parts: domains of a search between domains; separate: the option that asks for
    parts with delegates, "" for none
    devices: how many of each rank, or which; domain: devices of a domain
    alone: take one device of each rank, where it has any
    """

    parts: int | None = None
    separate: str = ""
    devices: int | Sequence[int] | None = None
    domain: int | None = None
    alone: bool = False


@dataclass(frozen=True)
class Opening:
    """A session on its way; see ``prepare``."""

    world: World
    source: Source
    choice: Choice
    request: Request
    auto: bool
    say: Say
    held: Sequence[Held] = ()
    names: Names | None = None

    def open(self) -> Session:
        """Bring the graph to where it is searched; return its session (collective)."""
        return OPENERS[self.choice.place](self)

    def session(
        self,
        held: Held,
        runner: Runner,
        options: SearchOptions,
        describe: Callable[[], dict[str, Any]],
        why: str | None = None,
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
        )


def device_notes(world: World, devices: Sequence[int]) -> dict[str, str]:
    """Return what the text of a report says of devices: name -> text (local)."""
    if not devices:
        return {}
    about, count = cuda.describe(), world.size * len(set(devices))
    driver = f"{about['driver'] // 1000}.{about['driver'] % 1000 // 10}"
    return {
        "device": f"{count} x {about['device']}" if count > 1 else about["device"],
        "device memory": readable(about["memory_bytes"]),
        "CUDA driver": f"{driver}, CuPy {about['cupy']}",
        "time": "device events around each search, of the slowest device",
    }


def silent(message: str) -> None:
    """Say nothing."""


def choose(
    world: World,
    options: SearchOptions,
    n: int,
    request: Request,
    *,
    directed: bool = False,
) -> Choice:
    """Return what searches a graph of n vertices (collective).

    Raises UsageError for what cannot go together, DeviceMissing where there is no
    device and one is asked for, LaunchError where ranks would share one.
    """
    if directed and world.size > 1:
        raise UsageError(NEEDS_SYMMETRIC)
    named = options.engine != "auto"
    if named and not kind_of(options.engine).on_device:
        if directed and options.stepwise:
            raise UsageError(NEEDS_SYMMETRIC)
        return Choice("host", options)
    if named:
        check_named(options, request, directed=directed)
        devices = take_some(world, options, request)
        return _on_devices(world, options, n, request, devices, directed=directed)
    reason, devices = "", ()
    try:
        cuda.cupy()
    except DeviceMissing as error:
        reason = str(error)
    reason = first_reason(world, reason)
    if not reason:
        try:
            devices = take_some(world, options, request)
            return _on_devices(world, options, n, request, devices, directed=directed)
        except (LaunchError, UsageError) as error:
            if wants_device(options, request):
                raise
            reason = str(error)
    elif wants_device(options, request):
        raise DeviceMissing(reason)
    if directed and options.stepwise:
        raise UsageError(NEEDS_SYMMETRIC)
    return Choice("host", options, why=reason.partition(";")[0])


def kind_of(engine: str) -> Any:
    """Return the class of an engine; UsageError for an unknown name."""
    return registry.lookup(registry.ENGINES, "engine", engine)


def changed(options: SearchOptions, names: Sequence[str]) -> list[str]:
    """Return which of some options are not the usual ones."""
    usual = SearchOptions()
    return [x for x in names if getattr(options, x) != getattr(usual, x)]


def wants_device(options: SearchOptions, request: Request) -> bool:
    """Return whether something is asked for that devices alone have."""
    asked = (request.devices, request.domain)
    return bool(changed(options, DEVICE_OPTIONS)) or any(x is not None for x in asked)


def take_some(
    world: World, options: SearchOptions, request: Request
) -> tuple[int, ...]:
    """Return the devices of this rank that are asked for, all by default (collective).

    UsageError where there are fewer than asked for.
    """
    taken = take_devices(world, share=options.share_device)
    wanted = request.devices
    if wanted is None:
        return tuple(taken[:1] if request.alone else taken)
    if isinstance(wanted, int):
        check_range("devices", wanted, 1, len(taken))
        return tuple(taken[:wanted])
    count = cuda.cupy().cuda.runtime.getDeviceCount()
    for device in wanted:
        check_range("device", device, 0, count - 1)
    if not wanted or len(set(wanted)) < len(wanted):
        raise UsageError(
            f"devices are {list(wanted)}; allowed: at least one, each once"
        )
    cuda.cupy().cuda.Device(wanted[0]).use()
    return tuple(wanted)


def _on_devices(
    world: World,
    options: SearchOptions,
    n: int,
    request: Request,
    devices: tuple[int, ...],
    *,
    directed: bool,
) -> Choice:
    """Return what searches on devices, given those of this rank (collective).

    An engine that was named is checked already, see ``check_named``.
    """
    total = world.size * len(devices)
    name, why = options.engine, ""
    if name == "auto":
        name, why = _device_engine(options, request, total, directed=directed)
        check_named(replace(options, engine=name), request, directed=directed)
    named, kind = replace(options, engine=name), kind_of(name)
    most = total if kind.devices > 1 else 1
    if request.domain not in (None, most):
        other = "; with engine pan: 1" if most > 1 else ""
        raise UsageError(
            f"domain is {request.domain}; allowed with engine {name}: {most}{other}"
        )
    if kind.domains:
        return _separated(world, named, devices, why)
    alone = len(devices) == 1 or kind.devices == 1
    small = n < ALONE_BELOW and request.domain is None
    if small and total > 1 and kind.devices > 1:
        why = f"one device searches alone, as {n} vertices are below {ALONE_BELOW}"
    if world.size == 1 and (alone or small):
        if n > MAX_VERTICES:
            raise UsageError(
                f"engine {name} searches up to 2^31 vertices, not {n}; use openmp"
            )
        return Choice("device", named, devices[:1], why=why)
    if kind.devices == 1:
        raise UsageError(f"engine {name} searches on one device of one process")
    if small:
        return Choice("first", named, devices[:1], why=why)
    reason = domain_problem(world, named, n, devices)
    if not reason:
        why = f"{total} devices map each other's memory"
        return Choice("domain", named, devices, why=why)
    if options.engine != "auto" or options.internal_ids:
        raise LaunchError(f"engine {name} needs one domain of all devices: {reason}")
    why = f"domains of one device: {reason}"
    return _separated(world, replace(options, engine="pan"), devices, why)


def check_named(options: SearchOptions, request: Request, *, directed: bool) -> None:
    """Raise UsageError for what an engine on devices cannot do, then DeviceMissing."""
    name, kind = options.engine, kind_of(options.engine)
    if directed and not kind.directed:
        raise UsageError(
            f"engine {name} searches symmetric graphs, and this one is directed; "
            f"allowed: {DIRECTED}, openmp, reference"
        )
    if request.separate and not kind.domains:
        raise UsageError(f"{request.separate} is for engines between domains, as pan")
    check_options(options)
    kind(options)


def _device_engine(
    options: SearchOptions, request: Request, total: int, *, directed: bool
) -> tuple[str, str]:
    """Return the engine that ``auto`` takes on devices, and why."""
    why = "there is a CUDA device"
    if directed:
        return DIRECTED, f"{why}, and the graph is directed"
    between = [request.separate] if request.separate else []
    between += changed(options, BETWEEN_OPTIONS)
    if between:
        return "pan", f"{between[0]} is for searches between domains"
    if request.domain == 1 and total > 1:
        return "pan", "domains of one device were asked for"
    return "xbfs", why


def _separated(
    world: World, options: SearchOptions, devices: tuple[int, ...], why: str
) -> Choice:
    """Return the search between domains of one device each (collective)."""
    exchange, reason = choose_exchange(world, options.exchange, devices)
    why = f"{why}; {reason}" if why else reason
    return Choice("separated", options, devices, exchange, why)


def domain_problem(
    world: World, options: SearchOptions, n: int, devices: Sequence[int]
) -> str:
    """Return why the devices of all ranks cannot be one domain, "" where they can.

    Collective, the same text on all ranks.
    """
    total = world.size * len(devices)
    if total > MOST_DEVICES:
        return f"{total} devices; a domain has up to {MOST_DEVICES}"
    if options.stepwise:
        return "levels by the host are asked for"
    if n > MOST_VERTICES:
        return f"{n} vertices; positions have 32 bits"
    counts = world.allgather(np.array([len(devices)]))
    if len({int(x[0]) for x in counts}) > 1:
        return "ranks have different numbers of devices"
    names = [device_model(device) for device in devices]
    kinds = {
        text for x in gather_texts(world, "|".join(names)) for text in x.split("|")
    }
    if len(kinds) > 1:
        return f"the devices are of several kinds: {', '.join(sorted(kinds))}"
    return peer_problem(world, devices)


def device_model(device: int) -> str:
    """Return the model of a device."""
    with cuda.cupy().cuda.Device(device):
        return str(cuda.describe()["device"])


def choose_exchange(
    world: World, name: str, devices: Sequence[int] = ()
) -> tuple[str, str]:
    """Return (name in the registry, why) of the exchange between domains (collective).

    devices: of this rank, none where arrays are in host memory.  ``auto``: solo for one
    rank; host for arrays in host memory; nccl where CuPy has it and every rank has one
    device of its own, else host.
    """
    if name != "auto":
        registry.lookup(registry.EXCHANGES, "exchange", name)
        if name in DEVICE_EXCHANGES and not devices:
            raise UsageError(
                f"exchange '{name}' is for parts on devices, with engine pan; allowed: "
                "auto, solo, host"
            )
        return name, f"exchange {name} as asked for"
    if world.size == 1:
        return "solo", "one rank"
    if not devices:
        return "host", "arrays are in host memory"
    several = f"it has {len(devices)} devices" if len(devices) > 1 else ""
    reason = first_reason(world, several) or nccl_problem(world)
    if reason:
        return "host", f"exchange host: {reason}"
    return "nccl", "exchange nccl: every rank has a device of its own"


def make_host_engine(
    world: World, options: SearchOptions, say: Say
) -> tuple[Any, SearchOptions]:
    """Return the engine for threads and its options (collective).

    ``auto`` is openmp; where any rank lacks a compiler it is reference, and ``say`` is
    told so.
    """
    if options.engine != "auto":
        check_options(options)
        return kind_of(options.engine)(options), options
    named = replace(options, engine="openmp")
    check_options(named)
    reason = ""
    try:
        engine = kind_of("openmp")(named)
    except CompilerMissing as error:
        reason = str(error)
    reason = first_reason(world, reason)
    if not reason:
        return engine, named
    say(f"engine reference: {reason}")
    named = replace(options, engine="reference", method="")
    return kind_of("reference")(named), named


def check_options(options: SearchOptions) -> None:
    """Raise UsageError for options that the engine does not take."""
    takes = kind_of(options.engine).takes
    others = [x for x in changed(options, OWNED) if x not in takes]
    if others:
        owners = [x for x in registry.ENGINES if others[0] in kind_of(x).takes]
        raise UsageError(
            f"{others[0]} is no option of engine {options.engine}; it is of "
            f"{', '.join(owners)}"
        )


def _open_host(opening: Opening) -> Session:
    """Open the parts of this rank in host memory."""
    world, choice = opening.world, opening.choice
    engine, options = make_host_engine(world, choice.options, opening.say)
    exchange, _ = choose_exchange(world, options.exchange)
    held = next((x for x in opening.held if x.parts), None)
    held = held or hold_host_parts(world, opening.source)
    began = time.perf_counter()
    first = held.parts[0]
    runner: Runner
    if first.layout.parts == 1 and not first.delegate_count and not options.stepwise:
        runner = WholeRunner(world, OnHost(engine.whole(first)))
    else:
        if first.directed:
            raise UsageError(NEEDS_SYMMETRIC)
        placement = Placement(first.layout.parts, world.size)
        searches = [engine.domain(part, placement) for part in held.parts]
        runner = between_domains(world, searches, exchange, options)
    return opening.session(timed(held, began), runner, options, engine.describe)


def _open_device(opening: Opening) -> Session:
    """Open a graph on one device: of this rank, or of rank 0 for all."""
    world, options = opening.world, opening.choice.options
    held = next((x for x in opening.held if x.graph is not None), None)
    about: Any = None
    search = None
    why = opening.choice.why
    if world.rank == 0:
        if held is None:
            graph = graph_on_device(opening.source, options.engine)
            held = held_graph(world, opening.source.n, graph)
        began = time.perf_counter()
        if held.graph is None:
            raise UsageError("there is no graph on the device")
        if opening.auto:
            options, chosen = engine_for(held.graph, options)
            why = f"{why}; {chosen}" if chosen else why
        engine = kind_of(options.engine)(options)
        search = OnDevice(engine.on_graph(held.graph), held.graph)
        timed(held, began)
        about = {**engine.describe(), "internal_ids": options.internal_ids}
    about, why, name = world.broadcast([about, why, options.engine])
    options = replace(options, engine=name)
    held = held or held_graph(world, opening.source.n, None)
    runner = WholeRunner(world, search, stepwise=options.stepwise)
    return opening.session(held, runner, options, lambda: dict(about), why)


def engine_for(graph: DeviceGraph, options: SearchOptions) -> tuple[SearchOptions, str]:
    """Return options with the engine that ``auto`` takes for a graph, and why.

    Where directions are free, xbfs: its pulls by bitmaps skip most edges of few wide
    levels, and one cluster or one block holds many narrow ones.  Where levels are
    pushed alone, few, of many edges and high degrees, bfs4k: its virtual warps need no
    search for the row of an edge.  ``scripts/bench_engines.py`` measures whether a
    threshold here is off.
    """
    if options.direction != "push" or options.engine != "xbfs" or not graph.active:
        return options, ""
    average = graph.m / graph.active
    search = kind_of("xbfs")(options).on_graph(graph)
    levels = search.search(int(graph.vertices[0])).levels
    few = levels < MANY_LEVELS and graph.m >= WIDE * levels
    if not few or average < HIGH_AVERAGE or options.stepwise:
        return options, f"{levels} levels, pushes alone"
    return (
        replace(options, engine="bfs4k", method="claim"),
        f"{levels} levels, pushes alone, {average:.3g} edges each",
    )


def _open_domain(opening: Opening) -> Session:
    """Open a graph on the devices of all ranks, which map each other's memory."""
    world, choice = opening.world, opening.choice
    held = next((x for x in opening.held if x.rows), None)
    held = held or hold_domain(world, opening.source, choice.devices)
    began = time.perf_counter()
    engine = kind_of(choice.options.engine)(choice.options)
    searches = []
    for part, device in zip(held.rows, choice.devices, strict=True):
        with cuda.cupy().cuda.Device(device), cuda.memory_of("a search"):
            searches.append(ResidentSearch(part, choice.options))
    driver = ResidentDriver(world, searches, PeerGroup(world, choice.devices))
    runner = WholeRunner(world, OnDevices(driver))
    return opening.session(timed(held, began), runner, choice.options, engine.describe)


def _open_separated(opening: Opening) -> Session:
    """Open degree-separated parts, one a device, with an exchange between them."""
    world, choice = opening.world, opening.choice
    options = choice.options
    source = opening.source
    if source.store is None:
        count = opening.request.parts or world.size * len(choice.devices)
        source = replace(source, parts=count)
    held = next((x for x in opening.held if x.device_parts), None)
    held = held or hold_device_parts(world, source, choice.devices)
    began = time.perf_counter()
    engine = kind_of(options.engine)(options)
    placement = Placement(held.vertices.layout.parts, world.size)
    searches = []
    for part in held.device_parts:
        with part.vertices.device:
            searches.append(engine.domain(part, placement))
    runner = between_domains(world, searches, choice.exchange, options)
    clocked = ClockedRunner(world, runner, held.devices)
    return opening.session(timed(held, began), clocked, options, engine.describe)


OPENERS: dict[str, Callable[[Opening], Session]] = {
    "host": _open_host,
    "device": _open_device,
    "first": _open_device,
    "domain": _open_domain,
    "separated": _open_separated,
}


def between_domains(
    world: World, searches: Sequence[Any], exchange: str, options: SearchOptions
) -> BetweenDomains:
    """Return the runner between the domains of all ranks (collective)."""
    part = searches[0].part
    on_device = kind_of(options.engine).on_device
    made = registry.lookup(registry.EXCHANGES, "exchange", exchange)(
        world,
        Placement(part.layout.parts, world.size),
        part.delegate_count,
        options,
        item=np.uint64 if on_device else np.uint32,
        on_device=on_device,
    )
    return BetweenDomains(world, searches, made, options)


def prepare(
    world: World,
    source: Source,
    options: SearchOptions,
    request: Request | None = None,
    *,
    say: Say = silent,
    held: Sequence[Held] = (),
    names: Names | None = None,
) -> Opening:
    """Choose what searches a graph, before anything is loaded (collective).

    held: what other sessions hold of the same graph, taken instead where it serves
    """
    request = request or Request()
    choice = choose(world, options, source.n, request, directed=source.directed)
    auto = options.engine == "auto"
    return Opening(world, source, choice, request, auto, say, held, names)


def open_source(world: World, source: Source, *asked: Any, **named: Any) -> Session:
    """Bring a graph to where it is searched and return its session (collective).

    asked, named: as of ``prepare``
    """
    return prepare(world, source, *asked, **named).open()


def open(  # noqa: A001
    source: Any,
    *,
    comm: Any = None,
    devices: int | Sequence[int] | None = None,
    engine: str = "auto",
    exchange: str = "auto",
    domain: int | None = None,
    parts: int | None = None,
    threshold: int | None = None,
    **options: Any,
) -> Session:
    """Open a graph for searches; use it in ``with``, or ``close()`` it.

    source: a folder with a store, a ``Graph``, or edge tuples, as those of a generator
    comm: an mpi4py communicator, whose ranks all call this; None for this process alone
    devices: CUDA devices of this rank, how many or which; None for all that it can have
    engine: "auto" (devices where every rank has one, else "openmp"), or a name of
        ``distbfs bfs --help``
    exchange: between domains: "auto", "host", "nccl", "cuda_aware"
    domain: devices of a domain; None for as many as map each other's memory
    parts, threshold: of tuples searched between domains: how many parts, and TH
    options: those of ``SearchOptions``, as method, threads, parents, direction

    ``why`` of the session says what was taken and why.  Raises UsageError for what
    cannot go together, StoreError and InputError for what cannot be read, and
    ResourceError for lack of memory, a device or a compiler.

    >>> import distbfs
    >>> graph = distbfs.Graph.from_edges([0, 0, 1, 2], [1, 2, 3, 3])
    >>> with distbfs.open(graph, engine="reference") as session:
    ...     session.search(3, depth_limit=1).to_numpy()[0]
    array([-1,  1,  1,  0], dtype=int32)
    """
    ranks = None if comm is None else MpiWorld(comm)
    world: World = ranks or SoloWorld()
    fields = {"engine": engine, "exchange": exchange, **options}
    unknown = set(fields) - set(SearchOptions.__dataclass_fields__)
    if unknown:
        allowed = ", ".join(sorted(SearchOptions.__dataclass_fields__))
        raise UsageError(f"option '{min(unknown)}'; allowed: {allowed}")
    made = source_of(source, world, parts, threshold)
    separate = "threshold" if threshold is not None else "parts" if parts else ""
    request = Request(parts, separate, devices, domain)
    names = made.graph if made.graph is not None and made.graph.nodes else None
    session = open_source(world, made, SearchOptions(**fields), request, names=names)
    if ranks is not None:
        session.at_close.append(ranks.free)
    return session


def source_of(
    source: Any, world: World, parts: int | None, threshold: int | None
) -> Source:
    """Return what a graph is made of from what a program gives.

    UsageError for anything but a store, a graph or tuples.
    """
    if isinstance(source, (str, Path)):
        source = open_store(Path(source))
    if hasattr(source, "manifest"):
        manifest = source.manifest
        if parts is not None or threshold is not None:
            raise UsageError("parts and threshold are settled by the store")
        return Source(manifest.n, manifest.parts, manifest.directed, store=source)
    if hasattr(source, "lent_tuples"):
        if world.size > 1:
            raise UsageError("a Graph is in the memory of one process; write a store")
        return Source(source.n, 1, source.directed, graph=source)
    if hasattr(source, "chunks"):
        build = BuildOptions(threshold=threshold)
        return Source(source.n, parts or world.size, tuples=source, build=build)
    raise UsageError(
        f"a {type(source).__name__} is no graph; allowed: a folder with a store, a "
        "Graph, edge tuples"
    )
