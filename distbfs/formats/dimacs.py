"""DIMACS and PACE graphs: text with one tuple per line, whose nodes start at 1.

Lines are comments (``c`` and any text), ``p KIND NODES EDGES`` once before all edges,
and edges, whose form depends on the kind: ``a U V NUMBER`` (shortest paths, maximum
flow), ``e U V`` (colouring, cliques), or ``U V`` (PACE). The numbers of edges, and
lines that describe nodes, are ignored. Sources: DIMACS
Implementation Challenges 1 (1991), 2 (1993) and 9 (2006), file formats; PACE
challenges, 2016 to 2025.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from distbfs.formats.base import EdgeFile, Reader
from distbfs.formats.lines import SHOWN, LineRules
from distbfs.formats.pairs import read_pairs
from distbfs.formats.text import TextFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distbfs.types import Ids


class EdgeLine(NamedTuple):
    """The lines of files of one kind of problem.

    edge: form of an edge line, as messages show it, with its first letter if any
    ignored: letters that begin ignored lines
    unread: what the ignored last column of an edge line holds
    """

    edge: str
    ignored: str = "c"
    unread: str = ""


COLOURED = EdgeLine("e U V", "cndvx")
PACE = EdgeLine("U V")
KINDS = {
    "sp": EdgeLine("a U V WEIGHT", "c", "weights"),
    "max": EdgeLine("a U V CAPACITY", "cn", "capacities"),
    **dict.fromkeys(("edge", "edges", "col"), COLOURED),
    **dict.fromkeys(("tw", "td", "tdp", "tww", "vc", "cep", "ds"), PACE),
}


class DimacsReader(Reader):
    """Reads graphs of the kinds above."""

    name = "dimacs"
    suffixes = (".gr", ".col", ".clq", ".max")
    sized = ("a DIMACS file", 1)
    mark = re.compile(
        rf"(?:c[^\n]*\n|[ \t\r]*\n)*p[ \t]+(?:{'|'.join(KINDS)})[ \t]".encode()
    )

    def pairs(self, file: TextFile, edges: EdgeFile) -> Iterator[Ids]:
        """Yield the edges; InputError for any departure from the format."""
        name, nodes, count = _problem(file)
        kind = KINDS[name]
        if not kind.unread:
            self.options.check_undirected(file.path, f"a problem '{name}'")
        columns = kind.edge.split()
        first = columns.index("U")

        def no_edge(row: list[str]) -> str:
            if row[0] == "p":
                return "a second problem line"
            shown = ascii(" ".join(row)[:SHOWN])
            return f"{shown} is neither an edge '{kind.edge}' nor a comment 'c'"

        rules = LineRules(
            comments=kind.ignored,
            lead=columns[0] if first else "",
            unled=no_edge,
            fields=len(columns),
            places=(first, first + 1),
            quotes=False,
            base=1,
            most_u=nodes,
            most_v=nodes,
        )
        edges.n, edges.unread, edges.one_based = nodes, kind.unread, True
        yield from read_pairs(file, rules, count)


def _problem(file: TextFile) -> tuple[str, int, int]:
    """Read comments and the problem line; return its kind, nodes and edges."""
    words = file.line_after(b"c").split()
    if words[:1] != [b"p"]:
        raise file.refuse_last("no problem line 'p KIND NODES EDGES'")
    kind = b"".join(words[1:2])[:SHOWN].decode("ascii", "backslashreplace")
    if kind not in KINDS:
        raise file.refuse_last(f"problem {kind!a}; allowed: {', '.join(KINDS)}")
    nodes, edges = file.sizes(words[2:], 2, "the problem line needs nodes and edges")
    return kind, nodes, edges
