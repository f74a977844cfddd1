"""The options of ``distbfs plot``."""

from __future__ import annotations

from typing import Any

import click

from distbfs.benchmark.compare_plots import KINDS
from distbfs.cli.options import carry_out
from distbfs.terminal.command import (
    INPUT,
    OUTPUT,
    Choice,
    Command,
    FilePath,
    InputPath,
    with_options,
)

figure_options = with_options(
    click.argument("file", type=InputPath()),
    OUTPUT.option(
        "--output",
        "-o",
        type=FilePath(),
        required=True,
        help="Figure: .png, .svg or .pdf.",
    ),
)


@click.group("plot", invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Draw figures from result files; each kind prints its values with --json."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@command.command("trace", cls=Command)
@figure_options
@INPUT.option(
    "--begin",
    type=click.FloatRange(0),
    default=0.0,
    help="Milliseconds from which to draw.  [0]",
)
@INPUT.option("--end", type=click.FloatRange(0), help="Milliseconds up to which.")
@OUTPUT.option(
    "--json", "as_json", is_flag=True, help="Print the seconds of each phase."
)
def trace(**values: Any) -> None:
    """Draw what each rank did when, from a FILE that --trace wrote."""
    carry_out("plot", values, "draw_ranks")


@command.command("compare", cls=Command)
@figure_options
@OUTPUT.option(
    "--kind",
    "kinds",
    type=Choice(list(KINDS)),
    multiple=True,
    help="What to draw, one panel each.  [time, speedup, efficiency]",
)
@OUTPUT.option("--json", "as_json", is_flag=True, help="Print the values drawn.")
def compare(**values: Any) -> None:
    """Draw what 'distbfs compare --json' wrote to FILE.

    Bars a graph and engine; lines over threads where engines ran with several.
    """
    carry_out("plot", values, "draw_engines")
