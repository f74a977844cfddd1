"""What a rank sends to others, by kind and by part."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distbfs.types import Ids

KINDS = ("masks", "normals", "questions", "answers", "parents")
TOGETHER = -1  # in place of a part: sent by the rank for all of its parts


class Traffic:
    """What this rank has sent since the exchange was made, copies on the rank left out.

    parts: of this rank; numbers: the kind of the numbers that are sent
    """

    def __init__(self, parts: int = 1) -> None:
        rows = range(parts + 1)  # lists: an element of an array takes ten times as long
        self._bytes = [[0] * len(KINDS) for _ in rows]
        self._messages = [[0] * len(KINDS) for _ in rows]
        self.numbers = "normals"

    @property
    def sent(self) -> Ids:
        """Bytes and messages so far, int64 [parts + 1, 2, KINDS], a copy.

        The last row is for what is sent for all parts together; a reduction counts once
        for each array given to it.
        """
        return np.stack([self._bytes, self._messages], axis=1)

    def total(self) -> tuple[int, int]:
        """Return (bytes, messages) so far, of all kinds and parts."""
        return sum(map(sum, self._bytes)), sum(map(sum, self._messages))

    @contextmanager
    def of(self, kind: str) -> Iterator[None]:
        """Count the numbers that a ``with`` block sends as of a kind."""
        before, self.numbers = self.numbers, kind
        try:
            yield
        finally:
            self.numbers = before

    def count(
        self, size: int, kind: str = "", part: int = TOGETHER, messages: int = 1
    ) -> None:
        """Count messages of ``size`` bytes; kind: ``numbers`` where it is not named.

        part: the place of the part that sends them
        """
        at = KINDS.index(kind or self.numbers)
        self._bytes[part][at] += size
        self._messages[part][at] += messages


def by_kind(sent: Ids) -> dict[str, dict[str, int]]:
    """Return bytes and messages by kind, for records; sent: int64 [2, KINDS]."""
    each = [dict(zip(KINDS, row, strict=True)) for row in sent.tolist()]
    return {"bytes_sent": each[0], "messages_sent": each[1]}
