"""What ``distbfs bfs`` writes and answers: levels in tables, shortest paths."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import click
import numpy as np

from distbfs.cli.options.bfs import BfsOptions
from distbfs.device.arrays import host_array
from distbfs.errors import UsageError, legible
from distbfs.formats.compressed import plain_name
from distbfs.formats.ids import IdMap, name_of
from distbfs.formats.writing import check_place, placed, text_file
from distbfs.ranks.world import Ranks
from distbfs.report.tables import counted, print_table
from distbfs.search.result import Result
from distbfs.search.session import Session
from distbfs.search.vertices import gather_on_first
from distbfs.types import Array, Ids

DASH = Path("-")
SEPARATORS = {".csv": ",", ".tsv": "\t"}
LINES_AT_ONCE = 1 << 16


def separator_of(path: Path | None) -> str | None:
    """Return the separator of a table's columns, None where a path names no table."""
    if path == DASH:
        return ","
    return None if path is None else SEPARATORS.get(Path(plain_name(path)).suffix)


def check_ending(path: Path, *others: str) -> None:
    """Raise UsageError for a place, or a name not of a table nor ending as others."""
    if path != DASH:
        check_place(path)
    if not separator_of(path) and path.suffix.lower() not in others:
        allowed = ", ".join([*others, *SEPARATORS])
        raise UsageError(
            f"{path}: the ending '{path.suffix}' names no format of results; allowed: "
            f"{allowed}, the last two also compressed, or - for CSV on stdout"
        )


@contextmanager
def table_writer(path: Path, *, force: bool) -> Iterator[Any]:
    """Yield a writer of csv for a file, or for stdout where its path is ``-``.

    The file is there at the end only, and not where an error ends what is inside.
    Raises UsageError where it may not be written.
    """
    form: dict[str, Any] = {
        "delimiter": separator_of(path) or ",",
        "lineterminator": "\n",
    }
    if path == DASH:
        yield csv.writer(sys.stdout, **form)
        return
    with placed(path, force=force) as at, text_file(at) as raw:
        text = TextIOWrapper(raw, encoding="utf-8", newline="")
        yield csv.writer(text, **form)
        text.flush()
        text.detach()


class LevelTable:
    """Writes a line for each vertex of a search on rank 0; no writer on others.

    Columns are ``source``, ``vertex``, ``level`` and ``parent``, in the ids of the
    file.  ``level`` or ``parent`` is left out where it was not asked for; ``paths``
    follows where they were counted.  Level and parent of a vertex that was not reached
    are -1; where ids are text, the parent is empty.  ``source`` is the smallest where a
    search has several.
    """

    def __init__(self, world: Ranks, ids: IdMap | None, writer: Any) -> None:
        self._world, self._ids = world, ids
        self._writer = writer
        self._head = False

    def write(self, result: Result, paths: Array | None) -> None:
        """Add the lines of a search (collective); paths: of this rank's vertices."""
        level, parent = result.to_numpy()
        columns = {"level": level, "parent": parent, "paths": paths}
        whole: dict[str, Array] = {}
        for name, column in columns.items():
            gathered = gather_on_first(self._world, column)
            if gathered is not None:
                whole[name] = gathered
        if self._writer is None:
            return
        if not self._head:
            self._writer.writerow(("source", "vertex", *whole))
            self._head = True
        source = name_of(int(result.roots.min()), self._ids)
        length = len(next(iter(whole.values())))
        for first in range(0, length, LINES_AT_ONCE):
            some = {k: x[first : first + LINES_AT_ONCE] for k, x in whole.items()}
            count = min(LINES_AT_ONCE, length - first)
            vertices = np.arange(first, first + count, dtype=np.int64)
            cells = {k: x.tolist() for k, x in some.items()}
            if parent is not None:
                cells["parent"] = self._parents(some["parent"])
            names = self._names(vertices)
            rows = zip([source] * count, names, *cells.values(), strict=True)
            self._writer.writerows(rows)

    def _names(self, vertices: Ids) -> list[Any]:
        return vertices.tolist() if self._ids is None else self._ids.names(vertices)

    def _parents(self, parents: Ids) -> list[Any]:
        if self._ids is None:
            return parents.tolist()
        none: int | str = -1 if self._ids.kind == "integer" else ""
        names = self._names(np.maximum(parents, 0))
        pairs = zip(parents.tolist(), names, strict=True)
        return [none if parent < 0 else name for parent, name in pairs]


@dataclass
class PathsAsked:
    """What ``bfs`` asks for of shortest paths, and gives (collective).

    target: what paths are asked to
    counted: numbers of shortest paths of this rank's block in the last search
    """

    world: Ranks
    asked: BfsOptions
    target: int | None
    counted: Array | None = None

    @property
    def on_stdout(self) -> bool:
        """Whether edges, or a table of levels, are all that is printed."""
        return DASH in {self.asked.edges, self.asked.output}

    @property
    def wanted(self) -> bool:
        """Whether anything of shortest paths is asked for."""
        return any(
            x is not None for x in (self.asked.counts, self.target, self.asked.edges)
        )

    def check(self, sources: int, *, masked: bool, levels: bool) -> None:
        """Raise UsageError for options that do not go together.

        masked: whether searches see a part of the graph only; levels: whether they give
        levels
        """
        asked = self.asked
        if self.wanted and not levels:
            raise UsageError(
                "--counts, --paths-to and --edges need levels; leave --no-levels out"
            )
        if masked and self.wanted:
            raise UsageError(
                "--counts, --paths-to and --edges are of all vertices and edges; leave "
                "--where and --vertices out"
            )
        if asked.energy and asked.hops is not None:
            raise UsageError("--energy is of whole searches; leave --hops out")
        if self.on_stdout and asked.as_json:
            name = "--output" if asked.output == DASH else "--edges"
            raise UsageError(f"{name} - is CSV on stdout, where --json prints, too")
        if asked.edges is None:
            return
        if sources != 1:
            raise UsageError(f"--edges goes with one source, not {sources}")
        if asked.output is not None:
            raise UsageError("--edges goes without --output; run the search twice")
        if not self.on_stdout:
            check_ending(asked.edges)
            check_place(asked.edges, force=asked.force)

    def check_session(self, session: Session) -> None:
        """Raise UsageError where the session does not answer what is asked."""
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
        """Write the edges between reached vertices on rank 0; return how many."""
        columns = result.edges_within().columns().values()
        parts = [gather_on_first(self.world, column) for column in columns]
        whole = [column for column in parts if column is not None]
        if self.world.rank == 0:
            u, v, above, _ = whole
            order = np.lexsort((v, u, above))
            rows = [column[order] for column in whole]
            if ids is not None:
                rows[:2] = [np.array(ids.names(x), dtype=object) for x in rows[:2]]
            with table_writer(place, force=self.asked.force) as writer:
                writer.writerow(("u", "v", "level_u", "level_v"))
                writer.writerows(zip(*(x.tolist() for x in rows), strict=True))
        return int(self.world.broadcast(len(whole[0])))


def print_paths(rows: Sequence[dict[str, Any]]) -> None:
    """Print what searches say of shortest paths, where that was asked for."""
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
