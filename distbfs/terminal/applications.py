"""What ``distbfs multisearch`` runs: applications, their files and their words."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import numpy as np

from distbfs.errors import InputError, UsageError
from distbfs.formats.ids import IdMap, name_of
from distbfs.formats.text import text_lines
from distbfs.formats.writing import placed
from distbfs.multisearch.apps.betweenness import betweenness
from distbfs.multisearch.apps.closeness import closeness
from distbfs.multisearch.apps.diameter import diameter
from distbfs.multisearch.apps.eccentricity import eccentricity
from distbfs.multisearch.apps.khop import khop
from distbfs.multisearch.apps.paths import stream
from distbfs.multisearch.apps.reachability import reachability
from distbfs.multisearch.base import MOST, RunOptions, TooDeep
from distbfs.multisearch.result_files import (
    FILES,
    level_rows,
    write_arrays,
    write_pairs,
)
from distbfs.multisearch.searchers import Searcher
from distbfs.report.tables import print_fields, print_table
from distbfs.terminal.energy import print_energy
from distbfs.terminal.shared import Terminal
from distbfs.terminal.sources import agreed_sources, source_of
from distbfs.types import Array, Ids

SHOWN = 10
COUNT = re.compile("[0-9]{1,18}")
REPEATS = ("apsp", "khop")  # applications that keep sources given twice


@dataclass
class Task:
    """An application as it was asked for.

    sources: int64 [k]; pairs: int64 [q, 2] and pair_names as they were given, of
    reachability; ids: of the file that the graph came from, on rank 0
    """

    terminal: Terminal
    searcher: Searcher
    options: RunOptions
    sources: Ids
    output: Path | None
    force: bool
    ids: IdMap | None
    attributes: dict[str, Any]
    normalized: bool = True
    dtype: str = "auto"
    hops: int | None = None
    pairs: Ids = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    pair_names: list[tuple[str, str]] = field(default_factory=list)

    @property
    def writes(self) -> bool:
        """Whether this rank writes the file."""
        return self.output is not None and self.terminal.world.rank == 0

    def write(self, write: Callable[[Path], None]) -> None:
        """Write the file, if there is to be one, on rank 0."""
        if self.output is not None and self.terminal.world.rank == 0:
            with placed(self.output, force=self.force) as at:
                write(at)

    def keep(self, **arrays: Array) -> None:
        """Write sources and arrays."""
        given = {"sources": self.sources, **arrays}
        self.write(lambda at: write_arrays(at, given, self.attributes, self.ids))


Told = dict[str, Any]


def pick_sources(
    terminal: Terminal, text: str, n: int, ids: IdMap | None, seed: int, app: str
) -> Ids:
    """Return the sources of ``--sources K|FILE|all``, equal on all ranks (collective).

    K are drawn from all vertices, ascending; those of a file stay in its order.
    """
    if text == "all":
        return np.arange(n, dtype=np.int64)
    if COUNT.fullmatch(text):
        if int(text) > n:
            raise UsageError(f"--sources is {text}; allowed: 0 to {n}, a file, all")
        drawn = np.random.default_rng(seed).choice(n, int(text), replace=False)
        return np.sort(drawn.astype(np.int64))
    sources = agreed_sources(terminal.world, n, (), Path(text), ids)
    if app not in REPEATS:
        sources = np.array(list(dict.fromkeys(sources.tolist())), dtype=np.int64)
    return sources


def read_pairs(
    path: Path, n: int, ids: IdMap | None
) -> tuple[Ids, list[tuple[str, str]]]:
    """Return pairs of a file, int64 [q, 2], and as they were written.

    Two ids a line, between them a tab, a comma or blanks, the first of these that is
    in the line; ``#`` comments.  Raises InputError or UsageError with the line.
    """
    pairs, names = [], []
    for number, line in enumerate(text_lines(path), 1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        separator = next((one for one in "\t," if one in text), None)
        words = [word.strip() for word in text.split(separator)]
        if len(words) != 2:
            raise InputError(f"{path}:{number}: {len(words)} words; allowed: two ids")
        pairs.append([source_of(word, f"{path}:{number}", n, ids) for word in words])
        names.append((words[0], words[1]))
    return np.array(pairs, dtype=np.int64).reshape(-1, 2), names


def run_apsp(task: Task) -> Told:
    """Stream levels to a file, of the narrowest dtype that holds them."""
    wanted = [task.dtype] if task.dtype != "auto" else list(MOST)
    place = placed(task.output, force=task.force) if task.output else None
    with place if task.writes and place is not None else nullcontext() as at:
        for dtype in wanted:
            try:
                return _levels(task, at, dtype)
            except TooDeep as error:  # noqa: PERF203
                if dtype == wanted[-1]:
                    raise
                if at is not None:
                    at.unlink(missing_ok=True)
                task.terminal.say(f"{error}: once more in a wider type")
    raise UsageError("no dtype holds the levels")


def _levels(task: Task, at: Path | None, dtype: str) -> Told:
    """Write levels of a dtype, or count what was reached where no file is asked for."""
    depth, reached = 0, 0
    searcher, none = task.searcher, np.array(-1).astype(dtype)

    def run(take: Callable[[int, Array], None] | None) -> None:
        def look(first: int, rows: Array) -> None:
            nonlocal depth, reached
            there = rows != none
            reached += int(there.sum())
            depth = max(depth, int(rows[there].max(initial=0)))
            if take is not None:
                take(first, rows)

        label = task.terminal.progress("searching", len(task.sources))
        with label as done:
            stream(searcher, task.sources, dtype, look, done)

    if at is None:
        run(None)
    else:
        given = (task.sources, searcher.n, dtype, task.attributes, task.ids)
        with level_rows(at, *given) as take:
            run(take)
    return {"dtype": dtype, "pairs_reached": reached, "largest_level": depth}


def run_reachability(task: Task) -> Told:
    """Answer pairs."""
    answers = reachability(task.searcher, task.pairs)
    found = int(answers.sum())
    if task.output is not None and task.output.suffix.lower() in FILES:
        flags: Array = answers.astype(np.uint8)
        arrays: dict[str, Array] = {"pair": task.pairs, "reachable": flags}
        task.write(lambda at: write_arrays(at, arrays, task.attributes, task.ids))
    else:
        task.write(lambda at: write_pairs(at, task.pair_names, answers))
    told: Told = {"pairs": len(task.pairs), "reachable": found}
    if task.output is None:
        told["answers"] = answers.tolist()
    return told


def largest(task: Task, value: Array) -> list[list[Any]]:
    """Return the vertices of the largest values with them."""
    known = np.flatnonzero(np.nan_to_num(value, nan=-1.0) >= 0)
    order = known[np.argsort(-value[known], kind="stable")][:SHOWN]
    if task.terminal.world.rank:
        return []
    return [[name_of(int(v), task.ids), float(value[v])] for v in order]


def run_betweenness(task: Task) -> Told:
    """Find and write betweenness."""
    value = betweenness(task.searcher, task.sources, normalized=task.normalized)
    task.keep(value=value)
    return {"normalized": task.normalized, "largest": largest(task, value)}


def run_closeness(task: Task) -> Told:
    """Find and write closeness."""
    value = closeness(task.searcher, task.sources, normalized=task.normalized)
    task.keep(value=value)
    return {"normalized": task.normalized, "largest": largest(task, value)}


def run_eccentricity(task: Task) -> Told:
    """Find and write eccentricities; radius and diameter where all are known."""
    value, told = eccentricity(task.searcher, task.sources)
    task.keep(value=value)
    return told


def run_diameter(task: Task) -> Told:
    """Find radius and diameter."""
    return diameter(task.searcher)


def run_khop(task: Task) -> Told:
    """Count the vertices within some hops."""
    within = khop(task.searcher, task.sources, task.hops, task.options)
    task.keep(within=within)
    mean = within.mean(axis=0).tolist() if len(within) else []
    return {"mean_within": mean}


APPS: dict[str, Callable[[Task], Told]] = {
    "apsp": run_apsp,
    "reachability": run_reachability,
    "betweenness": run_betweenness,
    "closeness": run_closeness,
    "eccentricity": run_eccentricity,
    "diameter": run_diameter,
    "khop": run_khop,
}


def print_told(values: Told) -> None:
    """Print what an application found, for people."""
    found = dict(values["found"])
    rows = found.pop("largest", None)
    found.pop("answers", None)
    if found.get("connected") is False:
        found["connected"] = "no: figures are of the largest component"
    shown = {"sources": values["sources"], **found, "seconds": values["seconds"]}
    if values["app"] in ("reachability", "diameter"):
        shown.pop("sources")
    print_fields({k: v for k, v in shown.items() if v is not None})
    if rows:
        click.echo()
        print_table(("vertex", values["app"]), rows)
    if "energy" in values:
        print_energy(values["energy"])
