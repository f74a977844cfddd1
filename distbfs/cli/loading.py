"""What the commands that search a store have in common."""

from __future__ import annotations

from typing import Any

from distbfs.cli.common import Terminal
from distbfs.errors import ResourceError
from distbfs.options import SearchOptions
from distbfs.partition.layout import Placement
from distbfs.search.session import Session
from distbfs.store.hdf5 import Store
from distbfs.store.tuples import permutation_of


def load_session(terminal: Terminal, store: Store, options: SearchOptions) -> Session:
    """Load this rank's parts of a store and make them ready to search (collective).

    Raises LaunchError where the parts do not divide by the ranks, ResourceError where
    memory does not last.
    """
    world = terminal.world
    mine = Placement(store.manifest.parts, world.size).parts_of(world.rank)
    try:
        parts = []
        with terminal.progress("loading", len(mine)) as done:
            for index in mine:
                parts.append(store.load_part(index))
                done(len(parts))
        return Session(world, parts, options, permutation_of(store), terminal.say)
    except MemoryError as error:
        need = sum(store.part_bytes(index) for index in mine)
        raise ResourceError(
            f"{store.folder}: the parts of rank {world.rank} hold {need} bytes, and a "
            "search needs more; there is not enough memory"
        ) from error


def engine_line(session: Session) -> str:
    """Return one line that says what searches run on."""
    told: dict[str, Any] = session.describe()
    threads = told.get("threads", 1)
    return (
        f"engine {told['engine']} ({told['method']}), {threads} threads a rank, "
        f"{told['mode']}, exchange {told['exchange']}"
    )
