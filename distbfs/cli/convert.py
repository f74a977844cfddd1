"""``distbfs convert``: read somebody's graph file and store it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from distbfs.terminal.command import INPUT, OUTPUT, InputPath, grouped_command
from distbfs.terminal.graph_file import (
    FileOptions,
    file_options,
    permute_option,
    read_file,
)
from distbfs.terminal.shared import (
    PLACE,
    Speech,
    build_options,
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


@grouped_command("convert")
@click.argument("path", type=InputPath())
@OUTPUT.option("--output", "-o", type=PLACE, required=True, help="Folder of the store.")
@OUTPUT.option("--force", is_flag=True, help="Replace a store that is there.")
@file_options
@INPUT.option(
    "--vertices",
    "-n",
    type=click.IntRange(1),
    help="Vertices of edge lists, NumPy pairs and Graph500 edges; default: largest "
    "id + 1.",
)
@permute_option
@build_options
@on_devices_option
@output_options
def command(
    path: Path,
    output: Path,
    force: bool,
    vertices: int | None,
    permute_seed: int,
    parts: int | None,
    threshold: int | None,
    pass_gib: float,
    on_devices: bool,
    speech: Speech,
    **choices: Any,
) -> None:
    """Read the graph file PATH and store it, as undirected without --directed.

    PATH may be compressed, a pipe, or - for standard input.
    """
    terminal = open_terminal(speech)
    reading = FileOptions.taken(choices)
    directed = reading.directed
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
    source = read_file(terminal, path, reading, vertices)
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
