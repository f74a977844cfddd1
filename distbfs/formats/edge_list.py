"""Edge lists: two ids per line, as SNAP, KONECT and many others use them.

The first lines show the separator, and whether columns have names (see ``delimited``).
Columns besides the two ids (weights, times) are ignored; lines that begin with ``#`` or
``%`` are comments. Files written by distbfs state in the first line their sizes, and
whether edges lead one way. KONECT files state whether the graph is bipartite, and their
ids begin at 1. Source: Kunegis, KONECT, The Koblenz Network Collection (2013).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from distbfs.errors import InputError, UsageError
from distbfs.formats.base import (
    HEAD_BYTES,
    EdgeFile,
    Reader,
    ReaderOptions,
    Sides,
)
from distbfs.formats.delimited import (
    SEPARATORS,
    LineLayout,
    doubt_of_edges,
    find_layout,
    resembles_edges,
)
from distbfs.formats.ids import LARGEST_ID, IdMap, IntegerIds
from distbfs.formats.lines import SHOWN, LineRules
from distbfs.formats.new_ids import Words
from distbfs.formats.pairs import read_pairs
from distbfs.formats.text import TextFile
from distbfs.formats.writing import Edges, Writer, lines_of, text_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from distbfs.types import Ids

UNFIT = re.compile(r'[ \t,]|^["#%]')
STATED = re.compile(
    rb"# distbfs (directed )?(one-based )?edge list"
    rb"(?:: ([0-9]{1,19}) vertices, ([0-9]{1,18}) edges| of ids;[^\n]*)\n"
)
KONECT = re.compile(rb"%[ \t]*(sym|asym|bip)(?:[ \t]+[a-z]+)?[ \t]*\r?\n")
SIZES = re.compile(rb"%[ \t]*[0-9]+[ \t]+([0-9]{1,18})[ \t]+([0-9]{1,18})[ \t\r\n]")
BLANK = b" \t\r\n"
SIZE = re.compile("[0-9]{1,18}")


@dataclass(frozen=True)
class Head:
    """Facts in the comments before the first edge.

    n, edges: number of vertices and edges in a file of distbfs, else 0 and None
    one_based: whether the file says that ids begin at 1
    plain: whether lines are two ids with blanks between them, and none names columns
    directed: whether edges lead one way, None if not stated
    kind: kind of a KONECT file: "sym", "asym" or "bip"; "" for other files
    sides: number of vertices on each side of a KONECT file, None if not stated
    """

    n: int = 0
    edges: int | None = None
    one_based: bool = False
    plain: bool = False
    directed: bool | None = None
    kind: str = ""
    sides: tuple[int, int] | None = None


class EdgeListReader(Reader):
    """Reads edge lists; ids start at 0, or at 1 if the options or KONECT say so."""

    name = "edge-list"
    text_ids = True
    named_columns = True
    header_line = True
    bipartite = True
    layout: LineLayout | None = None  # of the first file
    names: Sequence[str] = ()  # of all its columns
    suffixes = (".el", ".wel", ".txt", ".tsv", ".csv", ".edges", ".edgelist")

    @staticmethod
    def resembles(head: bytes) -> bool:
        """Return whether the first lines of a file without magic number are edges.

        The first line of a KONECT file is a comment in other formats.
        """
        return bool(KONECT.match(head)) or resembles_edges(head)

    @staticmethod
    def doubt(head: bytes, options: ReaderOptions) -> str:
        """Return why the first lines are not an edge list, "" if they are."""
        sure = options.columns or KONECT.match(head) or STATED.match(head)
        return "" if sure else doubt_of_edges(head, options.header)

    def pairs(self, file: TextFile, edges: EdgeFile) -> Iterator[Ids]:
        """Yield the edges; InputError if there are none or a line is not an edge."""
        options, notes, path = self.options, list[str](), file.path
        tuples, first, highest = 0, -1, -1  # ids of the first pair, of the others
        head = read_head(file)
        if head.directed is False:
            options.check_undirected(path, "an undirected edge list")
        if head.one_based and not options.relabel and options.one_based is None:
            options = replace(options, one_based=True)
            if head.kind:
                notes.append("a KONECT file, whose ids begin at 1")
        if head.n and not options.relabel and options.n is None:
            options = replace(options, n=head.n)
        sides = _sides(path, head, options)
        layout = self.layout_of(file, head.plain)
        if layout.names:
            names = " and ".join(ascii(x[:SHOWN]) for x in layout.names)
            notes.append(f"line {file.line} names the columns; ids are in {names}")
        begin = file.line
        if self.words is not None:
            notes.append(f"{SEPARATORS[layout.separator]} separate the columns")
        for _ in range(layout.header):
            file.header_line()
        for pairs in _chunks(file, head, layout, options, sides, self.words):
            others = pairs if tuples else pairs[1:]
            first = first if tuples else int(pairs[0].max())
            highest = max(highest, int(others.max(initial=-1)))
            edges.n = max(first, highest) + 1
            tuples += len(pairs)
            yield pairs if sides is None else sides.place(pairs)
        edges.n = (options.n or edges.n) if sides is None else sides.n
        edges.n *= tuples > 0 or head.edges is not None
        if layout.first and options.header is None:
            most = highest + options.base
            notes += _on_first(layout, begin, self.words, tuples, most)
        if file.extra:
            usual = layout.columns == (0, 1)
            where = "after the second" if usual else "beside the two ids"
            some = (
                f", in {file.extra} of {tuples} lines," if file.extra < tuples else ""
            )
            edges.unread = f"columns {where}{some}"
        edges.directed = bool(head.directed)
        edges.one_based = bool(options.one_based)
        edges.notes = (*notes, *(() if sides is None else sides.notes))

    def layout_of(self, file: TextFile, plain: bool) -> LineLayout:
        """Return the layout of a file after its head; later files follow the first."""
        options, sample = self.options, file.peek(HEAD_BYTES)
        if self.layout is not None:
            return self.layout.of_part(sample)
        if plain and options.columns is None and options.header is None:
            return LineLayout()
        where = f"{file.path}:{file.line}"
        self.layout = find_layout(sample, options.columns, where, options.header)
        return self.layout


def _on_first(
    layout: LineLayout, line: int, words: Words | None, tuples: int, highest: int
) -> list[str]:
    """Return a note if the first record may not be an edge.

    tuples: number of records; highest: largest id in the other records
    """
    first = layout.first
    if words is not None:
        ends = " to ".join(ascii(x[:SHOWN]) for x in first[:2])
        what = f"line {line} is an edge, from {ends}"
        return [f"{what}; --header leaves it out, if it names columns"]
    others = tuples - 1
    numbers = [int(x) for x in first if SIZE.fullmatch(x)]
    if others < 1 or others not in numbers or len(numbers) != len(first) < 4:
        return []
    numbers.remove(others)
    if min(numbers) < max(highest, 1):
        return []
    what = f"line {line} is an edge, but may state sizes, as {others} edges follow"
    said = f"{what}, with ids up to {highest}"
    return [f"{said}; --header leaves it out, --no-header keeps it"]


def _chunks(
    file: TextFile,
    head: Head,
    layout: LineLayout,
    options: ReaderOptions,
    sides: Sides | None,
    words: Words | None,
) -> Iterator[Ids]:
    """Return the pairs in the rest of a file; text ids become numbers of words."""
    base, most = options.base, (options.most, options.most)
    if sides is not None:
        most = sides.rows - 1 + base, sides.columns - 1 + base
    rules = LineRules(
        separator=layout.separator,
        places=layout.columns,
        base=base,
        most_u=most[0],
        most_v=most[1],
        canonical=options.relabel == "numbers",
    )
    plain = words is None and layout.columns == (0, 1)
    return read_pairs(file, rules, head.edges if plain else None, words)


def _sides(path: Path, head: Head, options: ReaderOptions) -> Sides | None:
    """Return the two vertex sets of a bipartite KONECT graph, None for other graphs.

    Raises InputError or UsageError if the options contradict the file.
    """
    if head.kind != "bip":
        options.check_one_set(path, "an edge list that is not of KONECT's kind bip")
        return None
    if options.relabel or options.n is not None:
        what = "a bipartite KONECT graph states its size, and is not relabelled"
        raise UsageError(f"{path}: {what}; leave out --vertices and --relabel")
    if not options.bipartite:
        what = "a bipartite KONECT graph, whose columns number two sets of vertices"
        raise InputError(f"{path}:1: {what}; --bipartite reads it")
    most = head.sides
    if most is None:
        rules = LineRules(base=options.base)
        with TextFile(path) as file:
            largest = [x.max(axis=0) + 1 for x in read_pairs(file, rules)]
        rows, columns = np.max([(0, 0), *largest], axis=0).tolist()
        most = rows, columns
    return options.sides(*most, f"{path}:2", options.base)


class EdgeListWriter(Writer):
    """Writes edge lists: sizes in the first line, then one edge per line.

    If the vertices' ids are not consecutive, no sizes are written, and each vertex
    without edges gets a loop.
    """

    name = "edge-list"
    suffixes = EdgeListReader.suffixes
    keeps_ids = True
    packs = True

    def write(self, path: Path, graph: Edges) -> None:
        """Write a graph; InputError for ids that a line cannot hold."""
        ids = graph.ids
        way = "directed " if graph.directed else ""
        kind = f"{way}{'one-based ' if graph.one_based else ''}edge list"
        with text_file(path) as out:
            if ids is None or graph.one_based:
                head = f"# distbfs {kind}: {graph.n} vertices, {graph.m} edges\n"
                out.write(head.encode())
                for pairs in graph.chunks():
                    out.write(lines_of(pairs + graph.one_based))
                return
            words = "--relabel --directed" if graph.directed else "--relabel"
            head = f"# distbfs {kind} of ids; convert {words} reads it\n"
            out.write(head.encode())
            for pairs in graph.with_lone():
                out.write(lines_of_ids(pairs, ids))


def lines_of_ids(pairs: Ids, ids: IdMap) -> bytes:
    """Format pairs, int64 [k, 2], as lines of ids.

    Raises InputError for an id that a line cannot hold.
    """
    if isinstance(ids, IntegerIds):
        return lines_of(ids.named(pairs))
    names = ids.names(pairs.ravel())
    for name in names:
        if UNFIT.search(str(name)):
            raise InputError(
                f"id {str(name)[:SHOWN]!a} cannot stand in an edge list; write Parquet"
            )
    return ("%s %s\n" * len(pairs) % tuple(names)).encode()


def read_head(file: TextFile) -> Head:
    """Read the comments and blank lines before the first edge."""
    first = line = file.header_line()
    second = b""
    while line and (not line.strip(BLANK) or line.lstrip(BLANK)[:1] in b"#%"):
        line = file.header_line()
        second = second or line
    file.unread(line)
    stated, konect = STATED.fullmatch(first), KONECT.match(first)
    if stated:
        directed, n = bool(stated[1]), int(stated[3] or 0)
        if stated[3] is None:
            return Head(plain=True, directed=directed)
        if not 0 < n <= LARGEST_ID:
            raise file.refuse(f"{n} vertices", 1)
        one_based = bool(stated[2])
        return Head(n, int(stated[4]), one_based, plain=True, directed=directed)
    if konect is None:
        return Head()
    sizes = SIZES.match(second)
    sides = (int(sizes[1]), int(sizes[2])) if sizes else None
    return Head(one_based=True, plain=True, kind=konect[1].decode(), sides=sides)
