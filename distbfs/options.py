"""Options of building and searching, checked on creation."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from distbfs.errors import UsageError, WrongTypeError

MOST_LEVELS = (1 << 31) - 1  # levels are int32
RELAY_FROM = 1024  # ranks: by the model of plan, two hops then take less time
MOST_THREADS = 4096
INPUT, CONNECTIONS, SEARCH, BUILDING, DEVICES, OUTPUT, REQUEST_LIMITS, ADVANCED = (
    GROUPS  # of options in the help of a command
) = (
    "Input",
    "Connections",
    "Search",
    "Building",
    "Devices and threads",
    "Output",
    "Limits",
    "Advanced",
)


def check_choice(name: str, value: object, allowed: tuple[object, ...]) -> None:
    """Raise UsageError unless ``value`` is one of ``allowed``."""
    if value not in allowed:
        names = ", ".join(str(item) for item in allowed)
        raise UsageError(f"{name} is '{value}'; allowed: {names}")


def check_range(
    name: str,
    value: float,
    low: float,
    high: float | None = None,
    *,
    above: bool = False,
) -> None:
    """Raise UsageError unless low <= value (<= high); above: low < value."""
    fits = low < value if above else low <= value
    if not fits or (high is not None and not value <= high):
        upper = "or more" if high is None else f"to {high}"
        allowed = f"above {low}" if above else f"{low} {upper}"
        raise UsageError(f"{name} is {value}; allowed: {allowed}")


def check_integer(name: str, value: Any) -> int:
    """Return the int of any integer type; WrongTypeError for bool and other types."""
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise WrongTypeError(f"{name} is {value!r:.40}; allowed: an integer")


@dataclass(frozen=True)
class Declared:
    """Facts about an option beyond the name, type and default of its field.

    Its help is in the docstring of the class, after the name of the field and a colon.

    group: heading under which a command's help lists the option
    spellings: a short name such as "-t", or a long name that differs from the field's
    low, high: the allowed range; above: whether ``low`` itself is excluded
    allowed: the allowed values
    kind: type on the command line, if it differs from the field's
    usual: default on the command line, if it differs from the field's
    unit: the value of the field that 1 on the command line stands for
    more: further arguments for click
    """

    group: str
    spellings: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    above: bool = False
    allowed: tuple[Any, ...] = ()
    kind: Any = None
    usual: Any = None
    unit: int = 1
    more: Mapping[str, Any] = field(default_factory=dict)


def option(group: str, *spellings: str, default: Any = None, **known: Any) -> Any:
    """Return a field of a dataclass that is an option.

    known: values for the fields of ``Declared``; metavar and required are for click
    """
    more: dict[str, Any] = {
        x: known.pop(x) for x in ("metavar", "required") if x in known
    }
    declared = Declared(group, spellings, **known, more=more)
    return field(default=default, metadata={"option": declared})


def check_declared(options: Any) -> None:
    """Raise UsageError for a field outside its declared range or choices."""
    for item in fields(options):
        known, value = item.metadata.get("option"), getattr(options, item.name)
        if known is None or value is None:
            continue
        if known.allowed:
            check_choice(item.name, value, known.allowed)
        if known.low is not None:
            check_range(item.name, value, known.low, known.high, above=known.above)


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
    """Return the last level to search; None for all, also for ``most`` or more.

    Raises UsageError unless it is None or an integer of 0 or more.
    """
    if value is None:
        return None
    depth = check_integer(name, value)
    check_range(name, depth, 0)
    return depth if depth < most else None


FRONTIERS = ("auto", "scan-free", "single-scan", "no-queue", "double-scan")
BALANCES = ("static", "thread", "warp", "donation", "degree")  # of xbfs-paper
COUNT_DTYPES = ("uint64", "float64")  # of numbers of shortest paths


@dataclass(frozen=True, kw_only=True)
class DirectedOption:
    """Whether edges lead one way.

    directed: Edges lead one way, from the first id to the second.
    """

    directed: bool = option(INPUT, default=False)


@dataclass(frozen=True, kw_only=True)
class FileFacts(DirectedOption):
    """Facts about a graph file that it does not state itself.

    one_based: Where ids of an edge list, a table or NumPy pairs begin; other formats
        define it.  [zero-based; KONECT: one-based]
    columns: Names of the two columns with the ids, in a Parquet or Arrow table or in
        the first line of an edge list.  Default: src and dst, source and target,
        from and to, or u and v, else the first two.
    header: Leave out the first line of an edge list, which names columns or states
        sizes, or take it as an edge.  [left out if it has usual names, or names above
        numbers]
    bipartite: Read a matrix that is not square (Matrix Market, SciPy, KONECT of kind
        bip): rows are the first vertices, columns the vertices after them.
    first_id: Number of the first vertex, 0 or 1, in options and in results.  [as in the
        file]
    """

    one_based: bool | None = option(INPUT, "--one-based/--zero-based")
    columns: tuple[str, str] | None = option(INPUT, metavar="SRC DST")
    header: bool | None = option(INPUT)
    bipartite: bool = option(INPUT, default=False)
    first_id: int | None = option(INPUT, low=0, high=1)


@dataclass(frozen=True)
class BuildOptions:
    """Options of the construction and separation of a graph.

    ``pass_bytes`` is in GiB on the command line alone.

    permute_seed: seed of the hash that permutes vertices first, None for no permutation
    order_block: vertices are sorted by degree inside blocks of this many local ids
    directed: keep a tuple (u, v) as an edge from u to v alone
    threads: threads of a rank, 0 = what the system allows

    threshold: Degree threshold TH: vertices above it are delegates.  [by degrees]
    pass_bytes: GiB of raw edges held while building; less takes more passes, but a pass
        builds at least one part.
    """

    threshold: int | None = option(BUILDING, "-t", low=0)
    permute_seed: int | None = None
    pass_bytes: int = option(BUILDING, "--memory", default=4 << 30, low=1, unit=1 << 30)
    order_block: int = 1 << 12
    directed: bool = False
    threads: int = 0

    def __post_init__(self) -> None:
        check_declared(self)
        check_range("order_block", self.order_block, 1)
        check_range("threads", self.threads, 0, MOST_THREADS)


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

    k1: smallest size of a virtual warp, in threads
    k2: percentage of the vertices, those of the highest degrees, whose rows go to the
        second queue
    k3: number of neighbours in such a row that each thread takes
    k4: edge-discover is used if the frontier times k4 is below the number of resident
        threads, or if rows are shorter than a virtual warp; 0 means never
    k5: one block searches alone up to this number of vertices per thread; 0 means never
    k6: number of threads that share a hash table
    k7: a warp writes in turns from this average number of vertices per thread on; 0
        means never
    ext: whether the extended edge-discover is used
    """

    k1: int | None = option(ADVANCED, allowed=(1, 2, 4, 8, 16, 32))
    k2: float | None = option(ADVANCED, low=0, high=100)
    k3: int | None = option(ADVANCED, low=1, high=1024)
    k4: int | None = option(ADVANCED, low=0, high=64)
    k5: int | None = option(ADVANCED, low=0, high=4)
    k6: int | None = option(ADVANCED, allowed=(32, 64, 128, 256, 512, 1024))
    k7: int | None = option(ADVANCED, low=0, high=16)
    ext: bool | None = None

    def __post_init__(self) -> None:
        check_declared(self)

    @classmethod
    def parse(cls, text: str) -> Knobs:
        """Return the knobs of ``auto`` or ``k1=8,k4=2,ext=no``; others stay None."""
        knobs = cls()
        for word in text.split(",") if text not in ("", "auto") else []:
            knobs = knobs.with_text(*word.partition("=")[::2])
        return knobs

    def with_text(self, name: str, value: str) -> Knobs:
        """Return the knobs with one set from its text."""
        items = {item.name: item for item in fields(self)}
        if name not in items:
            allowed = ", ".join(items)
            raise UsageError(f"knob '{name}'; allowed: auto, or some of {allowed}")
        if name == "ext":
            check_choice("ext", value, ("yes", "no"))
            return replace(self, ext=value == "yes")
        try:
            number = float(value) if name == "k2" else int(value)
        except ValueError:
            known = items[name].metadata["option"]
            low, *_, high = known.allowed or (known.low, known.high)
            raise UsageError(
                f"{name} is '{value}', not a number; allowed: {low} to {high}"
            ) from None
        return replace(self, **{name: number})  # type: ignore[arg-type]

    def as_dict(self) -> dict[str, Any]:
        """Return the knobs that are set as JSON values."""
        return {k: v for k, v in vars(self).items() if v is not None}


