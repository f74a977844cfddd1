"""Kernel arguments that describe a graph."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from distbfs.device.structures import structure
from distbfs.partition.share import Share


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
    in_row, in_adj = graph.pulled
    known = {
        "row": graph.offsets,
        "adj": graph.columns,
        "in_row": in_row,
        "in_adj": in_adj,
        "numbers": graph.numbers,
        "members": graph.members,
        "vertices": graph.vertices,
        "n": graph.n,
        "m": graph.m,
        "active": graph.active,
    }
    known = {name: value for name, value in known.items() if hasattr(kind, name)}
    return kind(**{**known, **values})
