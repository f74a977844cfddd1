"""What searches a graph: engine, runner and exchange, from facts and options.

The one module that chooses, and says why.

=========  ========================================================================
place      what searches
=========  ========================================================================
host       threads of each rank: one part whole, several between domains
device     the one device of the one rank, whole
first      the first device of rank 0, whole, while the other ranks wait
domain     the devices of all ranks together, whole: they map each other's memory
separated  engine xbfs or pan, between domains: of one device each, or, with xbfs, of
           several of a host
=========  ========================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from distbfs import registry
from distbfs.device import cuda
from distbfs.errors import CompilerMissing, DeviceMissing, LaunchError, UsageError
from distbfs.exchange.agreement import first_reason, gather_texts
from distbfs.exchange.device_choice import take_devices
from distbfs.exchange.nccl_link import nccl_problem
from distbfs.exchange.peer_memory import peer_problem
from distbfs.graph.device_graph import MAX_VERTICES
from distbfs.options import (
    COMMON_OPTIONS,
    EXCHANGE_OPTIONS,
    FACTOR_OPTIONS,
    SearchOptions,
    check_range,
)

if TYPE_CHECKING:
    from distbfs.graph.device_graph import DeviceGraph
    from distbfs.partition.part import Part
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
BETWEEN_OPTIONS = (*EXCHANGE_OPTIONS, *FACTOR_OPTIONS)
ALONE_BELOW = 1 << 24  # vertices: a meeting of devices costs more than they save
MOST_VERTICES = (1 << 32) - (1 << 24)  # of a domain: positions have 32 bits


@dataclass(frozen=True)
class Choice:
    """What searches, on all ranks alike.

    place: see the top of this file; devices: of this rank; why: what it was taken for
    domain: devices of a domain, between domains
    """

    place: str
    options: SearchOptions
    devices: tuple[int, ...] = ()
    exchange: str = "none"
    why: str = ""
    domain: int = 1

    @property
    def together(self) -> int:
        """How many ranks that follow each other have the devices of one domain."""
        return max(self.domain // max(len(self.devices), 1), 1)


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
    check_known(options)
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


def has_option(kind: Any, name: str) -> bool:
    """Return whether an option, not one of all engines, is of an engine's class."""
    if name in EXCHANGE_OPTIONS:
        return bool(kind.domains)
    return name in kind.takes or name in {item.name for item in fields(kind.own)}


def owners_of(name: str) -> list[str]:
    """Return the engines that have an option."""
    return [x for x in registry.ENGINES if has_option(kind_of(x), name)]


def check_known(options: SearchOptions) -> None:
    """Raise UsageError for the name of an option that no engine has."""
    for name, _ in options.own:
        if not owners_of(name):
            own = {
                item.name for x in registry.ENGINES for item in fields(kind_of(x).own)
            }
            allowed = ", ".join(sorted({*COMMON_OPTIONS, *BETWEEN_OPTIONS, *own}))
            raise UsageError(f"option '{name}'; allowed: {allowed}")


def between_asked(options: SearchOptions) -> list[str]:
    """Return which options of searches between domains are not the usual ones."""
    now, usual = options.as_dict(), SearchOptions().as_dict()
    return [x for x in BETWEEN_OPTIONS if now[x] != usual[x]]


def wants_device(options: SearchOptions, request: Request) -> bool:
    """Return whether something is asked for that devices alone have."""
    asked = (request.devices, request.domain)
    own = bool(options.own) or options.internal_ids
    return own or any(x is not None for x in asked)


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
        name, why = _device_engine(options, directed=directed)
        check_named(replace(options, engine=name), request, directed=directed)
    named, kind = replace(options, engine=name), kind_of(name)
    sizes = domain_sizes(kind, total, len(devices))
    if request.domain not in (None, *sizes):
        allowed = ", ".join(str(size) for size in sizes)
        raise UsageError(
            f"domain is {request.domain}; allowed with engine {name}: {allowed}"
        )
    asked = between_reason(options, request, total)
    if kind.domains and (asked or not kind.alone):
        why = f"{why}; {asked}" if why and asked else why or asked
        return _separated(world, named, n, request, devices, [why])
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
    if options.internal_ids:
        raise LaunchError(f"internal ids need one domain of all devices: {reason}")
    return _separated(world, named, n, request, devices, [], reason)


def check_named(options: SearchOptions, request: Request, *, directed: bool) -> None:
    """Raise UsageError for what an engine on devices cannot do, then DeviceMissing."""
    name, kind = options.engine, kind_of(options.engine)
    if directed and not kind.directed:
        raise UsageError(
            f"engine {name} searches symmetric graphs, and this one is directed; "
            f"allowed: {DIRECTED}, openmp, reference"
        )
    if request.separate and not kind.domains:
        raise UsageError(
            f"{request.separate} is for engines between domains, as xbfs and pan"
        )
    check_options(options)
    kind(options)


def _device_engine(options: SearchOptions, *, directed: bool) -> tuple[str, str]:
    """Return the engine that ``auto`` takes on devices, and why."""
    why = "there is a CUDA device"
    if directed:
        return DIRECTED, f"{why}, and the graph is directed"
    asked = [x for x in between_asked(options) if x in FACTOR_OPTIONS]
    asked += [x for x, _ in options.own if x == "balance"]
    if asked:
        return "pan", f"{asked[0]} is an option of engine pan"
    return "xbfs", why


def between_reason(options: SearchOptions, request: Request, total: int) -> str:
    """Return why a graph is searched between domains on one host, "" where not.

    total: devices of all ranks
    """
    asked = [request.separate] if request.separate else []
    asked += between_asked(options)
    if asked:
        return f"{asked[0]} is for searches between domains"
    if request.domain not in (None, total):
        return f"domains of {counted(request.domain)} were asked for"
    return ""


