"""The options of ``distbfs compare``."""

from __future__ import annotations

from typing import Any

import click

from distbfs.cli.options import carry_out
from distbfs.terminal.command import DEVICES, OUTPUT, SEARCH, FilePath, grouped_command
from distbfs.terminal.options import STORE, energy_option, graph_options, output_options


@grouped_command("compare")
@click.argument("stores", type=STORE, nargs=-1, metavar="[STORE]...")
@SEARCH.option(
    "--engines",
    default="openmp,reference",
    help="Engines, as xbfs,xbfs-paper:frontier=scan-free,async=no,openmp/push.  "
    "[openmp,reference]",
)
@graph_options(sources=16, multiple=True)
@SEARCH.option(
    "--peers",
    "libraries",
    help="Other libraries, as scipy,igraph; all: those that are installed.",
)
@SEARCH.option(
    "--repeats",
    type=click.IntRange(1, 10_000),
    default=3,
    help="Searches from each source by each engine.  [3]",
)
@SEARCH.option("--baseline", help="Engine that speed-ups refer to; default: the first.")
@DEVICES.option(
    "--threads",
    default="0",
    help="Threads a rank, or several numbers as 1,2,4; 0: this rank's share of the "
    "cores.  [0]",
)
@OUTPUT.option(
    "--plot",
    type=FilePath(),
    help="Draw the GTEPS as bars; with several graphs or threads, time, speed-up and "
    "efficiency: a .png, .svg or .pdf file.",
)
@energy_option
@output_options
def command(**values: Any) -> Any:
    """Compare engines on each STORE, and on graphs that are built in memory.

    An engine is NAME or NAME/METHOD.  Options may follow a colon, separated by commas:
    frontier, balance, async (yes, no), direction, parents (yes, no), stepwise (yes,
    no), threads, k1 to k7 and ext.  The engines take turns on the same sources.  If
    they find different levels, the exit code is 1.

    Times are measured by events on a device, by the clock on CPUs.  A speed-up is a
    ratio of median times; an efficiency is the speed-up over the fewest threads,
    divided by the ratio of threads.  'Over limit' is the time divided by the time that
    memory alone would take for the least work of a search, both measured in this run.
    Edge checks, and repeats in frontiers, are counted in extra searches.  Of peers,
    only their call is timed.
    """
    return carry_out("compare", values)
