"""The choice of engine, runner and exchange for a graph, from facts and options.

No other module makes these choices; this one also states the reasons.

=========  ========================================================================
place      what searches
=========  ========================================================================
host       threads of each rank: one part whole, several between domains
device     the first device of rank 0, whole, while other ranks wait
domain     the devices of all ranks together, whole; they map each other's memory
separated  engine xbfs or pan, between domains of one device each or, with xbfs, of
           several devices of a host, see domains.py
=========  ========================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from distbfs import registry
from distbfs.device import cuda
from distbfs.errors import CompilerMissing, DeviceMissing, LaunchError, UsageError
from distbfs.exchange.device_choice import take_devices
from distbfs.graph.device_graph import MAX_VERTICES
from distbfs.options import (
    COMMON_OPTIONS,
    EXCHANGE_OPTIONS,
    MEMORY_OPTIONS,
    SearchOptions,
    check_range,
)
from distbfs.plan.memory import Beside, nothing_beside
from distbfs.ranks.agreement import errors_of_all
from distbfs.ranks.world import SoloWorld
from distbfs.search.domains import (
    BETWEEN_OPTIONS,
    HostDevices,
    between_asked,
    between_reason,
    choose_exchange,
)

if TYPE_CHECKING:
    from distbfs.partition.layout import Placement
    from distbfs.types import World

Say: TypeAlias = Callable[[str], None]

ONE_DEVICE_BELOW = 1 << 24  # vertices: synchronisation costs more than devices save


@dataclass(frozen=True)
class SearchChoice:
    """The choice of place and engine for the searches of a graph, equal on all ranks.

    place: see the module; devices: this rank's devices; why: reasons for the choice
    placement: for searches between domains, the assignment of shares of the vertices to
    devices
    """

    place: str
    options: SearchOptions
    devices: tuple[int, ...] = ()
    exchange: str = "none"
    why: str = ""
    placement: Placement | None = None


@dataclass(frozen=True)
class Request:
    """The user's requests besides the engine and its options.

    parts: number of domains for a search between domains
    separate: the option that asks for parts with delegates, "" if none does
    devices: how many devices of each rank to use, or which; domain: devices per domain
    one_device: use one device of each rank that has any
    divided: share even a small graph between all devices, for many searches at once
    keep: keep the graph unchanged for other searches
    masked: searches will see only some vertices and edges
    beside: function from the counts of a device's share to the bytes that must stay
    free beside one search
    """

    parts: int | None = None
    separate: str = ""
    devices: int | Sequence[int] | None = None
    domain: int | None = None
    one_device: bool = False
    divided: bool = False
    keep: bool = False
    masked: bool = False
    beside: Beside = nothing_beside


def choose(
    world: World,
    options: SearchOptions,
    n: int,
    request: Request,
    *,
    directed: bool = False,
) -> SearchChoice:
    """Choose how to search a graph of n vertices (collective).

    Raises UsageError for contradictory options, DeviceMissing if a device is required
    and there is none, LaunchError if ranks would share a device.
    """
    check_known(options)
    named, why = options.engine != "auto", ""
    on_host = named and not kind_of(options.engine).on_device
    if on_host:
        check_masks(options.engine, request)
    else:
        try:
            if not named:
                check_devices(world)
            return _on_devices(world, options, n, request, directed=directed)
        except (DeviceMissing, LaunchError, UsageError) as error:
            if named or wants_device(options, request):
                raise
            why = str(error)
    # mutant: why.partition(";")[0] -> "" : test_sessions::test_without_a_device
    return SearchChoice("host", options, why=why.partition(";")[0])


def check_devices(world: World) -> None:
    """Raise DeviceMissing on all ranks if one of them has no device (collective)."""
    with errors_of_all(world, DeviceMissing):
        cuda.cupy()


def first_usable(
    world: World, names: Sequence[str], make: Callable[[str], Any], why: str = ""
) -> tuple[Any, str]:
    """Return what all ranks can make of the first name, or else the next (collective).

    The text, by default ``why``, tells why the last name before it was passed over.
    """
    try:
        with errors_of_all(world):
            made = make(names[0])
    except (CompilerMissing, DeviceMissing, LaunchError) as error:
        if not names[1:]:
            raise
        return first_usable(world, names[1:], make, str(error))
    return made, why


def because(*reasons: str) -> str:
    """Join the reasons that there are."""
    return "; ".join(reason for reason in reasons if reason)


def kind_of(engine: str) -> Any:
    """Return the class of an engine; UsageError for an unknown name."""
    return registry.lookup(registry.ENGINES, "engine", engine)


def has_option(kind: Any, name: str) -> bool:
    """Return whether an option belongs to an engine's own class."""
    if name in EXCHANGE_OPTIONS:
        return bool(kind.domains) and name not in kind.needless
    return name in kind.takes or name in {item.name for item in fields(kind.own)}


