"""The cells of ``bench_devices.py``: their order, and their expected times.

Starts no process and accesses no device.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from distbfs.errors import UsageError
from distbfs.options import check_choice
from distbfs.validation.cuda import MAX_VERTICES

Row = dict[str, Any]
RESIDENT, STEPWISE, ALONE = "resident", "stepwise", "fast"
INTERNAL = "fast, internal ids"
COUNTS = (1, 2, 4, 8)
EDGE_FACTOR = 16
HOLDS = 0.9  # of a device's memory, by the least need of a search
EXCHANGES = "tests/gpu/exchange_ranks.py", "check"
SEARCHES = "tests/gpu/searching_ranks.py", "brief"
CONTRACT = ("tests/mpi/test_exchange_contract.py",)


@dataclass(frozen=True)
class Cell:
    """A Kronecker graph searched by ranks of one host with devices (on CPUs: parts).

    uses: weak, strong, shapes, largest; turn: repetition number
    """

    devices: int
    ranks: int
    scale: int
    method: str
    uses: tuple[str, ...]
    turn: int = 1

    @property
    def shape(self) -> str:
        """Hosts x ranks a host x devices a rank."""
        return f"1x{self.ranks}x{self.devices // self.ranks}"

    @property
    def name(self) -> str:
        """Name of the cell in tables."""
        again = f", turn {self.turn}" if self.turn > 1 else ""
        return f"{self.shape}, scale {self.scale}, {self.method}{again}"

    @property
    def tuples(self) -> int:
        """Number of edge tuples of the graph."""
        return EDGE_FACTOR << self.scale

    def as_dict(self) -> Row:
        """Return the cell as JSON values."""
        of = {"devices": self.devices, "ranks": self.ranks, "shape": self.shape}
        uses = list(self.uses)
        more = {"scale": self.scale, "method": self.method, "turn": self.turn}
        return {**of, **more, "uses": uses}


@dataclass(frozen=True)
class Ladder:
    """The largest scale that fits: falling scales, each by methods in turn."""

    devices: int
    ranks: int
    scales: tuple[int, ...]
    methods: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name of the ladder in tables."""
        return f"the largest scale of {self.scales[0]} to {self.scales[-1]}"

    def cells(self, scale: int) -> list[Cell]:
        """Return the cells of a scale, in the order of attempts."""
        at, uses = (self.devices, self.ranks, scale), ("largest",)
        return [Cell(*at, x, uses) for x in self.methods]


@dataclass(frozen=True)
class Contract:
    """Contract tests of exchanges between ranks.

    program: a file of tests and its arguments; kinds: of exchanges, one after another,
    or none where the file lists them; seconds: expected for each
    """

    program: tuple[str, ...]
    ranks: int
    kinds: tuple[str, ...] = ()
    seconds: float = 12.0

    @property
    def name(self) -> str:
        """Name of the tests in tables."""
        words = " ".join((self.program[0].rpartition("/")[2], *self.program[1:]))
        return f"{words}, {self.ranks} rank{'s' * (self.ranks > 1)}"


Job: TypeAlias = Cell | Ladder | Contract


