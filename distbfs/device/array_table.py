"""Arrays that a class takes: one table allocates them and predicts their bytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike


@dataclass(frozen=True)
class ArrayPlan:
    """An array of a dtype and a shape, or a list of such arrays.

    of: arrays of the list; None where it is one array alone
    later: counted, but allocated where it is needed
    """

    dtype: DTypeLike
    shape: int | tuple[int, ...]
    of: int | None = None
    later: bool = False

    @property
    def nbytes(self) -> int:
        """The bytes of all of it."""
        shape = (self.shape,) if isinstance(self.shape, int) else self.shape
        count = math.prod(shape) * (1 if self.of is None else self.of)
        return count * np.dtype(self.dtype).itemsize


def total_bytes(table: Mapping[str, ArrayPlan]) -> int:
    """Return the bytes of all arrays of a table."""
    return sum([planned.nbytes for planned in table.values()])


def allocate(
    table: Mapping[str, ArrayPlan], make: Callable[[Any, Any], Any]
) -> dict[str, Any]:
    """Return the arrays of a table by name, but those for later.

    make: allocates an array of a shape and a dtype
    """
    arrays: dict[str, Any] = {}
    for name, planned in table.items():
        if planned.later:
            continue
        if planned.of is None:
            arrays[name] = make(planned.shape, planned.dtype)
        else:
            shape, dtype = planned.shape, planned.dtype
            arrays[name] = [make(shape, dtype) for _ in range(planned.of)]
    return arrays


def pieces(memory: Any) -> Callable[[Any, Any], Any]:
    """Return what makes arrays of a memory, uint8, one after another."""
    at = 0

    def make(shape: int | tuple[int, ...], dtype: DTypeLike) -> Any:
        nonlocal at
        start, at = at, at + ArrayPlan(dtype, shape).nbytes
        return memory[start:at].view(dtype).reshape(shape)

    return make
