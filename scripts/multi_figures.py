"""What the scripts of many searches share: graph families, timing with energy, checks.

The families stand in for those of Table I of McLaughlin, Riedy, Bader 2015, of the
same numbers of vertices and about the same of edges; meshes are stencils on grids, made
on the device.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import figures
import numpy as np

from distbfs.device import cuda
from distbfs.device.energy import measured
from distbfs.device.take import take
from distbfs.errors import ValidationError
from distbfs.generate.cuda import device_tuples
from distbfs.generate.kronecker import Kronecker
from distbfs.generate.road import Road
from distbfs.graph.device_graph import DeviceGraph
from distbfs.multisearch.cuda_bits import BitSearches
from distbfs.multisearch.cuda_problems import DeviceOptions, DeviceRunner
from distbfs.multisearch.problem import Problem, State
from distbfs.report.energy import energy_figures, energy_values, joined
from distbfs.types import TupleSource
from distbfs.validation.cuda import validate_on_device

TRIANGLES = ((1, 0, 0), (0, 1, 0), (1, 1, 0))
CROSS = TRIANGLES[:2]
CUBE = (*TRIANGLES, (0, 0, 1), (1, 0, 1), (0, 1, 1), (1, 1, 1))
METHODS = ("edge-parallel", "work-efficient", "warp", "hybrid")
PATHS = Problem(  # the largest level of each search; levels are kept by block
    "paths",
    (State("deepest", "uint32", "search"),),
    cuda="void prior(Search &s) { if (s.thread() == 0) s.deepest = s.depth; }",
)
SECONDS_OF_PAPER = {  # Table II: edge-parallel, work-efficient, warp-based, hybrid
    "333SP": (1279.5, 47.8, 68.0, 32.1),
    "adaptive": (7704.7, 54.8, 183.6, 42.8),
    "as-Skitter": (30.7, 27.8, 12.9, 9.66),
    "auto": (21.6, 15.6, 5.48, 4.82),
    "delaunay_n21": (436.8, 23.3, 25.1, 15.0),
    "ecology1": (426.9, 8.86, 29.1, 6.51),
    "hollywood-2009": (81.6, 145.8, 21.3, 20.4),
    "kron_g500-logn19": (35.4, 55.1, 16.4, 17.1),
    "ldoor": (434.0, 35.4, 35.7, 36.5),
    "rgg_n_2_21_s0": (1824.9, 67.0, 37.0, 23.7),
    "roadNet-CA": (183.8, 12.3, 15.0, 9.15),
    "thermal2": (650.4, 11.7, 19.4, 7.71),
}
JOULES_OF_PAPER = {  # Table III
    "333SP": (36_676, 2_220, 2_880, 1_083),
    "adaptive": (316_299, 8_551, 6_790, 1_433),
    "as-Skitter": (5_004, 4_688, 1_053, 1_606),
    "auto": (635, 1_164, 539, 159),
    "delaunay_n21": (12_403, 1_425, 1_495, 508),
    "ecology1": (12_309, 856, 1_642, 219),
    "hollywood-2009": (11_546, 25_577, 1_355, 3_342),
    "kron_g500-logn19": (1_180, 2_492, 1_195, 570),
    "ldoor": (12_527, 1_829, 1_855, 1_210),
    "rgg_n_2_21_s0": (50_525, 2_851, 1_908, 759),
    "roadNet-CA": (26_950, 2_050, 1_144, 1_539),
    "thermal2": (17_566, 996, 1_311, 259),
}


def window(radius: int) -> tuple[tuple[int, int, int], ...]:
    """Return half of the offsets of a square window."""
    around = range(-radius, radius + 1)
    return tuple((x, y, 0) for y in around for x in around if (y, x) > (0, 0))


def drawn(count: int, seed: int) -> Any:
    """Return numbers that look random, CuPy uint32 [count]."""
    x = cuda.cupy().arange(count, dtype=np.uint32) + np.uint32(seed)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        x ^= x >> np.uint32(shift)
        x *= np.uint32(factor)
    return x ^ (x >> np.uint32(16))


class Stencil:
    """A grid whose vertices are joined at given offsets, in device memory.

    sides: (x, y, z); kept: the share of the edges that are there, drawn with a seed
    """

    lent = True

    def __init__(
        self,
        sides: tuple[int, int, int],
        offsets: Sequence[tuple[int, int, int]],
        kept: float = 1.0,
        seed: int = 1,
    ) -> None:
        cp = cuda.cupy()
        x, y, z = sides
        self.n = x * y * z
        ids = cp.arange(self.n, dtype=np.uint32).reshape(z, y, x)
        pairs = [
            (ids[from_(dz), from_(dy), from_(dx)], ids[to(dz), to(dy), to(dx)])
            for dx, dy, dz in offsets
        ]
        self.u, self.v = (
            cp.concatenate([pair[k].ravel() for pair in pairs]) for k in (0, 1)
        )
        if kept < 1:
            there = drawn(len(self.u), seed) < np.uint32(int(kept * 2**32))
            self.u, self.v = self.u[there], self.v[there]
        self.tuples = len(self.u)
        self._told = {"sides": sides, "offsets": len(offsets), "kept": kept}

    def describe(self) -> dict[str, Any]:
        """Return the parameters."""
        return {"family": "stencil", **self._told}

    def chunks(self, start: int, stop: int) -> Any:
        """Yield the tuples start … stop-1 on the host."""
        yield (
            self.u[start:stop].get().astype(np.int64),
            self.v[start:stop].get().astype(np.int64),
        )


def from_(step: int) -> slice:
    """Where an edge of a step begins."""
    return slice(0, -step) if step > 0 else slice(-step, None)


def to(step: int) -> slice:
    """Where an edge of a step ends."""
    return slice(step, None) if step > 0 else slice(0, step or None)


Make = Callable[[int], TupleSource]


def plane(side: int, offsets: Any, kept: float = 1.0) -> Make:
    """Return what makes a square stencil, 2^less times smaller."""

    def make(less: int) -> TupleSource:
        small = max(side >> (less + 1) // 2, 8)
        return Stencil((small, small, 1), offsets, kept)

    return make


def space(side: int, offsets: Any) -> Make:
    """Return what makes a cubic stencil, 2^less times smaller."""

    def make(less: int) -> TupleSource:
        small = max(side >> (less + 2) // 3, 4)
        return Stencil((small, small, small), offsets)

    return make


FAMILIES: dict[str, Make] = {
    "333SP": plane(1927, TRIANGLES),
    "adaptive": plane(2611, CROSS),
    "as-Skitter": figures.stand_in(21, 6),
    "auto": space(77, CUBE),
    "delaunay_n21": plane(1448, TRIANGLES),
    "ecology1": plane(1000, CROSS),
    "hollywood-2009": figures.stand_in(20, 60),
    "kron_g500-logn19": figures.stand_in(19, 48),
    "ldoor": plane(976, window(3)),
    "rgg_n_2_21_s0": plane(1448, window(2), 0.58),
    "roadNet-CA": lambda less: Road(1_971_281 >> less),
    "thermal2": plane(1108, TRIANGLES),
}

LEAST_SECONDS = 0.5  # that energy is measured for


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
        """Of one run: by the counter, else by the power; None where there is none.

        None, too, where the time was short for a counter that seldom moves.
        """
        if self.energy.get("seconds", 0.0) < LEAST_SECONDS:
            return None
        gpu = self.energy.get("gpu", {})
        measured = gpu.get("counter_joules", gpu.get("sampled_joules"))
        return None if measured is None else measured / self.runs


def timed(
    run: Callable[[], float], searches: int, edges: int, budget: float, most: int = 20
) -> Timed:
    """Run for about ``budget`` seconds, once at least, and take time and energy.

    run: returns its seconds by events; searches, edges: of one run
    """
    device = cuda.cupy().cuda.Device()
    times: list[float] = []
    kernels: list[float] = []
    with measured([cuda.uuid()]) as energy:
        began = time.perf_counter()
        while not times or (
            len(times) < most and time.perf_counter() - began + times[-1] < budget
        ):
            start = time.perf_counter()
            kernels.append(run())
            device.synchronize()
            times.append(time.perf_counter() - start)
    count = len(times)
    figures_of_energy = energy_figures(
        joined([energy_values(energy)]), count * searches, count * edges
    )
    return Timed(
        float(np.median(times)), float(np.median(kernels)), count, figures_of_energy
    )


def sources_of(graph: DeviceGraph, count: int, seed: int) -> Any:
    """Return ids that have edges, int64 [count], drawn with a seed."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0, graph.active, count)
    return take(graph.vertices, numbers).astype(np.int64)


