"""What a peer is given and gives, and how a comparison searches with it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar, Protocol

import numpy as np

from distbfs import registry
from distbfs.errors import UsageError
from distbfs.partition.layout import Layout
from distbfs.search.session import Outcome
from distbfs.types import Array, Ids, TupleSource, World


@dataclass(frozen=True)
class Rows:
    """A symmetric graph by input ids, without loops and repeats.

    offsets: int64 [n + 1]; columns: int32 [m], rising in each row
    """

    offsets: Ids
    columns: Array

    @property
    def n(self) -> int:
        """Vertices."""
        return len(self.offsets) - 1

    @property
    def m(self) -> int:
        """Stored directed edges."""
        return len(self.columns)

    def pairs(self) -> tuple[Array, Array]:
        """Return each undirected edge once, (u, v) int32 with u < v."""
        u = np.repeat(np.arange(self.n, dtype=np.int32), np.diff(self.offsets))
        once = u < self.columns
        return u[once], self.columns[once]


def rows_of(source: TupleSource) -> Rows:
    """Return the graph of edge tuples; UsageError where ids pass 31 bits."""
    n = source.n
    if n >= 1 << 31:
        raise UsageError(f"peers search below 2^31 vertices, not {n}")
    keys = [np.zeros(0, np.int64)]
    for u, v in source.chunks(0, source.tuples):
        kept = u != v
        keys += [np.unique(a[kept] * n + b[kept]) for a, b in ((u, v), (v, u))]
    all_keys = np.unique(np.concatenate(keys))
    counts = np.bincount(all_keys // max(n, 1), minlength=n)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Rows(offsets, (all_keys % max(n, 1)).astype(np.int32))


class Peer(Protocol):
    """A library with its own best call.

    module: what is imported; ``__init__`` takes Rows and is not timed
    """

    name: ClassVar[str]
    module: ClassVar[str]

    def __init__(self, rows: Rows) -> None: ...

    def search(self, root: int) -> Any:
        """Search from a vertex; this call alone is timed, to its end."""

    def levels(self, found: Any, root: int) -> Array:
        """Return the levels of what ``search`` gave, int32 [n], -1 = unreached."""

    def call(self) -> str:
        """Return the call and the version, for reports."""


def installed() -> list[str]:
    """Return the names of the peers whose libraries are there."""
    names = []
    for name in registry.PEERS:
        kind: Any = registry.lookup(registry.PEERS, "peer", name)
        if find_spec(kind.module) is not None:
            names.append(name)
    return names


class PeerSession:
    """Searches with a peer as a comparison needs it; see ``session.AnySession``."""

    def __init__(self, world: World, name: str, rows: Rows) -> None:
        kind: Any = registry.lookup(registry.PEERS, "peer", name)
        if find_spec(kind.module) is None:
            raise UsageError(
                f"peer {name} needs {kind.module}, which is not installed; there are: "
                f"{', '.join(installed()) or 'none'}"
            )
        self.world, self.layout = world, Layout(rows.n, 1)
        self._peer: Peer = kind(rows)
        self._name = name

    def describe(self) -> dict[str, Any]:
        """Return what searches run on, for reports."""
        return {"engine": self._name, "method": self._peer.call(), "peer": True}

    def search(self, root: int, *, records: bool = False) -> Outcome:  # noqa: ARG002
        """Search from an input id; seconds are those of the peer's call."""
        began = time.perf_counter()
        found = self._peer.search(root)
        seconds = time.perf_counter() - began
        level = self._peer.levels(found, root)
        levels = int(level.max()) + 1
        return Outcome(root, [level], [None], levels, seconds, [], wall=seconds)

    def block(self, outcome: Outcome) -> tuple[Array, Array | None]:
        """Return the levels; no parents."""
        return outcome.level[0], None

    def close(self) -> None:
        """Do nothing: the library frees its own."""
