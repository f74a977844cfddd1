"""The options of ``distbfs info``."""

from __future__ import annotations

from typing import Any

import click

from distbfs.cli.options import carry_out
from distbfs.terminal.command import OUTPUT, SEARCH, FilePath, grouped_command
from distbfs.terminal.options import STORE, output_options


@grouped_command("info")
@click.argument("store", type=STORE)
@SEARCH.option(
    "--degrees",
    is_flag=True,
    help="Read all parts: degree distribution, components, about the diameter.",
)
@OUTPUT.option("--plot", type=FilePath(), help="Figure of --degrees to draw.")
@output_options
def command(**values: Any) -> Any:
    """Show the graph of STORE; with --degrees all is read, else its manifest alone.

    --verbose shows how it is stored: parts, delegates, bytes of each subgraph.
    """
    return carry_out("info", values)
