"""Loading of a graph to where it is searched, and the session with its runner.

The engine and the place have been chosen by choose.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cuda
from distbfs.exchange.relay import RelayExchange
from distbfs.options import SearchOptions, SubgraphFactors
from distbfs.partition.layout import Placement
from distbfs.plan.host_memory import RAW_BYTES, has_room_for_rows
from distbfs.plan.memory import readable
from distbfs.registry import lookup
from distbfs.search.choose import (
    Request,
    Say,
    SearchChoice,
    kind_of,
    make_host_engine,
    set_problem,
)
from distbfs.search.domains import choose_exchange, exchange_kind
from distbfs.search.held import Held
from distbfs.search.holding import Source, cut_anew, hold_host_parts
from distbfs.search.part_paths import PartPaths
from distbfs.search.paths import NoPaths
from distbfs.search.runners.between import BetweenDomains
from distbfs.search.runners.whole import OnHost
from distbfs.search.session import Session
from distbfs.search.sight import HostMasks
from distbfs.store.owned_rows import is_divided_by_rows
from distbfs.timing import clock

if TYPE_CHECKING:
    from distbfs.search.paths import PathFinder
    from distbfs.search.runners.base import Runner
    from distbfs.search.sight import Masks
    from distbfs.search.store_names import VertexNames
    from distbfs.types import World

ON_DEVICES = NoPaths(
    "counts and sets of shortest paths are made on one device or on CPUs, not on "
    "several devices; search with --devices 1 or --engine openmp"
)


@dataclass(frozen=True)
class Opening:
    """A session in preparation; see ``prepare``."""

    world: World
    source: Source
    choice: SearchChoice
    request: Request
    auto: bool
    say: Say
    held: Sequence[Held] = ()
    names: VertexNames | None = None

    def held_as(self, name: str, parts: int | None = None) -> Held | None:
        """Return what another session holds in a field of ``Held``, or None.

        parts: number of parts of its layout; None for any
        """
        some = [x for x in self.held if parts in (None, x.vertices.layout.parts)]
        return next((x for x in some if getattr(x, name)), None)

    def open(self) -> Session:
        """Load the graph where it is searched; return its session (collective)."""
        open_there = lookup(OPENERS, "place", self.choice.place)
        session: Session = open_there(self)
        return session

    def session(
        self,
        held: Held,
        runner: Runner,
        options: SearchOptions,
        describe: Callable[[], dict[str, Any]],
        why: str | None = None,
        paths: PathFinder = ON_DEVICES,
        masks: Masks | None = None,
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
            masks=masks,
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


def open_host(opening: Opening) -> Session:
    """Open the parts of this rank in host memory."""
    world, choice = opening.world, opening.choice
    engine, options = make_host_engine(world, choice.options, opening.say)
    exchange, _ = choose_exchange(world, options.exchange.name)
    held = opening.held_as("parts") or _host_parts(opening, options.threads)
    began = clock()
    first = held.parts[0]
    runner: Runner
    whole = first.layout.parts == 1 and not first.delegate_count
    paths = PartPaths(world, held.parts, engine.path_sums)
    if whole and not options.stepwise:
        runner = OnHost(engine.whole(first))
    else:
        placement = Placement(first.layout.parts, world.size)
        searches = [engine.domain(part, placement) for part in held.parts]
        runner = between_domains(world, searches, exchange, options, placement)
    held.construction_seconds += clock() - began
    about, masks = engine.describe, HostMasks(held)
    return opening.session(held, runner, options, about, paths=paths, masks=masks)


def _host_parts(opening: Opening, threads: int) -> Held:
    """Load the parts of this rank to host memory (collective).

    A store is repartitioned if its number of parts is not a multiple of the number of
    ranks. Ranks own rows of a single part if memory allows, except for many searches at
    once: each level would send a word or more per vertex to all ranks.
    """
    world, source, store = opening.world, opening.source, opening.source.store
    if store is None:
        return hold_host_parts(world, source, owned=_owns_rows(opening))
    if not store.manifest.parts % world.size:
        return hold_host_parts(world, source)
    by_rows = is_divided_by_rows(world, store)
    if by_rows and not opening.request.divided:
        opening.say(f"1 part is divided by its rows for {world.size} ranks")
        return hold_host_parts(world, source, by_rows=True)
    parts = store.manifest.parts
    how_many = "1 part is" if parts == 1 else f"{parts} parts are"
    opening.say(f"{how_many} repartitioned for {world.size} ranks")
    return cut_anew(world, source, store, threads, owned=_owns_rows(opening))


def _owns_rows(opening: Opening) -> bool:
    """Return whether ranks are to own the rows of tuples (collective).

    They are if all ranks are on one host, with enough memory and a core for each,
    because every level sends one bit per vertex, not only per delegate, to all ranks.
    They are not for many searches at once, see ``_host_parts``, or if delegates, or
    directions of their subgraphs, were requested.
    """
    world, source, request = opening.world, opening.source, opening.request
    usual = opening.choice.options.factors == SubgraphFactors()
    if world.size == 1 or request.separate or request.divided or not usual:
        return False
    # mutant: > 1 -> > 2 : test_ranks_that_own_rows
    if len(set(world.hosts)) > 1 or world.size > (os.cpu_count() or 1):
        return False
    tuples = source.any_tuples().tuples
    return has_room_for_rows(world, source.n, 2 * RAW_BYTES * tuples)


def bringing(opening: Opening) -> Callable[[], Held]:
    """Return a function that loads each rank's parts to host memory (collective)."""
    source, world = opening.source, opening.world
    if source.store is None:  # tuples are cut for any number of parts
        opening = replace(opening, source=replace(source, parts=world.size))
    return partial(_host_parts, opening, opening.choice.options.threads)


DEVICE_OPENING = "distbfs.search.device_opening"
OPENERS = {
    "host": f"{__name__}:open_host",
    "device": f"{DEVICE_OPENING}:open_shares",
    "domain": f"{DEVICE_OPENING}:open_shares",
    "separated": f"{DEVICE_OPENING}:open_separated",
}


def between_domains(
    world: World,
    searches: Sequence[Any],
    exchange: str,
    options: SearchOptions,
    placement: Placement,
    devices: Sequence[int] = (),
) -> BetweenDomains:
    """Create the runner between the domains of all ranks (collective).

    devices: the devices of this rank that hold domains
    """
    part = searches[0].part
    made = exchange_kind(exchange)(
        world,
        placement,
        part.delegate_count,
        options.exchange,
        on_device=kind_of(options.engine).on_device,
    )
    form = options.exchange
    if world.size >= form.relay_from and not (form.local_all2all or form.uniquify):
        made = RelayExchange(made, placement, world.rank)
    return BetweenDomains(world, searches, made, options, placement, devices)
