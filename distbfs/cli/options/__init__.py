"""Options that several commands have; no module that runs them is imported here."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from distbfs import registry
from distbfs.cli.command import borrowed
from distbfs.errors import UsageError
from distbfs.options import (
    ADVANCED,
    BUILDING,
    DEVICES,
    INPUT,
    OUTPUT,
    SEARCH,
    BuildOptions,
    EngineOptions,
    ExchangeOptions,
    FileFacts,
    SearchOptions,
    SubgraphFactors,
    option,
)

SPREAD = 1  # usual seed of the hash that spreads vertices over parts
SCALES: dict[str, Any] = {"low": 1, "high": 48}
SOURCES: dict[str, Any] = {"low": 1, "high": 1 << 20}


@dataclass(frozen=True, kw_only=True)
class Speech:
    """Options of the messages beside a result.

    as_json: Print the result as JSON.
    log_format: Format of messages on stderr.
    quiet: Print only results, warnings and errors.
    verbose: Print details: version and ranks, reasons for the engine, storage of the
        graph.
    """

    as_json: bool = option(OUTPUT, "--json", default=False)
    log_format: str = option(OUTPUT, default="text", allowed=("text", "json"))
    quiet: bool = option(OUTPUT, "-q", default=False)
    verbose: bool = option(OUTPUT, "-v", default=False)

    def __post_init__(self) -> None:
        if self.quiet and self.verbose:
            raise UsageError("give either --quiet or --verbose")


@dataclass(frozen=True, kw_only=True)
class ReverseOption:
    """The direction in which edges are followed.

    reverse: Follow the edges of a directed graph backwards, from target to source.
    """

    reverse: bool = option(SEARCH, default=False)


@dataclass(frozen=True, kw_only=True)
class PatienceOption:
    """The time after which a run without progress ends.

    patience: End the run with exit code 1 after this many seconds without progress
        between ranks; a slow rank of this host is waited for.  Default: no limit.
    """

    patience: float | None = option(ADVANCED, low=1)


@dataclass(frozen=True, kw_only=True)
class TraceOption:
    """The phases of searches.

    trace: File for the phases of all ranks, in Chrome's trace format; - is stdout.
    """

    trace: Path | None = option(OUTPUT)


@dataclass(frozen=True, kw_only=True)
class EnergyOption:
    """The energy of searches.

    energy: Repeat the searches and print the energy they take, by NVML and RAPL.
    """

    energy: bool = option(OUTPUT, default=False)


@dataclass(frozen=True, kw_only=True)
class PartsOptions:
    """Options of building a graph in parts.

    parts: Parts of the graph.  [one per rank]
    """

    parts: int | None = option(BUILDING, low=1)
    build: dict[str, Any] = borrowed(BuildOptions)


@dataclass(frozen=True, kw_only=True)
class StoreOptions(PartsOptions):
    """Options of storing a graph, and of the devices that build it.

    output: Folder of the store.
    force: Replace an existing store.
    on_devices: Build on CUDA devices, one per rank or more.  Vertices keep the order of
        ids; engine openmp searches such a store more slowly.
    """

    output: Path = option(OUTPUT, "-o", required=True)
    force: bool = option(OUTPUT, default=False)
    on_devices: bool = option(BUILDING, default=False)


@dataclass(frozen=True, kw_only=True)
class FileOptions(FileFacts):
    """Options of reading a graph file.

    format: Format of the file.  [recognised by content and name]
    relabel: Take ids with gaps, or any text: vertices are numbered anew, and results
        name them by these ids.
    """

    format: str | None = option(INPUT, allowed=tuple(registry.READERS))
    relabel: bool = option(INPUT, default=False)

    def refuse_for_store(self, path: Path) -> None:
        """Raise UsageError for options of files, except first_id, beside a store."""
        for item in fields(KeptOptions):
            value = getattr(self, item.name, item.default)
            if value != item.default and item.name != "first_id":
                spelt = item.name.replace("_", "-")
                raise UsageError(f"--{spelt} is for graph files, and {path} is a store")


@dataclass(frozen=True, kw_only=True)
class KeptOptions(FileOptions):
    """How a graph file is read, with attributes of its edges.

    keep: Keep a column of a table or an edge list as an attribute of the edges, for
        --where of bfs; NAME=3 keeps the third column under a name.  For a matrix, keep
        the values under this name.  May be given several times.  Repeated edges keep
        their smallest value.
    """

    keep: tuple[str, ...] = option(INPUT, default=(), metavar="COLUMN")


@dataclass(frozen=True, kw_only=True)
class SearchChoices:
    """Options of searches.

    devices: CUDA devices of each rank; default: its share of those of the host.
    domain: Devices of a domain, which search in shared memory; the last domain of a
        host may have fewer.  Default: all devices that map each other's memory.
    """

    devices: int | None = option(DEVICES, low=1)
    domain: int | None = option(DEVICES, low=1)
    search: dict[str, Any] = borrowed(
        SearchOptions, SubgraphFactors, EngineOptions, ExchangeOptions
    )
