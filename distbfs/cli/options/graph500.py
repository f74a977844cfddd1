"""The options of ``distbfs graph500``."""

from __future__ import annotations

from typing import Any

import click

from distbfs.cli.options import carry_out
from distbfs.terminal.command import INPUT, OUTPUT, SEARCH, FilePath, grouped_command
from distbfs.terminal.options import (
    STORE,
    build_options,
    energy_option,
    output_options,
    patience_option,
    search_options,
    trace_option,
)


@grouped_command("graph500")
@INPUT.option("--scale", "-s", type=click.IntRange(1, 48), help="2^scale vertices.")
@INPUT.option(
    "--edge-factor",
    type=click.IntRange(1, 4096),
    default=16,
    help="Tuples per vertex.  [16]",
)
@INPUT.option("--seed", type=int, default=1, help="Seed of tuples and roots.  [1]")
@INPUT.option("--graph", type=STORE, help="Search this store instead of a new graph.")
@SEARCH.option(
    "--roots", type=click.IntRange(1, 1 << 20), default=64, help="Searches.  [64]"
)
@SEARCH.option(
    "--skip-validation",
    is_flag=True,
    help="Do not validate; the result is not official.",
)
@SEARCH.option(
    "--validate",
    type=click.IntRange(1),
    help="Validate only the first so many searches; the result is not official.",
)
@OUTPUT.option(
    "--records",
    type=FilePath(),
    help="File for one line of JSON a level, from one more search of each root.",
)
@trace_option
@energy_option
@build_options
@search_options
@patience_option
@output_options
def command(**values: Any) -> Any:
    """Run the Graph500 benchmark: kernels 1 and 2, validation, official report."""
    return carry_out("graph500", values)
