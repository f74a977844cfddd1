"""What a part has for other parts in a level: few of many parts, as a rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from distbfs.types import Ids


class Bins:
    """Items for other parts; those for one part are a piece of an array.

    items: item [any length], on the device of the part, also where nothing is sent
    bounds: returns where the piece for each part begins and ends, int64 [parts] both;
        None: there is nothing.  Called when the pieces are asked for; it may wait for
        a device, so that all domains of a rank have begun before the host waits for one
        of them.
    """

    def __init__(
        self, items: Any, bounds: Callable[[], tuple[Ids, Ids]] | None = None
    ) -> None:
        self.items = items
        self._bounds = bounds

    def pieces(self) -> list[tuple[int, Any]]:
        """Return (part, item [k]) for each part that something goes to, ascending."""
        if self._bounds is None:
            return []
        items, (starts, ends) = self.items, self._bounds()
        parts = (ends > starts).nonzero()[0].tolist()
        return [(part, items[starts.item(part) : ends.item(part)]) for part in parts]
