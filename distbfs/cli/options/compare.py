"""The options of ``distbfs compare``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from distbfs.cli.command import STORE, argument, command_of
from distbfs.cli.options import SOURCES, EnergyOption, Speech
from distbfs.options import DEVICES, INPUT, OUTPUT, SEARCH, option


@dataclass(frozen=True, kw_only=True)
class CompareOptions(EnergyOption, Speech):
    """Compare engines on each STORE.

    An engine is NAME or NAME/METHOD.  Options may follow a colon, separated by commas:
    frontier, balance, async (yes, no), direction, parents (yes, no), stepwise (yes,
    no), threads, k1 to k7 and ext.  The engines take turns on the same sources, each
    time in another order.  If they find different levels, the exit code is 1.

    Times are measured by events on a device, by the clock on CPUs.  A speed-up is a
    ratio of median times; an efficiency is the speed-up over the fewest threads,
    divided by the ratio of threads.  'Over limit' is the time divided by the time that
    memory alone would take for the least work of a search, both measured in this run.
    Edge checks are counted in extra searches.  For peers, only the library call is
    timed.

    sources: Number of searches, from vertices of the largest component.
    seed: Seed of sources.
    engines: Engines, such as xbfs,xbfs-paper:frontier=scan-free,async=no,openmp/push.
    peers: Other libraries, such as scipy,igraph; all: the installed ones.
    repeats: Searches from each source by each engine.
    baseline: Engine that speed-ups refer to; default: the first.
    threads: Threads per rank, or several numbers as 1,2,4; 0: this rank's share of the
        cores.
    plot: Draw the median times as bars; with several graphs or threads, time, speed-up
        and efficiency: a .png, .svg or .pdf file.
    """

    stores: tuple[Path, ...] = argument(STORE, "STORE...", nargs=-1, required=True)
    sources: int = option(INPUT, default=16, **SOURCES)
    seed: int = option(INPUT, default=1)
    engines: str = option(SEARCH, default="openmp,reference")
    libraries: str | None = option(SEARCH, "--peers")
    repeats: int = option(SEARCH, default=3, low=1, high=10_000)
    baseline: str | None = option(SEARCH)
    threads: str = option(DEVICES, default="0")
    plot: Path | None = option(OUTPUT)


command = command_of("compare", CompareOptions)
