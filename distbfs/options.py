"""Options of building and searching, checked on creation."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar

from distbfs.errors import UsageError, WrongTypeError

MOST_LEVELS = (1 << 31) - 1  # levels are int32


def check_choice(name: str, value: object, allowed: tuple[object, ...]) -> None:
    """Raise UsageError unless ``value`` is one of ``allowed``."""
    if value not in allowed:
        names = ", ".join(str(item) for item in allowed)
        raise UsageError(f"{name} is '{value}'; allowed: {names}")


def check_range(name: str, value: float, low: float, high: float | None = None) -> None:
    """Raise UsageError unless low <= value (<= high)."""
    if not low <= value or (high is not None and not value <= high):
        upper = "or more" if high is None else f"to {high}"
        raise UsageError(f"{name} is {value}; allowed: {low} {upper}")


def check_integer(name: str, value: Any) -> int:
    """Return an integer from any index type; WrongTypeError for bool or others."""
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise WrongTypeError(f"{name} is {value!r:.40}; allowed: an integer")


def type_name(value: object) -> str:
    """Return the name of a value's type, with its package."""
    kind = type(value)
    package = kind.__module__.partition(".")[0]
    return kind.__name__ if package == "builtins" else f"{package}.{kind.__name__}"


def check_several(name: str, values: Any) -> Iterable[Any]:
    """Return vertices, or pairs of them; WrongTypeError unless they are iterable."""
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise WrongTypeError(f"{name} is {values!r:.40}; allowed: several in a list")
    return values


def depth_limit(name: str, value: Any, most: int = MOST_LEVELS) -> int | None:
    """Return the last level to search; None for all, also if ``most`` is less.

    Raises UsageError unless it is None or an integer of 0 or more.
    """
    if value is None:
        return None
    depth = check_integer(name, value)
    check_range(name, depth, 0)
    return depth if depth < most else None


@dataclass(frozen=True)
class BuildOptions:
    """How a graph is built and separated.

    threshold: TH, or None to have it suggested
    permute_seed: seed of the hash that permutes vertices first, None for no permutation
    pass_bytes: memory for raw edges while building; more passes when it is too small
    order_block: vertices are sorted by degree inside blocks of this many local ids
    directed: keep a tuple (u, v) as an edge from u to v alone; one part on one rank
    threads: threads of a rank, 0 = what the system allows
    """

    threshold: int | None = None
    permute_seed: int | None = None
    pass_bytes: int = 4 << 30
    order_block: int = 1 << 15
    directed: bool = False
    threads: int = 0

    def __post_init__(self) -> None:
        if self.threshold is not None:
            check_range("threshold", self.threshold, 0)
        check_range("pass_bytes", self.pass_bytes, 1)
        check_range("order_block", self.order_block, 1)
        check_range("threads", self.threads, 0, 4096)


@dataclass(frozen=True)
class Factors:
    """Direction-switching factors of one subgraph (Pan et al. 2018, Section IV-B).

    Push turns to pull when FV > to_pull · BV, pull to push when FV < to_push · BV.
    """

    to_pull: float
    to_push: float

    def __post_init__(self) -> None:
        check_range("to_pull", self.to_pull, 0)
        check_range("to_push", self.to_push, 0)


@dataclass(frozen=True)
class Knobs:
    """K1 … K7 of engine bfs4k (Busato, Bombieri 2015); None: set from the graph.

    k1: least virtual warp, threads; k2: share of the vertices, those of the highest
    degrees, whose rows go to the second queue, %; k3: neighbours of such a row that a
    thread takes; k4: edge-discover where the frontier times k4 is below the resident
    threads or rows are shorter than a virtual warp, 0 never; k5: vertices a thread up
    to which one block searches alone, 0 never; k6: threads that share a hash table;
    k7: vertices a thread, on average, from which a warp writes in turns, 0 never; ext:
    the extended edge-discover
    """

    k1: int | None = None
    k2: float | None = None
    k3: int | None = None
    k4: int | None = None
    k5: int | None = None
    k6: int | None = None
    k7: int | None = None
    ext: bool | None = None

    CHOICES: ClassVar[dict[str, tuple[int, ...]]] = {
        "k1": (1, 2, 4, 8, 16, 32),
        "k6": (32, 64, 128, 256, 512, 1024),
    }
    RANGES: ClassVar[dict[str, tuple[int, int]]] = {
        "k2": (0, 100),
        "k3": (1, 1024),
        "k4": (0, 64),
        "k5": (0, 4),
        "k7": (0, 16),
    }

    def __post_init__(self) -> None:
        for name, allowed in self.CHOICES.items():
            if getattr(self, name) is not None:
                check_choice(name, getattr(self, name), allowed)
        for name, (low, high) in self.RANGES.items():
            if getattr(self, name) is not None:
                check_range(name, getattr(self, name), low, high)

    @classmethod
    def parse(cls, text: str) -> Knobs:
        """Return the knobs of ``auto`` or ``k1=8,k4=2,ext=no``; others stay None."""
        knobs = cls()
        for word in text.split(",") if text not in ("", "auto") else []:
            knobs = knobs.with_text(*word.partition("=")[::2])
        return knobs

    def with_text(self, name: str, value: str) -> Knobs:
        """Return the knobs with one set from its text."""
        if name not in {item.name for item in fields(self)}:
            allowed = ", ".join(item.name for item in fields(self))
            raise UsageError(f"knob '{name}'; allowed: auto, or some of {allowed}")
        if name == "ext":
            check_choice("ext", value, ("yes", "no"))
            return replace(self, ext=value == "yes")
        try:
            number = float(value) if name == "k2" else int(value)
        except ValueError:
            low, high = self.RANGES.get(name, (self.CHOICES.get(name, (0,))[0], 0))
            high = high or self.CHOICES[name][-1]
            raise UsageError(
                f"{name} is '{value}', no number; allowed: {low} to {high}"
            ) from None
        return replace(self, **{name: number})  # type: ignore[arg-type]

    def as_dict(self) -> dict[str, Any]:
        """Return the knobs that are set as JSON values."""
        return {k: v for k, v in vars(self).items() if v is not None}


