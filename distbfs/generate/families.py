"""Graph families by name: the tuples that a description stands for."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from distbfs.errors import UsageError
from distbfs.registry import FAMILIES, lookup
from distbfs.types import TupleSource


def from_description(told: Mapping[str, Any], threads: int = 0) -> TupleSource | None:
    """Return the tuples that ``describe()`` of a family told of.

    None for what no family makes, as a file, or where the parameters are others.
    """
    family = str(told.get("family"))
    given = {name: value for name, value in told.items() if name != "family"}
    whole = all(type(value) is int for value in given.values())
    if family not in FAMILIES or not whole:
        return None
    kind = lookup(FAMILIES, "family", family)
    if set(given) != set(inspect.signature(kind).parameters) - {"threads"}:
        return None
    try:
        source: TupleSource = kind(**given, threads=threads)
    except UsageError:
        return None
    return source
