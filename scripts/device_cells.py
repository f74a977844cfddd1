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

Row = dict[str, Any]
RESIDENT, STEPWISE, ALONE = "resident", "stepwise", "fast"
EXCHANGES = ("nccl", "host", "nvshmem")  # between domains, most important first
SCALES = (22, 26, 28, 31)
COUNTS = (1, 2, 4, 8)
EDGE_FACTOR = 16
HOLDS = 0.9  # of a device's memory, by the least need of a search
CHECKED = 18, 25_000  # scale and roots of cells with many validated searches
SEEDS = (1, 2, 3, 4)  # of their graphs
CONTRACT = ("tests/mpi/test_exchange_contract.py",)
EXCHANGE_RANKS = "tests/gpu/exchange_ranks.py", "check"
SEARCH_RANKS = "tests/gpu/searching_ranks.py", "brief"
LOST_RANKS = "tests/gpu/test_searching_ranks.py"
LOSSES = ("killed", "stalled or full")  # 5 tests each


@dataclass(frozen=True)
class Cell:
    """A Kronecker graph searched by ranks of one host with devices (on CPUs: parts).

    method: one device: "fast"; one domain: "resident"; several: the exchange between
    them; on CPUs: "stepwise"
    domain: devices of a domain where there are several domains, else 0
    internal: whether results keep the ids inside the graph
    roots: searches, all of them validated; 0: as many as the other cells have
    seed: of the graph and the roots
    """

    devices: int
    ranks: int
    scale: int
    method: str
    uses: tuple[str, ...]
    domain: int = 0
    internal: bool = False
    roots: int = 0
    seed: int = 1

    @property
    def shape(self) -> str:
        """Hosts x ranks per host x devices per rank."""
        return f"1x{self.ranks}x{self.devices // self.ranks}"

    @property
    def way(self) -> str:
        """Method, domains and ids in words."""
        domains = f" between domains of {self.domain}" if self.domain else ""
        ids = ", internal ids" if self.internal else ""
        return self.method + domains + ids

    @property
    def name(self) -> str:
        """Name of the cell in tables."""
        roots = f", {self.roots} roots" if self.roots else ""
        seed = f", seed {self.seed}" if self.seed != 1 else ""
        return f"{self.shape}, scale {self.scale}, {self.way}{roots}{seed}"

    @property
    def tuples(self) -> int:
        """Number of edge tuples of the graph."""
        return EDGE_FACTOR << self.scale

    def as_dict(self) -> Row:
        """Return the cell as JSON values."""
        of = {"devices": self.devices, "ranks": self.ranks, "shape": self.shape}
        how = {"method": self.method, "domain": self.domain, "internal": self.internal}
        more = {"way": self.way, "uses": list(self.uses)}
        return {**of, "scale": self.scale, "seed": self.seed, **how, **more}


@dataclass(frozen=True)
class Ladder:
    """The largest scale that fits: falling scales until one is searched."""

    devices: int
    ranks: int
    scales: tuple[int, ...]
    method: str

    @property
    def name(self) -> str:
        """Name of the ladder in tables."""
        return f"the largest scale of {self.scales[0]} to {self.scales[-1]}"

    def cell(self, scale: int) -> Cell:
        """Return the cell of a scale."""
        return Cell(self.devices, self.ranks, scale, self.method, ("largest",))


@dataclass(frozen=True)
class Contract:
    """Tests of exchanges and searches between ranks.

    program: a file of tests and its arguments; kinds: of exchanges, one after another,
    or none where pytest runs the file; launched: whether the ranks run it, or it starts
    ranks itself; seconds: expected for each kind
    """

    program: tuple[str, ...]
    ranks: int
    kinds: tuple[str, ...] = ()
    seconds: float = 12.0
    launched: bool = True

    @property
    def name(self) -> str:
        """Name of the tests in tables."""
        words = " ".join((self.program[0].rpartition("/")[2], *self.program[1:]))
        return f"{words}, {self.ranks} rank{'s' * (self.ranks > 1)}"


@dataclass(frozen=True)
class Program:
    """Another script of this folder, which writes a JSON file of its own.

    words: its arguments, with OUT for the folder of results; file: what it writes there
    """

    script: str
    words: tuple[str, ...]
    file: str
    use: str
    ranks: int
    seconds: float

    @property
    def name(self) -> str:
        """Name of the run in tables."""
        return " ".join((self.script, *self.words))


Job: TypeAlias = Cell | Ladder | Contract | Program


