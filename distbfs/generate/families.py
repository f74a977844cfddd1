"""Graph families by name: the tuples that a description stands for."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from distbfs.errors import UsageError
from distbfs.progress import Tell, untold
from distbfs.registry import FAMILIES, lookup
from distbfs.types import TupleSource


def from_description(
    description: Mapping[str, Any], threads: int = 0, tell: Tell = untold
) -> TupleSource | None:
    """Return the tuples that ``describe()`` of a family told of.

    tell: of a family that is counted or grows before its tuples are there.  None for
    what no family makes, as a file, or where the parameters are others.
    """
    family = str(description.get("family"))
    parameters = {
        name: value for name, value in description.items() if name != "family"
    }
    if family not in FAMILIES:
        return None
    kind = lookup(FAMILIES, "family", family)
    annotations = {
        name: parameter.annotation
        for name, parameter in inspect.signature(kind).parameters.items()
    }
    types = {name: type(value).__name__ for name, value in parameters.items()}
    usual = {"threads": threads, "tell": tell}
    parameters |= {name: usual[name] for name in usual if annotations.pop(name, None)}
    if types != annotations:
        return None
    try:
        source: TupleSource = kind(**parameters)
    except UsageError:
        return None
    return source
