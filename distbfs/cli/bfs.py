"""``distbfs bfs``: search a graph, of a store or a file, from given sources."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import Any, TextIO

import numpy as np

from distbfs.cli.bfs_results import (
    LevelTable,
    PathsAsked,
    check_ending,
    print_paths,
    separator_of,
    table_writer,
)
from distbfs.cli.graphs import SearchedGraph, open_graph
from distbfs.cli.measures import check_trace, print_energy, searches_energy, traced
from distbfs.cli.options.bfs import BfsOptions
from distbfs.cli.shared import (
    AT_ONCE,
    Terminal,
    make_request,
    open_terminal,
    stop_requests,
    stop_within,
    warn_of_rest,
    write_records,
)
from distbfs.cli.sources import NamedVertices
from distbfs.errors import SearchStopped
from distbfs.formats.ids import IdMap
from distbfs.options import SearchOptions
from distbfs.ranks.signals import StopFlag
from distbfs.ranks.watch import Watch
from distbfs.report.tables import print_table
from distbfs.search.open import prepare
from distbfs.search.result import Result
from distbfs.search.result_file import ENDINGS, ResultFile, SharedResult
from distbfs.search.session import Session
from distbfs.search.view import View
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
        writer = None
        if terminal.world.rank == 0:
            writer = stack.enter_context(table_writer(output, force=asked.force))
        kept.table = LevelTable(terminal.world, graph.ids, writer)
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


def print_result(values: dict[str, Any]) -> None:
    """Print the searches and, where it was asked for, their paths and energy."""
    print_searches(values["searches"])
    print_paths(values["searches"])
    if values.get("energy"):
        print_energy(values["energy"])


def run(asked: BfsOptions) -> None:
    """Run the command."""
    terminal = open_terminal(asked)
    world, output = terminal.world, asked.output
    check_trace(asked.trace)
    if output is not None:
        check_ending(output, *ENDINGS)
    request, options = make_request(asked), terminal.search_options(asked)
    with ExitStack() as stack:
        with stop_requests(AT_ONCE):
            opened = open_graph(terminal, stack, asked.graph, asked, options.threads)
        n, ids = opened.n, opened.ids
        named = NamedVertices(world, n, ids)
        sources = named.agreed_roots(asked.source, asked.sources, asked.source_set)
        view = named.agreed_view(opened.attributes, asked.where, asked.vertices)
        named.check_seen(view, sources)
        target = None
        if (word := asked.paths_to) is not None:
            target = named.agreed(lambda: named.find(word, "--paths-to", "target"))
        paths = PathsAsked(world, asked, target)
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
        log = terminal.open_records(stack, asked.records, append=bool(kept.done.any()))
        with stop.within(AT_ONCE):
            session = opening.open()
            session.see(view)
        terminal.say_engine(session)
        paths.check_session(session)
        if not kept.done.all() and output is not None and kept.table is None:
            kept.share(world, stack, n)
        with traced(terminal, asked.trace, session, ids):
            waiting = [(k, x) for k, x in enumerate(sources) if not kept.done[k]]
            rows = search_each(terminal, session, paths, waiting, kept, log, ids, stop)
        values = {"store": str(asked.graph), **session.describe(), "searches": rows}
        values["complete"] = bool(kept.done.all())
        if asked.energy and rows:
            again, edges = [x for _, x in waiting], [row["nedge"] for row in rows]
            values["energy"] = searches_energy(session, again, edges)
        session.close()
        kept.finish()
        resumes = output is not None and kept.table is None
        warn_of_rest(int(kept.done.sum()), len(sources), resumes=resumes)
        if not paths.on_stdout:
            terminal.result(values, lambda: print_result(values))


def search_each(
    terminal: Terminal,
    session: Session,
    paths: PathsAsked,
    waiting: Sequence[tuple[int, Root]],
    kept: Kept,
    log: TextIO | None,
    ids: IdMap | None,
    stop: StopFlag,
) -> list[dict[str, Any]]:
    """Search from each source and keep the result; return the figures (collective).

    waiting: row in what is kept, and source
    """
    rows: list[dict[str, Any]] = []
    within = stop_within(session, stop)
    progress = terminal.progress("searching", len(kept.done))
    with suppress(SearchStopped), progress as tick:
        for row, source in waiting:
            if stop.agreed(terminal.world):
                break
            outcome = session.search(
                source,
                records=paths.asked.records is not None,
                depth_limit=paths.asked.hops,
                stop=within,
            )
            rows.append({**figures(outcome, ids), **paths.of(outcome, ids)})
            write_records(log, start(outcome, ids), outcome.records)
            kept.write(row, outcome, paths.counted)
            tick(int(kept.done.sum()))
    return rows
