"""The options of ``distbfs info``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from distbfs.cli.command import STORE, argument, command_of
from distbfs.cli.options import Speech
from distbfs.options import OUTPUT, SEARCH, option


@dataclass(frozen=True, kw_only=True)
class InfoOptions(Speech):
    """Show the graph of STORE, from its manifest alone without --degrees.

    --verbose shows how it is stored: parts, delegates, bytes of each subgraph.

    degrees: Read all parts: degree distribution, components, a bound of the diameter.
    plot: File for the figure of --degrees.
    """

    store: Path = argument(STORE)
    degrees: bool = option(SEARCH, default=False)
    plot: Path | None = option(OUTPUT)


command = command_of("info", InfoOptions)
