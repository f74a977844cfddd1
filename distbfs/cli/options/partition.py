"""The options of ``distbfs partition``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from distbfs.cli.command import STORE, argument, command_of
from distbfs.cli.options import Speech, StoreOptions


@dataclass(frozen=True, kw_only=True)
class PartitionOptions(StoreOptions, Speech):
    """Store the graph of STORE again, in other parts or with another threshold."""

    store: Path = argument(STORE)


command = command_of("partition", PartitionOptions)
