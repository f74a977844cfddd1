"""Edge lists: two ids a line, as SNAP, KONECT and many others give them.

Spaces, tabs or a comma separate columns; columns after the second (weights, times) are
not looked at; lines that begin with ``#`` or ``%`` are comments.  The first line of a
``.csv`` or ``.tsv`` may name the columns.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from distbfs.formats.base import EdgeFile, ReaderOptions, Take
from distbfs.formats.compressed import plain_name
from distbfs.formats.lines import read_pairs
from distbfs.formats.rules import LineRules
from distbfs.formats.text import TextFile
from distbfs.formats.words import Words

if TYPE_CHECKING:
    from pathlib import Path

NAMES = {b"src", b"dst", b"source", b"target", b"from", b"to", b"u", b"v"}


class EdgeListReader:
    """Reads edge lists; ids start at 0, or at 1 as the options say."""

    name = "edge-list"
    text_ids = True
    suffixes = (".el", ".wel", ".txt", ".tsv", ".csv", ".edges")

    def __init__(self, options: ReaderOptions | None = None) -> None:
        self.options = options or ReaderOptions()

    @staticmethod
    def recognises(head: bytes) -> bool:  # noqa: ARG004
        """Return False: nothing marks an edge list but its name."""
        return False

    def read(self, path: Path, take: Take) -> EdgeFile:
        """Read a file; InputError where it is not an edge list or has no edges."""
        given, most = self.options.n, self.options.most
        rules = LineRules(base=self.options.base, most_u=most, most_v=most)
        n, tuples = given or 0, 0
        words = Words() if self.options.relabel == "text" else None
        with TextFile(path, progress=self.options.progress) as file:
            if path_is_table(path):
                skip_names(file)
            if words is not None:
                chunks = words.read_pairs(file)
            else:
                chunks = read_pairs(file, rules, compiled=self.options.compiled)
            for pairs in chunks:
                take(pairs)
                tuples += len(pairs)
                if given is None:
                    n = max(n, int(pairs.max()) + 1)
            if not tuples:
                raise file.refuse("no edges", max(file.line - 1, 1))
            found = None if words is None else tuple(words.index)
            unread = "columns after the second" if file.extra else ""
            return EdgeFile(self.name, n, tuples, file.digest, found, unread)


def path_is_table(path: Path) -> bool:
    """Return whether a first line may name the columns."""
    return plain_name(path).endswith((".csv", ".tsv"))


def skip_names(file: TextFile) -> None:
    """Pass over a first line that names two columns as edges are usually named."""
    line = file.header_line()
    names = [
        word.strip(b'" \t\r').lower() for word in re.split(rb"[,\t]", line.strip())
    ]
    if len(names) < 2 or not set(names[:2]) <= NAMES:
        file.unread(line)
