"""The options of ``distbfs plot``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from distbfs.benchmark.compare_plots import KINDS
from distbfs.cli.command import InputPath, argument, command_of
from distbfs.options import OUTPUT, option


@dataclass(frozen=True, kw_only=True)
class PlotOptions:
    """Draw the results of 'distbfs compare --json' in FILE.

    Bars for each graph and engine; lines where engines ran with several threads.

    output: Figure: .png, .svg or .pdf; - is SVG on stdout.
    kind: What to draw, one panel each.  [time, speedup, efficiency]
    """

    file: Path = argument(InputPath())
    output: Path = option(OUTPUT, "-o", required=True)
    kind: tuple[str, ...] = option(OUTPUT, default=(), allowed=tuple(KINDS))


command = command_of("plot", PlotOptions)
