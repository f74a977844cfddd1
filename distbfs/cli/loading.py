"""What the commands that search have in common: which engine, and what it searches.

The one place that decides whether a graph is searched on the host or on a device.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from distbfs import registry
from distbfs.cli.common import Terminal
from distbfs.device import cuda
from distbfs.engines.base import DeviceEngine, on_device
from distbfs.engines.cuda.auto import AutoEngine
from distbfs.errors import DeviceMissing, LaunchError, ResourceError, UsageError
from distbfs.exchange.agree import first_reason
from distbfs.exchange.placing import take_devices
from distbfs.exchange.world import SoloWorld
from distbfs.graph.device_build import build
from distbfs.graph.device_graph import MAX_VERTICES, DeviceGraph
from distbfs.options import BuildOptions, SearchOptions
from distbfs.partition.construct import construct
from distbfs.partition.device_construct import construct_on_devices
from distbfs.partition.device_part import DevicePart, PartUpload, part_to_device
from distbfs.partition.device_resident import construct_resident
from distbfs.partition.layout import Placement
from distbfs.partition.part import Part
from distbfs.search.alone import ALONE_BELOW, AloneSession
from distbfs.search.device_parts import DevicePartsSession
from distbfs.search.device_resident import (
    BY_SIZE,
    RESIDENT,
    ResidentSession,
    resident_reason,
)
from distbfs.search.device_session import DeviceSession, with_tuples
from distbfs.search.session import (
    DEVICE_OPTIONS,
    NEEDS_SYMMETRIC,
    AnySession,
    Session,
)
from distbfs.search.shared_tuples import SharedTuples
from distbfs.store.hdf5 import Store
from distbfs.store.tuples import StoreTuples, permutation_of, tuple_degrees_for
from distbfs.types import TupleSource, World

FIRST = "xbfs"  # what auto takes where it can
FIRST_DIRECTED = "xbfs-paper"
MANY_TUPLES = 1 << 26  # whose graph is not built in a moment
ALONE = "alone"  # besides RESIDENT: how searches run whole


@dataclass(frozen=True)
class Choice:
    """The engine of a command.

    device: the engine where it searches on devices; why: what ``auto`` chose it for
    parts: whether it searches parts rather than a whole graph
    devices: of this rank, where it searches parts; they take its parts in turn
    """

    options: SearchOptions
    device: DeviceEngine | None = None
    why: str = ""
    parts: bool = False
    devices: tuple[int, ...] = ()

    def devices_of(self, parts: int) -> list[int]:
        """Return the device of each of this rank's parts."""
        return [self.devices[k % len(self.devices)] for k in range(parts)]


@dataclass(frozen=True)
class Built:
    """A graph that was generated and built, and this rank's seconds for it."""

    session: AnySession
    generation_seconds: float
    construction_seconds: float
    threshold: int | None


def need_symmetric(store: Store, what: str) -> None:
    """Raise UsageError for a directed graph."""
    if store.manifest.directed:
        raise UsageError(
            f"{what} needs a symmetric graph, and {store.folder} is directed"
        )


def choose(
    world: World,
    options: SearchOptions,
    n: int,
    asked: Sequence[str] = (),
    *,
    directed: bool = False,
) -> Choice:
    """Return the engine for a graph of n vertices; the same on all ranks.

    asked: options of the command line that only searches of parts know.  Raises
    UsageError for what cannot go together, DeviceMissing where there is no device.
    """
    if directed:
        return _choose_directed(world, options, n)
    if options.engine == "auto":
        return _choose_auto(world, options, n, asked)
    kind = registry.lookup(registry.ENGINES, "engine", options.engine)
    if not on_device(kind):
        return Choice(options)
    name = options.engine
    if world.size > 1 or asked:
        kind.check(options, whole=False)
        engine: DeviceEngine = kind(options)
        devices = take_devices(world, share=options.share_device)
        return Choice(options, engine, parts=True, devices=tuple(devices))
    if n > MAX_VERTICES:
        raise UsageError(
            f"engine {name} searches up to 2^31 vertices, not {n}; use openmp"
        )
    kind.check(options, whole=True)
    return Choice(options, kind(options))


