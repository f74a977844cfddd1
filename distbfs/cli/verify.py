"""``distbfs verify``: check every byte and rule of a store."""

from __future__ import annotations

import time
from typing import Any

import click

from distbfs.cli.options.verify import VerifyOptions
from distbfs.cli.shared import open_terminal
from distbfs.errors import StoreError, legible
from distbfs.report.tables import counted, shown
from distbfs.store.hdf5 import Store, open_store
from distbfs.store.verify import verify_store


def array_bytes(store: Store) -> int:
    """Return the bytes of all arrays of a store."""
    manifest = store.manifest
    ids = 0 if manifest.ids is None else manifest.ids.array_bytes
    return ids + sum(record.array_bytes for record in manifest.records)


def print_verification(values: dict[str, Any]) -> None:
    """Print the findings, one per line, or that there are none."""
    for finding in values["findings"]:
        click.echo(legible(finding, None))
    if values["ok"]:
        parts = counted(values["parts"], "part")
        click.echo(
            f"{shown(values['store'])}: all is well; {parts}, "
            f"{shown(sum(values['edges'].values()))} edges and "
            f"{shown(values['bytes'])} bytes checked in {values['seconds']:.3g} s"
        )


def run(asked: VerifyOptions) -> None:
    """Run the command."""
    terminal, store = open_terminal(asked), asked.store
    world, opened = terminal.world, open_store(store)
    began = time.perf_counter()
    share = len(range(world.rank, opened.manifest.parts, world.size))
    with terminal.progress("verifying", share) as progress:
        result = verify_store(opened, progress, world)
    values = {
        "store": str(store),
        **result.as_dict(),
        "bytes": array_bytes(opened),
        "seconds": time.perf_counter() - began,
    }
    terminal.result(values, lambda: print_verification(values))
    if not result.ok:
        number = counted(len(result.findings), "finding")
        number += ", the first" * (len(result.findings) > 1)
        first = result.findings[0].removeprefix(f"{store}/")
        raise StoreError(f"{store}: {number}: {first}")
