"""Graphs that commands read: a file in any known format, or a store."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.formats.attributes import Values
from distbfs.formats.base import ReaderOptions
from distbfs.formats.ids import first_of
from distbfs.formats.tuples import FileTuples, open_tuples
from distbfs.options import BuildOptions
from distbfs.search.holding import Source
from distbfs.store.hdf5 import open_store
from distbfs.terminal.options import SPREAD, FileOptions
from distbfs.terminal.shared import Terminal, is_file, stored_graph

if TYPE_CHECKING:
    from distbfs.formats.ids import IdMap


def read_file(
    terminal: Terminal, path: Path, reading: FileOptions, n: int | None = None
) -> FileTuples:
    """Return the edge tuples of a file (collective); n: how many vertices there are."""
    size = path.stat().st_size if path.is_file() else 0
    with terminal.progress("reading", size) as done:
        reader = ReaderOptions(
            one_based=reading.one_based,
            first_id=reading.first_id,
            n=n,
            columns=reading.columns,
            header=reading.header,
            bipartite=reading.bipartite,
            relabel="numbers" if reading.relabel else "",
            directed=reading.directed,
            progress=done,
        )
        return open_tuples(
            terminal.world,
            path,
            name=reading.format or "",
            options=reader,
            keep=reading.keep,
        )


@dataclass(frozen=True)
class SearchedGraph:
    """A graph that is searched.

    ids: of its file, on rank 0; facts: what tells it from others (JSON values)
    attributes: of its edges, of none of them
    """

    source: Source
    ids: IdMap | None
    facts: list[Any]
    attributes: Mapping[str, Values]

    @property
    def n(self) -> int:
        """How many vertices there are."""
        return self.source.n


def open_graph(
    terminal: Terminal, stack: ExitStack, path: Path, reading: FileOptions, threads: int
) -> SearchedGraph:
    """Open a store, or read a file into memory (collective).

    stack: what lets go of the file's edges; threads: of a rank that builds the graph
    """
    if not is_file(path):
        reading.refuse_for_store(path)
        return of_store(terminal, path, reading.first_id)
    tuples = stack.enter_context(read_file(terminal, path, reading))
    for note in tuples.notes:
        terminal.say(note)
    parts = terminal.world.size
    source = Source(
        tuples.n,
        parts,
        reading.directed,
        tuples=tuples,
        build=BuildOptions(
            permute_seed=SPREAD if parts > 1 else None,
            directed=reading.directed,
            threads=threads,
        ),
        progress=terminal.progress,
    )
    facts = [
        tuples.describe(),
        first_of(tuples.ids),
        reading.directed,
        reading.relabel,
        reading.bipartite,
    ]
    held = {k: Values(x.array[:0], x.words) for k, x in tuples.attributes.items()}
    return SearchedGraph(source, tuples.ids, facts, held)


def of_store(
    terminal: Terminal, path: Path, first_id: int | None = None
) -> SearchedGraph:
    """Open a store; first_id: as ``Store.load_ids`` takes it."""
    store = open_store(path)
    manifest = store.manifest
    digests = manifest.digests[0]
    facts = [manifest.n, digests["vertices"], digests["nn/columns"], manifest.source]
    facts += [] if manifest.ids is None else [manifest.ids.digests]
    held = {
        name: Values(np.zeros(0, np.int32), manifest.words_of(name))
        for name in manifest.attributes
    }
    ids = store.load_ids(first_id) if terminal.world.rank == 0 else None
    facts += [f"vertices from {first} on"] if (first := first_of(ids)) else []
    return SearchedGraph(stored_graph(terminal, store), ids, facts, held)
