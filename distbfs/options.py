"""Options of building and searching, checked when they are made."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from distbfs.errors import UsageError


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


@dataclass(frozen=True)
class BuildOptions:
    """How a graph is built and separated.

    threshold: TH, or None to have it suggested
    permute_seed: seed of the hash that permutes vertices first, None for no permutation
    pass_bytes: memory for raw edges while building; more passes when it is too small
    order_block: vertices are sorted by degree inside blocks of this many local ids
    directed: keep a tuple (u, v) as an edge from u to v alone; one part on one rank
    """

    threshold: int | None = None
    permute_seed: int | None = None
    pass_bytes: int = 4 << 30
    order_block: int = 1 << 15
    directed: bool = False

    def __post_init__(self) -> None:
        if self.threshold is not None:
            check_range("threshold", self.threshold, 0)
        check_range("pass_bytes", self.pass_bytes, 1)
        check_range("order_block", self.order_block, 1)


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
class SearchOptions:
    """How a search runs.

    engine, method: per-device engine and its variant ("" = the engine's default)
    threads: OpenMP threads per rank, 0 = what the system allows
    parents: whether parents are found as well as levels
    direction: "auto", or "push" / "pull" to force one where there is a choice
    dd, dn, nd: factors of the subgraphs that may pull
    stepwise: use the host level loop even where the engine can run alone
    frontier, balance, asynchronous: strategies of engine xbfs, method paper (Gaihre et
        al. 2019, Sections 4.1, 5.1, 5.2); balance also of pulls of parts
    internal_ids: leave results of engine xbfs in the numbers of the device's graph
    share_device: let ranks of engine xbfs use the same device
    trust_mpi: give device pointers to MPI though it does not say that it takes them;
        where it does not they end the program (exchange cuda_aware)
    """

    engine: str = "openmp"
    method: str = ""
    threads: int = 0
    parents: bool = True
    direction: str = "auto"
    dd: Factors = field(default_factory=lambda: Factors(0.01, 1e-7))
    dn: Factors = field(default_factory=lambda: Factors(0.002, 1e-7))
    nd: Factors = field(default_factory=lambda: Factors(0.05, 1e-7))
    stepwise: bool = False
    frontier: str = "auto"
    balance: str = "auto"
    asynchronous: bool = True
    internal_ids: bool = False
    share_device: bool = False
    trust_mpi: bool = False
    exchange: str = "auto"
    mask_reduce: str = "blocking"
    local_all2all: bool = False
    uniquify: bool = False
    chunk_elements: int = (1 << 31) - 1

    def __post_init__(self) -> None:
        check_range("threads", self.threads, 0, 4096)
        check_choice("direction", self.direction, ("auto", "push", "pull"))
        check_choice("mask_reduce", self.mask_reduce, ("blocking", "nonblocking"))
        if self.trust_mpi and self.exchange != "cuda_aware":
            raise UsageError("trust_mpi is for exchange cuda_aware")
        check_range("chunk_elements", self.chunk_elements, 1, (1 << 31) - 1)

    def as_dict(self) -> dict[str, Any]:
        """Return the options as JSON values."""
        out: dict[str, Any] = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, Factors):
                value = {"to_pull": value.to_pull, "to_push": value.to_push}
            out[item.name] = value
        return out