def _choose_directed(world: World, options: SearchOptions, n: int) -> Choice:
    """Return an engine for one process; UsageError where parts are asked for."""
    if world.size > 1:
        raise UsageError(NEEDS_SYMMETRIC)
    named = options.engine if options.engine != "auto" else FIRST_DIRECTED
    kind = registry.lookup(registry.ENGINES, "engine", named)
    if not on_device(kind):
        if options.stepwise:
            raise UsageError(NEEDS_SYMMETRIC)
        return Choice(options)
    try:
        fit = kind.for_directed(replace(options, engine=named))
        kind.check(fit, whole=True)
        why = "there is a CUDA device, and the graph is directed"
        if n > MAX_VERTICES:
            raise UsageError("more than 2^31 vertices; use openmp")
        engine: DeviceEngine = kind(fit)
    except (DeviceMissing, UsageError) as error:
        if options.engine != "auto" or wants_device(options):
            raise
        if options.stepwise:
            raise UsageError(NEEDS_SYMMETRIC) from error
        return Choice(options, why=str(error).partition(";")[0])
    return Choice(fit, engine, why if options.engine == "auto" else "")


def wants_device(options: SearchOptions) -> bool:
    """Return whether options ask for what engines on a device alone have."""
    usual = SearchOptions()
    return any(getattr(options, x) != getattr(usual, x) for x in DEVICE_OPTIONS)


def _choose_auto(
    world: World, options: SearchOptions, n: int, asked: Sequence[str]
) -> Choice:
    """Return the devices' engine where every rank has one, else none."""
    if world.size > 1:
        return _choose_parts(world, options)
    if asked:
        return Choice(options, why=f"{asked[0]} is for parts")
    if n > MAX_VERTICES:
        return Choice(options, why="more than 2^31 vertices")
    kind = registry.lookup(registry.ENGINES, "engine", FIRST)
    named = replace(options, engine=FIRST)
    try:
        kind.check(named, whole=True)
        engine: Any = AutoEngine(named)
        return Choice(named, engine, "there is a CUDA device")
    except (DeviceMissing, UsageError) as error:
        if wants_device(options):
            raise
        return Choice(options, why=str(error).partition(";")[0])


def _choose_parts(world: World, options: SearchOptions) -> Choice:
    """Return the devices' engine for parts where every rank has a device of its own."""
    kind = registry.lookup(registry.ENGINES, "engine", FIRST)
    named, why = replace(options, engine=FIRST), ""
    try:
        kind.check(named, whole=False)
        engine: DeviceEngine = kind(named)
    except (DeviceMissing, UsageError) as error:
        why = str(error).partition(";")[0]
    why = first_reason(world, why)
    if not why:
        try:
            devices = take_devices(world, share=options.share_device)
        except LaunchError as error:
            why = str(error).partition(";")[0]
    if why:
        return Choice(options, why=why)
    why = "every rank has a device of its own"
    return Choice(named, engine, why, parts=True, devices=tuple(devices))


def load_session(
    terminal: Terminal,
    store: Store,
    wanted: Choice | SearchOptions,
    *,
    by_size: bool = False,
) -> AnySession:
    """Load a store and make it ready to search (collective).

    wanted: what ``choose`` returned, or options to choose by; by_size: where no method
    is asked for, parts on devices of a small graph go to one device.  Raises
    LaunchError where the parts do not divide by the ranks, ResourceError where memory
    does not last.
    """
    world, manifest, choice = terminal.world, store.manifest, wanted
    if isinstance(choice, SearchOptions):
        choice = choose(world, choice, manifest.n, directed=manifest.directed)
    mine = Placement(manifest.parts, world.size).parts_of(world.rank)
    try:
        if choice.device is not None and not choice.parts:
            graph = graph_of_store(terminal, store, choice.device)
            return DeviceSession(world, choice.device, graph, choice.options)
        permutation = permutation_of(store)
        if choice.device is not None:
            devices = choice.devices_of(len(mine))
            method, small = choice.options.method, manifest.n < ALONE_BELOW
            if method in (RESIDENT, BY_SIZE) or (by_size and small and not method):
                given = (choice.options, manifest.n, manifest.parts, devices)
                way = _way(terminal, *given)
                if way == ALONE:
                    first = partial(graph_of_store, terminal, store, world=SoloWorld())
                    return _alone(terminal, choice, manifest.n, first).session
                if way == RESIDENT:
                    return _resident_of_store(terminal, store, choice, devices)
            lent = parts_of_store(store, mine, devices)
            return DevicePartsSession(
                world, choice.device, lent, choice.options, permutation
            )
        parts = load_parts(terminal, store, mine)
        return Session(world, parts, choice.options, permutation, terminal.say)
    except MemoryError as error:
        need = sum(store.part_bytes(index) for index in mine)
        raise ResourceError(
            f"{store.folder}: the parts of rank {world.rank} hold {need} bytes, and a "
            "search needs more; there is not enough memory"
        ) from error


