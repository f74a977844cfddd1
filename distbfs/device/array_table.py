"""Tables of arrays, by which the arrays are allocated and their bytes predicted."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike


@dataclass(frozen=True)
class ArrayPlan:
    """An array to allocate; a table maps each name to one of them, or to a list.

    later: whether the array is allocated only when it is needed; its bytes still count
    """

    dtype: DTypeLike
    shape: int | tuple[int, ...]
    later: bool = False

    @property
    def count(self) -> int:
        """Number of elements."""
        return self.shape if isinstance(self.shape, int) else math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Number of bytes."""
        return self.count * np.dtype(self.dtype).itemsize


Plans: TypeAlias = ArrayPlan | list[ArrayPlan]
ArrayTable: TypeAlias = dict[str, Plans]


def total_bytes(table: Mapping[str, Plans]) -> int:
    """Return the number of bytes of all arrays of a table."""
    each = [x if isinstance(x, list) else [x] for x in table.values()]
    return sum([planned.nbytes for plans in each for planned in plans])


def allocate(
    table: Mapping[str, Plans], make: Callable[[Any, Any], Any]
) -> dict[str, Any]:
    """Allocate the arrays of a table by name, except ``later`` ones and empty lists.

    make: allocates an array, given its shape and dtype
    """
    arrays: dict[str, Any] = {}
    for name, plans in table.items():
        if isinstance(plans, list):
            made = [make(x.shape, x.dtype) for x in plans if not x.later]
            if made:
                arrays[name] = made
        elif not plans.later:
            arrays[name] = make(plans.shape, plans.dtype)
    return arrays


def places(table: Mapping[str, ArrayPlan], line: int) -> tuple[dict[str, int], int]:
    """Return each array's offset in one memory, on a new line, and the total bytes."""
    at, begins = 0, {}
    for name, plan in table.items():
        begins[name] = at
        at += -(-plan.nbytes // line) * line
    return begins, at


def pieces(memory: Any) -> Callable[[Any, Any], Any]:
    """Return an allocator that takes arrays from a memory, uint8, in turn."""
    at = 0

    def make(shape: int | tuple[int, ...], dtype: DTypeLike) -> Any:
        nonlocal at
        start, at = at, at + ArrayPlan(dtype, shape).nbytes
        return memory[start:at].view(dtype).reshape(shape)

    return make
