"""Searches of degree-separated parts over ranks, and what they spend their time with.

For each graph and threshold the parts are built once, as ``distbfs graph500`` does, and
searched with each variant of the options; results are validated.  A few searches run
once more with a look at every part of the work, level by level from the host: each is
waited for, and with counters, so that they add up and take longer than a search as it
runs.  Source: Pan, Pearce, Owens 2018, Section VI.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from distbfs import registry
from distbfs.benchmark.graph500 import run_searches
from distbfs.benchmark.roots import choose_roots
from distbfs.benchmark.statistics import rate_statistics
from distbfs.cli.shared import share_of_cores
from distbfs.device import cuda
from distbfs.errors import UsageError, ValidationError
from distbfs.options import BuildOptions, Factors, SearchOptions, SubgraphFactors
from distbfs.ranks.world import Ranks
from distbfs.search.choose import Request, kind_of
from distbfs.search.held import Held
from distbfs.search.holding import Source
from distbfs.search.open import open_source
from distbfs.search.session import Session
from distbfs.types import SUBGRAPHS, Ids, TupleSource

OUTSIDE = "outside"  # what a session does around a search
SEARCH_CALLS = dict.fromkeys(("work", "accept"), "queues")
EXCHANGE_CALLS = {
    **dict.fromkeys(("start_masks", "finish_masks"), "masks"),
    **dict.fromkeys(("start_normals", "finish_normals"), "normals"),
}
LOCAL_CALLS = ("_reduce_own", "_deal", "_collect", "_bring")
PARTS = {  # of a search, in the order in which they are stacked
    "nn": "visit nn",
    "dd": "visit dd",
    "nd": "visit nd",
    "dn": "visit dn",
    "queues": "queues, counts of work",
    "local": "local exchange",
    "masks": "delegate masks",
    "normals": "normal vertices",
    "parents": "parents",
    "rest": "rest, and waiting",
}
PLAIN, PUSH = "default", "push"
OPTIONS: dict[str, dict[str, Any]] = {
    PLAIN: {},
    PUSH: {"direction": "push"},
    "IR": {"mask_reduce": "nonblocking"},
    "BR": {"mask_reduce": "blocking"},
    "L": {"local_all2all": True},
    "U": {"uniquify": True},
    **{name: {"exchange": name} for name in registry.EXCHANGES},
}
SWITCHING = ("dd", "dn", "nd")  # subgraphs that have direction factors


def changes_of(name: str) -> dict[str, Any]:
    """Return the search options that a variant changes.

    name: names of OPTIONS and direction factors as ``dd=0.5``, joined by "+".  A factor
    is the one that turns to pull; the other is 1e-7, or the same where that is less.
    """
    changes: dict[str, Any] = {}
    for word in name.split("+"):
        subgraph, equals, value = word.partition("=")
        if word in OPTIONS:
            changes |= OPTIONS[word]
        elif equals and subgraph in SWITCHING:
            factor = float(value)
            back = getattr(SubgraphFactors(), subgraph).to_push
            changes[subgraph] = Factors(factor, min(factor, back))
        else:
            raise UsageError(f"variant '{name}' has '{word}'")
    return changes


class Ledger:
    """Tells what a search spends its time with, level by level.

    rows: seconds by part of the work (pan_PARTS): the start, each level, the end.
    What calls another watched one does not count for both.
    """

    def __init__(self, session: Session) -> None:
        runner: Any = session._runner
        self.rows: list[dict[str, float]] = []
        self._parts = [OUTSIDE]
        self._last = 0.0
        self._device = bool(session.held.devices)
        self._watched: list[tuple[Any, str]] = []
        for k, one in enumerate(runner._searches):
            search = inner(one, "_search")  # where its device is current already
            for name, part in SEARCH_CALLS.items():
                self._watch(search, name, part, begins=not k and name == "work")
            self._watch(search, "visit", "")  # of the subgraph that it is given
        for name, part in EXCHANGE_CALLS.items():
            self._watch(runner.exchange, name, part)
        for name in LOCAL_CALLS:
            self._watch(runner.exchange, name, "local")
        self._watch(runner, "_complete_parents", "parents")
        self._watch(runner, "search", "rest")

    def begin(self) -> None:
        """Forget what was seen; a search starts."""
        self.rows, self._parts = [], [OUTSIDE]
        self._new_row()
        self._last = time.perf_counter()

    def seconds(self) -> list[list[float]]:
        """Return seconds by row and part, in the order of pan_PARTS."""
        return [[row[name] for name in PARTS] for row in self.rows]

    def close(self) -> None:
        """Let go of what is watched."""
        for owner, name in self._watched:
            delattr(owner, name)

    def _new_row(self) -> None:
        self.rows.append(dict.fromkeys((*PARTS, OUTSIDE), 0.0))

    def _turn(self) -> None:
        """Count the time since the last turn towards what is under way."""
        now = time.perf_counter()
        self.rows[-1][self._parts[-1]] += now - self._last
        self._last = now

    def _watch(self, owner: Any, name: str, part: str, *, begins: bool = False) -> None:
        method = getattr(owner, name, None)
        if method is None:
            return

        def timed(*args: Any, **more: Any) -> Any:
            self._turn()
            if begins:
                self._new_row()
            self._parts.append(part or args[0])
            result = method(*args, **more)
            if self._device:
                cuda.cupy().cuda.Device().synchronize()
            self._turn()
            self._parts.pop()
            return result

        setattr(owner, name, timed)
        self._watched.append((owner, name))


def inner(wrapper: Any, name: str) -> Any:
    """Return the object that ``wrapper`` keeps under ``name``, else ``wrapper``."""
    return vars(wrapper).get(name, wrapper)


def looked_at(session: Session, roots: list[int]) -> list[dict[str, Any]]:
    """Return the levels of searches and their seconds, means over ranks (collective).

    One search before the first is not counted.
    """
    searches = []
    ledger, world = Ledger(session), session.world
    for root in [*roots[:1], *roots]:
        ledger.begin()
        result = session.search(root, records=True)
        mine = np.array(ledger.seconds())
        mean = world.allreduce(mine) / world.size
        most = world.allreduce(mine.sum(axis=0), "max")
        searches.append(
            {
                "root": root,
                "records": result.records,
                "seconds": [
                    dict(zip(PARTS, row, strict=True)) for row in mean.tolist()
                ],
                "slowest": dict(zip(PARTS, most.tolist(), strict=True)),
            }
        )
    ledger.close()
    return searches[1:]


def breakdown_ms(searches: list[dict[str, Any]]) -> dict[str, float]:
    """Return milliseconds a search by part of the work, means."""
    rows = [row for search in searches for row in search["seconds"]]
    return {
        name: 1e3 * sum(row[name] for row in rows) / len(searches)
        for name in PARTS
        if searches
    }


class PartGraph:
    """A graph in one part per rank, which stay while sessions come and go (collective).

    engine: searches them, a device a domain, or the threads of a rank
    """

    def __init__(
        self,
        world: Ranks,
        source: TupleSource,
        engine: str,
        threshold: int | None,
        count: int,
        seed: int = 1,
    ) -> None:
        self.source, self.world = source, world
        self._base = {
            "engine": engine,
            "threads": share_of_cores(world),
            "stepwise": not kind_of(engine).on_device,
        }
        build = BuildOptions(threshold=threshold)
        self._made = Source(source.n, world.size, tuples=source, build=build)
        self._request = Request(world.size, "--parts", keep=True)
        self.held: Sequence[Held] = ()
        session = self.session(PLAIN)
        self.held = [session.held]
        self.roots: Ids = choose_roots(source.n, count, seed, session.connected)
        session.close()
        if not len(self.roots):
            raise ValidationError("no vertex has a neighbour other than itself")
        held = self.held[0]
        parts: Sequence[Any] = held.device_parts or held.parts
        edges = np.zeros(len(SUBGRAPHS), dtype=np.int64)
        for x in parts:  # none where the search has a graph of its own
            edges += [getattr(x, name).edges for name in SUBGRAPHS]
        edges = world.allreduce(edges)
        taken = np.array([held.generation_seconds, held.construction_seconds])
        generation, construction = world.allreduce(taken, "max").tolist()
        self.facts: dict[str, Any] = {
            "n": source.n,
            "m": int(edges.sum()),
            "source": source.describe(),
            "edges": dict(zip(SUBGRAPHS, edges.tolist(), strict=True)),
            "delegates": parts[0].delegate_count if parts else None,
            "threshold": parts[0].threshold if parts else None,
            "devices": world.size,
            "generation_seconds": generation,
            "construction_seconds": construction,
        }

    def session(self, variant: str) -> Session:
        """Return a session over the parts (collective)."""
        options = SearchOptions.named(**(self._base | changes_of(variant)))
        request, held = self._request, self.held
        return open_source(self.world, self._made, options, request, held=held)

    def variant(self, name: str, looked: int = 0) -> dict[str, Any]:
        """Search from all roots with some options; return the figures (collective).

        looked: roots whose searches are looked at by part of the work
        Raises ValidationError.
        """
        session = self.session(name)
        searches = run_searches(
            session,
            self.source,
            self.roots,
            exact=True,
            check=len(self.roots),
            each=partial(map, session.search),
        )
        levels = [session.search(root).depth + 1 for root in self.roots.tolist()]
        description = session.describe()
        few = looked_at(session, self.roots[:looked].tolist()) if looked else []
        session.close()
        wrong = [f"root {x.root}: {x.error}" for x in searches if not x.valid]
        if wrong:
            raise ValidationError(f"{name}: {'; '.join(wrong[:3])}")
        seconds = [x.seconds for x in searches]
        edges = [x.nedge for x in searches]
        logs = [math.log(e / s) for e, s in zip(edges, seconds, strict=True)]
        return {
            "engine": description["engine"],
            "exchange": description["exchange"],
            "searches": len(seconds),
            "GTEPS": rate_statistics(edges, seconds)["harmonic_mean"] / 1e9,
            "geometric_mean_GTEPS": math.exp(statistics.mean(logs)) / 1e9,
            "median_ms": 1e3 * statistics.median(seconds),
            "levels": statistics.median(levels),
            "breakdown_ms": breakdown_ms(few),
        }
