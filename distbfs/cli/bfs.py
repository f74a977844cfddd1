"""``distbfs bfs``: search a graph, of a store or a file, from given sources."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from distbfs.cli.options.bfs import BfsOptions
from distbfs.cli.shortest_paths import PathsAsked, print_paths
from distbfs.errors import SearchStopped
from distbfs.formats.ids import IdMap
from distbfs.options import SearchOptions
from distbfs.ranks.watch import Watch
from distbfs.report.tables import print_table
from distbfs.search.open import prepare
from distbfs.search.result import Result
from distbfs.search.result_file import ENDINGS, ResultFile, SharedResult
from distbfs.search.session import Session
from distbfs.search.view import View
from distbfs.terminal.energy import print_energy, searches_energy
from distbfs.terminal.graph_file import SearchedGraph, open_graph
from distbfs.terminal.level_table import (
    LevelTable,
    check_ending,
    level_table,
    separator_of,
)
from distbfs.terminal.seen import agreed_view, check_seen
from distbfs.terminal.shared import (
    AT_ONCE,
    LOG,
    Terminal,
    make_request,
    make_search_options,
    open_records,
    open_terminal,
    stop_requests,
    stop_within,
)
from distbfs.terminal.sources import agreed_roots, agreed_target
from distbfs.terminal.trace_file import check_trace, finish_trace, start_trace
from distbfs.types import Array, Root, World


def start(result: Result, ids: IdMap | None) -> dict[str, Any]:
    """Return where a search began, as the file calls it: a vertex, or several."""
    names = result.roots.tolist() if ids is None else ids.names(result.roots)
    return {"source": names[0]} if len(names) == 1 else {"sources": [*names]}


def figures(result: Result, ids: IdMap | None) -> dict[str, Any]:
    """Return the reported figures of a search (collective)."""
    wall = {} if result.wall_seconds is None else {"wall_seconds": result.wall_seconds}
    return {
        **start(result, ids),
        "reached": result.reached,
        "depth": result.depth,
        "nedge": result.nedge,
        "seconds": result.seconds,
        **wall,
        "TEPS": result.nedge / result.seconds,
    }


def write_records(file: TextIO | None, result: Result, ids: IdMap | None) -> None:
    """Append the level records of a search as JSON lines."""
    if file is None:
        return
    for record in result.records:
        file.write(json.dumps({**start(result, ids), **record}) + "\n")
    file.flush()


@dataclass
class Kept:
    """Where results are kept: in an HDF5 file, in a table, or nowhere.

    done: which searches are kept already, bool [k]
    result: the HDF5 file, of rank 0; shared: what all ranks write it by
    """

    done: Array
    result: ResultFile | None = None
    shared: SharedResult | None = None
    table: LevelTable | None = None

    def share(self, world: World, stack: ExitStack, n: int) -> None:
        """Let all ranks write what is left of the HDF5 file (collective)."""
        row = int(np.argmin(self.done))
        self.shared = stack.enter_context(SharedResult(world, self.result, n, row))

    def write(self, row: int, result: Result, paths: Array | None) -> None:
        """Keep a search (collective); paths: counted at this rank's vertices."""
        if self.shared is not None:
            self.shared.write(row, *result.to_numpy(), paths)
        if self.table is not None:
            self.table.write(result, paths)
        self.done[row] = True

    def finish(self) -> None:
        """Give the HDF5 file its name where all searches are in it."""
        if self.done.all() and self.result is not None:
            self.result.finish()


def open_kept(
    terminal: Terminal,
    stack: ExitStack,
    asked: BfsOptions,
    graph: SearchedGraph,
    sources: Sequence[Root],
    options: SearchOptions,
    view: View,
) -> Kept:
    """Open what an output names (collective)."""
    kept, output = Kept(np.zeros(len(sources), dtype=bool)), asked.output
    if output is None:
        return kept
    if separator_of(output):
        table = level_table(terminal.world, output, graph.ids, force=asked.force)
        kept.table = stack.enter_context(table)
        return kept
    if terminal.world.rank == 0:
        limit = [] if asked.hops is None else [f"{asked.hops} hops"]
        identity = json.dumps([*graph.facts, *limit, *view.facts()])
        kept.result = ResultFile(
            output,
            sources,
            graph.n,
            identity,
            levels=options.levels,
            parents=options.parents,
            ids=graph.ids,
            paths=asked.counts or "",
        )
        stack.enter_context(kept.result)
        kept.done = kept.result.open(force=asked.force)
    kept.done = np.array(terminal.world.broadcast(kept.done.tolist()), dtype=bool)
    if kept.done.any():
        count = f"{kept.done.sum()} of {len(kept.done)}"
        terminal.say(f"{output}: going on after {count} searches")
    return kept


