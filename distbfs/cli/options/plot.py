"""The options of ``distbfs plot``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from distbfs.benchmark.compare_plots import KINDS
from distbfs.cli.command import InputPath, argument, command_of
from distbfs.options import INPUT, OUTPUT, option


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure from a file.

    output: Figure: .png, .svg or .pdf; - is SVG on stdout.
    """

    file: Path = argument(InputPath())
    output: Path = option(OUTPUT, "-o", required=True)


@dataclass(frozen=True, kw_only=True)
class RankFigure(Figure):
    """Draw the phases of each rank over time, from a FILE of --trace.

    begin: Milliseconds from which to draw.
    end: Milliseconds up to which to draw.
    """

    begin: float = option(INPUT, default=0.0, low=0)
    end: float | None = option(INPUT, low=0)


@dataclass(frozen=True, kw_only=True)
class EngineFigure(Figure):
    """Draw the results of 'distbfs compare --json' in FILE.

    Bars for each graph and engine; lines where engines ran with several threads.

    kind: What to draw, one panel each.  [time, speedup, efficiency]
    """

    kind: tuple[str, ...] = option(OUTPUT, default=(), allowed=tuple(KINDS))


@click.group("plot", invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Draw figures from result files."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


command.add_command(command_of("trace", RankFigure, run="plot.draw_ranks"))
command.add_command(command_of("compare", EngineFigure, run="plot.draw_engines"))
