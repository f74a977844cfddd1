"""The table that ``distbfs bfs -o FILE.csv`` writes: a line for each vertex.

Columns are ``source``, ``vertex``, ``level`` and ``parent``, in the ids of the file.
``level`` or ``parent`` is left out where it was not asked for; ``paths`` follows where
they were counted.  Level and parent of a vertex that was not reached are -1; where ids
are text, the parent is empty.  ``source`` is the smallest where a search has several.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.errors import UsageError
from distbfs.formats.compressed import plain_name
from distbfs.formats.ids import IdMap, name_of
from distbfs.formats.writing import check_place, placed, text_file
from distbfs.ranks.world import Ranks
from distbfs.search.result import Result
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
    """Writes the lines of searches on rank 0; the writer is None on others."""

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
