"""Attributes of edges, kept from the input: weights, times, types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from distbfs.errors import InputError, UsageError, WrongTypeError

if TYPE_CHECKING:
    from distbfs.types import Array

FLOATS = ("float", "double", "halffloat")  # types whose nulls are NaN, by their names
MOST_WORDS = 1 << 16


@dataclass(frozen=True)
class Values:
    """An attribute of some edges, in their order.

    array: one value per edge: int64, a float of 16, 32 or 64 bits, or the int32 index
    of a word
    words: the distinct texts of a text attribute, ascending; else None
    """

    array: Array
    words: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Attribute:
    """An attribute of all stored edges of a part.

    values: for each subgraph, an array like ``Values.array``, in its columns' order
    words: see ``Values``; equal on all parts
    """

    values: Mapping[str, Array]
    words: tuple[str, ...] | None = None

    @property
    def kind(self) -> str:
        """Type of the values: "int64", "float64", "float32", "float16" or "text"."""
        if self.words is not None:
            return "text"
        return str(next(iter(self.values.values())).dtype)


def values_of_column(name: str, column: Array) -> Values:
    """Convert a column [tuples] of a table to an attribute.

    Integers and flags become int64, which keeps their order. Floats up to float64 keep
    their type, since 0.1 in float32 differs from 0.1. Texts become indices of words.
    Raises WrongTypeError for other values, InputError for integers beyond 63 bits and
    for more than MOST_WORDS distinct texts.
    """
    if column.ndim != 1:
        raise InputError(f"column {name:.40} has {column.ndim} dimensions; allowed: 1")
    kind = column.dtype.kind
    if kind == "u" and len(column) and int(column.max()) >= 1 << 63:
        raise InputError(f"column {name:.40} has integers beyond 63 bits")
    if kind in "iubf":
        dtype = f"f{min(column.itemsize, 8)}" if kind == "f" else "i8"
        return Values(np.ascontiguousarray(column, dtype=dtype))
    texts = column.tolist() if kind in "OU" else [None]
    if not all(isinstance(text, str) for text in texts):
        raise WrongTypeError(
            f"column {name:.40} has values of {column.dtype}, or nulls; allowed: "
            "numbers, or text"
        )
    words, numbers = np.unique(np.array(texts, dtype=np.str_), return_inverse=True)
    if len(words) > MOST_WORDS:
        raise InputError(
            f"column {name:.40} has {len(words)} different texts; allowed: {MOST_WORDS}"
        )
    return Values(numbers.astype(np.int32), tuple(words.tolist()))


def check_names(names: Sequence[str]) -> tuple[str, ...]:
    """Check names of attributes; UsageError for invalid or repeated ones."""
    for name in names:
        if not isinstance(name, str) or not name.isidentifier():
            raise UsageError(
                f"attribute {name!r:.60}; allowed: letters, digits and _, no digit "
                "first"
            )
    if len(set(names)) < len(names):
        raise UsageError("an attribute is named twice")
    return tuple(names)
