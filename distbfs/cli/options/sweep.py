"""The options of ``distbfs sweep``."""

from __future__ import annotations

from typing import Any

import click

from distbfs.cli.options import carry_out
from distbfs.terminal.command import SEARCH, grouped_command
from distbfs.terminal.options import STORE, graph_options, output_options


@grouped_command("sweep")
@click.argument("store", type=STORE, required=False)
@SEARCH.option(
    "--knobs",
    default="all",
    metavar="all|K,...",
    help="Knobs of engine bfs4k to try, as k1,k4.  [all]",
)
@graph_options(sources=8, multiple=False)
@SEARCH.option(
    "--seconds",
    type=click.FloatRange(0),
    default=60.0,
    help="Begin no new trial after this many seconds.  [60]",
)
@output_options
def command(**values: Any) -> Any:
    """Find the best knobs of engine bfs4k for STORE or a graph built in memory.

    Tries the values of one knob after another, beginning with the knobs that the engine
    chooses itself.  Each trial takes turns with the best so far.  Prints the best in
    the form that --knobs takes.
    """
    return carry_out("sweep", values)
