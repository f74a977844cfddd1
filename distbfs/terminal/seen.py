"""What of a graph searches see, by a command line: a predicate, a file of vertices."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from distbfs.errors import InputError
from distbfs.formats.compressed import plain_name
from distbfs.formats.ids import name_of
from distbfs.formats.packed import BinaryFile
from distbfs.formats.text import rereadable
from distbfs.search.view import View, check_attributes, flags_of
from distbfs.terminal.sources import read_sources

if TYPE_CHECKING:
    from collections.abc import Sequence

    from distbfs.formats.ids import IdMap
    from distbfs.ranks.world import Ranks
    from distbfs.terminal.graph_file import SearchedGraph
    from distbfs.types import Marks, Root


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