def counted(devices: int | None) -> str:
    """Return how many devices, in words."""
    return "one device" if devices == 1 else f"{devices} devices"


def domain_sizes(kind: Any, total: int, each: int) -> list[int]:
    """Return of how many devices a domain may be, rising.

    total: devices of all ranks; each: of one rank.  A rank serves whole domains, or a
    domain has whole ranks.
    """
    most = min(total, kind.devices, MOST_DEVICES)
    sizes = [x for x in range(1, most + 1) if total % x == 0]
    return [x for x in sizes if each % x == 0 or x % each == 0]


def _separated(
    world: World,
    options: SearchOptions,
    n: int,
    request: Request,
    devices: tuple[int, ...],
    why: list[str],
    whole: str = "",
) -> Choice:
    """Return the search between domains (collective).

    They have as many devices as are asked for; else as many as map each other's memory
    where there are several hosts, or where all are not one domain.
    whole: why they are not, "" where that was not looked at
    """
    total = world.size * len(devices)
    sizes = domain_sizes(kind_of(options.engine), total, len(devices))
    domain, reason = request.domain or 1, whole
    if domain > 1:
        problem = group_problem(world, options, n, devices, domain)
        if problem:
            raise UsageError(f"domain is {domain}, and {problem}; allowed: 1")
    free = request.domain is None and request.parts in (None, 1)
    if free and (whole or len(set(getattr(world, "hosts", [""]))) > 1):
        for size in [x for x in reversed(sizes[1:]) if not whole or x < total]:
            problem = group_problem(world, options, n, devices, size)
            if not problem:
                domain = size
                break
            reason = reason or problem
    if request.domain is None and (reason or domain > 1):
        made = f"domains of {counted(domain)}"
        why = [*why, f"{made}: {reason}" if reason else made]
    exchange, chosen = choose_exchange(world, options.exchange.name, devices)
    why = [x for x in (*why, chosen) if x]
    return Choice("separated", options, devices, exchange, "; ".join(why), domain)


def group_problem(
    world: World, options: SearchOptions, n: int, devices: Sequence[int], size: int
) -> str:
    """Return why domains cannot have ``size`` devices, "" where they can (collective).

    The same text on all ranks.
    """
    together = max(size // len(devices), 1)
    share = -(-n * size // (world.size * len(devices)))
    ranks = world.split(world.rank // together)
    reason = ""
    groups = max(len(devices) // size, 1)
    for first in range(groups):
        problem = domain_problem(ranks, options, share, devices[first::groups])
        reason = reason or problem
    ranks.free()
    return first_reason(world, reason)


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


def exchange_kind(name: str) -> Any:
    """Return the class of an exchange; UsageError for an unknown name."""
    return registry.lookup(registry.EXCHANGES, "exchange", name)


def choose_exchange(
    world: World, name: str, devices: Sequence[int] = ()
) -> tuple[str, str]:
    """Return (name in the registry, why) of the exchange between domains (collective).

    devices: of this rank, none where arrays are in host memory.  ``auto``: solo for one
    rank; host for arrays in host memory; nccl where CuPy has it and every rank has one
    device of its own, else host.
    """
    if name != "auto":
        if exchange_kind(name).needs_devices and not devices:
            others = [
                x for x in registry.EXCHANGES if not exchange_kind(x).needs_devices
            ]
            raise UsageError(
                f"exchange '{name}' is for parts on devices; allowed: auto, "
                f"{', '.join(others)}"
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
    flags = [x for x in ("stepwise", "internal_ids") if getattr(options, x)]
    asked = [*between_asked(options), *(x for x, _ in options.own), *flags]
    for name in asked:
        if not has_option(kind_of(options.engine), name):
            raise UsageError(
                f"{name} is no option of engine {options.engine}; it is of "
                f"{', '.join(owners_of(name))}"
            )


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


def choose_runner(name: str, part: Part | None = None) -> tuple[Any, str]:
    """Return a runner of many searches and why it was taken ("" where it was named).

    ``auto`` takes cuda where there is a device and the graph ``part`` is symmetric,
    else openmp, and reference where there is no C compiler.  Raises UsageError for an
    unknown name, ResourceError where the one that is named cannot run.
    """
    if name != "auto":
        named = registry.lookup(registry.RUNNERS, "engine", name)()
        return named, ""
    why = "the graph is directed"
    if part is None or not part.directed:
        try:
            cuda.cupy()
            first = registry.lookup(registry.RUNNERS, "engine", "cuda")()
            return first, "there is a CUDA device"
        except (DeviceMissing, UsageError) as error:
            why = str(error).partition(";")[0]
    try:
        second = registry.lookup(registry.RUNNERS, "engine", "openmp")()
    except CompilerMissing as error:
        third = registry.lookup(registry.RUNNERS, "engine", "reference")()
        return third, str(error)
    return second, why


def agreed_runner(world: World, engine: str, part: Part) -> tuple[Any, str]:
    """Return what runs on every rank, each on a device of its own, and why."""
    runner, reason = choose_runner(engine, part)
    if engine not in ("auto", "cuda"):
        return runner, reason
    why = first_reason(world, "" if runner.name == "cuda" else reason)
    if not why:
        try:
            take_devices(world, share=False)
        except LaunchError as error:
            if engine == "cuda":
                raise
            why = str(error).partition(";")[0]
    if not why:
        return runner, reason
    # a rank that may not use its device goes with the others
    return (choose_runner("openmp")[0] if runner.name == "cuda" else runner), why