def set_problem(engine: str) -> str:
    """Return the reason why an engine cannot search from a set, "" if it can."""
    if kind_of(engine).sets:
        return ""
    others = ", ".join(x for x in registry.ENGINES if kind_of(x).sets)
    return (
        f"engine {engine} searches from one vertex, not from several sources; "
        f"allowed: {others}"
    )


def no_masks(engine: str) -> str:
    """Return the message for an engine without masks."""
    others = ", ".join(x for x in registry.ENGINES if kind_of(x).masks)
    return (
        f"engine {engine} cannot be limited to some vertices and edges; allowed: "
        f"engines {others}"
    )


def check_masks(engine: str, request: Request) -> None:
    """Raise UsageError if searches will see a view and the engine has no masks."""
    if request.masked and not kind_of(engine).masks:
        raise UsageError(no_masks(engine))


def owners_of(name: str) -> list[str]:
    """Return the engines that have an option."""
    return [x for x in registry.ENGINES if has_option(kind_of(x), name)]


def check_known(options: SearchOptions) -> None:
    """Raise UsageError if an option is set that no engine has."""
    for name, _ in options.own:
        if not owners_of(name):
            own = {
                item.name for x in registry.ENGINES for item in fields(kind_of(x).own)
            }
            allowed = ", ".join(sorted({*COMMON_OPTIONS, *BETWEEN_OPTIONS, *own}))
            raise UsageError(f"option '{name}'; allowed: {allowed}")


def wants_device(options: SearchOptions, request: Request) -> bool:
    """Return whether an option requires a device."""
    # mutant: request.devices -> None : test_devices_by_number
    asked = (request.devices, request.domain)
    limits = (getattr(options, name) for name in MEMORY_OPTIONS)
    own = bool(options.own) or options.internal_ids
    return own or any(x is not None for x in (*asked, *limits))


def take_some(
    world: World, options: SearchOptions, request: Request
) -> tuple[int, ...]:
    """Return the devices of this rank that are requested, by default all (collective).

    Raises UsageError if there are fewer than requested.
    """
    taken = take_devices(world, share=options.share_device)
    wanted = request.devices
    if wanted is None:
        return tuple(taken[:1] if request.one_device else taken)
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
    world: World, options: SearchOptions, n: int, request: Request, *, directed: bool
) -> SearchChoice:
    """Choose the search on devices of this rank (collective)."""
    name, why = options.engine, ""
    if name == "auto":
        name, why = "xbfs", "there is a CUDA device"
        of_pan = [x for x in between_asked(options) if not has_option(kind_of(name), x)]
        if of_pan:
            name, why = "pan", f"{of_pan[0]} is an option of engine pan"
    check_masks(name, request)
    check_named(replace(options, engine=name), request, directed=directed)
    devices = take_some(world, options, request)
    named, kind = replace(options, engine=name), kind_of(name)
    hosts = HostDevices(world, devices, kind)
    hosts.check(request.domain, name)
    asked = between_reason(options, request.separate, request.domain, hosts.total)
    if kind.domains and (asked or not kind.whole_graphs):
        return _separated(hosts, named, n, request, (why, asked))
    alone = len(devices) == 1 or kind.devices == 1
    # mutant: ONE_DEVICE_BELOW -> 0 : test_small_graphs_are_searched_by_one_device
    # mutant: ONE_DEVICE_BELOW and request.domain is None -> ONE_DEVICE_BELOW
    #   : test_sessions::test_what_is_chosen
    small = n < ONE_DEVICE_BELOW and request.domain is None
    small = small and not request.divided
    if small and hosts.total > 1 and kind.devices > 1:
        why = f"one device searches alone, as {n} vertices are below {ONE_DEVICE_BELOW}"
    if world.size == 1 and (alone or small):
        if n <= MAX_VERTICES:
            return SearchChoice("device", named, devices[:1], why=why)
        if kind.devices == 1:
            raise UsageError(
                f"engine {name} searches up to 2^31 vertices, not {n}; use xbfs"
            )
        why = f"a domain of one device, as {n} vertices have ids of 64 bits"
        return SearchChoice("domain", named, devices[:1], why=why)
    if kind.devices == 1:
        raise UsageError(f"engine {name} searches on one device of one process")
    if small:
        return SearchChoice("device", named, devices[:1], why=why)
    reason = hosts.whole_problem(named, n)
    if not reason:
        why = f"{hosts.total} devices map each other's memory"
        return SearchChoice("domain", named, devices, why=why)
    # mutant: options.internal_ids -> False : test_where_one_domain_cannot_be
    if options.internal_ids:
        raise LaunchError(f"internal ids need one domain of all devices: {reason}")
    return _separated(hosts, named, n, request, (), reason)


