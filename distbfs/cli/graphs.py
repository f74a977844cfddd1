"""Graphs that commands read from files or stores, and stores that they write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from distbfs.build.host.parts import BuildSummary
from distbfs.cli.options import SPREAD, FileOptions, ReverseOption, StoreOptions
from distbfs.cli.shared import (
    AT_ONCE,
    Terminal,
    is_file,
    share_of_cores,
    stop_requests,
)
from distbfs.exchange.device_choice import take_devices
from distbfs.formats.attributes import Values
from distbfs.formats.base import ReaderOptions
from distbfs.formats.ids import IdMap, first_of
from distbfs.formats.tuples import FileTuples, open_tuples
from distbfs.graph.degrees import DegreeHistogram, merge
from distbfs.options import BuildOptions, FileFacts
from distbfs.partition.layout import Placement
from distbfs.partition.part import KIND
from distbfs.report.tables import counted, print_fields
from distbfs.search.holding import Source
from distbfs.store.atomic_folder import checked_target
from distbfs.store.hdf5 import Store, open_store, read_array
from distbfs.store.write import write_graph
from distbfs.types import SUBGRAPHS, Array, Ids, TupleSource


def read_file(
    terminal: Terminal, path: Path, reading: FileOptions, n: int | None = None
) -> FileTuples:
    """Return the edge tuples of a file (collective); n: number of vertices."""
    size = path.stat().st_size if path.is_file() else 0
    with terminal.progress("reading", size) as done:
        options = ReaderOptions(
            n=n,
            relabel="numbers" if reading.relabel else "",
            progress=done,
            **{x.name: getattr(reading, x.name) for x in fields(FileFacts)},
        )
        name, keep = reading.format or "", getattr(reading, "keep", ())
        return open_tuples(terminal.world, path, name=name, options=options, keep=keep)


@dataclass(frozen=True)
class SearchedGraph:
    """A graph that is searched.

    path: path of its store or file
    ids: the ids in its file, on rank 0; facts: JSON values that identify the graph
    attributes: attributes of its edges
    """

    path: Path
    source: Source
    ids: IdMap | None
    facts: list[Any]
    attributes: Mapping[str, Values]

    def reversed(self) -> SearchedGraph:
        """Return the graph with all edges reversed."""
        facts = [*self.facts, "reversed"]
        return replace(self, source=self.source.reversed(), facts=facts)


def open_graph(
    terminal: Terminal, stack: ExitStack, path: Path, reading: FileOptions, threads: int
) -> SearchedGraph:
    """Open a store, or read a file into memory (collective).

    stack: frees the file's edges when it is closed
    threads: number of threads of a rank that builds the graph
    """
    graph = graph_of(terminal, stack, path, reading, threads)
    backwards = isinstance(reading, ReverseOption) and reading.reverse
    return graph.reversed() if backwards else graph


def graph_of(
    terminal: Terminal, stack: ExitStack, path: Path, reading: FileOptions, threads: int
) -> SearchedGraph:
    """Return a graph with its edges as they are; see ``open_graph``."""
    if not is_file(path):
        reading.refuse_for_store(path)
        return of_store(terminal, path, reading.first_id)
    tuples = stack.enter_context(read_file(terminal, path, reading))
    for note in tuples.notes:
        terminal.say(note)
    seed = SPREAD if terminal.world.size > 1 else None
    directed = reading.directed
    source = terminal.source(tuples, threads, directed=directed, permute_seed=seed)
    facts = [tuples.describe(), first_of(tuples.ids)]
    facts += [reading.directed, reading.relabel, reading.bipartite]
    held = {k: Values(x.array[:0], x.words) for k, x in tuples.attributes.items()}
    return SearchedGraph(path, source, tuples.ids, facts, held)


def of_store(
    terminal: Terminal, path: Path, first_id: int | None = None
) -> SearchedGraph:
    """Open a store; first_id: see ``Store.load_ids``."""
    store = open_store(path)
    manifest = store.manifest
    digests = manifest.records[0].digests
    facts = [manifest.n, digests["vertices"], digests["nn/columns"], manifest.source]
    facts += [] if manifest.ids is None else [manifest.ids.digests]
    held = {
        name: Values(np.zeros(0, np.int32), manifest.words_of(name))
        for name in manifest.attributes
    }
    ids = store.load_ids(first_id) if terminal.world.rank == 0 else None
    facts += [f"vertices from {first} on"] if (first := first_of(ids)) else []
    return SearchedGraph(path, terminal.source(store), ids, facts, held)


COUNTS = ("tuples", "loops", "repeats")
GRAPH = ("vertices", "edges", "stored_edges", *COUNTS)  # what ``graph_fields`` says
UNREPORTED = ("n", "m", "edges", "histogram")  # of a build, under these names


def sizes_of(n: int, m: int, *, directed: bool) -> dict[str, int]:
    """Return the numbers of vertices and edges, as users count them and as stored."""
    edges = m if directed else m // 2
    return {"vertices": n, "edges": edges, "stored_edges": m}


def summary_fields(summary: BuildSummary, *, directed: bool) -> dict[str, Any]:
    """Return the figures of a build that are reported."""
    facts = {k: x for k, x in vars(summary).items() if k not in UNREPORTED and x != ""}
    edges = {f"{name}_edges": count for name, count in summary.edges.items()}
    return {**sizes_of(summary.n, summary.m, directed=directed), **facts, **edges}


def graph_fields(values: Mapping[str, Any], *, directed: bool) -> dict[str, Any]:
    """Return the sizes of a graph as text, by name.

    values: values by the names in GRAPH
    """
    edges = values["edges"]
    loops = counted(values["loops"], "loop")
    repeats = counted(values["repeats"], "repeat")
    tuples = f"{counted(values['tuples'], 'edge')}, of them {loops} and {repeats}"
    return {
        "vertices": values["vertices"],
        "edges": f"{edges}, directed" if directed else edges,
        "input": tuples,
    }


def check_target(terminal: Terminal, asked: StoreOptions, parts: int) -> None:
    """Raise, before a long read, the errors that ``store_graph`` would raise later."""
    Placement(parts, terminal.world.size)
    checked_target(asked.output, overwrite=asked.force)


def devices_to_build(terminal: Terminal, asked: StoreOptions) -> list[int] | None:
    """Return the CUDA devices of this rank that build, None if the host builds."""
    if not asked.on_devices:
        return None
    return take_devices(terminal.world, share=False)


def store_graph(
    terminal: Terminal,
    source: TupleSource,
    asked: StoreOptions,
    *,
    directed: bool,
    seed: int | None = None,
    reading_seconds: float | None = None,
    **original: Any,
) -> None:
    """Build and store a graph, and print a summary (collective).

    seed: seed of the hash that spreads vertices over parts, None for their order
    reading_seconds: seconds of reading the file, which count as construction
    original: devices to build on, and facts about the source; see ``write_graph``
    """
    world, output = terminal.world, asked.output
    options = BuildOptions(
        **asked.build,
        permute_seed=seed,
        threads=share_of_cores(world),
        directed=directed,
    )
    with stop_requests(AT_ONCE):
        summary = write_graph(
            world,
            source,
            output,
            asked.parts or world.size,
            options,
            overwrite=asked.force,
            progress=terminal.progress,
            **original,
        )
    values = {
        "store": str(output),
        **summary_fields(summary, directed=directed),
    }
    seconds = summary.generation_seconds + summary.construction_seconds
    if reading_seconds is not None:
        values["reading_seconds"] = reading_seconds
        seconds += reading_seconds
    graph = {
        "store": str(output),
        **graph_fields(values, directed=directed),
        **({"parts": summary.parts} if summary.parts > 1 else {}),
        "seconds": seconds,
    }

    def text() -> None:
        print_fields(graph)
        if terminal.speech.verbose:
            click.echo()
            above = {*GRAPH, *graph}
            stored = {k: v for k, v in values.items() if k not in above}
            print_fields({"stored edges m": summary.m, **stored})

    terminal.result(values, text)


def of_all_parts(
    store: Store, terminal: Terminal, names: Iterable[str]
) -> Iterator[tuple[int, str, Array]]:
    """Yield (part, name, array) of some arrays of each part of a store."""
    records = store.manifest.records
    with terminal.progress("reading degrees", len(records)) as done:
        for index, record in enumerate(records):
            with store.part_file(index) as datasets:
                for name in names:
                    digest = record.digests[name]
                    yield index, name, read_array(datasets[name], name, digest)
            done(index + 1)


def degrees_of(store: Store, terminal: Terminal) -> DegreeHistogram:
    """Return the degrees of a stored graph, read from one array of each part."""
    every = of_all_parts(store, terminal, ["degrees"])
    counted = [np.unique(degrees, return_counts=True) for *_, degrees in every]
    return DegreeHistogram(*merge([(values, counts) for values, counts in counted]))


def row_lengths(store: Store, terminal: Terminal) -> DegreeHistogram:
    """Return the lengths of all rows of a directed graph, of edges out and in.

    Those of a vertex are summed over subgraphs, those of a delegate over parts, too.
    """
    names = [f"{name}/offsets" for name in store.manifest.records[0].subgraphs]
    sums: dict[tuple[bool, int], Ids] = {}
    for part, name, offsets in of_all_parts(store, terminal, names):
        subgraph = name.partition("/")[0]
        of_delegates = KIND[subgraph] in ("dn", "dd")
        rows = subgraph in SUBGRAPHS, -1 if of_delegates else part
        ends = offsets.astype(np.int64)
        sums[rows] = ends[1:] - ends[:-1] + sums.get(rows, 0)
    every = np.concatenate(list(sums.values()))
    return DegreeHistogram(*np.unique(every, return_counts=True))
