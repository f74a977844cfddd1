"""Matrix Market coordinate files: an entry (i, j) is an edge; values are ignored.

A symmetric matrix gives each edge once, as the file does, and an entry on the diagonal
gives one loop; a skew-symmetric matrix has no entries there. The kernel of edge lists
parses these files. fast_matrix_market is not faster, allocates memory for the entries
that a header claims, and accepts extra columns and diagonals of skew-symmetric
matrices. Source:
Boisvert, Pozo, Remington, The Matrix Market Exchange Formats: Initial Design, NISTIR
5935 (1996).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from distbfs.formats.base import EdgeFile, Reader
from distbfs.formats.lines import LineRules
from distbfs.formats.pairs import read_pairs
from distbfs.formats.text import TextFile
from distbfs.formats.writing import Edges, Writer, lines_of, text_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from distbfs.types import Ids

BANNERS = b"%%matrixmarket", b"%matrixmarket"  # the other: in Network Repository
COLUMNS = {"pattern": 2, "integer": 3, "real": 3, "double": 3, "complex": 4}
ALLOWED = {
    "object": ("matrix",),
    "format": ("coordinate",),
    "field": tuple(COLUMNS),
    "symmetry": ("general", "symmetric", "skew-symmetric", "hermitian"),
}


class MatrixMarketReader(Reader):
    """Reads Matrix Market files, where row i and column i are one vertex.

    With ``bipartite``, rows and columns are two sets of vertices.
    """

    name = "matrix-market"
    bipartite = True
    suffixes = (".mtx", ".mm")
    sized = ("a Matrix Market file", 1)
    mark = re.compile(b"%?%matrixmarket", re.IGNORECASE)

    def pairs(self, file: TextFile, edges: EdgeFile) -> Iterator[Ids]:
        """Yield the entries; InputError for any departure from the format."""
        field, symmetry, banner = self.header(file)
        if symmetry != "general":
            self.options.check_undirected(file.path, f"a {symmetry} matrix")
            self.options.check_one_set(file.path, f"a {symmetry} matrix")
        rows, columns, entries = self.sizes(file, symmetry, banner)
        where = f"{file.path}:{file.line - 1}"
        sides = self.options.sides(rows, columns, where, base=1)
        rules = LineRules(
            comments="%",
            quotes=False,
            fields=COLUMNS[field],
            base=1,
            most_u=rows,
            most_v=columns,
            loops=symmetry != "skew-symmetric",
        )
        edges.n, edges.notes, edges.one_based = sides.n, sides.notes, True
        edges.unread = "" if field == "pattern" else "values"
        yield from map(sides.place, read_pairs(file, rules, entries))

    @staticmethod
    def header(file: TextFile) -> tuple[str, str, bytes]:
        """Read the banner line; return field, symmetry and banner."""
        line = file.header_line()
        if not line:
            raise file.refuse("the file is empty")
        words = line.lower().split()
        if not words or words[0] not in BANNERS:
            raise file.refuse("the file does not begin with %%MatrixMarket", 1)
        if len(words) != 1 + len(ALLOWED):
            raise file.refuse(
                f"{len(words) - 1} words after %%MatrixMarket, where "
                f"{', '.join(ALLOWED)} are expected",
                1,
            )
        kinds = [word.decode("ascii", "backslashreplace") for word in words[1:]]
        for word, (what, allowed) in zip(kinds, ALLOWED.items(), strict=True):
            if word not in allowed:
                names = ", ".join(allowed)
                raise file.refuse(f"{what} {word!a}; allowed: {names}", 1)
        return kinds[2], kinds[3], words[0]

    @staticmethod
    def sizes(file: TextFile, symmetry: str, banner: bytes) -> tuple[int, int, int]:
        """Read comments and the size line; return rows, columns, entries."""
        line = file.line_after(b"%")
        if not line:
            raise file.refuse_last("no size line")
        lacking, words = "the size line needs rows, columns and entries", line.split()
        if len(words) == 2 and banner == BANNERS[1]:  # vertices and entries
            words.insert(0, words[0])
        rows, columns, entries = file.sizes(words, 3, lacking)
        if symmetry != "general" and rows != columns:
            what = f"a {symmetry} matrix of {rows} rows and {columns} columns"
            raise file.refuse_last(what)
        return rows, columns, entries


class MatrixMarketWriter(Writer):
    """Writes pattern matrices: general for directed graphs, else symmetric.

    A symmetric matrix is written as its lower triangle.
    """

    name = "matrix-market"
    suffixes = MatrixMarketReader.suffixes
    first = 1
    packs = True

    def write(self, path: Path, graph: Edges) -> None:
        """Write a graph by vertex numbers, counted from 1."""
        kind = "general" if graph.directed else "symmetric"
        head = f"%%MatrixMarket matrix coordinate pattern {kind}\n"
        with text_file(path) as out:
            out.write(f"{head}{graph.n} {graph.n} {graph.m}\n".encode())
            for pairs in graph.chunks():
                entries = pairs if graph.directed else pairs[:, ::-1]
                out.write(lines_of(entries + 1))
