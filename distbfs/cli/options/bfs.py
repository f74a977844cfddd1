"""The options of ``distbfs bfs``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from distbfs.cli.command import GRAPH, InputPath, argument, command_of
from distbfs.cli.options import (
    EnergyOption,
    KeptOptions,
    PatienceOption,
    ReverseOption,
    SearchChoices,
    Speech,
    TraceOption,
)
from distbfs.options import COUNT_DTYPES, INPUT, OUTPUT, SEARCH, option


@dataclass(frozen=True, kw_only=True)
class BfsOptions(
    KeptOptions,
    TraceOption,
    EnergyOption,
    ReverseOption,
    SearchChoices,
    PatienceOption,
    Speech,
):
    """Search GRAPH breadth-first: the folder of a store, or a file, - for stdin.

    A file is read as by convert, with the same options; convert stores the graph, which
    makes later searches faster.  Vertices have the ids of the file.

    source: Source vertex, by its id in the file; may be given several times.
    sources: File with one source per line; - is standard input.
    source_set: Search from several vertices at once: levels count from the nearest one.
        Ids separated by commas, or a file with one id per line; may be given several
        times.
    output: File for levels and parents: a table in .csv, .tsv or .parquet, where - is
        CSV on stdout; or an HDF5 file in .h5 or .hdf5, resumed if it is unfinished.
    records: File for one line of JSON per level; - is stdout.
    where: Search only edges that meet this condition on the attributes that --keep
        kept, such as 'weight < 3'.
    vertices: Search only these vertices: a file with one id per line, or a .npy file
        with a flag for each vertex.
    force: Replace an existing output.
    counts: Count the shortest paths to each vertex, exactly or rounded, as 'paths' of
        the output.
    paths_to: Print the shortest paths to a vertex.
    most_paths: Largest number of paths that --paths-to prints.
    depth_limit: Search this many levels.
    edges: File in .csv, .tsv or .parquet for the edges between reached vertices, with
        the levels of both ends, for one source; - is CSV on stdout.
    """

    graph: Path = argument(GRAPH)
    source: tuple[str, ...] = option(INPUT, "-s", default=())
    sources: Path | None = option(INPUT, kind=InputPath())
    source_set: tuple[str, ...] = option(INPUT, default=(), metavar="IDS|@FILE")
    output: Path | None = option(OUTPUT, "-o")
    records: Path | None = option(OUTPUT)
    where: str | None = option(SEARCH)
    vertices: Path | None = option(SEARCH, kind=InputPath())
    force: bool = option(OUTPUT, default=False)
    counts: str | None = option(SEARCH, allowed=COUNT_DTYPES)
    paths_to: str | None = option(SEARCH, metavar="VERTEX")
    most_paths: int = option(SEARCH, default=10, low=0)
    depth_limit: int | None = option(SEARCH, low=0)
    edges: Path | None = option(OUTPUT)


command = command_of("bfs", BfsOptions)
