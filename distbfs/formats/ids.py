"""Original ids of vertices that distbfs has renumbered.

Vertex k has the k-th id in ascending order, of numbers, or of texts by UTF-8 bytes.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from distbfs.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from distbfs.types import Array, Bytes, Ids

LARGEST_ID = (1 << 63) - 1
CANONICAL = re.compile("0|[1-9][0-9]{0,18}")

IdMap: TypeAlias = "IntegerIds | TextIds"


def name_of(vertex: int, ids: IdMap | None) -> int | str:
    """Return the id of a vertex in its input file."""
    return vertex if ids is None else ids.names(np.array([vertex]))[0]


def names_or(ids: IdMap, vertices: Ids, none: str | int | None) -> list[Any]:
    """Return the names of vertices, integers [k]; -1 is named ``none``."""
    names = ids.names(np.maximum(vertices, 0))
    pairs = zip(vertices.tolist(), names, strict=True)
    return [none if vertex < 0 else name for vertex, name in pairs]


def first_of(ids: IdMap | None) -> int | None:
    """Return the first id if ids are consecutive numbers, else None."""
    if ids is None:
        return 0
    return ids.first if isinstance(ids, CountedIds) else None


def no_vertex(n: int, first: int = 0) -> str:
    """Return the message for a number outside ``n`` vertices from ``first`` on."""
    allowed = f"allowed: {first} to {first + n - 1}" if n else "the graph has none"
    return f"is not a vertex; {allowed}"


def out_of_range(value: int, base: int, most: int) -> str:
    """Return the message for an id in a file that is not from ``base`` to ``most``."""
    upper = f"to {most}" if most < LARGEST_ID else "or more"
    return f"id {value} is out of range; allowed: {base} {upper}"


def unknown(ids: IdMap) -> str:
    """Return the message for what is none of the ids."""
    first = first_of(ids)
    return "is not an id of the graph" if first is None else no_vertex(ids.count, first)


class IntegerIds:
    """Ids that are whole numbers, int64 [n], ascending."""

    kind = "integer"

    def __init__(self, ids: Ids) -> None:
        """Raise InputError unless ids are ascending and not negative."""
        self.ids = ids
        if len(ids) and int(ids[0]) < 0:
            raise InputError("a negative id")
        if not np.all(ids[1:] > ids[:-1]):
            raise InputError("ids are not in ascending order")

    @property
    def count(self) -> int:
        """Number of vertices."""
        return len(self.ids)

    def arrays(self) -> dict[str, Array]:
        """Return the arrays that a store keeps, by name; see the class."""
        return {"ids": self.ids}

    def names(self, vertices: Ids) -> list[int]:
        """Return the ids of vertices, int64 [k]."""
        names: list[int] = self.named(vertices).tolist()
        return names

    def named(self, vertices: Ids) -> Ids:
        """Return the ids of vertices, int64 of any shape."""
        return self.ids[vertices]

    def find(self, word: str) -> int:
        """Return the vertex of an id as written, -1 if unknown."""
        if not CANONICAL.fullmatch(word) or int(word) > LARGEST_ID:
            return -1
        return self.place(int(word))

    def place(self, number: int) -> int:
        """Return the vertex of an id from 0 to LARGEST_ID, -1 if unknown."""
        at = int(np.searchsorted(self.ids, np.int64(number)))
        return at if at < self.count and int(self.ids[at]) == number else -1

    def fault(self) -> str:
        """Return "": the constructor has checked all rules."""
        return ""


class CountedIds(IntegerIds):
    """The ids ``first`` to ``first + count - 1``, which take no memory."""

    def __init__(self, count: int, first: int = 1) -> None:
        self._count, self.first = count, first

    @property
    def count(self) -> int:
        """Number of vertices."""
        return self._count

    def arrays(self) -> dict[str, Array]:
        """Return the ids as a new array."""
        return {"ids": self.named(np.arange(self.count, dtype=np.int64))}

    def named(self, vertices: Ids) -> Ids:
        """Return the ids of vertices, int64 of any shape."""
        return vertices + self.first

    def place(self, number: int) -> int:
        """Return the vertex of an id, -1 if unknown."""
        return number - self.first if 0 <= number - self.first < self.count else -1


class TextIds:
    """Text ids: uint8 [bytes] of UTF-8, and the start of each, int64 [n + 1].

    Sorted by their bytes.
    """

    kind = "text"

    def __init__(self, offsets: Ids, text: Bytes) -> None:
        """Raise InputError unless offsets increase from 0 to the end of the text."""
        self.offsets = offsets
        self.text = text
        ends = len(offsets) > 0 and offsets[0] == 0 and offsets[-1] == len(text)
        if not ends or np.any(offsets[1:] <= offsets[:-1]):
            raise InputError("offsets of ids do not increase to the end of the text")

    @classmethod
    def of(cls, words: Sequence[bytes]) -> TextIds:
        """Create the map of ids, which must be ascending UTF-8."""
        return cls(*packed(words))

    @property
    def count(self) -> int:
        """Number of vertices."""
        return len(self.offsets) - 1

    def arrays(self) -> dict[str, Array]:
        """Return the arrays that a store keeps, by name; see the class."""
        return {"offsets": self.offsets, "text": self.text}

    def word(self, vertex: int) -> bytes:
        """Return the id of a vertex as UTF-8."""
        return self.text[self.offsets[vertex] : self.offsets[vertex + 1]].tobytes()

    def names(self, vertices: Ids) -> list[str]:
        """Return the ids of vertices, int64 [k]."""
        text = self.text.data
        ends = (self.offsets[vertices + k].tolist() for k in (0, 1))
        return [str(text[a:b], errors="replace") for a, b in zip(*ends, strict=True)]

    def named(self, vertices: Ids) -> Array:
        """Return the ids of vertices, int64 of any shape, as objects."""
        names = np.array(self.names(vertices.ravel()), dtype=object)
        return names.reshape(vertices.shape)

    def find(self, word: str) -> int:
        """Return the vertex of an id as written, -1 if unknown."""
        try:
            sought = word.encode()
        except UnicodeEncodeError:  # lone surrogates are in no id
            return -1
        at = bisect_left(range(self.count), sought, key=self.word)
        return at if at < self.count and self.word(at) == sought else -1

    def fault(self) -> str:
        """Return the rule that the map breaks, "" if it breaks none."""
        last = b""
        for vertex in range(self.count):
            word = self.word(vertex)
            if word <= last:
                return f"id {vertex} does not follow the one before it"
            try:
                word.decode()
            except UnicodeDecodeError:
                return f"id {vertex} is not UTF-8"
            last = word
        return ""


def packed(words: Sequence[bytes]) -> tuple[Ids, Bytes]:
    """Return the start of each word in a text, int64 [k + 1], and that text."""
    offsets = np.zeros(len(words) + 1, dtype=np.int64)
    np.cumsum([len(word) for word in words], out=offsets[1:])
    return offsets, np.frombuffer(b"".join(words), dtype=np.uint8)


def id_map(kind: str, arrays: Mapping[str, Array]) -> IdMap:
    """Return the map of a kind from its ``arrays``.

    Raises InputError if the arrays contradict each other.
    """
    if kind == IntegerIds.kind:
        return IntegerIds(arrays["ids"])
    return TextIds(arrays["offsets"], arrays["text"])
