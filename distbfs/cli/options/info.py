"""The options of ``distbfs info``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from distbfs.cli.command import GRAPH, argument, command_of
from distbfs.cli.options import FileOptions, Speech
from distbfs.options import OUTPUT, SEARCH, option


@dataclass(frozen=True, kw_only=True)
class InfoOptions(FileOptions, Speech):
    """Show GRAPH, a store or a file as for bfs.

    With --degrees all of a store is read, else its manifest alone.

    --verbose shows how a store is made: parts, delegates, bytes of each subgraph.

    degrees: Read all: degree distribution, components, a bound of the diameter.
    plot: File for the figure of --degrees.
    """

    graph: Path = argument(GRAPH)
    degrees: bool = option(SEARCH, default=False)
    plot: Path | None = option(OUTPUT)


command = command_of("info", InfoOptions)
