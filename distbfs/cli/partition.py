"""``distbfs partition``: store a graph again in another number of parts."""

from __future__ import annotations

import os
from pathlib import Path

from distbfs.cli.graphs import check_target, devices_to_build, store_graph
from distbfs.cli.options.partition import PartitionOptions
from distbfs.cli.shared import open_terminal
from distbfs.errors import UsageError
from distbfs.progress import Sum
from distbfs.store.hdf5 import open_store
from distbfs.store.tuples import StoreTuples, spreading_seed, tuple_degrees_for
from distbfs.types import TupleSource


def run(asked: PartitionOptions) -> None:
    """Run the command."""
    terminal = open_terminal(asked)
    target = Path(os.path.realpath(asked.output))
    if Path(os.path.realpath(asked.store)) in (target, *target.parents):
        raise UsageError(
            f"{asked.output}: is the store that is read, or inside it; name another "
            "folder"
        )
    world, opened = terminal.world, open_store(asked.store)
    manifest = opened.manifest
    count = asked.parts or world.size
    check_target(terminal, asked, count)
    seed = spreading_seed(opened, count)
    source: TupleSource = StoreTuples(opened)
    devices = shared = None
    if asked.on_devices:
        from distbfs.search.shared_tuples import SharedTuples  # noqa: PLC0415 - of CUDA

        devices = devices_to_build(terminal, asked) or []
        with terminal.progress("loading", 0) as tell:
            source = shared = SharedTuples(world, opened, devices, Sum(tell))
    store_graph(
        terminal,
        source,
        asked,
        directed=manifest.directed,
        seed=seed,
        devices=devices,
        tuple_degrees=tuple_degrees_for(world, opened, count, seed),
        counts=(manifest.tuples, manifest.loops, manifest.repeats),
        described=manifest.source,
        ids=opened.load_ids() if world.rank == 0 else None,
    )
    if shared is not None:
        shared.close()
