"""DIMACS graphs of the shortest-path challenge: ``.gr`` text, each arc a tuple.

Lines: ``c`` and any text, ``p sp NODES ARCS`` once before all arcs, ``a U V WEIGHT``;
nodes start at 1, weights are ignored. Source: 9th DIMACS Implementation Challenge, file
formats (2006).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from distbfs.formats.base import EdgeFile, Reader
from distbfs.formats.line_rules import LineRules
from distbfs.formats.lines import SHOWN
from distbfs.formats.pairs import read_pairs
from distbfs.formats.text import TextFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distbfs.types import Ids

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

    def pairs(self, file: TextFile, edges: EdgeFile) -> Iterator[Ids]:
        """Yield the arcs; InputError for any departure from the format."""
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
        edges.n, edges.unread, edges.one_based = nodes, "weights", True
        yield from read_pairs(file, rules, arcs, compiled=self.options.compiled)


def _problem(file: TextFile) -> tuple[int, int]:
    """Read comments and the problem line; return nodes and arcs."""
    line = file.header_line()
    if not line:
        raise file.refuse("the file is empty")
    while line and (line.startswith(b"c") or not line.strip()):
        line = file.header_line()
    words = line.split()
    if words[:1] != [b"p"]:
        raise file.refuse_last("no problem line 'p sp NODES ARCS'")
    kind = b"".join(words[1:2])[:SHOWN].decode("ascii", "backslashreplace")
    if kind != "sp":
        raise file.refuse_last(f"problem {kind!a}; allowed: sp")
    nodes, arcs = file.sizes(words[2:], 2, "the problem line needs nodes and arcs")
    return nodes, arcs
