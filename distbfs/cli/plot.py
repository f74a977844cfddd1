"""``distbfs plot``: figures from result files."""

from __future__ import annotations

import json

from distbfs.benchmark.compare_plots import USUAL, draw_panels
from distbfs.cli.options.plot import EngineFigure, RankFigure
from distbfs.errors import DistbfsError, InputError
from distbfs.formats.text import read_text
from distbfs.report.plots import check_target, draw_trace
from distbfs.report.trace import read_trace


def draw_ranks(asked: RankFigure) -> None:
    """Run ``plot trace``."""
    file, output = asked.file, asked.output
    check_target(output)
    draw_trace(read_trace(file), output, asked.begin, asked.end, file.name)


def draw_engines(asked: EngineFigure) -> None:
    """Run ``plot compare``."""
    check_target(asked.output)
    text = read_text(asked.file)
    try:
        draw_panels(json.loads(text), asked.output, asked.kind or USUAL)
    except DistbfsError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        what = "no result of 'distbfs compare --json'"
        raise InputError(f"{asked.file}: {what}") from error