def _way(
    terminal: Terminal,
    options: SearchOptions,
    n: int,
    parts: int,
    devices: Sequence[int],
    *,
    separated: str = "",
) -> str:
    """Return how searches run whole, ALONE or RESIDENT, "" where not; says why not.

    n and after: see ``resident_reason``.  LaunchError where only that would do.
    """
    reason = resident_reason(
        terminal.world, options, n, parts, devices, separated=separated
    )
    if not reason:
        return ALONE if options.method != RESIDENT and n < ALONE_BELOW else RESIDENT
    if options.internal_ids:
        raise LaunchError(f"--internal-ids needs resident searches: {reason}")
    terminal.say(f"levels by the parts, not resident: {reason}")
    return ""


def _resident_of_store(
    terminal: Terminal, store: Store, choice: Choice, devices: Sequence[int]
) -> AnySession:
    """Return searches that run whole on the devices (collective).

    Every device passes over the edges of all parts, as rows of one owner are spread
    over them.
    """
    world, manifest = terminal.world, store.manifest
    if choice.device is None:
        raise UsageError("resident searches are for engines on devices")
    edges = SharedTuples(world, StoreTuples(store), devices)
    lent, _ = construct_resident(edges, world, manifest.parts, devices=devices)
    edges.close()  # not after an error, which other ranks may not have
    ends = tuple_degrees_for(world, store, manifest.parts, None)
    for part in lent:
        with part.ids.device:
            part.graph = with_tuples(part.graph, manifest.tuples, ends[part.index])
    return ResidentSession(world, choice.device, lent, choice.options)


def parts_of_store(
    store: Store, indices: Sequence[int], devices: Sequence[int]
) -> list[DevicePart]:
    """Return parts of a store in the memory of devices, one for each.

    What has been read goes to the device while the next slice is read.
    """
    parts = []
    for index, device in zip(indices, devices, strict=True):
        with cuda.cupy().cuda.Device(device):
            upload = PartUpload()
            with cuda.memory_of(f"part {index}"):
                part = store.load_part(index, upload.watch)
            parts.append(part_to_device(part, upload))
    return parts


def load_parts(terminal: Terminal, store: Store, indices: Sequence[int]) -> list[Part]:
    """Return parts of a store."""
    parts = []
    with terminal.progress("loading", len(indices)) as done:
        for index in indices:
            parts.append(store.load_part(index))
            done(len(parts))
    return parts


def graph_of_store(
    terminal: Terminal,
    store: Store,
    engine: DeviceEngine,
    *,
    world: World | None = None,
) -> DeviceGraph:
    """Return the graph of a store in device memory, in input ids.

    world: the ranks that make it, all by default

    One part without delegates goes up as it is; others are put together from their
    edges on the device.
    """
    manifest = store.manifest
    if manifest.parts == 1 and not manifest.delegates:
        [part] = load_parts(terminal, store, [0])
        return engine.graph_of(part, manifest.source, permutation_of(store))
    graph = build(StoreTuples(store))
    ends = tuple_degrees_for(world or terminal.world, store, 1, None)[0]
    return with_tuples(graph, manifest.tuples, ends)