@dataclass(frozen=True)
class Grid:
    """The hardware to run on.

    weak: scale a device; strong: scale; top: largest scale to try; scales: searched on
    all devices
    ranks: most of one cell; cpu: CPU ranks with parts in place of devices
    memory: bytes of a device, host_memory: that searches may use, 0: unknown
    """

    devices: int
    weak: int
    strong: int
    top: int
    ranks: int
    cpu: bool = False
    memory: int = 0
    host_memory: int = 0
    scales: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_choice("devices", self.devices, COUNTS)
        if self.ranks < 1:
            raise UsageError(f"ranks is {self.ranks}; allowed: 1 or more")

    def on(self, devices: int) -> str:
        """Return the method of a domain of so many devices."""
        return STEPWISE if self.cpu else RESIDENT if devices > 1 else ALONE

    def usual_ranks(self, devices: int) -> int:
        """Return the ranks of most cells: one, on CPUs one a part."""
        return min(devices, self.ranks) if self.cpu else 1

    def weak_scale(self, devices: int) -> int:
        """Return the scale of weak scaling."""
        return self.weak + devices.bit_length() - 1

    def cell(
        self, devices: int, scale: int, use: str, ranks: int = 0, **more: Any
    ) -> Cell:
        """Return a cell of one domain; ranks: 0 for the usual number."""
        ranks = ranks or self.usual_ranks(devices)
        return Cell(devices, ranks, scale, self.on(devices), (use,), **more)

    def between(
        self, devices: int, domain: int, scale: int, exchange: str, use: str
    ) -> Cell:
        """Return a cell of several domains, each with a rank."""
        ranks = devices // domain
        return Cell(devices, ranks, scale, exchange, (use,), domain)

    def holds(self, devices: int, scale: int) -> bool:
        """Return whether memory could hold a graph."""
        memory = self.memory, self.host_memory
        return not self.memory or scale <= largest_scale(devices, *memory)


def held_bytes(scale: int) -> int:
    """Return the bytes of columns, levels and parents, on all devices."""
    return (4 * 2 * EDGE_FACTOR + 8) << scale


def largest_scale(devices: int, memory: int, host_memory: int = 0) -> int:
    """Return the largest scale that devices of some bytes each could hold.

    host_memory: bytes for what does not fit on the devices
    """
    scale = 1
    while held_bytes(scale + 1) <= HOLDS * memory * devices + host_memory:
        scale += 1
    return scale


def plan(grid: Grid) -> list[Job]:
    """Return all jobs, the most important first.

    A cell that serves several uses is listed once.
    """
    most = grid.devices
    some = [x for x in COUNTS if x <= most]
    ids = [{}, {"internal": True}][: 1 if grid.cpu else 2]
    scales = [x for x in grid.scales if grid.holds(most, x)]
    ranks = [x for x in some if x <= grid.ranks]
    strong = [x for x in reversed(some) if grid.holds(x, grid.strong)]
    contract = contracts(grid)
    jobs: list[Job] = [grid.cell(most, x, "scales", **y) for x in scales for y in ids]
    jobs += contract[: 1 + len(LOSSES)]
    jobs += [grid.cell(x, grid.weak_scale(x), "weak") for x in some]
    jobs += between(grid)
    jobs += [grid.cell(x, grid.strong, "strong") for x in strong]
    weak = grid.weak_scale(most)
    if tops := tuple(range(grid.top, max([weak, grid.strong, *scales]), -1)):
        jobs.append(Ladder(most, grid.usual_ranks(most), tops, grid.on(most)))
    jobs += [grid.cell(most, weak, "shapes", x) for x in ranks]
    if not grid.cpu:
        jobs += programs(grid)
        last = ranks[-1]
        jobs += [grid.cell(most, x, "scales", last, **y) for x in scales for y in ids]
        scale, roots = CHECKED
        jobs += [
            grid.cell(most, scale, "checked", roots=roots, seed=seed) for seed in SEEDS
        ]
    return merged([*jobs, *contract])


