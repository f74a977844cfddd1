"""DIMACS graphs of the shortest-path challenge: ``.gr`` text, each arc a tuple.

Lines: ``c`` and any text, ``p sp NODES ARCS`` once before all arcs, ``a U V WEIGHT``;
nodes start at 1, weights are ignored. Source: 9th DIMACS Implementation Challenge, file
formats (2006).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from distbfs.formats.base import EdgeFile, Reader, Take
from distbfs.formats.line_rules import LineRules
from distbfs.formats.lines import SHOWN
from distbfs.formats.pairs import read_pairs
from distbfs.formats.text import TextFile

if TYPE_CHECKING:
    from pathlib import Path

MARK = re.compile(rb"(?:c[^\n]*\n|[ \t\r]*\n)*p[ \t]+sp[ \t]")


def _no_arc(line: bytes) -> str:
    """Describe the error of a line that is not an arc."""
    if line.split()[:1] == [b"p"]:
        return "a second problem line"
    shown = ascii(line[:SHOWN].decode("ascii", "backslashreplace"))
    return f"{shown} is neither an arc 'a U V WEIGHT' nor a comment 'c'"


class DimacsReader(Reader):
    """Reads DIMACS shortest-path graphs."""

    name = "dimacs"
    suffixes = (".gr",)
    sized = ("a DIMACS file", 1)

    @staticmethod
    def recognises(head: bytes) -> bool:
        """Return whether the first line that is no comment is a problem line of sp."""
        return bool(MARK.match(head))

    def read(self, path: Path, take: Take) -> EdgeFile:
        """Read a file; InputError for any departure from the format."""
        tuples = 0
        with TextFile(path, progress=self.options.progress) as file:
            nodes, arcs = _problem(file)
            rules = LineRules(
                comments=b"c",
                lead=b"a",
                unled=_no_arc,
                fields=3,
                base=1,
                most_u=nodes,
                most_v=nodes,
            )
            for pairs in read_pairs(file, rules, arcs, compiled=self.options.compiled):
                take(pairs)
                tuples += len(pairs)
            digest = file.digest
            return EdgeFile(
                self.name, nodes, tuples, digest, unread="weights", one_based=True
            )


def _problem(file: TextFile) -> tuple[int, int]:
    """Read comments and the problem line; return nodes and arcs."""
    line = file.header_line()
    if not line:
        raise file.refuse("the file is empty")
    while line and (line.startswith(b"c") or not line.strip()):
        line = file.header_line()
    at = max(file.line - 1, 1)
    words = line.split()
    if words[:1] != [b"p"]:
        raise file.refuse("no problem line 'p sp NODES ARCS'", at)
    kind = b"".join(words[1:2])[:SHOWN].decode("ascii", "backslashreplace")
    if kind != "sp":
        raise file.refuse(f"problem {kind!a}; allowed: sp", at)
    nodes, arcs = file.sizes(words[2:], 2, "the problem line needs nodes and arcs")
    if not nodes:
        raise file.refuse("no vertices", at)
    return nodes, arcs
