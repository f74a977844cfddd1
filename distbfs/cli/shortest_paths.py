"""What ``distbfs bfs`` answers of shortest paths: counts, paths, edges within hops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from distbfs.cli.options.bfs import BfsOptions
from distbfs.device.arrays import host_array
from distbfs.errors import UsageError, legible
from distbfs.formats.ids import IdMap, name_of
from distbfs.formats.writing import check_place
from distbfs.ranks.world import Ranks
from distbfs.report.tables import counted, print_table
from distbfs.search.result import Result
from distbfs.search.session import Session
from distbfs.search.vertices import gather_on_first
from distbfs.terminal.level_table import DASH, check_ending, table_writer
from distbfs.types import Array


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