def print_searches(rows: Sequence[dict[str, Any]]) -> None:
    """Print one line for each search."""
    names = ("reached", "depth", "nedge", "seconds")
    cells = [
        [begun(row), *(row[name] for name in names), row["TEPS"] / 1e9] for row in rows
    ]
    if cells:
        print_table(("source", *names, "GTEPS"), cells)


def begun(row: dict[str, Any]) -> Any:
    """Return the source of a search as tables show it."""
    return row["source"] if "source" in row else f"{len(row['sources'])} vertices"


def energy_of(
    session: Session, sources: Sequence[Root], rows: Sequence[dict[str, Any]]
) -> dict[str, Any] | None:
    """Return the energy of the searches of rows, by making them again; None of none."""
    if not rows:
        return None
    made = sources[: len(rows)]
    return searches_energy(session, made, sum(x["nedge"] for x in rows))


def warn_of_rest(done: Array, output: Path | None) -> None:
    """Say on the log where searches, done bool [k], were stopped on request."""
    if not done.all():
        resumes = output is not None and not separator_of(output)
        LOG.warning(
            "stopped on request after %d of %d searches%s",
            done.sum(),
            len(done),
            "; the same command goes on" if resumes else "",
        )


def print_result(
    terminal: Terminal, values: dict[str, Any], energy: dict[str, Any] | None
) -> None:
    """Print the searches and, where it was asked for, their paths and energy."""
    rows = values["searches"]

    def text() -> None:
        print_searches(rows)
        print_paths(rows)
        if energy is not None:
            print_energy(energy)

    terminal.result(values if energy is None else {**values, "energy": energy}, text)


def run(asked: BfsOptions) -> None:
    """Run the command."""
    terminal = open_terminal(asked)
    world, output = terminal.world, asked.output
    check_trace(asked.trace)
    if output is not None:
        check_ending(output, *ENDINGS)
    request, options = make_request(asked), make_search_options(world, asked)
    with ExitStack() as stack:
        with stop_requests(AT_ONCE):
            opened = open_graph(terminal, stack, asked.graph, asked, options.threads)
        n, ids = opened.n, opened.ids
        sources = agreed_roots(
            world, n, asked.source, asked.sources, asked.source_set, ids
        )
        view = agreed_view(world, opened, asked.where, asked.vertices)
        check_seen(world, view, sources, ids)
        paths = PathsAsked(world, asked, agreed_target(world, n, asked.paths_to, ids))
        paths.check(len(sources), masked=not view.whole, levels=options.levels)
        opening = prepare(
            world,
            opened.source,
            options,
            replace(request, masked=not view.whole),
            say=terminal.say,
        )
        stop = stack.enter_context(stop_requests())
        stack.enter_context(Watch(world, asked.patience, lambda: stop.requested))
        kept = open_kept(terminal, stack, asked, opened, sources, options, view)
        waiting = np.flatnonzero(~kept.done)
        log = open_records(terminal, stack, asked.records, append=bool(kept.done.any()))
        with stop.within(AT_ONCE):
            session = opening.open()
            session.see(view)
        terminal.say_engine(session)
        paths.check_session(session)
        trace = start_trace(asked.trace, session)
        rows: list[dict[str, Any]] = []
        if len(waiting) and output is not None and kept.table is None:
            kept.share(world, stack, n)
        within = stop_within(session, stop)
        progress = terminal.progress("searching", len(sources))
        with suppress(SearchStopped), progress as tick:
            for row in waiting.tolist():
                if stop.agreed(world):
                    break
                outcome = session.search(
                    sources[row],
                    records=asked.records is not None,
                    depth_limit=asked.hops,
                    stop=within,
                )
                rows.append({**figures(outcome, ids), **paths.of(outcome, ids)})
                write_records(log, outcome, ids)
                kept.write(row, outcome, paths.counted)
                tick(int(kept.done.sum()))
        finish_trace(terminal, asked.trace, trace, ids)
        again = [sources[row] for row in waiting.tolist()]
        energy = energy_of(session, again, rows) if asked.energy else None
        session.close()
        kept.finish()
        warn_of_rest(kept.done, output)
        if not paths.on_stdout:
            print_result(
                terminal,
                {
                    "store": str(asked.graph),
                    **session.describe(),
                    "searches": rows,
                    "complete": bool(kept.done.all()),
                },
                energy,
            )
