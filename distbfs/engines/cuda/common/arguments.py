"""Kernel arguments that describe a graph."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from distbfs.device.structures import structure
from distbfs.partition.share import Rows, Share


def row_arguments(rows: Rows) -> dict[str, Any]:
    """Return the members of structures that describe rows; see tails.cuh."""
    members: dict[str, Any] = {"row": rows.offsets, "adj": rows.columns}
    if (tails := rows.tails) is not None:
        # in columns from those on the device, modulo 2^62
        far = (tails.columns.ctypes.data - rows.columns.data.ptr) % (1 << 64) >> 2
        members |= {"tail_row": tails.offsets, "far": far, "tailed": tails.tailed}
    return members


def arguments(
    source: Path,
    name: str,
    graph: Share,
    definitions: Mapping[str, str | int] | None = None,
    **values: Any,
) -> Any:
    """Return a structure in which the members that describe a graph are set.

    definitions: as in ``structure``; values: values of other members, and values that
    replace those of the graph

    Raises KeyError if the source declares no such structure, AttributeError for a
    value that is not a member.
    """
    kind = structure(source, name, definitions)
    into = row_arguments(graph.into)
    known = {
        **row_arguments(graph.out),
        **{f"in_{name}": value for name, value in into.items()},
        "tail_count": graph.out.held_back,
        "in_tail_count": graph.into.held_back,
        "numbers": graph.numbers,
        "members": graph.members,
        "vertices": graph.vertices,
        "n": graph.n,
        "m": graph.m,
        "active": graph.active,
    }
    known = {name: value for name, value in known.items() if hasattr(kind, name)}
    return kind(**{**known, **values})
