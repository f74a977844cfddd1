"""The source of a search: a vertex, or a set of vertices."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.distinct import distinct
from distbfs.errors import UsageError, WrongTypeError
from distbfs.search.program_arrays import array_of, each_of, is_array

if TYPE_CHECKING:
    from distbfs.search.store_names import VertexNames
    from distbfs.types import Ids

PLAIN = (int, str, bytes, tuple, list, set, frozenset, range, dict)
SHOWN = 4  # sources of a set in a message


def vertices_of(source: Any, names: VertexNames | None) -> list[Any] | Ids | None:
    """Return a set's vertices as given; None for a single vertex.

    A string is one vertex, and so is a tuple that names one; any other iterable is a
    set.
    """
    if isinstance(source, (str, bytes, int)) or not isinstance(source, Iterable):
        return None
    if names is not None and source in names:
        return None
    if not is_array(source):
        return list(source)
    ids: Ids = array_of(source, "sources")
    if not ids.ndim:
        return None
    if ids.ndim > 1 or (ids.size and ids.dtype.kind not in "iuOSU"):
        raise WrongTypeError(
            f"sources are an array of {ids.ndim} dimensions of dtype {ids.dtype}; "
            "allowed: one dimension, of integers or names"
        )
    return ids if names is None and ids.dtype.kind in "iu" else ids.tolist()


def read_once(source: Any, names: VertexNames | None) -> Any:
    """Return a source; a set whose iteration may run the caller's code becomes a list.

    Call it before a search takes its lock, so that the caller's code may search.
    """
    if type(source) in PLAIN or hasattr(source, "dtype"):
        return source
    several = vertices_of(source, names)
    return source if several is None else several


def read_targets(targets: Iterable[Any] | None) -> list[Any] | None:
    """Return the targets of a search as a list; see ``read_once``."""
    return None if targets is None else list(each_of(targets, "targets"))


def ids_of_set(several: Ids | list[Any], n: int, id_of: Callable[[Any], int]) -> Ids:
    """Return the ids of a set, int64 [k], ascending, each once.

    several: see ``vertices_of``; n: number of vertices
    id_of: returns the id of a vertex, or raises UsageError if it is unknown

    Raises UsageError for an empty set and for an unknown vertex.
    """
    if not len(several):
        raise UsageError("the set of sources is empty; give at least one vertex")
    if isinstance(several, np.ndarray):
        wrong = np.flatnonzero((several < 0) | (several >= n))
        if not len(wrong):
            return distinct(several.astype(np.int64))
        several = several[wrong[:1]].tolist()
    return distinct(np.array([id_of(vertex) for vertex in several], dtype=np.int64))


def described(sources: list[Any]) -> str:
    """Describe the sources of a search in one line, which names a few of them."""
    if len(sources) == 1:
        return f"{sources[0]!r:.60}"
    some = ", ".join(f"{x!r:.20}" for x in sources[:SHOWN])
    more = ", ..." if len(sources) > SHOWN else ""
    return f"{len(sources)} sources [{some}{more}]"
