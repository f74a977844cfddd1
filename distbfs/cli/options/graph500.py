"""The options of ``distbfs graph500``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from distbfs.cli.command import STORE, command_of
from distbfs.cli.options import (
    SCALES,
    SOURCES,
    EnergyOption,
    PartsOptions,
    PatienceOption,
    SearchChoices,
    Speech,
    TraceOption,
)
from distbfs.options import INPUT, OUTPUT, SEARCH, option


@dataclass(frozen=True, kw_only=True)
class Graph500Options(
    TraceOption, EnergyOption, PartsOptions, SearchChoices, PatienceOption, Speech
):
    """Run the Graph500 benchmark: kernels 1 and 2, validation, official report.

    scale: 2^scale vertices.
    edge_factor: Tuples per vertex.
    seed: Seed of tuples and roots.
    directed: Edges lead one way, from the first end of a tuple to the second; the
        result is not official.
    graph: Search this store instead of a new graph.
    roots: Number of searches.
    skip_validation: Do not validate; the result is not official.
    validate: Validate only this many searches, the first ones; the result is not
        official.
    records: File for one line of JSON per level, from one more search of each root; -
        is stdout.
    """

    scale: int | None = option(INPUT, "-s", **SCALES)
    edge_factor: int = option(INPUT, default=16, low=1, high=4096)
    seed: int = option(INPUT, default=1)
    directed: bool = option(INPUT, default=False)
    graph: Path | None = option(INPUT, kind=STORE)
    roots: int = option(SEARCH, default=64, **SOURCES)
    skip_validation: bool = option(SEARCH, default=False)
    validate: int | None = option(SEARCH, low=1)
    records: Path | None = option(OUTPUT)


command = command_of("graph500", Graph500Options)
