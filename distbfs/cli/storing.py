"""What the commands that write a store have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from distbfs.cli.common import Terminal
from distbfs.options import BuildOptions
from distbfs.partition.construct import BuildSummary
from distbfs.report.tables import print_fields
from distbfs.store.write import write_graph
from distbfs.types import TupleSource


def summary_fields(summary: BuildSummary) -> dict[str, Any]:
    """Return what a build is reported by."""
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
    }


def store_graph(
    terminal: Terminal,
    source: TupleSource,
    output: Path,
    parts: int | None,
    options: BuildOptions,
    *,
    force: bool,
    **original: Any,
) -> None:
    """Build and store a graph and print what came of it (collective)."""
    summary = write_graph(
        terminal.world,
        source,
        output,
        parts or terminal.world.size,
        options,
        overwrite=force,
        **original,
    )
    values = {"store": str(output), **summary_fields(summary)}
    terminal.result(values, lambda: print_fields(values))
