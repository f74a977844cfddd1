"""What a command line or a file names of a graph: sources, targets, what to see."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from distbfs.errors import InputError, UsageError
from distbfs.formats.compressed import plain_name
from distbfs.formats.delimited import BLANKS, cut, quote_fault
from distbfs.formats.ids import IdMap, first_of, name_of, no_vertex
from distbfs.formats.packed import BinaryFile
from distbfs.formats.text import rereadable, text_lines
from distbfs.ranks.world import Ranks
from distbfs.search.view import View, check_attributes, flags_of
from distbfs.terminal.command import input_path
from distbfs.terminal.graphs import SearchedGraph
from distbfs.types import Ids, Marks, Root

COMMENT = re.compile("(?:^|[ \t])#")
QUOTED = re.compile('"[^"]*"')
NO_SEPARATOR = "\x1f"  # is in no id
SHOWN = 40


def read_sources(
    options: Sequence[str], path: Path | None, n: int, ids: IdMap | None
) -> Ids:
    """Return the sources of the command line and of a file, int64 [k].

    One id a line; ids are those of the file that the graph came from.
    Raises UsageError for what is no vertex.
    """
    sources = [source_of(word, "--source", n, ids) for word in options]
    if path is not None:
        sources += sources_in(path, n, ids)
    if not sources:
        raise UsageError("no source; give --source ID, or --sources FILE, an id a line")
    return np.array(sources, dtype=np.int64)


def sources_in(path: Path, n: int, ids: IdMap | None) -> list[int]:
    """Return the vertices that a file names, one a line."""
    sources = []
    for place, [word] in side_lines(path, NO_SEPARATOR):
        sources.append(source_of(word, place, n, ids))
    return sources


def side_lines(path: Path, separators: str) -> Iterator[tuple[str, list[str]]]:
    """Yield FILE:LINE and the ids of each line of a file that has some.

    separators: the first of them that is in a line outside quotes separates its ids.
    Ids may be quoted (RFC 4180); a ``#`` outside quotes, at the begin of a line or
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


def read_set(option: str, n: int, ids: IdMap | None) -> list[int]:
    """Return the vertices of one ``--source-set``, rising, each once.

    option: ids between commas, or @FILE with one a line.  Raises UsageError for none
    and for what is no vertex.
    """
    if option.startswith("@"):
        sources = sources_in(input_path(option[1:]), n, ids)
    else:
        words = [word.strip() for word in option.split(",")]
        sources = [source_of(x, "--source-set", n, ids) for x in words if x]
    if not sources:
        raise UsageError(f"--source-set: {option[:SHOWN]!a} names no vertex")
    return sorted(set(sources))


def agreed_target(
    world: Ranks, n: int, word: str | None, ids: IdMap | None
) -> int | None:
    """Return the vertex of ``--paths-to`` that rank 0 reads (collective)."""
    target: int | None = None
    if world.rank == 0 and word is not None:
        target = source_of(word, "--paths-to", n, ids, "target")
    return None if (agreed := world.broadcast(target)) is None else int(agreed)


def agreed_sources(
    world: Ranks, n: int, words: Sequence[str], path: Path | None, ids: IdMap | None
) -> Ids:
    """Return the sources that rank 0 reads (collective); see ``read_sources``."""
    sources = None
    if world.rank == 0:
        sources = read_sources(words, path, n, ids).tolist()
    return np.array(world.broadcast(sources), dtype=np.int64)


def agreed_roots(
    world: Ranks,
    n: int,
    words: Sequence[str],
    path: Path | None,
    sets: Sequence[str],
    ids: IdMap | None,
) -> list[Root]:
    """Return where each search begins: sources, then sets of them (collective).

    sets: see ``read_set``
    """
    each: list[list[int]] | None = None
    if world.rank == 0:
        each = [read_set(option, n, ids) for option in sets]
    if words or path is not None or not sets:
        sources = agreed_sources(world, n, words, path, ids).tolist()
    else:
        sources = []
    groups = [np.array(x, dtype=np.int64) for x in world.broadcast(each)]
    return [*sources, *(x if len(x) > 1 else int(x[0]) for x in groups)]


def source_of(
    word: str, place: str, n: int, ids: IdMap | None, what: str = "source"
) -> int:
    """Return the vertex of an id; UsageError ``PLACE: …`` where there is none."""
    first = first_of(ids)
    if ids is not None and first is None:
        vertex = ids.find(word)
        if vertex < 0:
            raise UsageError(f"{place}: {what} {word[:SHOWN]!a} is no id of the graph")
        return vertex
    first = first or 0
    if not re.fullmatch(r"-?[0-9]{1,40}", word):
        raise UsageError(
            f"{place}: {word[:SHOWN]!a} is no vertex id; allowed: {first} to "
            f"{first + n - 1}, or other ids if the graph was read with --relabel"
        )
    if not 0 <= int(word) - first < n:
        raise UsageError(f"{place}: {what} {int(word)} {no_vertex(n, first)}")
    return int(word) - first


def read_vertices(path: Path, n: int, ids: IdMap | None) -> Marks:
    """Return the vertices that a file names, bool [n].

    A ``.npy`` file holds a flag for each, any other file one id a line, ids of the file
    that the graph came from.  Raises InputError or UsageError for anything else.
    """
    if not plain_name(path).endswith(".npy"):
        flags = np.zeros(n, np.bool_)
        flags[read_sources((), path, n, ids)] = True
        return flags
    try:
        with BinaryFile(rereadable(path)) as file:
            array = np.lib.format.read_array(file.content, allow_pickle=False)
    except ValueError as error:
        what = " ".join(str(error).split())
        raise InputError(f"{path}: not a sound file: {what:.200}") from error
    return flags_of(array, f"{path}")


def agreed_view(
    world: Ranks, graph: SearchedGraph, where: str | None, path: Path | None
) -> View:
    """Return the view of a graph that rank 0 reads, on all ranks (collective)."""
    n, flags = graph.n, None
    if path is not None:
        own = np.zeros(0, np.uint8)
        if world.rank == 0:
            checked = View(n, read_vertices(path, n, graph.ids))
            own = np.packbits(checked.sees(np.arange(n)))
        flags = np.unpackbits(world.allgather(own)[0])[:n].view(np.bool_)
    view = View(n, flags, where=where)
    if view.where is not None:
        check_attributes(view.where, dict(graph.attributes))
    return view


def check_seen(
    world: Ranks, view: View, sources: Sequence[Root], ids: IdMap | None
) -> None:
    """Raise UsageError for a source that is not seen, by its id (collective)."""
    for root in sources:
        view.check_sources(
            np.atleast_1d(root),
            lambda some: [world.broadcast(name_of(int(some[0]), ids))],
        )
