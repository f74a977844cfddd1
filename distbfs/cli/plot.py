"""``distbfs plot``: figures from result files."""

from __future__ import annotations

import json
from pathlib import Path

import click

from distbfs.benchmark.compare_figures import comparisons_of
from distbfs.benchmark.compare_plots import KINDS, USUAL, draw_panels
from distbfs.errors import DistbfsError, InputError
from distbfs.formats.text import read_text
from distbfs.report.plots import check_target, draw_trace
from distbfs.report.trace import read_trace
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
def trace(
    file: Path, output: Path, begin: float, end: float | None, as_json: bool
) -> None:
    """Draw what each rank did when, from a FILE that --trace wrote."""
    check_target(output)
    events = read_trace(file)
    draw_trace(events, output, begin, end, file.name)
    if as_json:
        seconds: dict[str, dict[str, float]] = {}
        for event in events:
            rank = seconds.setdefault(str(event["pid"]), {})
            name = event["name"]
            rank[name] = rank.get(name, 0.0) + event["dur"] / 1e6
        click.echo(json.dumps({"ranks": seconds}, indent=2))


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
def compare(file: Path, output: Path, kinds: tuple[str, ...], as_json: bool) -> None:
    """Draw what 'distbfs compare --json' wrote to FILE.

    Bars a graph and engine; lines over threads where engines ran with several.
    """
    check_target(output)
    text = read_text(file)
    try:
        values = json.loads(text)
        chosen = kinds or USUAL
        draw_panels(values, output, chosen)
        rows = [
            {
                "graph": one["graph"]["title"],
                "engine": engine["engine"],
                **{kind: engine[KINDS[kind][0]] for kind in chosen},
            }
            for one in comparisons_of(values)
            for engine in one["engines"]
        ]
    except DistbfsError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{file}: no result of 'distbfs compare --json'") from error
    if as_json:
        click.echo(json.dumps(rows, indent=2))
