"""Items that a part sends in a level, usually to few of the other parts."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from distbfs.device import cuda
from distbfs.device.arrays import array_module, is_of_device, near

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from distbfs.types import Ids

NUMBER_AT = 32  # bits of an item: the number of a vertex, below it the parent
PARENT_MASK = (1 << NUMBER_AT) - 1


def joined(arrays: Sequence[Any]) -> Any:
    """Concatenate items of the host, or those of any device on the current device."""
    own = [near(array) for array in arrays]
    if len(own) == 1:
        return own[0]
    with cuda.memory_of("bins") if is_of_device(own[0]) else nullcontext():
        return array_module(own[0]).concatenate(own)


class Bins:
    """Items for other parts; those for one part are a slice of an array.

    items: uint64 [any length], on the device of the part, even when empty
    bounds: returns the begin and end of each part's slice, both int64 [parts]; None if
    there are no items. It is called late, when the slices are needed and all domains of
    a rank have started, because it may wait for a device.
    """

    def __init__(
        self, items: Any, bounds: Callable[[], tuple[Ids, Ids]] | None = None
    ) -> None:
        self.items = items
        self._bounds = bounds

    def pieces(self) -> list[tuple[int, Any]]:
        """Return (part, items [k]) for each part with items, ascending."""
        if self._bounds is None:
            return []
        items, (starts, ends) = self.items, self._bounds()
        # mutant: ends > -> ends >= : test_who_has_nothing_to_send_sends_nothing
        parts = (ends > starts).nonzero()[0].tolist()
        return [(part, items[starts.item(part) : ends.item(part)]) for part in parts]
