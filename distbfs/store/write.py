"""Writing of a store from edge tuples: each part is written when it is built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path

from msgspec import json

from distbfs.build.host.kept import attributes_of, construct_kept, with_attributes
from distbfs.build.host.parts import BuildSummary
from distbfs.formats.ids import IdMap, first_of
from distbfs.generate.derived import Counted
from distbfs.options import BuildOptions
from distbfs.partition.device_part import parts_to_host
from distbfs.partition.layout import Placement
from distbfs.partition.part import Part
from distbfs.progress import Progress, Stages, Sum, no_progress
from distbfs.ranks.agreement import gather_texts
from distbfs.store.atomic_folder import new_token
from distbfs.store.hdf5 import StoreWriter
from distbfs.store.schema import AttributeFacts, Manifest, PartRecord
from distbfs.store.schema import attributes_of as schema_attributes
from distbfs.types import Ids, TupleSource, World


def relabel_record(seed: int | None) -> dict[str, object]:
    """Return the manifest's entry for the permutation of vertices."""
    return {"method": "none"} if seed is None else {"method": "hash", "seed": seed}


def write_graph(
    world: World,
    source: TupleSource,
    folder: Path,
    parts: int,
    options: BuildOptions,
    *,
    overwrite: bool = False,
    tuple_degrees: dict[int, Ids] | None = None,
    counts: tuple[int, int, int] | None = None,
    described: dict[str, object] | None = None,
    ids: IdMap | None = None,
    devices: Sequence[int] | None = None,
    progress: Progress = no_progress,
) -> BuildSummary:
    """Build the parts of a graph and write them as a store (collective).

    tuple_degrees, counts, described: facts about the original tuples, if ``source`` is
    not the original: ends of tuples for each part of this rank, by local id; numbers of
    tuples, loops and repeats; the description
    ids: the vertices' ids in their input file, on rank 0
    devices: CUDA devices of this rank, which build its parts in turn; None to build on
    the host
    progress: shows building, and writing of each part

    Raises StoreError if the folder must not be written, ResourceError if the disk is
    full; after an error, no files are left behind.
    """
    placement = Placement(parts, world.size)
    token = world.broadcast(new_token() if world.rank == 0 else None)
    records: list[PartRecord] = []
    described_attributes: dict[str, AttributeFacts] = {}
    writing = StoreWriter(folder, overwrite, token)
    with writing as writer, Stages(progress) as stages:

        def sink(part: Part) -> None:
            if tuple_degrees is not None:
                by_number = tuple_degrees[part.index][part.vertices]
                part.tuple_degrees[:] = by_number
            label = f"writing part {part.index}"
            described_attributes.update(schema_attributes(part))
            records.append(writer.write_part(part, stages.stage(label)))

        if devices is None:
            tell = stages.stage("building", source.tuples // world.size)
            counted = Counted(source, tell)
            summary = construct_kept(source, world, parts, options, sink, counted)
        else:
            from distbfs.build.cuda.parts import (  # noqa: PLC0415 - of CUDA
                construct_on_devices,
            )

            count = placement.per_rank
            dealt = [devices[k % len(devices)] for k in range(count)]
            done = Sum(stages.stage("building"))
            made, summary = construct_on_devices(
                source, world, placement, options, devices=dealt, done=done
            )
            options = replace(options, order_block=1)
            on_host = parts_to_host(world, made)
            if attributes_of(source):
                seed = options.permute_seed
                on_host = with_attributes(source, world, list(on_host), seed)
            for part in on_host:
                sink(part)
        every = gather_records(world, records)
        world.barrier()
        if counts is not None:
            tuples, loops, repeats = counts
            summary = replace(summary, tuples=tuples, loops=loops, repeats=repeats)
        if world.rank == 0:
            first = first_of(ids)
            kept = writer.write_ids(ids) if ids is not None and first is None else None
            writer.finish(
                Manifest(
                    n=summary.n,
                    tuples=summary.tuples,
                    threshold=summary.threshold,
                    delegates=summary.delegates,
                    source=described or source.describe(),
                    relabel=relabel_record(options.permute_seed),
                    order_block=options.order_block,
                    loops=summary.loops,
                    repeats=summary.repeats,
                    records=tuple(every),
                    statistics=summary.histogram.summary(),
                    ids=kept,
                    first_id=first or 0,
                    attributes=described_attributes,
                )
            )
        world.barrier()
    return summary


def gather_records(world: World, records: list[PartRecord]) -> list[PartRecord]:
    """Return the records of all ranks in the order of parts (collective)."""
    rounds = [gather_texts(world, json.encode(one).decode()) for one in records]
    every = (json.decode(x, type=PartRecord) for texts in rounds for x in texts)
    return sorted(every, key=attrgetter("index"))