@dataclass(frozen=True)
class Grid:
    """The hardware to run on.

    weak: scale a device; strong: scale; top: largest scale to try
    ranks: most of one cell; cpu: CPU ranks with parts in place of devices
    memory: bytes of a device, 0: unknown
    """

    devices: int
    weak: int
    strong: int
    top: int
    ranks: int
    cpu: bool = False
    memory: int = 0

    def __post_init__(self) -> None:
        check_choice("devices", self.devices, COUNTS)
        if self.ranks < 1:
            raise UsageError(f"ranks is {self.ranks}; allowed: 1 or more")

    @property
    def methods(self) -> tuple[str, ...]:
        """Methods of searches on several devices, the most important first."""
        return (STEPWISE,) if self.cpu else (RESIDENT, STEPWISE)

    def on(self, method: str, devices: int) -> str:
        """Return the method of a number of devices: a fallback for one."""
        return ALONE if devices == 1 and not self.cpu else method

    def usual_ranks(self, devices: int) -> int:
        """Return the ranks of all cells but shapes: one, on CPUs one a part."""
        return min(devices, self.ranks) if self.cpu else 1

    def weak_scale(self, devices: int) -> int:
        """Return the scale of weak scaling."""
        return self.weak + devices.bit_length() - 1

    def weak_cell(self, devices: int, method: str, turn: int = 1) -> Cell:
        """Return a cell of weak scaling; on all devices also one of the shapes."""
        shapes = ("shapes",) * (devices == self.devices and turn == 1)
        at = devices, self.usual_ranks(devices), self.weak_scale(devices)
        return Cell(*at, self.on(method, devices), ("weak", *shapes), turn)

    def strong_cell(self, devices: int, method: str) -> Cell:
        """Return a cell of strong scaling."""
        at = devices, self.usual_ranks(devices), self.strong
        return Cell(*at, self.on(method, devices), ("strong",))

    def shape_cell(self, ranks: int, method: str) -> Cell:
        """Return a cell of ``ranks`` ranks with all devices, at the last weak scale."""
        at = self.devices, ranks, self.weak_scale(self.devices)
        return Cell(*at, self.on(method, self.devices), ("shapes",))

    def holds(self, devices: int, scale: int) -> bool:
        """Return whether memory could hold a graph."""
        return not self.memory or held_bytes(scale) <= HOLDS * self.memory * devices


def held_bytes(scale: int) -> int:
    """Return the bytes of columns, levels and parents, on all devices."""
    return (4 * 2 * EDGE_FACTOR + 8) << scale


def largest_scale(devices: int, memory: int) -> int:
    """Return the largest scale that devices of some bytes each could hold."""
    scale = 1
    while held_bytes(scale + 1) <= HOLDS * memory * devices:
        scale += 1
    return scale


