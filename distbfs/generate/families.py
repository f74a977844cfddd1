"""Graph families by name, and tuples made from a description."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import Field, fields, is_dataclass
from typing import Any

from distbfs.errors import UsageError
from distbfs.progress import Tell, untold
from distbfs.registry import FAMILIES, lookup
from distbfs.types import TupleSource

SIZES = ("scale", "vertices")


def maker(family: str) -> Callable[..., TupleSource]:
    """Return the function that creates a graph of a size: the class or its ``of_size``.

    Its arguments are ``vertices`` or else ``scale``, the options that ``declared``
    gives and, if it has them, seed, threads and tell. Raises UsageError
    for an unknown family.
    """
    kind = lookup(FAMILIES, "family", family)
    make: Callable[..., TupleSource] = getattr(kind, "of_size", kind)
    return make


def declared(family: str) -> tuple[type, list[Field[Any]]]:
    """Return the class that declares a family's options, and these but for its size."""
    kind = lookup(FAMILIES, "family", family)
    kind = getattr(kind, "parameters", kind)
    items = fields(kind) if is_dataclass(kind) else ()
    return kind, [x for x in items if "option" in x.metadata and x.name not in SIZES]


def from_description(
    description: Mapping[str, Any], threads: int = 0, tell: Tell = untold
) -> TupleSource | None:
    """Return the tuples for a family's ``describe()``.

    tell: receives the progress of a family that counts or grows before it has tuples.
    Returns None if the description is of another source, such as a file, or has unknown
    parameters.
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
