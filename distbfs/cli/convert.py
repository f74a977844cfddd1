"""``distbfs convert``: read somebody's graph file and store it."""

from __future__ import annotations

from pathlib import Path

import click

from distbfs import registry
from distbfs.formats.base import ReaderOptions
from distbfs.formats.tuples import open_tuples
from distbfs.terminal.shared import (
    PLACE,
    build_options,
    directed_option,
    make_build_options,
    open_terminal,
    output_options,
    share_of_cores,
)
from distbfs.terminal.store_writing import (
    check_target,
    devices_to_build,
    on_devices_option,
    store_graph,
)


@click.command("convert")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--output", "-o", type=PLACE, required=True, help="Folder of the store.")
@click.option("--force", is_flag=True, help="Replace a store that is there.")
@click.option(
    "--format",
    "name",
    type=click.Choice(list(registry.READERS)),
    help="Format of the file; default: found out by content, then by name.",
)
@click.option(
    "--one-based/--zero-based",
    default=None,
    help="Ids of an edge list, a table or NumPy pairs begin at 1 or 0; other formats "
    "say.  [zero-based; KONECT: one-based]",
)
@click.option(
    "--relabel",
    is_flag=True,
    help="Number the vertices anew: ids may be sparse, or any text; they are kept, and "
    "results name them.",
)
@click.option(
    "--columns",
    nargs=2,
    metavar="SRC DST",
    help="Columns that hold the ids, by their names in a Parquet or Arrow table or in "
    "the first line of an edge list; default: src and dst, source and target, from and "
    "to, or u and v, or the first two.  The first line of an edge list names columns "
    "if it has such a pair and the next lines have no such ids, or if integers follow.",
)
@click.option(
    "--keep",
    multiple=True,
    metavar="COLUMN",
    help="Keep a column of a table or an edge list, or, under any name, the values of "
    "a matrix, as an attribute of the edges, for --where of bfs: its name, or "
    "NAME=PLACE, from 1; may be given several times.  Of repeated edges the smallest "
    "value is kept.",
)
@click.option(
    "--bipartite",
    is_flag=True,
    help="Rows of a matrix are the vertices from 0 on, columns those that follow: "
    "Matrix Market, SciPy, and KONECT files of kind bip.",
)
@click.option(
    "--vertices",
    "-n",
    type=click.IntRange(1),
    help="Vertices of edge lists, NumPy pairs and Graph500 edges; default: largest "
    "id + 1.",
)
@click.option(
    "--permute-seed",
    type=click.IntRange(0, (1 << 64) - 1),
    default=1,
    help="Seed of the hash that spreads vertices over parts.  [1]",
)
@build_options
@on_devices_option
@directed_option
@output_options
def command(
    path: Path,
    output: Path,
    force: bool,
    name: str | None,
    one_based: bool | None,
    relabel: bool,
    columns: tuple[str, str] | None,
    keep: tuple[str, ...],
    bipartite: bool,
    vertices: int | None,
    permute_seed: int,
    parts: int | None,
    threshold: int | None,
    pass_gib: float,
    on_devices: bool,
    directed: bool,
    json_output: bool,
    log_format: str,
) -> None:
    """Read the graph file PATH and store it, as undirected without --directed."""
    terminal = open_terminal(json_output=json_output, log_format=log_format)
    count = parts or terminal.world.size
    check_target(terminal, output, count, force=force, directed=directed)
    options = make_build_options(
        threshold=threshold,
        pass_gib=pass_gib,
        permute_seed=permute_seed if count > 1 else None,
        threads=share_of_cores(terminal.world),
        directed=directed,
    )
    devices = devices_to_build(terminal, directed=directed) if on_devices else None
    size = path.stat().st_size if path.is_file() else 0
    with terminal.progress("reading", size) as done:
        reader = ReaderOptions(
            one_based=one_based,
            n=vertices,
            columns=columns,
            bipartite=bipartite,
            relabel="numbers" if relabel else "",
            directed=directed,
            progress=done,
        )
        source = open_tuples(
            terminal.world, path, name=name or "", options=reader, keep=keep
        )
    with source:
        store_graph(
            terminal,
            source,
            output,
            count,
            options,
            force=force,
            ids=source.ids,
            devices=devices,
        )
    for note in source.notes:
        terminal.say(note)
