"""DIMACS graphs of the shortest-path challenge: ``.gr`` text, each arc a tuple.

Lines: ``c`` and any text, ``p sp NODES ARCS`` once before all arcs, ``a U V WEIGHT``;
nodes start at 1, weights are ignored. Source: 9th DIMACS Implementation Challenge, file
formats (2006).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from distbfs.formats.base import EdgeFile, Reader
from distbfs.formats.lines import SHOWN, LineRules
from distbfs.formats.pairs import read_pairs
from distbfs.formats.text import TextFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distbfs.types import Ids

MARK = re.compile(rb"(?:c[^\n]*\n|[ \t\r]*\n)*p[ \t]+sp[ \t]")


def _no_arc(row: list[str]) -> str:
    """Describe the error of a record that is not an arc."""
    if row[0] == "p":
        return "a second problem line"
    shown = ascii(" ".join(row)[:SHOWN])
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
            comments="c",
            lead="a",
            unled=_no_arc,
            fields=4,
            places=(1, 2),
            quotes=False,
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
