"""The bytes of the arrays that objects hold, to compare with what was predicted."""

import numpy as np

from distbfs.device.structures import Record


def arrays_in(value):
    """Yield the arrays that an object of an engine holds, however nested."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, dict):
        yield from arrays_in(list(value.values()))
    elif isinstance(value, Record):
        yield from arrays_in(value.held)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from arrays_in(item)


def allocated(holder, lent):
    """Return the bytes of the arrays in ``holder`` that are none of the lent ones.

    Pieces of others are not counted twice.
    """
    every = {array.ctypes.data: array for array in arrays_in(holder)}
    own = [x for x in every.values() if x.nbytes]
    return sum(
        array.nbytes
        for array in own
        if not any(
            np.may_share_memory(array, x)
            for x in [*lent, *(y for y in own if y.nbytes > array.nbytes)]
        )
    )
