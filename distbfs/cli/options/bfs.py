"""The options of ``distbfs bfs``."""

from __future__ import annotations

from typing import Any

import click

from distbfs.cli.options import carry_out
from distbfs.terminal.command import (
    INPUT,
    OUTPUT,
    SEARCH,
    FilePath,
    InputPath,
    grouped_command,
)
from distbfs.terminal.options import (
    GRAPH,
    energy_option,
    file_options,
    output_options,
    paths_options,
    patience_option,
    search_options,
    trace_option,
)


@grouped_command("bfs")
@click.argument("graph", type=GRAPH)
@INPUT.option(
    "--source",
    "-s",
    "words",
    multiple=True,
    help="Source vertex, by its id in the file; may be given several times.",
)
@INPUT.option(
    "--sources",
    "sources_file",
    type=InputPath(),
    help="File with one source a line; - is standard input.",
)
@INPUT.option(
    "--source-set",
    "sets",
    metavar="IDS|@FILE",
    multiple=True,
    help="Search from several vertices at once: levels are hops from the nearest.  Ids "
    "separated by commas, or a file with one id a line; may be given several times.",
)
@OUTPUT.option(
    "--output",
    "-o",
    type=FilePath(),
    help="File for levels and parents: a table in .csv or .tsv, where - is CSV on "
    "stdout; or an HDF5 file in .h5 or .hdf5, resumed if it is unfinished.",
)
@OUTPUT.option("--records", type=FilePath(), help="File for one line of JSON a level.")
@SEARCH.option(
    "--where",
    help="Search only edges that meet this condition on the attributes that --keep "
    "kept, as 'weight < 3'.",
)
@SEARCH.option(
    "--vertices",
    "vertices_file",
    type=InputPath(),
    help="Search only these vertices: a file with one id a line, or a .npy file with a "
    "flag for each vertex.",
)
@OUTPUT.option("--force", is_flag=True, help="Replace an output that is there.")
@file_options
@paths_options
@trace_option
@energy_option
@search_options
@patience_option
@output_options
def command(**values: Any) -> Any:
    """Search GRAPH breadth-first: the folder of a store, or a file, - for stdin.

    A file is read as by convert, with the same options; convert stores the graph, which
    makes later searches faster.  Vertices have the ids of the file.
    """
    return carry_out("bfs", values)
