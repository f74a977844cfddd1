"""The options of ``distbfs convert``."""

from __future__ import annotations

from typing import Any

import click

from distbfs.cli.options import carry_out
from distbfs.terminal.command import INPUT, OUTPUT, InputPath, grouped_command
from distbfs.terminal.options import (
    PLACE,
    build_options,
    file_options,
    on_devices_option,
    output_options,
    permute_option,
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
def command(**values: Any) -> Any:
    """Read the graph file PATH and store it, as undirected without --directed.

    PATH may be compressed, a pipe, or - for standard input.
    """
    return carry_out("convert", values)