def traversed(graph: DeviceGraph, sources: Any) -> tuple[int, int]:
    """Return (directed edges that searches from all sources go over, largest level)."""
    cp = cuda.cupy()
    degrees = cp.diff(graph.offsets).astype(np.float64)
    bits = BitSearches(graph, levels=False)
    edges, deepest = 0.0, 0
    for _, _, batch in bits.batches(sources):
        deepest = max(deepest, batch.deepest)
        seen = bits._seen.reshape(graph.active, -1)
        for word in range(seen.shape[1]):
            for bit in range(32):
                if 32 * word + bit >= len(batch.sources):
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
            level = level.view(np.uint16)
        said = validate_on_device(tuples, int(sources[row]), level, None)
        if not said.valid:
            raise ValidationError(f"{name}, {sources[row]}: {'; '.join(said.errors)}")
    return len(checked)


def edge_parallel_limit(graph: DeviceGraph, deepest: int, budget: float) -> int | None:
    """Return the levels that edge-parallel searches may take, None for all.

    A level looks at every edge, whatever its frontier, so that a few tell the rest:
    about 8 bytes an edge and search at the rate of the memory.
    """
    a_level = 1024 * 8 * graph.m / 2e12
    levels = max(int(budget / a_level), 2)
    return None if levels >= deepest else levels


