"""Arrays of a program: of NumPy, pandas, polars, Arrow, CuPy and others.

No library is imported: arrays are recognised by the attributes that they have in each
library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from distbfs.device import cuda
from distbfs.errors import InputError, WrongTypeError
from distbfs.options import check_several
from distbfs.types import Array


def is_array(values: Any) -> bool:
    """Return whether values are an array, a column or a table of any library."""
    return hasattr(values, "__array__") and not isinstance(values, np.generic)


def lacking(values: Any) -> int:
    """Count the masked or null values.

    values: an array, a column, or a list, which may hold masked arrays
    """
    if isinstance(values, np.ma.MaskedArray):
        return int(np.ma.getmaskarray(values).sum())
    if isinstance(values, (list, tuple)):
        if any(issubclass(kind, np.ma.MaskedArray) for kind in set(map(type, values))):
            return sum(map(lacking, values))
        return 0
    nulls = getattr(values, "null_count", 0)  # of polars and Arrow
    if callable(nulls):
        nulls = nulls()
    if not nulls and callable(missing := getattr(values, "isna", None)):  # of pandas
        nulls = int(np.asarray(missing()).sum())
    return nulls if isinstance(nulls, int) else 0  # a table of polars has no one number


def check_whole(values: Any, name: str) -> None:
    """Raise InputError if some of the values are masked or null."""
    if count := lacking(values):
        raise InputError(
            f"{name} has {count} masked or null values; allowed: none, so drop them or "
            "fill them first"
        )


def array_of(values: Any, name: str) -> Array:
    """Return a program's values as a host array; NumPy arrays are not copied.

    Raises WrongTypeError if they do not form an array, InputError if their lengths
    differ or some values are masked or null.
    """
    if isinstance(values, (AbstractSet, Iterator)):
        values = list(values)
    check_whole(values, name)
    # pandas makes objects of its nullable integers and flags, unless it is told
    dtype = getattr(getattr(values, "dtype", None), "numpy_dtype", None)
    try:
        return np.asarray(values, dtype)
    except ValueError as error:
        raise InputError(f"{name} is not an array: {error}") from error
    except TypeError as error:
        if not hasattr(values, "__dlpack__"):
            raise WrongTypeError(f"{name} is not an array: {error}") from error
    on_host: Array = cuda.cupy().from_dlpack(values).get()  # it is on a device
    return on_host


def each_of(values: Any, name: str) -> Iterable[Any]:
    """Return a program's vertices, or pairs of vertices, as an iterable.

    Raises WrongTypeError for a single value, and the errors of ``array_of``.
    """
    if is_array(values):
        values = array_of(values, name).tolist()
    return check_several(name, values)
