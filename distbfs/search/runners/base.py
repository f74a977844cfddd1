"""The contract of a runner, which runs the searches of a session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from distbfs.engines.base import Searching
from distbfs.errors import SearchStopped

if TYPE_CHECKING:
    from distbfs.engines.base import LevelRecord
    from distbfs.timing import Trace
    from distbfs.types import Stop, World

MakeArrays: TypeAlias = Callable[[], tuple[list[Any], list[Any]]]


@dataclass
class Found:
    """A runner's result on this rank; arrays are valid until its next search.

    level[i]: levels of the rank's i-th shard, integers by local id, -1 = unreached;
    None without levels
    parent[i]: parents in the same shape, internal ids, -1 = unreached; None without
    parents
    levels: number of levels of the search, equal on all ranks; where no levels are
    written, the number of those that have vertices
    seconds: device time of the slowest device, None if the host's clock is used
    records: one per level, as JSON values
    phases: seconds of this rank, by phase
    order, give: see ``WholeResult``
    """

    level: Sequence[Any]
    parent: Sequence[Any]
    levels: int
    seconds: float | None = None
    records: list[Any] = field(default_factory=list)
    phases: dict[str, float] = field(default_factory=dict)
    order: Any = None
    give: Callable[[], None] | None = None


class Lazy(Sequence[Any]):
    """Arrays that are computed on first access.

    make: returns (levels, parents) of the shards; which: 0 for levels, 1 for parents
    """

    def __init__(self, count: int, which: int, make: MakeArrays) -> None:
        self._count, self._which, self._make = count, which, make

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, i: Any) -> Any:
        if not 0 <= i < self._count:
            raise IndexError(i)
        return self._make()[self._which][i]


def made_later(count: int, make: MakeArrays) -> tuple[Lazy, Lazy]:
    """Return the levels and parents of ``count`` shards, made on first access."""
    once = cache(make)
    return Lazy(count, 0, once), Lazy(count, 1, once)


def check_not_stopped(world: World, stop: Stop | None) -> None:
    """Raise SearchStopped on all ranks if one wants no search to begin (collective)."""
    if stop is not None:
        answer = np.array([stop()], dtype=np.int64)
        if world.allreduce(answer, "max")[0]:
            raise SearchStopped("the search was stopped before it began")


def records_of(records: Sequence[LevelRecord]) -> list[dict[str, Any]]:
    """Return the records of an engine without an exchange as JSON values."""
    levels = []
    for k, record in enumerate(records, 1):
        values = {"level": k, **vars(record)}
        levels.append(values | values.pop("extra"))
    return levels


class Runner(Searching[Found]):
    """Runs searches of one graph, one after the other; methods are collective.

    ``stop`` is passed on all ranks or on none; if it returns True on one, all ranks
    raise SearchStopped.

    mode: name of the way searches run, for reports; trace: records the phases of
    searches, None for no trace
    """

    mode = "resident"
    trace: Trace | None = None

    def see(self, views: Sequence[Any]) -> None:
        """Restrict later searches to views, where the engine has masks.

        views: one for each part of this rank, see ``masks`` of ``Engine``
        """
        raise NotImplementedError

    def watch(self, trace: Trace | None) -> None:
        """Record the phases of later searches in a trace (local)."""
        self.trace = trace

    def describe(self) -> dict[str, Any]:
        """Return the runner's hardware and settings, for reports (JSON values)."""
        return {"mode": self.mode, "exchange": "none"}

    def close(self) -> None:
        """Free the memory of searches, if that is not freed with the object."""
        return
