"""``distbfs plot``: figures of comparisons, from result files."""

from __future__ import annotations

import json

from distbfs.benchmark.compare_plots import USUAL, draw_panels
from distbfs.cli.options.plot import PlotOptions
from distbfs.errors import DistbfsError, InputError
from distbfs.formats.text import read_text
from distbfs.report.plots import check_target


def run(asked: PlotOptions) -> None:
    """Run the command."""
    check_target(asked.output)
    text = read_text(asked.file)
    try:
        draw_panels(json.loads(text), asked.output, asked.kind or USUAL)
    except DistbfsError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        what = "no result of 'distbfs compare --json'"
        raise InputError(f"{asked.file}: {what}") from error
