"""The options of ``distbfs convert``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from distbfs.cli.command import InputPath, argument, command_of
from distbfs.cli.options import SPREAD, KeptOptions, Speech, StoreOptions
from distbfs.options import ADVANCED, INPUT, option


@dataclass(frozen=True, kw_only=True)
class ConvertOptions(KeptOptions, StoreOptions, Speech):
    """Convert the graph file PATH to a store, undirected without --directed.

    PATH may be compressed, a pipe, or - for standard input.

    vertices: Vertices of edge lists, NumPy pairs and Graph500 edges; default: largest
        id + 1.
    permute_seed: Seed of the hash that spreads vertices over parts.
    """

    path: Path = argument(InputPath())
    vertices: int | None = option(INPUT, "-n", low=1)
    permute_seed: int = option(ADVANCED, default=SPREAD, low=0, high=(1 << 64) - 1)


command = command_of("convert", ConvertOptions)