@dataclass(frozen=True)
class SubgraphFactors:
    """Factors of the subgraphs that may pull (Pan et al. 2018, Section IV-B).

    dd, dn, nd: Subgraph {} turns to pull when its forward work is above PULL times its
        backward work, and back when it is below PUSH times that.
    """

    dd: Factors = option(ADVANCED, "--dd-factors", default=Factors(0.01, 1e-7))
    dn: Factors = option(ADVANCED, "--dn-factors", default=Factors(0.002, 1e-7))
    nd: Factors = option(ADVANCED, "--nd-factors", default=Factors(0.05, 1e-7))


@dataclass(frozen=True)
class ExchangeOptions:
    """Options of the exchange between domains.

    chunk_elements: most elements of one message

    name: Method of the exchange between domains.
    mask_reduce: Method of reducing delegate masks.
    local_all2all: Gather vertices by device inside a rank before they are sent.
    uniquify: Drop repeated vertices before they are sent.
    trust_mpi: Allow exchange cuda_aware to give device pointers to MPI even if MPI does
        not report that it takes them.
    relay_from: Number of ranks from which on vertices travel in two hops, along rows
        and columns of a grid of ranks, so that each rank sends few messages.
    """

    name: str = option(DEVICES, "--exchange", default="auto", kind="exchange")
    mask_reduce: str = option(
        ADVANCED, default="blocking", allowed=("blocking", "nonblocking")
    )
    local_all2all: bool = option(ADVANCED, default=False)
    uniquify: bool = option(ADVANCED, default=False)
    trust_mpi: bool = option(ADVANCED, default=False)
    relay_from: int = option(ADVANCED, metavar="RANKS", default=RELAY_FROM, low=2)
    chunk_elements: int = (1 << 31) - 1

    def __post_init__(self) -> None:
        check_declared(self)
        if self.trust_mpi and self.name != "cuda_aware":
            raise UsageError("trust_mpi is for exchange cuda_aware")
        asked = [x for x in ("local_all2all", "uniquify") if getattr(self, x)]
        if asked and self.relay_from != RELAY_FROM:
            raise UsageError(f"{asked[0]} is for messages of one hop, not relay_from")
        check_range("chunk_elements", self.chunk_elements, 1, (1 << 31) - 1)


