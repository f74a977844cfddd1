"""Vertices named on a command line or in a file: sources, targets, visible vertices."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.cli.command import input_path
from distbfs.errors import InputError, UsageError
from distbfs.formats.attributes import Values
from distbfs.formats.compressed import plain_name
from distbfs.formats.ids import CountedIds, IdMap, name_of, unknown
from distbfs.formats.inputs import data_files
from distbfs.formats.lines import BLANKS, cut, quote_fault
from distbfs.formats.numpy_pairs import mapped
from distbfs.formats.packed import BinaryFile
from distbfs.formats.text import text_lines
from distbfs.ranks.world import Ranks
from distbfs.search.view import View, check_attributes, flags_of
from distbfs.types import Marks, Root

COMMENT = re.compile("(?:^|[ \t])#")
QUOTED = re.compile('"[^"]*"')
NO_SEPARATOR = "\x1f"  # is in no id
SHOWN = 40


def side_lines(path: Path, separators: str) -> Iterator[tuple[str, list[str]]]:
    """Yield FILE:LINE and the ids of each line that has ids.

    separators: the first of these that a line has outside quotes separates its ids
    Ids may be quoted (RFC 4180); a ``#`` outside quotes, at the beginning of a line or
    after a blank, begins a comment.  Raises InputError for wrong quotes.
    """
    for number, line in enumerate(text_lines(path), 1):
        text = line
        for mark in COMMENT.finditer(line):
            if line.count('"', 0, mark.start()) % 2 == 0:
                text = line[: mark.start()]
                break
        text = text.strip(BLANKS)
        bare = QUOTED.sub("", text)
        separator = next((x for x in separators if x in bare), separators[-1])
        try:
            for words in cut([text] if text else [], separator):
                yield f"{path}:{number}", [word.strip(BLANKS) for word in words]
        except csv.Error as error:
            raise InputError(f"{path}:{number}: {quote_fault(error)}") from error


@dataclass(frozen=True)
class NamedVertices:
    """The vertices of a graph, as a command line or a file names them.

    Methods with ``agreed`` in their name are collective: rank 0 reads.  UsageError and
    InputError say where a name is not a vertex.

    ids: the ids in the graph's file, on rank 0
    """

    world: Ranks
    n: int
    ids: IdMap | None

    def find(self, word: str, place: str, what: str = "source") -> int:
        """Return the vertex of an id; UsageError ``PLACE: …`` if there is none."""
        ids = CountedIds(self.n, 0) if self.ids is None else self.ids
        vertex = ids.find(word)
        if vertex < 0:
            raise UsageError(f"{place}: {what} {word[:SHOWN]!a} {unknown(ids)}")
        return vertex

    def in_file(self, path: Path) -> list[int]:
        """Return the vertices that a file names, one per line."""
        lines = side_lines(path, NO_SEPARATOR)
        return [self.find(word, place) for place, [word] in lines]

    def sources(self, words: Sequence[str], path: Path | None) -> list[int]:
        """Return the sources of the command line and of a file, at least one."""
        sources = [self.find(word, "--source") for word in words]
        sources += [] if path is None else self.in_file(path)
        if not sources:
            raise UsageError(
                "no source; give --source ID, or --sources FILE with an id per line"
            )
        return sources

    def source_set(self, option: str) -> list[int]:
        """Return the vertices of one ``--source-set``, ascending, without repeats.

        option: ids separated by commas, or @FILE with one id per line
        """
        if option.startswith("@"):
            sources = self.in_file(input_path(option[1:]))
        else:
            words = [word.strip() for word in option.split(",")]
            sources = [self.find(x, "--source-set") for x in words if x]
        if not sources:
            raise UsageError(f"--source-set: {option[:SHOWN]!a} names no vertex")
        return sorted(set(sources))

    def agreed(self, read: Callable[[], Any]) -> Any:
        """Broadcast the JSON value that rank 0 reads (collective)."""
        return self.world.broadcast(read() if self.world.rank == 0 else None)

    def agreed_roots(
        self, words: Sequence[str], path: Path | None, sets: Sequence[str]
    ) -> list[Root]:
        """Return the start of each search: single sources, then sets."""

        def read() -> list[list[int]]:
            several = [self.source_set(option) for option in sets]
            if words or path is not None or not sets:
                several = [*([x] for x in self.sources(words, path)), *several]
            return several

        groups = [np.array(x, dtype=np.int64) for x in self.agreed(read)]
        return [x if len(x) > 1 else int(x[0]) for x in groups]

    def agreed_target(self, word: str | None) -> int | None:
        """Return the vertex of ``--paths-to``, None if there is none."""
        if word is None:
            return None
        vertex: int = self.agreed(lambda: self.find(word, "--paths-to", "target"))
        return vertex

    def flags(self, path: Path) -> Marks:
        """Return the vertices that a file names, bool [n].

        A ``.npy`` file holds a flag for each vertex, any other file one id per line.
        """
        if not plain_name(path).endswith(".npy"):
            flags = np.zeros(self.n, np.bool_)
            flags[self.sources((), path)] = True
            return flags
        with BinaryFile(data_files(path)[0]) as file:
            return flags_of(mapped(file.content, f"{path}"), f"{path}")

    def agreed_view(
        self, attributes: Mapping[str, Values], where: str | None, path: Path | None
    ) -> View:
        """Return the view of searches: a predicate picks edges, a file vertices."""
        flags = None
        if path is not None:
            own = np.zeros(0, np.uint8)
            if self.world.rank == 0:
                checked = View(self.n, self.flags(path))
                own = np.packbits(checked.sees(np.arange(self.n)))
            bits = np.unpackbits(self.world.allgather(own)[0])
            flags = bits[: self.n].view(np.bool_)
        view = View(self.n, flags, where=where)
        if view.where is not None:
            check_attributes(view.where, dict(attributes))
        return view

    def check_seen(self, view: View, sources: Sequence[Root]) -> None:
        """Raise UsageError, with its id, for a source that is hidden (collective)."""
        for root in sources:
            view.check_sources(
                np.atleast_1d(root),
                lambda some: [self.world.broadcast(name_of(int(some[0]), self.ids))],
            )
