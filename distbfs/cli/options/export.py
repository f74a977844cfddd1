"""The options of ``distbfs export``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from distbfs import registry
from distbfs.cli.command import STORE, argument, command_of
from distbfs.cli.options import Speech
from distbfs.options import OUTPUT, option


@dataclass(frozen=True, kw_only=True)
class ExportOptions(Speech):
    """Write the edges of STORE, each once, without loops and repeats.

    convert reads a directed graph back with --directed.  Rank 0 writes, the others
    wait.

    output: File to write; text is compressed if the name ends in .gz, .bz2, .xz or
        .zst. - is stdout, with an edge list unless --format is given.
    force: Replace an existing file.
    format: Format of the file; default: by its ending.
    """

    store: Path = argument(STORE)
    output: Path = option(OUTPUT, "-o", required=True)
    force: bool = option(OUTPUT, default=False)
    format: str | None = option(OUTPUT, allowed=tuple(registry.WRITERS))


command = command_of("export", ExportOptions)