def between(grid: Grid) -> list[Job]:
    """Return cells of several domains: of half the devices, and of one each."""
    most = grid.devices
    if grid.cpu or most == 1 or grid.ranks < most:
        return []
    some = [x for x in COUNTS if 1 < x <= most]
    sizes = [most // 2, 1] if most > 2 else [1]
    exchanges = [(x, y) for x in sizes for y in EXCHANGES]
    jobs: list[Job] = [
        grid.between(most, x, grid.strong, y, "domains")
        for x, y in exchanges
        if grid.holds(most, grid.strong)
    ]
    first = EXCHANGES[0]
    return [
        *jobs,
        *(grid.between(x, 1, grid.weak_scale(x), first, "weak") for x in some),
    ]


def programs(grid: Grid) -> list[Job]:
    """Return runs of other scripts: stores, a service under load, many searches."""
    scale, most = str(grid.strong), str(grid.devices)
    store = ("--scale", scale, "--parts", most, "--json", "OUT/bench_store.json")
    load = ("--scale", scale, "--load-only", "--sources", "32")
    load_words = (*load, "--json", "OUT/check_service.json")
    many = "bench_searches_devices"
    jobs = [
        Program("bench_store.py", store, "bench_store.json", "stores", 1, 90),
        Program("check_service.py", load_words, "check_service.json", "stores", 1, 120),
        Program(f"{many}.py", ("--out", "OUT"), f"{many}.json", "many", int(most), 60),
    ]
    several = 1 < grid.devices <= grid.ranks
    return [x for x in jobs if several or x.use == "stores"]


def contracts(grid: Grid) -> list[Contract]:
    """Return the contract tests of all exchanges, most ranks first; lost ranks."""
    ranks = [x for x in COUNTS if x <= min(grid.devices, grid.ranks)]
    if grid.cpu:
        return [Contract(CONTRACT, x, seconds=15.0 * x) for x in reversed(ranks)]
    everywhere = ("host-device", "nccl-device")
    here = Contract(EXCHANGE_RANKS, 1, everywhere)
    if grid.devices == 1:
        return [here, Contract(SEARCH_RANKS, 1, ("auto", "first"))]
    jobs = [Contract(EXCHANGE_RANKS, ranks[-1], (*everywhere, "cuda_aware-device"))]
    lost = {"ranks": 2, "seconds": 70.0, "launched": False}
    jobs += [Contract((LOST_RANKS, "-k", loss), **lost) for loss in LOSSES]
    for count in reversed(ranks):
        kinds: tuple[str, ...] = ("domain", "host") if count > 1 else ("domain", "auto")
        kinds += ("nccl", "nvshmem") * (count == grid.devices)  # one device per rank
        jobs.append(Contract(SEARCH_RANKS, count, kinds))
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
    """Return the ``distbfs`` arguments that run a cell.

    validate: how many searches are validated, the first ones; 0: none
    """
    words = ["graph500", "--json", "--scale", str(cell.scale), "--roots", str(roots)]
    words += ["--engine", "openmp" if cpu else "xbfs"]
    if not cpu:
        words += ["--devices", str(cell.devices // cell.ranks)]
    if cell.domain:
        words += ["--domain", str(cell.domain), "--exchange", cell.method]
    elif cell.devices > 1:
        words += ["--parts" if cpu else "--domain", str(cell.devices)]
    words += ["--seed", str(cell.seed)] * (cell.seed != 1)
    words += ["--stepwise"] * cpu
    words += ["--internal-ids"] * cell.internal
    if not validate:
        return [*words, "--skip-validation"]
    return words if validate >= roots else [*words, "--validate", str(validate)]


@dataclass(frozen=True)
class Costs:
    """Seconds of a cell: to start, for each rank, for each root; tuples a second."""

    start: float
    rank: float
    root: float
    build: float
    search: float
    check: float


ON_DEVICES = Costs(start=9, rank=0.5, root=2.5e-3, build=1e9, search=2e11, check=5e9)
ON_CPUS = Costs(start=1, rank=0.7, root=0, build=5e6, search=2e7, check=2e7)


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
        if isinstance(job, Program):
            return job.seconds
        if isinstance(job, Contract):
            return self.costs.start + job.seconds * max(len(job.kinds), 1)
        if isinstance(job, Ladder):
            return self.plain(job.cell(job.scales[0]), roots, validate)
        of = self.costs
        roots, validate = job.roots or roots, job.roots or validate
        searches = roots / of.search + validate / self.check + 1 / of.build
        begun = of.start + of.rank * job.ranks + of.root * roots
        return begun + job.tuples * searches

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
        if cell.roots or least >= roots:
            return cell.roots or roots
        needed = sum(self.expected(job, roots, least) for job in (cell, *after))
        share = (self.left() - needed) / (1 + len(after))
        more = int(max(share, 0.0) * self.check / cell.tuples)
        return min(least + more, roots)