def measure_method(
    graph: DeviceGraph,
    sources: Any,
    method: str,
    budget: float,
    deepest: int,
    edges: int,
    threshold: int | None = 16,
) -> dict[str, Any]:
    """Measure path lengths of all sources by a method; return JSON values.

    Levels are kept by block, as the paper does.  ``stretched`` is above 1 where
    edge-parallel searches were cut off and their time and energy multiplied.
    """
    most = None
    if method == "edge-parallel":
        most = edge_parallel_limit(graph, deepest, budget)
    runner, problem = DeviceRunner(), PATHS
    options = DeviceOptions(method, threshold, most=most)

    def run() -> float:
        runner.run(problem, graph, sources, options)
        return runner.seconds

    compiles = DeviceOptions(method, threshold, most=0)
    runner.run(problem, graph, sources[:1], compiles)
    measured = timed(run, len(sources), edges, budget)
    stretched = 1.0 if most is None else (deepest + 1) / most
    joules = measured.joules
    return {
        "method": method,
        "threshold": runner.warp_degree,
        "blocks": runner.blocks,
        "block": runner.block,
        "stretched": stretched,
        "seconds": measured.kernels * stretched,
        "wall_seconds": measured.seconds * stretched,
        "joules": None if joules is None else joules * stretched,
        "runs": measured.runs,
        "energy": measured.energy,
    }


def families(args: Any) -> Any:
    """Yield (name, source, graph) of the families that were asked for."""
    for name in args.families:
        cuda.release()
        source = FAMILIES[name](figures.SMALLER if args.small else 0)
        yield name, source, figures.built(source)


def family_arguments(description: str | None, seconds: float) -> Any:
    """Return a parser with what the scripts of families have in common."""
    parser = figures.arguments(description, roots=1024)
    parser.add_argument("--families", nargs="+", choices=list(FAMILIES))
    parser.add_argument(
        "--seconds", type=float, default=seconds, help="for each measurement"
    )
    parser.set_defaults(families=list(FAMILIES))
    return parser


def kronecker(args: Any) -> Kronecker:
    """Return the graph of the figures to be reached."""
    return Kronecker(12 if args.small else args.scale, 16)
