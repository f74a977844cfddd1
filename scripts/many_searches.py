"""Shared by measurements of many searches: timing with energy, methods, checks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from distbfs.device import cuda
from distbfs.device.energy import measured
from distbfs.device.take import take
from distbfs.errors import ValidationError
from distbfs.generate.cuda import device_tuples
from distbfs.generate.kronecker import Kronecker
from distbfs.multisearch.base import RunOptions
from distbfs.multisearch.cuda_bits import LANES, SEARCHES
from distbfs.multisearch.cuda_problems import DeviceRunner
from distbfs.multisearch.domain_bits import DomainBitSearches
from distbfs.multisearch.part_loop import Wanted
from distbfs.multisearch.problem import Problem, State
from distbfs.partition.share import Share
from distbfs.ranks.world import SoloWorld
from distbfs.report.energy import energy_figures, joined
from distbfs.types import TupleSource
from distbfs.validation.cuda import validate_on_device

METHODS = ("edge-parallel", "work-efficient", "warp", "hybrid")
PATHS = Problem(  # the largest level of each search; levels are kept by block
    "paths",
    (State("deepest", "uint32", "search"),),
    cuda="void prior(Search &s) { if (s.thread() == 0) s.deepest = s.depth; }",
)
LEAST_SECONDS = 0.5  # least time for an energy measurement


@dataclass
class Timed:
    """A measurement: median seconds by the host's clock with the device waited for.

    kernels: seconds by events; energy: figures, see report/energy.py
    """

    seconds: float
    kernels: float
    runs: int
    energy: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return dict(vars(self))

    @property
    def joules(self) -> float | None:
        """Energy of one run: by the counter, else by the power; None if not measured.

        Also None if the time was too short for a counter that updates rarely.
        """
        if self.energy.get("seconds", 0.0) < LEAST_SECONDS:
            return None
        gpu = self.energy.get("gpu", {})
        measured = gpu.get("counter_joules", gpu.get("sampled_joules"))
        return None if measured is None else measured / self.runs


def timed(run: Callable[[], float], searches: int, edges: int, budget: float) -> Timed:
    """Run for at least ``budget`` seconds, and once; measure time and energy.

    run: returns its seconds by events; searches, edges: of one run
    """
    device = cuda.cupy().cuda.Device()
    times: list[float] = []
    kernels: list[float] = []
    with measured(cuda.uuids()) as energy:
        began = time.perf_counter()
        while not times or time.perf_counter() - began < budget:
            start = time.perf_counter()
            kernels.append(run())
            device.synchronize()
            times.append(time.perf_counter() - start)
    count = len(times)
    figures_of_energy = energy_figures(
        joined([asdict(energy)]), count * searches, count * edges
    )
    return Timed(
        float(np.median(times)), float(np.median(kernels)), count, figures_of_energy
    )


def sources_of(graph: Share, count: int, seed: int) -> Any:
    """Return ids that have edges, int64 [count], drawn with a seed."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0, graph.active, count)
    return take(graph.vertices, numbers).astype(np.int64)


def bit_searches(graph: Share, width: int = SEARCHES * LANES[-1]) -> DomainBitSearches:
    """Return bit-parallel searches of a whole graph on one device."""
    searches = DomainBitSearches(SoloWorld(), [graph])
    searches.allocate(width // SEARCHES)
    return searches


def write_levels(searches: DomainBitSearches, out: Any) -> None:
    """Write the levels of searches of a whole graph, CuPy [k, n], from ids with edges.

    -1 = unreached
    """
    share = searches._shares[0]
    share.write_levels(out, share.member.numbers, searches.deepest)


def batches(
    searches: DomainBitSearches, sources: Any, wanted: Wanted
) -> Iterator[tuple[int, int]]:
    """Search from all sources; yield (first, last + 1) of each batch."""
    for first in range(0, len(sources), searches.width):
        some = sources[first : first + searches.width]
        searches.run(some, wanted)
        yield first, first + len(some)


def traversed(graph: Share, sources: Any) -> tuple[int, int]:
    """Return (directed edges that searches from all sources go over, largest level)."""
    cp = cuda.cupy()
    degrees = cp.diff(graph.out.offsets).astype(np.float64)
    bits = bit_searches(graph)
    edges, deepest = 0.0, 0
    for first, last in batches(bits, sources, Wanted(counts=False)):
        deepest = max(deepest, bits.deepest)
        seen = bits._shares[0]._seen.reshape(graph.active, -1)
        for word in range(seen.shape[1]):
            for bit in range(32):
                if 32 * word + bit >= last - first:
                    break
                there = (seen[:, word] >> np.uint32(bit)) & np.uint32(1)
                edges += float((degrees * there).sum())
    return round(edges), deepest


def check_levels(
    source: TupleSource, sources: Any, levels: Any, count: int, name: str
) -> int:
    """Validate the levels of ``count`` sources by the tuples; return how many."""
    tuples = device_tuples(source)
    step = max(len(sources) // max(count, 1), 1)
    checked = range(0, len(sources), step)
    for row in checked:
        level = levels[row]
        if level.dtype == np.int16:
            level = level.astype(np.int32)
        said = validate_on_device(tuples, int(sources[row]), level, None)
        if not said.valid:
            raise ValidationError(f"{name}, {sources[row]}: {'; '.join(said.errors)}")
    return len(checked)


def edge_parallel_limit(
    graph: Share, searches: int, deepest: int, budget: float
) -> int | None:
    """Return the levels that edge-parallel searches may run, None for all.

    A level reads every edge, whatever its frontier: about 8 bytes an edge and search at
    the rate of the memory.
    """
    a_level = searches * 8 * graph.m / 2e12
    levels = max(int(budget / a_level), 2)
    return None if levels >= deepest else levels


def measure_method(
    graph: Share,
    sources: Any,
    method: str,
    budget: float,
    deepest: int,
    edges: int,
    threshold: int | str = 16,
    enough: float = 0.0,
) -> dict[str, Any]:
    """Measure path lengths of all sources by a method; return JSON values.

    Levels are kept by block, as the paper does.  Edge-parallel searches are cut off
    after about the longer of ``budget`` and ``enough`` seconds: ``levels`` is then a
    number, and ``seconds`` and ``joules`` are what these took, less than the whole
    takes; ``extrapolated_seconds`` multiplies by the levels that were left.
    """
    most = None
    if method == "edge-parallel":
        limit = max(budget, enough)
        most = edge_parallel_limit(graph, len(sources), deepest, limit)
    options = RunOptions(method, threshold, depth=most)
    runner = DeviceRunner(PATHS, graph, sources, options)

    def run() -> float:
        runner.run()
        return runner.seconds

    compiles = RunOptions(method, threshold, depth=0)
    DeviceRunner(PATHS, graph, sources[:1], compiles).run()
    measured = timed(run, len(sources), edges, budget)
    row = {
        "method": method,
        "threshold": runner.warp_degree,
        "blocks": runner.blocks,
        "block": runner.block,
        "levels": most,
        "seconds": measured.kernels,
        "wall_seconds": measured.seconds,
        "joules": measured.joules,
        "runs": measured.runs,
        "energy": measured.energy,
    }
    if most is not None:
        row["extrapolated_seconds"] = measured.kernels * (deepest + 1) / most
    return row


def kronecker(args: Any) -> Kronecker:
    """Return the graph of the figures."""
    return Kronecker(12 if args.small else args.scale, 16)
