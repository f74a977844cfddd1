"""Bytes and messages that a rank sends to others, by kind and by part."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distbfs.types import Ids

KINDS = ("masks", "normals", "questions", "answers", "parents")
TOGETHER = -1  # instead of a part: sent by the rank for all of its parts


class Traffic:
    """Traffic of this rank since the exchange was created, without copies on the rank.

    parts: number of parts of this rank; numbers: the kind under which items are counted
    now
    """

    def __init__(self, parts: int = 1) -> None:
        rows = range(parts + 1)  # lists: array elements update ten times slower
        self._bytes = [[0] * len(KINDS) for _ in rows]
        self._messages = [[0] * len(KINDS) for _ in rows]
        self.numbers = "normals"

    @property
    def sent(self) -> Ids:
        """A copy of the bytes and messages so far, int64 [parts + 1, 2, KINDS].

        The last row counts the data sent for all parts together; a reduction counts
        once for each of its arrays.
        """
        return np.stack([self._bytes, self._messages], axis=1)

    def total(self, kind: str) -> tuple[int, int]:
        """Return (bytes, messages) of a kind so far, of all parts."""
        at = KINDS.index(kind)
        return sum(x[at] for x in self._bytes), sum(x[at] for x in self._messages)

    @contextmanager
    def of(self, kind: str) -> Iterator[None]:
        """Count the items sent in a ``with`` block under a kind."""
        before, self.numbers = self.numbers, kind
        try:
            yield
        finally:
            self.numbers = before

    def count(
        self, size: int, kind: str = "", part: int = TOGETHER, messages: int = 1
    ) -> None:
        """Count messages of ``size`` bytes; kind: by default ``numbers``.

        part: place of the sending part, TOGETHER for data of all parts
        """
        at = KINDS.index(kind or self.numbers)
        self._bytes[part][at] += size
        self._messages[part][at] += messages


def by_kind(sent: Ids) -> dict[str, dict[str, int]]:
    """Return bytes and messages by kind, for records; sent: int64 [2, KINDS]."""
    each = [dict(zip(KINDS, row, strict=True)) for row in sent.tolist()]
    return {"bytes_sent": each[0], "messages_sent": each[1]}
