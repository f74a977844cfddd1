"""The runs of ``distbfs compare``: sessions, sources, searches in turns, limits."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from distbfs import registry
from distbfs.benchmark.compare_figures import (
    add_efficiency,
    add_limits,
    add_speedups,
    engine_figures,
)
from distbfs.benchmark.libraries.base import LibraryRows, library_session, rows_of
from distbfs.benchmark.limit import need_of
from distbfs.benchmark.roots import choose_roots, some_roots
from distbfs.cli.shared import Terminal, share_of_cores
from distbfs.device.rates import Rates, device_rates, host_rates
from distbfs.engines.base import PRUNED, TAIL_BYTES, on_device
from distbfs.errors import ValidationError
from distbfs.formats.ids import IdMap, name_of
from distbfs.options import SearchOptions
from distbfs.progress import Tell, unsaid, untold
from distbfs.search.choose import Request, make_host_engine
from distbfs.search.held import Held
from distbfs.search.open import open_source, prepare
from distbfs.search.result import bytes_of
from distbfs.search.session import Session
from distbfs.search.vertices import gather_on_first
from distbfs.store.hdf5 import Store
from distbfs.types import Array, Ids, Marks, slice_bounds

COUNTED = 4  # sources that are searched once more, with records, to count edge checks
ONE_DEVICE = Request(one_device=True)
TRIED = 8  # candidates whose component may be the largest


def checks_of(record: dict[str, Any]) -> int:
    """Return the edge checks of a level."""
    checks = record["checks"]
    return sum(checks.values()) if isinstance(checks, dict) else int(checks)


# of a level, by the name in the result: pruned are vertices found without being
# searched, repeats frontier entries that are there twice, which not all engines count,
# tail_bytes are read of columns in host memory
COUNTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "checks": checks_of,
    "pruned": lambda record: record.get(PRUNED, 0),
    "repeats": lambda record: record.get("repeats_missed"),
    "tail_bytes": lambda record: record.get(TAIL_BYTES, 0),
}


@dataclass
class Entry:
    """One engine of a comparison, and the times and counts of its searches.

    label: name on the command line; series: the label without a number of threads that
    --threads gave
    seconds: seconds of each search, [sources][repeats]
    counts: counts of the counted sources, by the names in COUNTS
    result_bytes: bytes of the results of one search
    library: name of another library, which gives no records
    session: what searches, once the graph is loaded
    """

    label: str
    options: SearchOptions
    series: str = ""
    threads: int | None = None
    library: str = ""
    session: Session = field(init=False)
    seconds: list[list[float]] = field(default_factory=list)
    counts: dict[str, list[int]] = field(
        default_factory=lambda: {name: [] for name in COUNTS}
    )
    result_bytes: int = 0

    @property
    def on_device(self) -> bool:
        """Whether the engine searches on a CUDA device."""
        return bool(self.session.held.devices)


def spread_threads(entries: Sequence[Entry], threads: Sequence[int]) -> list[Entry]:
    """Repeat the engines of the host for each number of threads.

    Engines of a device, and entries that state their threads, stay as they are.
    """
    spread = []
    for entry in entries:
        kind = registry.lookup(registry.ENGINES, "engine", entry.options.engine)
        if on_device(kind):
            spread.append(entry)
        elif len(threads) == 1 or entry.threads is not None:
            count = entry.options.threads
            spread.append(replace(entry, series=entry.label, threads=count))
        else:
            mark = "," if ":" in entry.label else ":"
            for count in threads:
                label = f"{entry.label}{mark}threads={count}"
                options = replace(entry.options, threads=count)
                spread.append(Entry(label, options, entry.label, count))
    return spread


class Sessions:
    """Opens the engines on one graph, which is held once on the host and the device."""

    def __init__(self, terminal: Terminal, store: Store) -> None:
        self._terminal = terminal
        self._held: list[Held] = []
        self._rows: LibraryRows | None = None
        self._source = terminal.source(store, share_of_cores(terminal.world))

    @property
    def directed(self) -> bool:
        """Whether edges of the graph lead one way."""
        return self._source.directed

    def check(self, options: SearchOptions) -> None:
        """Check the options before a graph is loaded (collective)."""
        opening = prepare(self._terminal.world, self._source, options, ONE_DEVICE)
        if opening.choice.place == "host":
            make_host_engine(opening.world, options, unsaid)

    def of_library(self, name: str) -> Session:
        """Return a session of another library, in one process."""
        if self._rows is None:
            tuples, directed = self._source.any_tuples(), self.directed
            self._rows = rows_of(tuples, directed=directed)
        return library_session(self._terminal.world, name, self._rows)

    def open(self, options: SearchOptions) -> Session:
        """Return a session that is ready to search (collective)."""
        session = open_source(
            self._terminal.world,
            self._source,
            options,
            ONE_DEVICE,
            say=self._terminal.say,
            held=self._held,
        )
        if not any(session.held is held for held in self._held):
            self._held.append(session.held)
        return session


def choose_sources(
    session: Session, count: int, seed: int, *, directed: bool = False
) -> Ids:
    """Return up to ``count`` vertices of the largest component, int64 (collective).

    Candidates are the roots that Graph500 would draw. The largest component is that of
    the first candidate that reaches more than half of all vertices, else the largest of
    TRIED components. In a directed graph, the vertices returned are candidates that
    reach at least half as many vertices as the best one.
    """
    n = session.layout.n
    drawn = choose_roots(n, 2 * count + TRIED, seed, session.connected)
    chosen = reaching_most(session, drawn) if directed else in_largest(session, drawn)
    return some_roots(drawn[chosen][:count])


def in_largest(session: Session, drawn: Ids) -> Marks:
    """Return which vertices are in the largest component, bool [k] (collective)."""
    world, n = session.world, session.layout.n
    first, stop = slice_bounds(n, world.size, world.rank)
    in_block = (drawn >= first) & (drawn < stop)
    largest, inside = 0, np.zeros(len(drawn), dtype=np.uint8)
    for root in drawn[:TRIED].tolist():
        outcome = session.search(root)
        if outcome.reached > largest:
            level, _ = outcome.to_numpy()
            largest, inside = outcome.reached, np.zeros(len(drawn), dtype=np.uint8)
            inside[in_block] = level[drawn[in_block] - first] >= 0
        if 2 * largest > n:
            break
    return world.allreduce(inside, "max").astype(np.bool_)


def reaching_most(session: Session, drawn: Ids) -> Marks:
    """Return which vertices reach half as many as the best, bool [k] (collective)."""
    reached = np.array([session.search(root).reached for root in drawn.tolist()])
    # mutant: 2 * reached -> reached : test_compare_of_a_directed_graph
    most: Marks = (reached > 1) & (2 * reached >= reached.max(initial=0))
    return most


def check_levels(
    expected: Array,
    level: Array,
    entries: Sequence[Entry],
    entry: Entry,
    source: int,
    ids: IdMap | None,
) -> None:
    """Raise ValidationError unless the levels equal the first engine's (collective).

    expected, level: this rank's blocks of both, int32; ids: the file's ids, on rank 0
    """
    world = entry.session.world
    differ = np.array([not np.array_equal(expected, level)], dtype=np.uint8)
    if not world.allreduce(differ, "max")[0]:
        return
    whole = [gather_on_first(world, levels) for levels in (expected, level)]
    text = ""
    if world.rank == 0:
        a, b = (np.asarray(levels) for levels in whole)
        vertex = int(np.flatnonzero(a != b)[0])
        root, name = (name_of(x, ids) for x in (source, vertex))
        text = (
            f"levels from source {root} differ: vertex {name} has {a[vertex]} by "
            f"{entries[0].label}, {b[vertex]} by {entry.label}"
        )
    raise ValidationError(world.broadcast(text))


def take_turns(
    entries: Sequence[Entry],
    sources: Ids,
    repeats: int,
    ids: IdMap | None = None,
    tick: Tell = untold,
) -> list[int]:
    """Search, engines taking turns; return the tuples traversed from each source.

    Their order is drawn anew for each turn, so that none always begins with the caches
    that the same other one has filled.  Levels of all searches are compared.
    Collective.
    """
    nedge: list[int] = []
    drawn = np.random.default_rng(1)  # the same on all ranks
    for entry in entries:
        entry.session.search(int(sources[0]))
    for index, source in enumerate(sources.tolist()):
        for entry in entries:
            entry.seconds.append([])
        for _ in range(repeats):
            levels: dict[str, Array] = {}
            for place in drawn.permutation(len(entries)):
                entry = entries[place]
                outcome = entry.session.search(source)
                entry.seconds[-1].append(outcome.seconds)
                levels[entry.label] = outcome.to_numpy()[0]
                if entry is entries[0]:
                    reached = outcome.nedge
            expected = levels[entries[0].label]
            for entry in entries[1:]:
                check_levels(expected, levels[entry.label], entries, entry, source, ids)
        nedge.append(reached)
        tick(index + 1)
    return nedge


def count_checks(entries: Sequence[Entry], sources: Ids) -> list[int]:
    """Search from some sources with records; return how many vertices each reaches."""
    reached = []
    for source in sources[:COUNTED].tolist():
        for entry in entries:
            outcome = entry.session.search(source, records=True)
            for name, count in COUNTS.items():
                counts = [count(record) for record in outcome.records]
                known = [x for x in counts if x is not None]
                if known or not counts:
                    entry.counts[name].append(sum(known))
            entry.result_bytes = bytes_of(outcome)
            if entry is entries[0]:
                reached.append(outcome.reached)
    return reached


def measure_rates(entries: Sequence[Entry], bits: int) -> dict[str, Rates]:
    """Return the rates of each device that an engine runs on, by "cuda" and "cpu"."""
    rates: dict[str, Rates] = {}
    for entry in entries:
        if entry.on_device and "cuda" not in rates:
            link = any(sum(x.counts["tail_bytes"]) for x in entries)
            rates["cuda"] = device_rates(bits, link=link)
        elif not entry.on_device and "cpu" not in rates:
            rates["cpu"] = host_rates(bits, entry.options.threads)
    return rates


def limits_of(
    entries: Sequence[Entry], rates: dict[str, Rates], m: int, reached: Sequence[int]
) -> dict[str, list[float]]:
    """Return the least possible seconds from each counted source, by engine.

    The edge checks of the engine that made the fewest count.
    """
    limits: dict[str, list[float]] = {}
    fewest = [min(x) for x in zip(*(x.counts["checks"] for x in entries), strict=True)]
    for entry in entries:
        where = "cuda" if entry.on_device else "cpu"
        limits[entry.label] = [
            need_of(
                m=m,
                checks=checks,
                reached=count,
                result_bytes=entry.result_bytes,
                pruned=pruned,
                link=link,
            ).seconds(rates[where])
            for checks, count, pruned, link in zip(
                fewest,
                reached,
                entry.counts["pruned"],
                entry.counts["tail_bytes"],
                strict=True,
            )
        ]
    return limits


def compare(
    terminal: Terminal,
    entries: Sequence[Entry],
    sources: Ids,
    repeats: int,
    baseline: str,
    ids: IdMap | None = None,
) -> dict[str, Any]:
    """Run a comparison; return its figures (collective).

    ids: ids of the vertices in the file of the graph, on rank 0
    """
    with terminal.progress("comparing", len(sources)) as tick:
        nedge = take_turns(entries, sources, repeats, ids, tick)
    ours = [entry for entry in entries if not entry.library]
    reached = count_checks(ours, sources)
    rows = []
    for entry in entries:
        figures = engine_figures(entry.seconds, nedge)
        for name, counts in entry.counts.items():
            figures[name] = statistics.mean(counts) if counts else None
        figures["result_bytes"] = entry.result_bytes
        about: dict[str, Any] = {"engine": entry.label}
        about |= {"series": entry.series or entry.label, "threads": entry.threads}
        about["search"] = entry.session.describe()
        rows.append({**about, **figures})
    add_speedups(rows, baseline)
    add_efficiency(rows)
    rates: dict[str, Rates] = {}
    limits: dict[str, list[float]] = {}
    if terminal.world.size == 1:
        rates = measure_rates(ours, max(reached))
        limits = limits_of(ours, rates, entries[0].session.edges, reached)
    add_limits(rows, limits)
    return {
        "sources": [name_of(x, ids) for x in sources.tolist()],
        "nedge": nedge,
        "repeats": repeats,
        "baseline": baseline,
        "counted_sources": len(reached),
        "reached": reached,
        "rates": {name: rate.as_dict() for name, rate in rates.items()},
        "engines": rows,
    }
