"""``distbfs verify``: check every byte and rule of a store."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import click
import numpy as np

from distbfs.cli.options.verify import VerifyOptions
from distbfs.errors import StoreError, legible
from distbfs.report.tables import shown
from distbfs.store.hdf5 import Store, open_store
from distbfs.store.verify import Verification, check_ids, check_totals, verify_part
from distbfs.terminal.shared import open_terminal
from distbfs.types import SUBGRAPHS, World

HASHES = ("nn_forward", "nn_reverse")
COUNTS = ("parts", "degree_sum", "tuple_ends")


def verify_mine(
    world: World, store: Store, progress: Callable[[int], None]
) -> tuple[Verification, list[tuple[int, str]]]:
    """Check the parts of this rank one after another.

    Returns the sums, and (part, finding) pairs; an unreadable part is a finding.
    """
    result = Verification()
    findings: list[tuple[int, str]] = []
    indices = range(world.rank, store.manifest.parts, world.size)
    for done, index in enumerate(indices, 1):
        verify_part(result, store, index)
        findings += [(index, line) for line in result.findings[len(findings) :]]
        progress(done)
    return result, findings


def verify_on_ranks(
    world: World, store: Store, progress: Callable[[int], None]
) -> Verification:
    """Check a store with every rank taking its share of the parts (collective).

    As ``store.verify.verify_store``, the same on all ranks; delegates of parts on
    different ranks are equal because their digests in the manifest are.
    """
    own, findings = verify_mine(world, store, progress)
    result = Verification(
        delegates=own.delegates, delegate_degrees=own.delegate_degrees
    )
    text = np.frombuffer(json.dumps(findings).encode(), dtype=np.uint8)
    pairs = [
        pair for one in world.allgather(text) for pair in json.loads(one.tobytes())
    ]
    result.findings = [line for _, line in sorted(pairs, key=lambda pair: pair[0])]
    edges = [own.edges[name] for name in SUBGRAPHS]
    counts = np.array(
        [*edges, *(getattr(own, name) for name in COUNTS)], dtype=np.int64
    )
    edge_sums, sums = np.split(world.allreduce(counts), [len(edges)])
    result.edges = dict(zip(SUBGRAPHS, edge_sums.tolist(), strict=True))
    for name, value in zip(COUNTS, sums.tolist(), strict=True):
        setattr(result, name, value)
    hashes = np.array([getattr(own, name) for name in HASHES], dtype=np.uint64)
    for name, value in zip(HASHES, world.allreduce(hashes).tolist(), strict=True):
        setattr(result, name, value)
    rows = np.zeros(store.manifest.delegates, dtype=np.int64)
    if own.parts:
        rows += own.delegate_rows
    result.delegate_rows = world.allreduce(rows)
    if result.parts == store.manifest.parts and world.rank == 0:
        check_totals(result, store)
    if world.rank == 0:
        check_ids(result, store)
    result.findings = world.broadcast(result.findings)
    return result


def array_bytes(store: Store) -> int:
    """Return the bytes of all arrays of a store."""
    manifest = store.manifest
    ids = 0 if manifest.ids is None else manifest.ids.array_bytes
    return ids + sum(record.array_bytes for record in manifest.records)


def print_verification(values: dict[str, Any]) -> None:
    """Print what was found, one finding a line, or that all is well."""
    for finding in values["findings"]:
        click.echo(legible(finding, None))
    if values["ok"]:
        parts = "1 part" if values["parts"] == 1 else f"{shown(values['parts'])} parts"
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
        result = verify_on_ranks(world, opened, progress)
    values = {
        "store": str(store),
        **result.as_dict(),
        "bytes": array_bytes(opened),
        "seconds": time.perf_counter() - began,
    }
    terminal.result(values, lambda: print_verification(values))
    if not result.ok:
        count = len(result.findings)
        number = "1 finding" if count == 1 else f"{count} findings, the first"
        first = result.findings[0].removeprefix(f"{store}/")
        raise StoreError(f"{store}: {number}: {first}")
