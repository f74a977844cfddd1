"""Kernel 1 on CUDA devices: builds this rank's parts from edge tuples.

Every device keeps the edges of its parts (Algorithm 1 of Pan, Pearce, Owens 2018,
Section III-B, as in build/host/separate.py). Either each device makes all tuples
itself, so that none is sent, or each makes a share, and devices send each other the
tuples that they keep (shares.py); making.py chooses. In a first round, each part
computes the degrees of its vertices. Then the ranks share the degree histogram, the
delegates, and which vertices are normal. In a second round, each part builds its four
subgraphs directly in their final numbers.

The graph is the one that ``construct`` builds, except for the order inside a part:
normal vertices with edges come first and all others after them, both by ascending local
id.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from threading import BrokenBarrierError
from typing import Any, TypeVar

import numpy as np

from distbfs.build.cuda.kernels import check_ends
from distbfs.build.cuda.making import SHARE, Making, chosen
from distbfs.build.cuda.places import number_columns
from distbfs.build.cuda.room import Room
from distbfs.build.cuda.separate import (
    Builder,
    CommonSizes,
    SeparatedPart,
    Shared,
)
from distbfs.build.cuda.shares import Dealer, DealerSeat, Seats
from distbfs.build.host.parts import BuildSummary
from distbfs.device import cuda
from distbfs.errors import InputError, UsageError
from distbfs.generate.derived import Permuted
from distbfs.graph.degrees import histogram_of
from distbfs.options import BuildOptions
from distbfs.partition.layout import Layout, Placement
from distbfs.partition.part import Part
from distbfs.plan.threshold import suggest_host_threshold, suggest_threshold
from distbfs.progress import Sum
from distbfs.timing import Stopwatch
from distbfs.types import SUBGRAPHS, TupleSource, World

ROUNDS = 2  # passes over the tuples for each part, if its keys fit in one pass
Result = TypeVar("Result")


class Crew:
    """The builders of this rank's parts, which run on several devices at once.

    shape: sizes that are the same for all parts
    devices: CUDA device of each part, in the order of ``Placement.parts_of``; None: the
    current one for all
    buffer_bytes: device memory for keys and their sort (default: what is free; the keys
    of the longest row always fit)
    done: called with the number of tuples that this rank's devices make, in all passes
    making: whether each device makes "all" tuples, or a "share", whose tuples it then
    sends to other devices; None: the choice that is faster by estimate. Once created,
    the choice that was made
    directed: edges lead from u to v alone
    """

    def __init__(
        self,
        source: TupleSource,
        world: World,
        placement: Placement,
        *,
        devices: Sequence[int] | None = None,
        buffer_bytes: int | None = None,
        done: Sum | None = None,
        making: Making | None = None,
        directed: bool = False,
    ) -> None:
        own_parts = placement.parts_of(world.rank)
        if devices is not None and len(devices) != len(own_parts):
            raise UsageError(
                f"{len(devices)} devices are given for {len(own_parts)} parts of a rank"
            )
        self.shape = CommonSizes(Layout(source.n, placement.parts))
        self._mine = own_parts
        self._groups: dict[int | None, list[int]] = {}
        for k in range(len(own_parts)):
            device = None if devices is None else devices[k]
            self._groups.setdefault(device, []).append(k)
        seats = Seats(world, placement, list(self._groups.values()))
        self.making = making or chosen(source, seats.devices, world.size)
        self._dealer: Dealer | None = None
        if self.making == SHARE:
            self._dealer = Dealer(world, seats, source.tuples)
        self.builders: dict[int | None, Builder] = {}
        for k, (device, places) in enumerate(self._groups.items()):
            seat = None
            if self._dealer is not None:
                seat = DealerSeat(self._dealer, self._dealer.own[k], len(places))
            with self._on(device), cuda.memory_of("building on a device"):
                made = Builder(source, self.shape, buffer_bytes, done or Sum(), seat)
                made.directed, made.sharing = directed, len(places)
                made.keys.expect(ROUNDS * len(places) - 1)
                self.builders[device] = made

    def _on(self, device: int | None) -> AbstractContextManager[Any]:
        if device is None:
            return nullcontext()
        context: AbstractContextManager[Any] = cuda.cupy().cuda.Device(device)
        return context

    def on_devices(
        self, work: Callable[[Builder, list[int]], list[Result]]
    ) -> list[list[Result]]:
        """Return what ``work(builder, positions of its parts)`` returns on each device.

        If devices send each other tuples, none returns before all have finished.
        """

        def run(device: int | None) -> list[Result]:
            builder = self.builders[device]
            try:
                with self._on(device):
                    cuda.use_current()
                    made = work(builder, self._groups[device])
                    with cuda.memory_of("edge tuples for other devices"):
                        builder.keys.finish()
                    return made
            except BaseException:
                if self._dealer is not None:
                    self._dealer.give_up()
                raise

        if len(self._groups) == 1:
            return [run(device) for device in self._groups]
        with ThreadPoolExecutor(len(self._groups)) as pool:
            running = [pool.submit(run, device) for device in self._groups]
        errors = [x for x in (one.exception() for one in running) if x is not None]
        causes = [x for x in errors if not isinstance(x, BrokenBarrierError)]
        # mutant: causes + errors -> errors : test_a_device_that_fails_while_others_wait
        for error in causes + errors:
            raise error
        return [one.result() for one in running]

    def each(self, work: Callable[[Builder, int, int], Result]) -> list[Result]:
        """Return work(builder, position, part) for each part of this rank, in order."""

        def parts(builder: Builder, positions: list[int]) -> list[Result]:
            out = []
            for k in positions:
                with cuda.memory_of(f"building part {self._mine[k]}"):
                    out.append(work(builder, k, self._mine[k]))
            return out

        groups = self.on_devices(parts)
        at = [k for group in self._groups.values() for k in group]
        flat = dict(zip(at, (x for group in groups for x in group), strict=True))
        return [flat[k] for k in range(len(self._mine))]

    def close(self) -> None:
        """Free everything but the parts."""

        def drop(builder: Builder, _: list[int]) -> list[None]:
            builder.close()
            return []

        self.on_devices(drop)

    def facts(self, world: World, seconds: float) -> dict[str, Any]:
        """Return fields of ``BuildCounts`` (collective); seconds: of all the build."""
        builders = self.builders.values()
        clocks = [builder.clock for builder in builders]
        slowest = max(clocks, key=lambda c: sum(c.seconds.values()))
        passes = np.array([max(builder.keys.passes for builder in builders)])
        generation = slowest.get("generation")
        return {
            "passes": int(world.allreduce(passes, "max")[0]),
            "making": self.making,
            "generation_seconds": generation,
            "construction_seconds": seconds - generation,
        }


def construct_on_devices(
    source: TupleSource,
    world: World,
    placement: Placement,
    options: BuildOptions,
    *,
    domains: int | None = None,
    check: Callable[[int], None] | None = None,
    room: Room | None = None,
    **crew_options: Any,
) -> tuple[list[Part], BuildSummary]:
    """Build every part of this rank in device memory (collective).

    domains: number of domains that will search the parts on devices, for the choice of
    the threshold; None: choose it as for parts in host memory and in stores
    check: called with the number of directed edges before any edge is kept (collective)
    room: memory limits of each device; columns beyond them lie in pinned host memory
    crew_options: see ``Crew``

    The options pass_bytes and order_block have no effect. In a directed graph, degrees
    are sums of edges out and in.
    """
    directed = options.directed
    if options.permute_seed is not None and source.n > 1:
        source = Permuted(source, options.permute_seed)
    watch = Stopwatch()
    with watch("total"):
        crew = Crew(source, world, placement, directed=directed, **crew_options)
        parts = crew.each(lambda builder, _, part: SeparatedPart(builder, part))
        histogram = histogram_of(world, [x.histogram for x in parts])
        sums = np.array([[x.loops, x.total] for x in parts], dtype=np.int64)
        loops, total = world.allreduce(sums.sum(axis=0)).tolist()
        check_ends(total, source.tuples)
        if check is not None:
            check(histogram.m)
        threshold = options.threshold
        if threshold is None:
            if domains is None:
                threshold = suggest_host_threshold(histogram, placement.parts)
            else:
                threshold = suggest_threshold(histogram, domains)
            threshold = world.broadcast(threshold)
        crew.each(lambda _, k, __: parts[k].number(threshold))
        d = histogram.above(threshold)
        shared = Shared(world, placement, parts, d, wide=crew.shape.wide)
        of_host = _parts_of_host(world, placement)
        made = crew.each(lambda _, k, __: parts[k].separate(shared, room, of_host))
        crew.close()
        if crew.shape.wide and placement.parts > 1:
            number_columns(made, placement, world)
    counts = [[getattr(part, name).edges for part in made] for name in SUBGRAPHS]
    edges = world.allreduce(np.array(counts, dtype=np.int64).sum(axis=1))
    m = int(edges.sum())
    if m * (1 + directed) != histogram.m:
        raise InputError("the edge tuples changed while the graph was built")
    return made, BuildSummary(
        n=source.n,
        m=m,
        tuples=source.tuples,
        loops=loops,
        repeats=source.tuples - loops - histogram.m // 2,
        parts=placement.parts,
        threshold=threshold,
        delegates=d,
        edges=dict(zip(SUBGRAPHS, edges.tolist(), strict=True)),
        histogram=histogram,
        **crew.facts(world, watch.get("total")),
    )


def _parts_of_host(world: World, placement: Placement) -> int:
    """Return the number of parts on this rank's host."""
    hosts = world.hosts
    ranks = placement.rank_of(np.arange(placement.parts)).tolist()
    return sum(hosts[rank] == hosts[world.rank] for rank in ranks)
