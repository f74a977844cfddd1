"""What a domain on a device has for other parts, before the host knows how much."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


class Boxes(Sequence[Any]):
    """What goes to each part; waited for when it is first looked at.

    So all domains of a rank have begun before the host waits for one of them.

    parts: of the graph; wait: waits, and returns a device array for each of them
    """

    def __init__(self, parts: int, wait: Callable[[], Sequence[Any]]) -> None:
        self._parts, self._wait = parts, wait
        self._boxes: Sequence[Any] | None = None

    def __len__(self) -> int:
        return self._parts

    def __getitem__(self, index: Any) -> Any:
        if self._boxes is None:
            self._boxes = self._wait()
        return self._boxes[index]