def plan(grid: Grid) -> list[Job]:
    """Return all jobs, the most important first.

    A cell that serves several uses is listed once.
    """
    some = [x for x in COUNTS if x <= grid.devices]
    most, first, others = grid.devices, grid.methods[0], grid.methods[1:]
    pair = [x for x in (most, most // 2) if x]
    strong = [x for x in reversed(some) if grid.holds(x, grid.strong)]
    ranks = [x for x in some if x <= grid.ranks]
    contract = contracts(grid)
    jobs: list[Job] = [grid.weak_cell(x, first) for x in pair]
    jobs += contract[:2]
    jobs += [grid.weak_cell(x, first) for x in some]
    jobs += [grid.strong_cell(x, first) for x in strong]
    highest = max(grid.weak_scale(most), grid.strong)
    if scales := tuple(range(grid.top, highest, -1)):
        ways = (ALONE, INTERNAL) if most == 1 and not grid.cpu else grid.methods
        jobs.append(Ladder(most, grid.usual_ranks(most), scales, ways))
    jobs += [grid.weak_cell(x, method) for method in others for x in pair]
    jobs += [grid.shape_cell(x, first) for x in ranks]
    again = [] if grid.cpu else pair
    jobs += [grid.weak_cell(x, first, turn=2) for x in again]
    jobs += [grid.weak_cell(x, method) for method in others for x in some]
    jobs += [grid.strong_cell(x, method) for method in others for x in strong]
    ways = tuple(dict.fromkeys((*others, STEPWISE)))
    jobs += [grid.shape_cell(x, method) for method in ways for x in ranks]
    return merged([*jobs, *contract])


def contracts(grid: Grid) -> list[Contract]:
    """Return the contract tests of all exchanges, most ranks first."""
    ranks = [x for x in COUNTS if x <= min(grid.devices, grid.ranks)]
    if grid.cpu:
        return [Contract(CONTRACT, x, seconds=15.0 * x) for x in reversed(ranks)]
    everywhere = ("host-device", "nccl-device")
    here = Contract(EXCHANGES, 1, ("solo-device", *everywhere))
    if grid.devices == 1:
        return [here, Contract(SEARCHES, 1, ("auto", "resident"))]
    jobs = [Contract(EXCHANGES, ranks[-1], (*everywhere, "cuda_aware-device"))]
    for count in reversed(ranks):
        kinds = ("resident", "host") if count > 1 else ("resident", "auto")
        kinds += ("nccl",) * (count == grid.devices)  # one device a rank
        jobs.append(Contract(SEARCHES, count, kinds))
    return [*jobs, here]


def merged(jobs: Iterable[Job]) -> list[Job]:
    """Merge equal jobs; a merged cell has the uses of all."""
    jobs_by_key: dict[Any, Job] = {}
    for job in jobs:
        key: Any = job
        if isinstance(job, Cell):
            key = replace(job, uses=())
            if isinstance(before := jobs_by_key.get(key), Cell):
                uses = tuple(dict.fromkeys((*before.uses, *job.uses)))
                jobs_by_key[key] = replace(before, uses=uses)
                continue
        jobs_by_key[key] = job
    return list(jobs_by_key.values())


def words_of(cell: Cell, *, cpu: bool, roots: int, validate: int) -> list[str]:
    """Return the ``distbfs`` arguments that run a cell; validate: 0 for none."""
    words = ["graph500", "--json", "--scale", str(cell.scale), "--roots", str(roots)]
    between = cell.method == STEPWISE
    words += ["--engine", "openmp" if cpu else "pan" if between else "xbfs"]
    if not cpu:
        words += ["--devices", str(cell.devices // cell.ranks)]
    if cell.devices > 1:
        words += ["--parts" if between else "--domain", str(cell.devices)]
    words += ["--stepwise"] * (cpu and between)
    words += ["--internal-ids"] * (cell.method == INTERNAL)
    if not validate:
        return [*words, "--skip-validation"]
    return words if validate >= roots else [*words, "--validate", str(validate)]


def can_validate(cell: Cell, *, cpu: bool) -> bool:
    """Return whether results of a cell can be validated in place."""
    return cpu or 1 << cell.scale <= MAX_VERTICES


@dataclass(frozen=True)
class Costs:
    """Seconds of a cell: to start, for each rank; tuples a second."""

    start: float
    rank: float
    build: float
    search: float
    check: float


ON_DEVICES = Costs(start=9, rank=0.5, build=1e9, search=2e11, check=5e9)
ON_CPUS = Costs(start=1, rank=0.7, build=5e6, search=2e7, check=2e7)


@dataclass
class Budget:
    """Seconds for all jobs, and the measured pace.

    check: tuples validated a second, last measured
    """

    seconds: float
    costs: Costs
    clock: Callable[[], float] = time.monotonic
    paces: list[float] = field(default_factory=list)
    check: float = 0.0

    def __post_init__(self) -> None:
        self.began = self.clock()
        self.check = self.check or self.costs.check

    def left(self) -> float:
        """Return the seconds that are left."""
        return self.seconds - (self.clock() - self.began)

    def plain(self, job: Job, roots: int, validate: int) -> float:
        """Estimate the seconds of a job from the initial costs."""
        if isinstance(job, Contract):
            return self.costs.start + job.seconds * max(len(job.kinds), 1)
        if isinstance(job, Ladder):
            return self.plain(job.cells(job.scales[0])[0], roots, validate)
        of = self.costs
        searches = roots / of.search + validate / self.check + 1 / of.build
        return of.start + of.rank * job.ranks + job.tuples * searches

    def expected(self, job: Job, roots: int, validate: int) -> float:
        """Estimate the seconds of a job from the pace of earlier ones."""
        pace = statistics.median(self.paces) if self.paces else 1.0
        return pace * self.plain(job, roots, validate)

    def learn(self, job: Job, roots: int, validate: int, seconds: float) -> None:
        """Record the time of a job."""
        self.paces.append(seconds / self.plain(job, roots, validate))

    def to_validate(
        self, cell: Cell, after: Sequence[Job], roots: int, least: int
    ) -> int:
        """Return how many roots of a cell to validate, as time allows.

        after: later jobs; time for their least number of roots is reserved
        """
        if least >= roots:
            return roots
        needed = sum(self.expected(job, roots, least) for job in (cell, *after))
        share = (self.left() - needed) / (1 + len(after))
        more = int(max(share, 0.0) * self.check / cell.tuples)
        return min(least + more, roots)
