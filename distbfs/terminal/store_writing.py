"""What the commands that write a store have in common."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from distbfs.build.host.parts import BuildSummary, check_alone
from distbfs.errors import StoreError, UsageError
from distbfs.exchange.device_choice import take_devices
from distbfs.options import BuildOptions
from distbfs.partition.layout import Placement
from distbfs.report.tables import counted, print_fields
from distbfs.store.write import write_graph
from distbfs.terminal.options import StoreOptions
from distbfs.terminal.shared import AT_ONCE, Terminal, stop_requests
from distbfs.types import TupleSource

GRAPH = ("n", "m", "tuples", "loops", "repeats")  # what ``graph_fields`` says


def summary_fields(summary: BuildSummary) -> dict[str, Any]:
    """Return the figures of a build that are reported."""
    return {
        "n": summary.n,
        "m": summary.m,
        "tuples": summary.tuples,
        "loops": summary.loops,
        "repeats": summary.repeats,
        "parts": summary.parts,
        "threshold": summary.threshold,
        "delegates": summary.delegates,
        **{f"{name}_edges": count for name, count in summary.edges.items()},
        "passes": summary.passes,
        "generation_seconds": summary.generation_seconds,
        "construction_seconds": summary.construction_seconds,
        **({"making": summary.making} if summary.making else {}),
    }


def graph_fields(values: Mapping[str, Any], *, directed: bool) -> dict[str, Any]:
    """Return the sizes of a graph as text, by name.

    values: those of GRAPH
    """
    edges = values["m"] if directed else values["m"] // 2
    loops = counted(values["loops"], "loop")
    repeats = counted(values["repeats"], "repeat")
    tuples = f"{counted(values['tuples'], 'edge')}, of them {loops} and {repeats}"
    return {
        "vertices": values["n"],
        "edges": f"{edges}, directed" if directed else edges,
        "input": tuples,
    }


def check_target(
    terminal: Terminal, asked: StoreOptions, parts: int, *, directed: bool = False
) -> None:
    """Refuse, before a long read, what ``store_graph`` would refuse after it."""
    output = asked.output
    Placement(parts, terminal.world.size)
    if directed:
        check_alone(parts, terminal.world.size)
    if os.path.lexists(output) and not asked.force:
        raise StoreError(f"{output} exists; give --force to replace it")
    if not Path(os.path.realpath(output)).parent.is_dir():
        raise StoreError(f"{output}: the folder {output.parent} does not exist")


def devices_to_build(
    terminal: Terminal, asked: StoreOptions, *, directed: bool = False
) -> list[int] | None:
    """Return this rank's CUDA devices, None where they are not to build.

    Raises UsageError for what they do not build.
    """
    if not asked.on_devices:
        return None
    if directed:
        raise UsageError("--on-devices builds symmetric graphs, not --directed ones")
    return take_devices(terminal.world, share=False)


def store_graph(
    terminal: Terminal,
    source: TupleSource,
    asked: StoreOptions,
    options: BuildOptions,
    **original: Any,
) -> None:
    """Build and store a graph and print what came of it (collective).

    original: devices to build on, and what is known of the source; see ``write_graph``
    """
    world, output = terminal.world, asked.output
    with stop_requests(AT_ONCE):
        summary = write_graph(
            world,
            source,
            output,
            asked.parts or world.size,
            options,
            overwrite=asked.force,
            progress=terminal.progress,
            **original,
        )
    values = {"store": str(output), **summary_fields(summary)}
    seconds = summary.generation_seconds + summary.construction_seconds
    graph = {
        "store": str(output),
        **graph_fields(values, directed=options.directed),
        **({"parts": summary.parts} if summary.parts > 1 else {}),
        "seconds": seconds,
    }

    def text() -> None:
        print_fields(graph)
        if terminal.verbose:
            click.echo()
            above = {*GRAPH, *graph}
            stored = {k: v for k, v in values.items() if k not in above}
            print_fields({"stored edges m": summary.m, **stored})

    terminal.result(values, text)
