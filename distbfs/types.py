"""Shared types: arrays, the communicator and the source of edge tuples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Array: TypeAlias = npt.NDArray[Any]
Ids: TypeAlias = npt.NDArray[np.int64]
Words: TypeAlias = npt.NDArray[np.uint64]
Numbers: TypeAlias = npt.NDArray[np.uint32]
Levels: TypeAlias = npt.NDArray[np.int32]
Bytes: TypeAlias = npt.NDArray[np.uint8]
Marks: TypeAlias = npt.NDArray[np.bool_]
Floats: TypeAlias = npt.NDArray[np.float64]
Reduction: TypeAlias = Literal["sum", "max", "min", "or"]
DirectionName: TypeAlias = Literal["push", "pull"]
Choice: TypeAlias = Mapping[str, DirectionName]  # of dd, dn and nd
Stop: TypeAlias = Callable[[], bool]  # asked between levels whether to give up
Take: TypeAlias = Callable[[Any, Ids], Array]  # values at places, on the host
Root: TypeAlias = int | Ids  # an id, or those of a set: int64 [k], rising, each once

SUBGRAPHS = ("nn", "nd", "dn", "dd")
UNREACHED = -1


class Event(Protocol):
    """A mark in the order of what a stream does."""

    def synchronize(self) -> None:
        """Wait until the stream has come there."""


class Stream(Protocol):
    """What a device does in order."""

    @property
    def ptr(self) -> int:
        """The runtime's handle."""

    def record(self) -> Event:
        """Return a mark behind what was launched so far."""

    def wait_event(self, event: Event) -> None:
        """Do what is launched next only when the event has come."""

    def synchronize(self) -> None:
        """Wait for all that was launched."""


class DeviceMemory(Protocol):
    """The memory of an array of a device."""

    @property
    def ptr(self) -> int:
        """The address of the first element."""

    def memset_async(self, value: int, size: int, stream: Stream) -> None:
        """Set ``size`` bytes, after what is on the stream."""


class Device(Protocol):
    """A device, which is the current one inside ``with``."""

    def __int__(self) -> int: ...
    def __enter__(self) -> object: ...
    def __exit__(self, *exception: object) -> None: ...


class DeviceArray(Protocol):
    """An array in the memory of a device: what is used of ``cupy.ndarray``.

    Who takes or gives one says its shape and dtype.  Work on it is on the current
    stream; operators work element by element.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""

    @property
    def size(self) -> int:
        """The number of elements."""

    @property
    def nbytes(self) -> int:
        """The number of bytes."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""

    @property
    def flags(self) -> Any:
        """The layout: ``c_contiguous``."""

    @property
    def data(self) -> DeviceMemory:
        """The memory that it begins in."""

    @property
    def device(self) -> Device:
        """The device that it lies on."""

    @property
    def T(self) -> DeviceArray:  # noqa: N802 - NumPy's name
        """The transpose, of the same memory."""

    def get(
        self,
        stream: Stream | None = None,
        *,
        out: Array | None = None,
        blocking: bool = True,
    ) -> Array:
        """Return a copy in host memory, ``out`` where that is given."""

    def set(self, arr: Array, stream: Stream | None = None) -> None:
        """Copy an array of the same shape and dtype from host memory."""

    def copy(self) -> DeviceArray:
        """Return a copy."""

    def astype(self, dtype: npt.DTypeLike, *, copy: bool = True) -> DeviceArray:
        """Return the values as another type."""

    def view(self, dtype: npt.DTypeLike) -> DeviceArray:
        """Return the same memory as another type."""

    def reshape(self, *shape: int) -> DeviceArray:
        """Return the same elements in another shape."""

    def fill(self, value: int) -> None:
        """Set all elements to a value."""

    def sort(self) -> None:
        """Sort the elements in place, ascending."""

    def sum(self, *, dtype: npt.DTypeLike | None = None) -> DeviceArray:
        """Return the sum of all elements, of shape ()."""

    def max(self) -> DeviceArray:
        """Return the largest element, of shape ()."""

    __hash__: ClassVar[None]  # type: ignore[assignment]

    def __len__(self) -> int: ...
    def __int__(self) -> int: ...
    def __getitem__(self, places: Any) -> DeviceArray: ...
    def __setitem__(self, places: Any, values: Operand) -> None: ...
    def __add__(self, other: Operand) -> DeviceArray: ...
    def __sub__(self, other: Operand) -> DeviceArray: ...
    def __mul__(self, other: Operand) -> DeviceArray: ...
    def __ge__(self, other: Operand) -> DeviceArray: ...
    def __gt__(self, other: Operand) -> DeviceArray: ...
    def __le__(self, other: Operand) -> DeviceArray: ...
    def __lt__(self, other: Operand) -> DeviceArray: ...
    def __eq__(self, other: Operand) -> DeviceArray: ...  # type: ignore[override]
    def __ne__(self, other: Operand) -> DeviceArray: ...  # type: ignore[override]


Operand: TypeAlias = DeviceArray | float | np.generic
KernelArgument: TypeAlias = DeviceArray | np.generic
AnyArray: TypeAlias = Array | DeviceArray  # of the host or of a device


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

    def split(self, group: int) -> World:
        """Return the ranks that give the same number, in their order, as a world.

        The caller ends it by ``free`` before this one.
        """

    def free(self) -> None:
        """Give the communicators back; the ranks are gone from here on."""

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