@dataclass(frozen=True)
class EngineOptions:
    """Options of single engines; None: its own default.

    frontier: Method of engine xbfs-paper to make queues.  [auto]
    balance: Method by which pulls of engine xbfs-paper share their work.  [auto]
    no_async: Restrict pulls of engine xbfs-paper to vertices of one level.
    knobs: Knobs k1 to k7 of engine bfs4k, such as k1=8,k2=0.1; the others follow from
        the degrees.  [auto]
    """

    frontier: str | None = option(ADVANCED, allowed=FRONTIERS)
    balance: str | None = option(ADVANCED, allowed=("auto", *BALANCES))
    asynchronous: bool | None = option(ADVANCED, "--no-async")
    knobs: Knobs | None = option(ADVANCED, metavar="auto|K=V,...")


def check_wanted(*, levels: bool, parents: bool) -> None:
    """Raise UsageError if a search would give neither."""
    if not (levels or parents):
        raise UsageError("a search without levels and without parents gives nothing")


FACTOR_OPTIONS = tuple(item.name for item in fields(SubgraphFactors))
MEMORY_OPTIONS = ("device_memory", "host_memory")
EXCHANGE_OPTIONS = ("exchange", *(item.name for item in fields(ExchangeOptions)[1:]))


@dataclass(frozen=True)
class SearchOptions:
    """Options of a search; ``named`` makes them from names alone.

    factors, exchange: of searches between domains
    own: options of the engine alone, (name, value) by name: fields of its ``own``

    engine: Engine inside a domain; auto takes xbfs where every rank has a CUDA device,
        else openmp.
    method: Variant of the engine, such as 'push'.
    threads: Threads per rank; 0: this rank's share of the cores.
    no_levels: Find parents only.
    no_parents: Find levels only.
    direction: Search in one direction only; auto chooses at each level.
    stepwise: Begin each level from the host, even where one launch could do a whole
        search; not on one GPU.
    internal_ids: Leave the conversion to input ids out of the time of searches on
        devices.
    share_device: Allow several ranks of engine xbfs to use one device; slow, for
        trials.
    device_memory: Memory of each device for a graph and its searches, such as 40GiB;
        neighbours that do not fit there go to host memory.  [what is free]
    host_memory: Memory of a host for the neighbours that do not fit on its devices.
        [what this process may use]
    """

    engine: str = option(SEARCH, default="openmp", kind="engine", usual="auto")
    method: str = option(SEARCH, default="")
    threads: int = option(DEVICES, default=0, low=0, high=MOST_THREADS)
    levels: bool = option(SEARCH, "--no-levels", default=True)
    parents: bool = option(SEARCH, "--no-parents", default=True)
    direction: str = option(SEARCH, default="auto", allowed=("auto", "push", "pull"))
    stepwise: bool = option(ADVANCED, default=False)
    internal_ids: bool = option(ADVANCED, default=False)
    share_device: bool = option(ADVANCED, default=False)
    device_memory: int | None = option(DEVICES, low=0, kind="bytes", metavar="BYTES")
    host_memory: int | None = option(DEVICES, low=0, kind="bytes", metavar="BYTES")
    factors: SubgraphFactors = SubgraphFactors()
    exchange: ExchangeOptions = ExchangeOptions()
    own: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        check_wanted(levels=self.levels, parents=self.parents)
        for name in MEMORY_OPTIONS:
            if getattr(self, name) is not None:
                check_integer(name, getattr(self, name))
        check_declared(self)

    @classmethod
    def named(cls, **options: Any) -> SearchOptions:
        """Return options from their names alone, each in its structure.

        Options that are neither common nor about domains are the engine's own; ``open``
        raises UsageError if the engine has no option of that name.
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
