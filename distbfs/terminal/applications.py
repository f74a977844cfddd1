"""What ``distbfs multisearch`` has of applications: options, input, output, words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from distbfs.errors import InputError, UsageError
from distbfs.formats.ids import IdMap
from distbfs.formats.writing import placed
from distbfs.multisearch.application import Application, Facts, Take
from distbfs.multisearch.result_files import (
    FILES,
    level_rows,
    write_arrays,
    write_pairs,
)
from distbfs.plan.memory import readable
from distbfs.report.tables import print_fields, print_table
from distbfs.terminal.command import input_path
from distbfs.terminal.energy import print_energy
from distbfs.terminal.shared import Terminal
from distbfs.terminal.sources import agreed_sources, side_lines, source_of
from distbfs.types import Array, Ids

COUNT = re.compile("[0-9]{1,18}")


@dataclass(frozen=True)
class ApplicationFile:
    """Writes what an application hands over to one file, which takes its name last.

    sources: int64 [k], pairs: int64 [q, 2], pair_names: as they were given; n: vertices
    ids: of the file that the graph came from
    """

    path: Path
    force: bool
    attributes: Mapping[str, Any]
    ids: IdMap | None
    n: int
    sources: Ids
    pairs: Ids
    pair_names: list[tuple[str, str]]

    def keep(self, arrays: Mapping[str, Array]) -> None:
        """Write arrays by name."""
        with placed(self.path, force=self.force) as at:
            write_arrays(at, arrays, self.attributes, self.ids)

    def keep_pairs(self, answers: Array) -> None:
        """Write an answer for each pair, as arrays or as lines of text."""
        if self.path.suffix.lower() in FILES:
            flags: Array = answers.astype(np.uint8)
            self.keep({"pair": self.pairs, "reachable": flags})
            return
        with placed(self.path, force=self.force) as at:
            write_pairs(at, self.pair_names, answers)

    @contextmanager
    def rows(self, dtype: str) -> Iterator[Take]:
        """Yield what writes rows of levels, in their order."""
        layout = (self.sources, self.n, dtype, self.attributes, self.ids)
        with placed(self.path, force=self.force) as at, level_rows(at, *layout) as take:
            yield take


def pick_sources(
    terminal: Terminal,
    text: str,
    n: int,
    ids: IdMap | None,
    seed: int,
    *,
    repeats: bool,
) -> Ids:
    """Return ``--sources K|FILE|all``, int64 [k], equal on all ranks (collective).

    K are drawn from all vertices, ascending; those of a file stay in its order, with
    ``repeats`` those given twice too.
    """
    if text == "all":
        return np.arange(n, dtype=np.int64)
    if COUNT.fullmatch(text):
        if int(text) > n:
            raise UsageError(f"--sources is {text}; allowed: 0 to {n}, a file, all")
        drawn = np.random.default_rng(seed).choice(n, int(text), replace=False)
        return np.sort(drawn.astype(np.int64))
    sources = agreed_sources(terminal.world, n, (), input_path(text), ids)
    if not repeats:
        sources = np.array(list(dict.fromkeys(sources.tolist())), dtype=np.int64)
    return sources


def read_pairs(
    path: Path, n: int, ids: IdMap | None
) -> tuple[Ids, list[tuple[str, str]]]:
    """Return pairs of a file, int64 [q, 2], and as they were written.

    Two ids a line, between them a tab, a comma or blanks, the first of these that is
    in the line outside quotes; see ``side_lines``.  Raises InputError or UsageError
    with the line.
    """
    pairs, names = [], []
    for place, words in side_lines(path, "\t, "):
        if len(words) != 2:
            raise InputError(f"{place}: {len(words)} words; allowed: two ids")
        ends = zip(words, ("source", "target"), strict=True)
        pairs.append([source_of(word, place, n, ids, what) for word, what in ends])
        names.append((words[0], words[1]))
    return np.array(pairs, dtype=np.int64).reshape(-1, 2), names


def print_facts(values: Facts, app: Application) -> None:
    """Print what an application reports, for people."""
    facts = dict(values["found"])
    rows = facts.pop("largest", None)
    facts.pop("answers", None)
    facts.pop("estimated_seconds", None)
    if facts.get("connected") is False:
        facts["connected"] = "no: figures are of the largest component"
    searched = {"sources": values["sources"]}
    if app.takes != "sources" or "samples" in facts:
        searched = {}
    shown = {**searched, **facts, "seconds": values["seconds"]}
    tails = values.get("tails")
    if tails:
        shown["read from host memory"] = (
            f"{tails['tail_edges']} columns of tails, "
            f"{readable(tails['tail_bytes'])} over the link"
        )
    print_fields({k: v for k, v in shown.items() if v is not None})
    if rows:
        click.echo()
        print_table(("vertex", app.name), rows)
    if "energy" in values:
        print_energy(values["energy"])
