"""``distbfs sweep``: the best settings for a graph."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from distbfs.benchmark.sweep import names_of, sweep_knobs
from distbfs.cli.compare import built_sources
from distbfs.cli.comparison import Entry, Sessions, choose_sources, take_turns
from distbfs.cli.options.sweep import SweepOptions
from distbfs.cli.shared import need_symmetric, open_terminal, share_of_cores
from distbfs.device import cuda
from distbfs.engines.cuda.papers.bfs4k.knobs import auto_knobs, degrees_of
from distbfs.errors import UsageError
from distbfs.graph.device_graph import DeviceGraph
from distbfs.options import Knobs, SearchOptions
from distbfs.report.provenance import provenance
from distbfs.report.tables import print_fields, print_table, shown
from distbfs.search.session import Session
from distbfs.store.hdf5 import open_store
from distbfs.types import Ids

ENGINE = "bfs4k"
ROUNDS = 3  # of a trial; the median counts


class Trials:
    """Times two settings in turns on one graph; levels must be the same."""

    def __init__(self, sessions: Sessions, roots: Ids) -> None:
        self._sessions, self._roots = sessions, roots
        self._entries: dict[Knobs, Entry] = {}

    def _entry(self, knobs: Knobs) -> Entry:
        """Return the entry of knobs; sessions of the best and one trial are kept."""
        entry = self._entries.pop(knobs, None)
        if entry is None:
            while len(self._entries) > 1:
                del self._entries[next(iter(self._entries))]
            cuda.release()
            options = SearchOptions(engine=ENGINE, own=(("knobs", knobs),))
            entry = Entry("", options, session=self._sessions.open(options))
        self._entries[knobs] = entry  # the last that was used
        return entry

    def measure(self, best: Knobs, tried: Knobs) -> tuple[float, float]:
        """Return the median seconds over sources of both, which take turns."""
        pair = [
            replace(self._entry(knobs), label=f"{place} {knobs.as_dict()}", seconds=[])
            for place, knobs in (("knobs", best), ("tried", tried))
        ]
        take_turns(pair, self._roots, ROUNDS)
        medians = (statistics.median(map(statistics.median, x.seconds)) for x in pair)
        return next(medians), next(medians)


def run(asked: SweepOptions) -> None:
    """Run the command."""
    terminal, store = open_terminal(asked), asked.store
    names, seconds = names_of(asked.knobs), asked.seconds
    if terminal.world.size > 1:
        raise UsageError("sweep runs in one process; leave out mpirun")
    threads = share_of_cores(terminal.world)
    built = built_sources(asked, threads, terminal.progress)
    if (store is not None) + len(built) != 1:
        raise UsageError("give one of STORE, --kronecker, --uniform and --road")
    if store is not None:
        opened = open_store(store)
        need_symmetric(opened, "sweep")
    sessions = Sessions(terminal, opened if store is not None else built[0])
    options = SearchOptions(engine=ENGINE)
    sessions.check(options)
    with ExitStack() as stack:
        session = sessions.open(options)
        stack.callback(session.close)
        roots = choose_sources(session, asked.sources, asked.seed)
        degrees = degrees_of(graph_of(session))
        start = auto_knobs(degrees)
        trials = Trials(sessions, roots)
        began = time.perf_counter()
        until = began + seconds
        with terminal.progress("trying knobs", max(int(seconds), 1)) as tell:

            def going() -> bool:
                now = time.perf_counter()
                tell(int(now - began))
                return now < until

            best, tried = sweep_knobs(start, names, trials.measure, going)
        before, after = trials.measure(start, best)
    values = provenance(["distbfs", *sys.argv[1:]], device=True) | {
        "degrees": degrees.as_dict(),
        "auto": start.as_dict(),
        "best": best.as_dict(),
        "auto_seconds": before,
        "best_seconds": after,
        "trials": [vars(trial) for trial in tried],
        "complete": time.perf_counter() < until,
    }
    terminal.result(values, lambda: print_sweep(values, best))


def graph_of(session: Session) -> DeviceGraph:
    """Return the graph on the device of a session."""
    if session.held.graph is None:
        raise UsageError("sweep needs a graph on one device")
    return session.held.graph


def print_sweep(values: Mapping[str, Any], best: Knobs) -> None:
    """Print the trials and the best knobs."""
    rows = [
        [
            trial["knob"],
            str(trial["value"]),
            trial["seconds"] * 1e3,
            trial["best_seconds"] * 1e3,
        ]
        for trial in values["trials"]
    ]
    print_table(("knob", "value", "ms", "best so far ms"), rows)
    knobs = best.as_dict().items()
    texts = [f"{k}={shown(v) if isinstance(v, bool) else v}" for k, v in knobs]
    print_fields(
        {
            "automatic ms": values["auto_seconds"] * 1e3,
            "best ms": values["best_seconds"] * 1e3,
            "--knobs": ",".join(texts),
        }
    )
