"""Shared types: arrays, the communicator and the source of edge tuples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Array: TypeAlias = npt.NDArray[Any]
Ids: TypeAlias = npt.NDArray[np.int64]
Words: TypeAlias = npt.NDArray[np.uint64]
Reduction: TypeAlias = Literal["sum", "max", "min", "or"]
DirectionName: TypeAlias = Literal["push", "pull"]
Choice: TypeAlias = Mapping[str, DirectionName]  # of dd, dn and nd
Stop: TypeAlias = Callable[[], bool]  # asked between levels whether to give up
Take: TypeAlias = Callable[[Any, Ids], Array]  # values at places, on the host

SUBGRAPHS = ("nn", "nd", "dn", "dd")
UNREACHED = -1


class World(Protocol):
    """The ranks that work together.  All methods but ``abort`` are collective.

    Every rank calls the same methods in the same order with arrays of the same dtype.
    """

    rank: int
    size: int
    doing: str  # what the ranks do now, as "level 3", for messages

    def barrier(self) -> None:
        """Wait until every rank is here."""

    def allreduce(self, values: Array, op: Reduction = "sum") -> Array:
        """Reduce an array element by element; the same shape on every rank.

        Returns a new array of the same shape and dtype, equal on all ranks.
        """

    def allgather(self, values: Array) -> list[Array]:
        """Give every rank the one-dimensional array of each, in rank order.

        Lengths may differ between ranks.
        """

    def alltoall(self, outgoing: Sequence[Array]) -> list[Array]:
        """Send ``outgoing[r]`` to rank r; return what each rank sent here.

        One-dimensional arrays of one dtype, of any length, above 2^31 elements too.
        """

    def broadcast(self, value: Any, root: int = 0) -> Any:
        """Give every rank the JSON-like object that ``root`` passes."""

    def patient_broadcast(self, value: Any, root: int = 0) -> Any:
        """Do what ``broadcast`` does where ``root`` may come much later.

        The ranks that wait leave their core to others.
        """

    def finish(self) -> None:
        """Reach the agreed end: from here on ranks may leave at different times."""

    def abort(self, code: int) -> None:
        """End all ranks with an exit code; does not return on several ranks."""


class TupleSource(Protocol):
    """Edge tuples by position, the same for every number of ranks.

    ``n`` is the number of vertices, ``tuples`` the number of tuples; loops and repeats
    are legal.  A slice may be asked for any number of times.
    """

    n: int
    tuples: int

    def chunks(self, start: int, stop: int) -> Iterator[tuple[Ids, Ids]]:
        """Yield (u, v) int64 arrays that cover the tuples start … stop-1 in order."""

    def describe(self) -> dict[str, Any]:
        """Return what recreates the tuples: family, parameters, seed (JSON values)."""


def slice_bounds(total: int, pieces: int, index: int) -> tuple[int, int]:
    """Return the half-open range of piece ``index`` when ``total`` is cut evenly."""
    return total * index // pieces, total * (index + 1) // pieces