def build_session(
    terminal: Terminal,
    source: TupleSource,
    parts: int,
    options: BuildOptions,
    choice: Choice,
    buffer_bytes: int | None = None,
) -> Built:
    """Generate and build a graph and make it ready to search (collective).

    buffer_bytes: of device memory for keys while building, None: what is free
    """
    world = terminal.world
    if source.tuples >= MANY_TUPLES:
        terminal.say(f"building {source.n} vertices from {source.tuples} tuples")
    if choice.device is not None and choice.parts:
        mine = Placement(parts, world.size).parts_of(world.rank)
        devices = choice.devices_of(len(mine))
        if choice.options.method in ("", RESIDENT, BY_SIZE):
            separated = "" if options.threshold is None else "--threshold"
            given = (choice.options, source.n, parts, devices)
            way = _way(terminal, *given, separated=separated)
            if way == ALONE:
                return _alone(
                    terminal,
                    choice,
                    source.n,
                    lambda _: build(source, buffer_bytes=buffer_bytes),
                )
            if way == RESIDENT:
                return _build_resident(
                    terminal, source, parts, choice, devices, buffer_bytes
                )
        lent, summary = construct_on_devices(
            source,
            world,
            parts,
            options,
            buffer_bytes=buffer_bytes,
            devices=devices,
        )
        began = time.perf_counter()
        of_parts = DevicePartsSession(world, choice.device, lent, choice.options)
        construction = summary.construction_seconds + time.perf_counter() - began
        return Built(
            of_parts, summary.generation_seconds, construction, summary.threshold
        )
    if choice.device is not None:
        graph = build(source, buffer_bytes=buffer_bytes)
        began = time.perf_counter()
        on_it = DeviceSession(world, choice.device, graph, choice.options)
        prepared = time.perf_counter() - began
        generation = graph.seconds.get("generation", 0.0)
        construction = sum(graph.seconds.values()) - generation + prepared
        return Built(on_it, generation, construction, None)
    made: list[Part] = []
    summary = construct(source, world, parts, options, made.append)
    began = time.perf_counter()
    session = Session(world, made, choice.options, None, terminal.say)
    construction = summary.construction_seconds + time.perf_counter() - began
    threshold = summary.threshold if summary.delegates else None
    return Built(session, summary.generation_seconds, construction, threshold)


def _alone(
    terminal: Terminal,
    choice: Choice,
    n: int,
    make: Callable[[DeviceEngine], DeviceGraph],
) -> Built:
    """Search a small graph on the first rank's first device (collective).

    make: returns the graph; called on that rank
    """
    world = terminal.world
    if choice.device is None:
        raise UsageError("one device alone is for engines on devices")
    terminal.say(
        f"one device searches alone, as {n} vertices are below {ALONE_BELOW}; "
        "--method resident takes all"
    )
    first, seconds = None, (0.0, 0.0)
    if world.rank == 0:
        options = replace(
            choice.options, method="", exchange="auto", share_device=False
        )
        engine = type(choice.device)(options)
        graph = make(engine)
        began = time.perf_counter()
        first = DeviceSession(SoloWorld(), engine, graph, options)
        generation = graph.seconds.get("generation", 0.0)
        prepared = time.perf_counter() - began
        seconds = generation, sum(graph.seconds.values()) - generation + prepared
    session = AloneSession(world, choice.options, n, first)
    return Built(session, *seconds, None)


def _build_resident(
    terminal: Terminal,
    source: TupleSource,
    parts: int,
    choice: Choice,
    devices: Sequence[int],
    buffer_bytes: int | None,
) -> Built:
    """Build a graph for searches that run whole on the devices (collective)."""
    world = terminal.world
    if choice.device is None:
        raise UsageError("resident searches are for engines on devices")
    lent, told = construct_resident(
        source, world, parts, buffer_bytes=buffer_bytes, devices=devices
    )
    began = time.perf_counter()
    session = ResidentSession(world, choice.device, lent, choice.options)
    construction = told.construction_seconds + time.perf_counter() - began
    return Built(session, told.generation_seconds, construction, None)


def engine_line(session: AnySession, why: str = "") -> str:
    """Return one line that says what searches run on, and why if that is known."""
    told: dict[str, Any] = session.describe()
    where = told.get("device") or f"{told.get('threads', 1)} threads a rank"
    line = (
        f"engine {told['engine']} ({told['method']}), {where}, {told['mode']}, "
        f"exchange {told['exchange']}"
    )
    if "chosen_for" in told:
        why = f"{why}; {told['chosen_for']}" if why else told["chosen_for"]
    return f"{line}; auto: {why}" if why else line
