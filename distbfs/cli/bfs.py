"""``distbfs bfs``: search a graph in a store or a file from given sources."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO

import click
import numpy as np

from distbfs.cli.graphs import SearchedGraph, open_graph
from distbfs.cli.measures import searches_energy, traced
from distbfs.cli.options.bfs import BfsOptions
from distbfs.cli.shared import (
    AT_ONCE,
    Terminal,
    make_request,
    open_terminal,
    searched,
    stop_requests,
    warn_of_rest,
    write_records,
)
from distbfs.cli.sources import NamedVertices
from distbfs.device.arrays import host_array
from distbfs.errors import UsageError, legible
from distbfs.formats.ids import IdMap, name_of
from distbfs.options import SearchOptions
from distbfs.ranks.signals import StopFlag
from distbfs.ranks.watch import Watch
from distbfs.ranks.world import Ranks
from distbfs.report.energy import energy_lines
from distbfs.report.tables import counted, print_table
from distbfs.search.result import Result
from distbfs.search.result_file import ENDINGS, ResultFile, write_blocks
from distbfs.search.result_table import (
    TABLES,
    TakeColumns,
    add_vertices,
    check_ending,
    is_table,
    table_at,
)
from distbfs.search.session import Session
from distbfs.search.vertices import gather_on_first
from distbfs.search.view import View
from distbfs.types import Array, Root

EDGE_COLUMNS = ("u", "v", "level_u", "level_v")
FEW_VERTICES = 16  # of a graph whose distances are shown
FEW_LEVELS = 12  # that a line shows


@dataclass
class PathsAsked:
    """The options of ``bfs`` about shortest paths, and their results (collective).

    target: the vertex to which paths are listed
    counted: number of shortest paths to each vertex of this rank's block, last search
    """

    world: Ranks
    asked: BfsOptions
    target: int | None
    counted: Array | None = None

    @property
    def wanted(self) -> bool:
        """Whether any option about shortest paths is set."""
        return any(
            x is not None for x in (self.asked.counts, self.target, self.asked.edges)
        )

    def check(self, sources: int, *, masked: bool, levels: bool) -> None:
        """Raise UsageError for options that do not go together.

        masked: whether searches see only a part of the graph
        levels: whether searches give levels
        """
        asked, why = self.asked, ""
        if not levels:
            why = "levels; leave out --no-levels"
        elif masked:
            why = "all vertices and edges; leave out --where and --vertices"
        if self.wanted and why:
            raise UsageError(f"--counts, --paths-to and --edges need {why}")
        if asked.energy and asked.depth_limit is not None:
            raise UsageError("--energy takes whole searches; leave out --depth-limit")
        if asked.edges is None:
            return
        check_ending(asked.edges, TABLES, force=asked.force)
        if sources != 1:
            raise UsageError(f"--edges goes with one source, not {sources}")
        if asked.output is not None:
            raise UsageError("--edges goes without --output; run the search twice")

    def check_session(self, session: Session) -> None:
        """Raise UsageError if the session cannot answer the options."""
        if self.wanted and session.paths.refusal:
            raise UsageError(session.paths.refusal)

    def of(self, result: Result, ids: IdMap | None) -> dict[str, Any]:
        """Return the reported paths of a search; write its edges."""
        values: dict[str, Any] = {}
        if self.asked.counts is not None:
            self.counted = host_array(result.path_counts(self.asked.counts))
            largest = np.array([self.counted.max(initial=0)], dtype=self.asked.counts)
            values["largest_count"] = self.world.allreduce(largest, "max")[0].item()
        if self.target is not None:
            values["paths_to"] = self._paths(result, self.target, ids)
        if self.asked.edges is not None:
            values["edges"] = self._write(self.asked.edges, result, ids)
        return values

    def _paths(self, result: Result, target: int, ids: IdMap | None) -> dict[str, Any]:
        """Return the number of shortest paths to a vertex, and some of them."""
        distance = int(result.at(np.array([target]))[0][0])
        count, paths = 0, []
        if distance >= 0:
            count = result.path_count_to(target)
            paths = list(result.all_paths_to(target, self.asked.most_paths))
        if self.world.rank == 0:
            paths = [[name_of(v, ids) for v in path] for path in paths]
        name = name_of(target, ids)
        return {"target": name, "distance": distance, "count": count, "paths": paths}

    def _write(self, place: Path, result: Result, ids: IdMap | None) -> int:
        """Write the edges between reached vertices on rank 0; return their number."""
        columns = result.edges_within().columns().values()
        parts = [gather_on_first(self.world, column) for column in columns]
        whole = [column for column in parts if column is not None]
        if self.world.rank == 0:
            u, v, above, _ = whole
            order = np.lexsort((v, u, above))
            rows = [column[order] for column in whole]
            if ids is not None:
                rows[:2] = [np.array(ids.names(x), dtype=object) for x in rows[:2]]
            with table_at(place, force=self.asked.force) as add:
                add(dict(zip(EDGE_COLUMNS, rows, strict=True)))
        return int(self.world.broadcast(len(whole[0])))


def print_paths(rows: Sequence[dict[str, Any]]) -> None:
    """Print the shortest paths of searches, if requested."""
    if rows and "largest_count" in rows[0]:
        cells = [[row["source"], row["largest_count"]] for row in rows]
        print_table(("source", "shortest paths to one vertex, at most"), cells)
    for row in rows:
        if "paths_to" not in row:
            continue
        of = row["paths_to"]
        pair = f"from {row['source']} to {of['target']}"
        if of["distance"] < 0:
            click.echo(legible(f"no path {pair}", None))
            continue
        paths = counted(of["count"], "shortest path")
        click.echo(legible(f"{paths} {pair}, length {of['distance']}", None))
        for path in of["paths"]:
            click.echo(legible("  " + " ".join(map(str, path)), None))


def start(result: Result, ids: IdMap | None) -> dict[str, Any]:
    """Return the source or sources of a search, by the ids of the file."""
    names = result.roots.tolist() if ids is None else ids.names(result.roots)
    return {"source": names[0]} if len(names) == 1 else {"sources": [*names]}


def figures(session: Session, result: Result, ids: IdMap | None) -> dict[str, Any]:
    """Return the reported figures of a search (collective)."""
    wall = {} if result.wall_seconds is None else {"wall_seconds": result.wall_seconds}
    reach = levels_of(session, result, ids) if result.has_levels else {}
    return {
        **start(result, ids),
        "reached": result.reached,
        "depth": result.depth,
        **reach,
        "nedge": result.nedge,
        "seconds": result.seconds,
        **wall,
        "TEPS": result.nedge / result.seconds,
    }


def levels_of(session: Session, result: Result, ids: IdMap | None) -> dict[str, Any]:
    """Return the number of vertices on each level (collective).

    For a small graph, also log the level of each vertex, on rank 0.
    """
    values: dict[str, Any] = {"levels": result.level_counts().tolist()}
    if session.n > FEW_VERTICES:
        return values
    level = gather_on_first(session.world, result.to_numpy()[0])
    if level is not None and len(level):
        order = np.argsort(level, kind="stable")
        order = order[level[order] >= 0]
        names = order.tolist() if ids is None else ids.names(order)
        values["distances"] = dict(zip(names, level[order].tolist(), strict=True))
    return values


@dataclass
class Kept:
    """The place of results: an HDF5 file, a table, or none.

    A table has a line for each vertex of a search, in the ids of the file: ``source``,
    the smallest if there are several, ``vertex``, and what was asked for of ``level``,
    ``parent`` and ``paths``.  Level and parent of an unreached vertex are -1; if ids
    are text, its parent is empty.

    done: whether each search is kept already, bool [k]
    resumes: whether it is an HDF5 file; result: this file, on rank 0
    table: whether it is a table; add: adds rows to it, on rank 0
    """

    done: Array
    ids: IdMap | None
    resumes: bool = False
    result: ResultFile | None = None
    table: bool = False
    add: TakeColumns | None = None

    def write(
        self, session: Session, row: int, result: Result, paths: Array | None
    ) -> None:
        """Keep a search (collective); paths: counts at this rank's vertices."""
        if self.resumes or self.table:
            level, parent = result.to_numpy()
            blocks = {"level": level, "parent": parent, "paths": paths}
        if self.resumes:
            write_blocks(session.world, self.result, row, session.n, **blocks)
        if self.table:
            whole = {k: gather_on_first(session.world, x) for k, x in blocks.items()}
            columns = {k: x for k, x in whole.items() if x is not None}
            if self.add is not None:
                source = name_of(int(result.roots.min()), self.ids)
                add_vertices(self.add, columns, self.ids, source=source)
        self.done[row] = True

    def finish(self) -> None:
        """Give the HDF5 file its final name once all searches are in it."""
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
    """Open the output for results (collective)."""
    kept = Kept(np.zeros(len(sources), dtype=bool), graph.ids)
    output = asked.output
    if output is None:
        return kept
    if is_table(output):
        kept.table = True
        if terminal.world.rank == 0:
            kept.add = stack.enter_context(table_at(output, force=asked.force))
        return kept
    kept.resumes = True
    if terminal.world.rank == 0:
        limit = [] if asked.depth_limit is None else [f"{asked.depth_limit} hops"]
        identity = json.dumps([*graph.facts, *limit, *view.facts()])
        kept.result = ResultFile(
            output,
            sources,
            graph.source.n,
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
        terminal.say(f"{output}: continuing after {count} searches")
    return kept


def print_searches(rows: Sequence[dict[str, Any]], *, verbose: bool) -> None:
    """Print one line for each search; for one search of a small graph, the distances.

    verbose: whether to print the figures of benchmarks
    """
    if not rows:
        return
    names = ["reached", "depth", *(("nedge", "seconds") if verbose else ())]
    columns, cells = ["source", *names], []
    for row in rows:
        cells.append([begun(row), *(row[name] for name in names)])
        if verbose:
            cells[-1].append(row["TEPS"] / 1e9)
        if counts := row.get("levels"):
            more = ["…"] if len(counts) > FEW_LEVELS else []
            cells[-1].append([*counts[:FEW_LEVELS], *more])
    columns += ["GTEPS"] * verbose + ["vertices by level"] * ("levels" in rows[0])
    print_table(columns, cells)
    if len(rows) == 1 and (levels := rows[0].get("distances")):
        print_table(("vertex", "level"), [*levels.items()])


def begun(row: dict[str, Any]) -> Any:
    """Return the source of a search as tables show it."""
    return row["source"] if "source" in row else f"{len(row['sources'])} vertices"


def print_result(values: dict[str, Any], *, verbose: bool) -> None:
    """Print the searches and, if requested, their paths and energy."""
    print_searches(values["searches"], verbose=verbose)
    print_paths(values["searches"])
    if values.get("energy"):
        click.echo("\n".join(energy_lines(values["energy"])))


def run(asked: BfsOptions) -> None:
    """Run the command."""
    terminal = open_terminal(asked)
    world, output = terminal.world, asked.output
    place = terminal.stdout_place(output, asked.edges, asked.records, asked.trace)
    if output is not None:
        check_ending(output, (*ENDINGS, *TABLES))
    options = terminal.search_options(asked)
    with ExitStack() as stack:
        with stop_requests(AT_ONCE):
            opened = open_graph(terminal, stack, asked.graph, asked, options.threads)
        ids = opened.ids
        named = NamedVertices(world, opened.source.n, ids)
        sources = named.agreed_roots(asked.source, asked.sources, asked.source_set)
        view = named.agreed_view(opened.attributes, asked.where, asked.vertices)
        named.check_seen(view, sources)
        paths = PathsAsked(world, asked, named.agreed_target(asked.paths_to))
        paths.check(len(sources), masked=not view.whole, levels=options.levels)
        request = replace(make_request(asked), masked=not view.whole)
        opening = terminal.prepare(opened.source, options, request)
        stop = stack.enter_context(stop_requests())
        stack.enter_context(Watch(world, asked.patience, lambda: stop.requested))
        kept = open_kept(terminal, stack, asked, opened, sources, options, view)
        log = terminal.open_records(stack, asked.records, append=bool(kept.done.any()))
        with stop.within(AT_ONCE):
            session = opening.open()
            session.see(view)
        terminal.say_engine(session)
        paths.check_session(session)
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
        warn_of_rest(int(kept.done.sum()), len(sources), resumes=kept.resumes)
        verbose = asked.verbose
        terminal.result(values, lambda: print_result(values, verbose=verbose), place)


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

    waiting: the row in the output and the source of each search still to be made
    """
    rows: list[dict[str, Any]] = []
    outcomes = searched(
        session,
        [source for _, source in waiting],
        stop,
        records=paths.asked.records is not None,
        depth_limit=paths.asked.depth_limit,
    )
    with terminal.progress("searching", len(kept.done)) as tick:
        for (row, _), outcome in zip(waiting, outcomes, strict=False):
            reported = figures(session, outcome, ids)
            rows.append({**reported, **paths.of(outcome, ids)})
            write_records(log, start(outcome, ids), outcome.records)
            kept.write(session, row, outcome, paths.counted)
            tick(int(kept.done.sum()))
    return rows
