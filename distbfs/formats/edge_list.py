"""Edge lists: two ids a line, as SNAP, KONECT and many others give them.

Spaces, tabs or a comma separate columns; columns after the second (weights, times) are
not looked at; lines that begin with ``#`` or ``%`` are comments.  The first line of a
``.csv`` or ``.tsv`` may name the columns; files that distbfs writes state their sizes,
and whether edges lead one way, in the first line.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from distbfs.errors import InputError
from distbfs.formats.base import EdgeFile, ReaderOptions, Take
from distbfs.formats.compressed import plain_name
from distbfs.formats.ids import IdMap, IntegerIds
from distbfs.formats.lines import SHOWN, read_pairs
from distbfs.formats.rules import LARGEST_ID, LineRules
from distbfs.formats.text import TextFile
from distbfs.formats.words import Words
from distbfs.formats.writing import Edges, lines_of, text_file

if TYPE_CHECKING:
    from pathlib import Path

    from distbfs.types import Ids

UNFIT = re.compile(r'[ \t,]|^["#%]')
STATED = re.compile(
    rb"# distbfs (directed )?edge list"
    rb"(?:: ([0-9]{1,19}) vertices, ([0-9]{1,18}) edges| of ids;[^\n]*)\n"
)
BIPARTITE = re.compile(rb"%[ \t]*bip[ \t\r\n]")
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
        words = Words() if self.options.relabel == "text" else None
        tuples, largest = 0, 0
        with TextFile(path, progress=self.options.progress) as file:
            stated, declared, directed = read_first(file)
            if directed is False:
                self.options.check_undirected(path, "an undirected edge list")
            n, most = self.options.n, self.options.most
            if n is None and stated and not self.options.relabel:
                n, most = stated, stated - 1 + self.options.base
            if words is not None:
                chunks = words.read_pairs(file)
            else:
                rules = LineRules(base=self.options.base, most_u=most, most_v=most)
                compiled = self.options.compiled
                chunks = read_pairs(file, rules, declared, compiled)
            for pairs in chunks:
                take(pairs)
                tuples += len(pairs)
                if n is None:
                    largest = max(largest, int(pairs.max()) + 1)
            if not tuples and declared is None:
                raise file.refuse("no edges", max(file.line - 1, 1))
            found = None if words is None else tuple(words.index)
            unread = "columns after the second" if file.extra else ""
            n = largest if n is None else n
            digest, one_way = file.digest, bool(directed)
            return EdgeFile(self.name, n, tuples, digest, found, unread, one_way)


class EdgeListWriter:
    """Writes edge lists: sizes in the first line, then an edge a line.

    Where vertices have ids of their own, no sizes are stated, and a vertex without
    edges has a loop.
    """

    name = "edge-list"
    suffixes = EdgeListReader.suffixes
    keeps_ids = True
    packs = True

    def write(self, path: Path, graph: Edges) -> None:
        """Write a graph; InputError for ids that cannot stand in a line."""
        ids = graph.ids
        kind = "directed edge list" if graph.directed else "edge list"
        with text_file(path) as out:
            if ids is None:
                head = f"# distbfs {kind}: {graph.n} vertices, {graph.m} edges\n"
                out.write(head.encode())
                for pairs in graph.chunks():
                    out.write(lines_of(pairs))
                return
            words = "--relabel --directed" if graph.directed else "--relabel"
            head = f"# distbfs {kind} of ids; convert {words} reads it\n"
            out.write(head.encode())
            for pairs in graph.with_lone():
                out.write(lines_of_ids(pairs, ids))


def lines_of_ids(pairs: Ids, ids: IdMap) -> bytes:
    """Return the lines of pairs by id; InputError for one that cannot stand there."""
    if isinstance(ids, IntegerIds):
        return lines_of(ids.ids[pairs])
    names = ids.names(pairs.ravel())
    for name in names:
        if UNFIT.search(str(name)):
            raise InputError(
                f"id {str(name)[:SHOWN]!a} cannot stand in an edge list; write Parquet"
            )
    rows = zip(names[::2], names[1::2], strict=True)
    return "".join(f"{u} {v}\n" for u, v in rows).encode()


def read_first(file: TextFile) -> tuple[int, int | None, bool | None]:
    """Read a first line that states sizes or names columns, and no other.

    Returns the vertices and edges that it states and whether edges lead one way, 0 and
    None where it does not.
    """
    line = file.header_line()
    match = STATED.fullmatch(line)
    if match:
        directed, n, m = match.groups()
        if n is None:
            return 0, None, bool(directed)
        if not 0 < int(n) <= LARGEST_ID:
            raise file.refuse(f"{int(n)} vertices", 1)
        return int(n), int(m), bool(directed)
    if BIPARTITE.match(line):
        what = "a bipartite KONECT graph, whose columns number two sets of vertices"
        raise file.refuse(what, 1)
    if not path_is_table(file.path) or not names_columns(line):
        file.unread(line)
    return 0, None, None


def path_is_table(path: Path) -> bool:
    """Return whether a first line may name the columns."""
    return plain_name(path).endswith((".csv", ".tsv"))


def names_columns(line: bytes) -> bool:
    """Return whether a line names two columns as edges are usually named."""
    words = re.split(rb"[,\t]", line.strip())
    names = {word.strip(b'" ').lower() for word in words[:2]}
    return len(words) > 1 and names <= NAMES