def check_named(options: SearchOptions, request: Request, *, directed: bool) -> None:
    """Raise UsageError for requests that device engines refuse, or DeviceMissing."""
    name, kind = options.engine, kind_of(options.engine)
    if directed and not kind.directed:
        raise UsageError(
            f"engine {name} searches symmetric graphs, and this one is directed; "
            "allowed: xbfs, openmp, reference"
        )
    if request.separate and not kind.domains:
        raise UsageError(
            f"{request.separate} is for engines between domains: xbfs and pan"
        )
    check_options(options)
    kind(options)


def _separated(
    hosts: HostDevices,
    options: SearchOptions,
    n: int,
    request: Request,
    why: tuple[str, ...],
    whole: str = "",
) -> SearchChoice:
    """Choose the search between domains (collective); whole: see ``choose_domains``."""
    free = request.parts in (None, 1)
    placement, sizes = hosts.choose_domains(options, n, request.domain, free, whole)
    streams = options.engine == "xbfs" and not options.stepwise
    name, chosen = choose_exchange(
        hosts.world,
        options.exchange.name,
        hosts.devices,
        placement if streams else None,
    )
    reasons = because(*why, sizes, chosen)
    return SearchChoice("separated", options, hosts.devices, name, reasons, placement)


def make_host_engine(
    world: World, options: SearchOptions, say: Say
) -> tuple[Any, SearchOptions]:
    """Return the engine for threads and its options (collective).

    ``auto`` means openmp or, if any rank lacks a compiler, reference; ``say`` then
    receives the reason.
    """
    auto = options.engine == "auto"

    def made(name: str) -> tuple[Any, SearchOptions]:
        named = replace(options, engine=name)
        if auto and name == "reference":
            named = replace(named, method="")
        check_options(named)
        return kind_of(name)(named), named

    names = ("openmp", "reference") if auto else (options.engine,)
    engine, why = first_usable(world, names, made)
    if why:
        say(f"engine reference: {why}")
    return engine


def check_options(options: SearchOptions) -> None:
    """Raise UsageError for options that the engine does not take."""
    flags = [x for x in ("stepwise", "internal_ids") if getattr(options, x)]
    flags += [x for x in MEMORY_OPTIONS if getattr(options, x) is not None]
    asked = [*between_asked(options), *(x for x, _ in options.own), *flags]
    for name in asked:
        if not has_option(kind_of(options.engine), name):
            raise UsageError(
                f"{name} is not an option of engine {options.engine}; it belongs to "
                f"{', '.join(owners_of(name))}"
            )


def choose_searcher(name: str, world: World | None = None) -> tuple[Any, str]:
    """Return the class that searches whole graphs, and the reason ("" if it was named).

    ``auto`` means xbfs with a device, else openmp, or reference without a C compiler.
    Raises UsageError for an unknown name, ResourceError if the named one cannot run
    here.

    world: ranks that must all be able to use it, each on its own device (collective)
    """
    ranks = world or SoloWorld()

    def made(name: str) -> Any:
        if name == "xbfs":
            check_devices(ranks)
        if name == "xbfs" and world is not None:
            take_devices(world, share=False)
        kind = registry.lookup(registry.SEARCHERS, "engine", name)
        kind.check()
        return kind

    if name != "auto":
        return first_usable(ranks, [name], made)
    kind, why = first_usable(ranks, list(registry.SEARCHERS)[::-1], made)
    return kind, why.partition(";")[0] or "there is a CUDA device"
