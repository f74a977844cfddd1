"""The options of ``distbfs export``."""

from __future__ import annotations

from typing import Any

import click

from distbfs import registry
from distbfs.cli.options import carry_out
from distbfs.terminal.command import OUTPUT, Choice, FilePath, grouped_command
from distbfs.terminal.options import STORE, output_options


@grouped_command("export")
@click.argument("store", type=STORE)
@OUTPUT.option(
    "--output",
    "-o",
    type=FilePath(),
    required=True,
    help="File to write; text is compressed where it ends in .gz, .bz2, .xz or .zst.  "
    "- is stdout, with an edge list unless --format is given.",
)
@OUTPUT.option("--force", is_flag=True, help="Replace a file that is there.")
@OUTPUT.option(
    "--format",
    "name",
    type=Choice(list(registry.WRITERS)),
    help="Format of the file; default: by its ending.",
)
@output_options
def command(**values: Any) -> Any:
    """Write the edges of STORE, each once, without loops and repeats.

    convert reads a directed graph back with --directed.  Rank 0 writes, the others
    wait.
    """
    return carry_out("export", values)
