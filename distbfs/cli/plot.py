"""``distbfs plot``: figures from result files."""

from __future__ import annotations

import json

import click

from distbfs.benchmark.compare_figures import comparisons_of
from distbfs.benchmark.compare_plots import KINDS, USUAL, draw_panels
from distbfs.cli.options.plot import EngineFigure, Figure, RankFigure
from distbfs.errors import DistbfsError, InputError, UsageError
from distbfs.formats.text import read_text
from distbfs.leftovers import DASH
from distbfs.report.plots import check_target, draw_trace
from distbfs.report.trace import read_trace


def check_output(asked: Figure) -> None:
    """Raise an error, before drawing, if the figure cannot be written."""
    if asked.as_json and asked.output == DASH:
        raise UsageError("- is stdout, for one output alone, without --json")
    check_target(asked.output)


def draw_ranks(asked: RankFigure) -> None:
    """Run ``plot trace``."""
    file, output = asked.file, asked.output
    check_output(asked)
    events = read_trace(file)
    draw_trace(events, output, asked.begin, asked.end, file.name)
    if asked.as_json:
        seconds: dict[str, dict[str, float]] = {}
        for event in events:
            rank = seconds.setdefault(str(event["pid"]), {})
            name = event["name"]
            rank[name] = rank.get(name, 0.0) + event["dur"] / 1e6
        click.echo(json.dumps({"ranks": seconds}, indent=2))


def draw_engines(asked: EngineFigure) -> None:
    """Run ``plot compare``."""
    file, output = asked.file, asked.output
    check_output(asked)
    text = read_text(file)
    try:
        values = json.loads(text)
        chosen = asked.kind or USUAL
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
    if asked.as_json:
        click.echo(json.dumps(rows, indent=2))
