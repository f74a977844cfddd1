"""``distbfs partition``: store a graph again in another number of parts."""

from __future__ import annotations

import os
from pathlib import Path

from distbfs.errors import UsageError
from distbfs.progress import Sum
from distbfs.store.hdf5 import open_store
from distbfs.store.tuples import StoreTuples, spreading_seed, tuple_degrees_for
from distbfs.terminal.options import Speech
from distbfs.terminal.shared import (
    make_build_options,
    need_symmetric,
    open_terminal,
    share_of_cores,
)
from distbfs.terminal.store_writing import check_target, devices_to_build, store_graph
from distbfs.types import TupleSource


def run(
    store: Path,
    output: Path,
    force: bool,
    on_devices: bool,
    parts: int | None,
    threshold: int | None,
    pass_gib: float,
    speech: Speech,
) -> None:
    """Run the command; see ``cli/options/partition.py``."""
    terminal = open_terminal(speech)
    target = Path(os.path.realpath(output))
    if Path(os.path.realpath(store)) in (target, *target.parents):
        raise UsageError(
            f"{output}: is the store that is read, or in it; name another folder"
        )
    world, opened = terminal.world, open_store(store)
    manifest = opened.manifest
    need_symmetric(opened, "partition")
    count = parts or world.size
    check_target(terminal, output, count, force=force)
    seed = spreading_seed(opened, count)
    options = make_build_options(
        threshold=threshold,
        pass_gib=pass_gib,
        permute_seed=seed,
        threads=share_of_cores(world),
    )
    source: TupleSource = StoreTuples(opened)
    devices = shared = None
    if on_devices:
        from distbfs.search.shared_tuples import SharedTuples  # noqa: PLC0415 - of CUDA

        devices = devices_to_build(terminal, directed=False)
        with terminal.progress("loading", 0) as tell:
            source = shared = SharedTuples(world, opened, devices, Sum(tell))
    store_graph(
        terminal,
        source,
        output,
        count,
        options,
        force=force,
        devices=devices,
        tuple_degrees=tuple_degrees_for(world, opened, count, seed),
        counts=(manifest.tuples, manifest.loops, manifest.repeats),
        described=manifest.source,
        ids=opened.load_ids() if world.rank == 0 else None,
    )
    if shared is not None:
        shared.close()