@dataclass(frozen=True)
class SubgraphFactors:
    """Factors of the subgraphs that may pull (Pan et al. 2018, Section IV-B)."""

    dd: Factors = Factors(0.01, 1e-7)
    dn: Factors = Factors(0.002, 1e-7)
    nd: Factors = Factors(0.05, 1e-7)


@dataclass(frozen=True)
class ExchangeOptions:
    """How domains exchange what they found.

    name: "auto", or one of the registry
    mask_reduce: "blocking" or "nonblocking", of delegate masks
    local_all2all: gather vertices by device inside a rank before they are sent
    uniquify: drop repeated vertices before they are sent
    trust_mpi: give device pointers to MPI though it does not say that it takes them;
        where it does not they end the program (exchange cuda_aware)
    chunk_elements: most elements of one message
    """

    name: str = "auto"
    mask_reduce: str = "blocking"
    local_all2all: bool = False
    uniquify: bool = False
    trust_mpi: bool = False
    chunk_elements: int = (1 << 31) - 1

    def __post_init__(self) -> None:
        check_choice("mask_reduce", self.mask_reduce, ("blocking", "nonblocking"))
        if self.trust_mpi and self.name != "cuda_aware":
            raise UsageError("trust_mpi is for exchange cuda_aware")
        check_range("chunk_elements", self.chunk_elements, 1, (1 << 31) - 1)


def check_wanted(*, levels: bool, parents: bool) -> None:
    """Raise UsageError where a search would give neither."""
    if not (levels or parents):
        raise UsageError("a search without levels and without parents gives nothing")


FACTOR_OPTIONS = tuple(item.name for item in fields(SubgraphFactors))
MEMORY_OPTIONS = ("device_memory", "host_memory")
FRONTIERS = ("auto", "scan-free", "single-scan", "no-queue", "double-scan")
BALANCES = ("static", "thread", "warp", "donation", "degree")  # of xbfs-paper, too
COUNT_DTYPES = ("uint64", "float64")  # of numbers of shortest paths
EXCHANGE_OPTIONS = ("exchange", *(item.name for item in fields(ExchangeOptions)[1:]))


@dataclass(frozen=True)
class SearchOptions:
    """How a search runs; ``named`` makes them from names alone.

    engine, method: per-device engine and its variant ("" = the engine's default)
    threads: threads of a rank, 0 = what the system allows
    levels, parents: what a search gives, one of them at least
    direction: "auto", or "push" / "pull" to force one where there is a choice
    stepwise: use the host level loop even where the engine can run alone
    internal_ids: leave results of an engine on a device in the numbers of its graph
    share_device: let ranks of engine xbfs use the same device
    device_memory: bytes that a graph and its searches may take on each device, None
        for what is free; rows that do not fit go on in host memory
    host_memory: bytes of those of all devices of a host, None for what this process
        may use
    factors, exchange: of searches between domains
    own: options of the engine alone, (name, value) by name: fields of its ``own``
    """

    engine: str = "openmp"
    method: str = ""
    threads: int = 0
    levels: bool = True
    parents: bool = True
    direction: str = "auto"
    stepwise: bool = False
    internal_ids: bool = False
    share_device: bool = False
    device_memory: int | None = None
    host_memory: int | None = None
    factors: SubgraphFactors = SubgraphFactors()
    exchange: ExchangeOptions = ExchangeOptions()
    own: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        check_wanted(levels=self.levels, parents=self.parents)
        check_range("threads", self.threads, 0, 4096)
        check_choice("direction", self.direction, ("auto", "push", "pull"))
        for name in MEMORY_OPTIONS:
            value = getattr(self, name)
            if value is not None:
                check_range(name, check_integer(name, value), 0)

    @classmethod
    def named(cls, **options: Any) -> SearchOptions:
        """Return options from their names alone, each in its structure.

        Options neither common nor of domains are the engine's own; ``open`` raises
        UsageError if the engine has none of that name.
        """
        common = {x: options.pop(x) for x in COMMON_OPTIONS if x in options}
        factors = {x: options.pop(x) for x in FACTOR_OPTIONS if x in options}
        exchange = {x: options.pop(x) for x in EXCHANGE_OPTIONS if x in options}
        if "exchange" in exchange:
            exchange["name"] = exchange.pop("exchange")
        return cls(
            **common,
            factors=SubgraphFactors(**factors),
            exchange=ExchangeOptions(**exchange),
            own=tuple(sorted(options.items())),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the options by the names that ``named`` takes, as JSON values."""
        out = {name: getattr(self, name) for name in COMMON_OPTIONS}
        out |= asdict(self.factors)
        exchange = asdict(self.exchange)
        out |= {"exchange": exchange.pop("name"), **exchange}
        for name, value in self.own:
            out[name] = value.as_dict() if isinstance(value, Knobs) else value
        return out


COMMON_OPTIONS = tuple(item.name for item in fields(SearchOptions)[:-3])
