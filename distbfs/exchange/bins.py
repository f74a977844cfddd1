"""What a part has for other parts in a level: few of many parts, as a rule."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from distbfs.types import Ids


class Bins:
    """Items for other parts; those for one part are a piece of an array.

    items: item [any length], on the device of the part, also where nothing is sent
    bounds: returns where the piece for each part begins and ends, int64 [parts] both;
        None: there is nothing.  Called once, when the pieces are first looked at; it
        may wait for a device, so that all domains of a rank have begun before the host
        waits for one of them.
    """

    def __init__(
        self, items: Any, bounds: Callable[[], tuple[Ids, Ids]] | None = None
    ) -> None:
        self.items = items
        self._bounds = bounds

    @cached_property
    def pieces(self) -> list[tuple[int, Any]]:
        """(part, item [k]) for each part that something goes to, parts ascending."""
        if self._bounds is None:
            return []
        starts, ends = self._bounds()
        parts = np.flatnonzero(ends > starts)
        rows = np.stack([parts, starts[parts], ends[parts]], axis=1).tolist()
        return [(part, self.items[start:end]) for part, start, end in rows]
