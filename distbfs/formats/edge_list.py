"""Edge lists: two ids a line, as SNAP, KONECT and many others give them.

Spaces, tabs or a comma separate columns; columns after the second (weights, times) are
not looked at; lines that begin with ``#`` or ``%`` are comments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from distbfs.formats.base import EdgeFile, ReaderOptions, Take
from distbfs.formats.lines import read_pairs
from distbfs.formats.rules import LARGEST_ID, LineRules
from distbfs.formats.text import TextFile

if TYPE_CHECKING:
    from pathlib import Path


class EdgeListReader:
    """Reads edge lists; ids start at 0, or at 1 as the options say."""

    name = "edge-list"
    suffixes = (".el", ".wel", ".txt", ".tsv", ".csv", ".edges")

    def __init__(self, options: ReaderOptions | None = None) -> None:
        self.options = options or ReaderOptions()

    @staticmethod
    def recognises(head: bytes) -> bool:  # noqa: ARG004
        """Return False: nothing marks an edge list but its name."""
        return False

    def read(self, path: Path, take: Take) -> EdgeFile:
        """Read a file; InputError where it is not an edge list or has no edges."""
        given, base = self.options.n, int(self.options.one_based)
        most = LARGEST_ID if given is None else given - 1 + base
        rules = LineRules(base=base, most_u=most, most_v=most)
        n, tuples = given or 0, 0
        with TextFile(path, progress=self.options.progress) as file:
            for pairs in read_pairs(file, rules, compiled=self.options.compiled):
                take(pairs)
                tuples += len(pairs)
                if given is None:
                    n = max(n, int(pairs.max()) + 1)
            if not tuples:
                raise file.refuse("no edges", max(file.line - 1, 1))
            return EdgeFile(self.name, n, tuples, file.digest)
