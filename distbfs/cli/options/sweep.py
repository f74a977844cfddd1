"""The options of ``distbfs sweep``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from distbfs.cli.command import STORE, argument, command_of
from distbfs.cli.options import SOURCES, GraphOptions, Speech
from distbfs.options import INPUT, SEARCH, option


@dataclass(frozen=True, kw_only=True)
class SweepOptions(GraphOptions, Speech):
    """Find the best knobs of engine bfs4k for STORE or a graph built in memory.

    Tries the values of one knob after another, beginning with the knobs that the engine
    chooses itself.  Each trial takes turns with the best so far.  Prints the best in
    the form that --knobs takes.

    knobs: Knobs of engine bfs4k to try, as k1,k4.
    seconds: Begin no new trial after this many seconds.
    """

    store: Path | None = argument(STORE, default=None)
    sources: int = option(INPUT, default=8, **SOURCES)
    knobs: str = option(SEARCH, default="all", metavar="all|K,...")
    seconds: float = option(SEARCH, default=60.0, low=0)


command = command_of("sweep", SweepOptions)
