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
DirectionChoice: TypeAlias = Literal["auto", "push", "pull"]
Connection: TypeAlias = Literal["weak", "strong"]
RunnerName: TypeAlias = Literal["auto", "reference", "openmp", "xbfs"]
EngineName: TypeAlias = (
    Literal[
        "xbfs-paper",
        "pan",
        "bfs4k",
        "layer",
        "frontier",
        "harish",
        "edge-parallel",
        "virtual-warp",
    ]
    | RunnerName
)
ExchangeName: TypeAlias = Literal["auto", "host", "nccl", "nvshmem", "cuda_aware"]
Choice: TypeAlias = Mapping[str, DirectionName]  # of dd, dn and nd
Stop: TypeAlias = Callable[[], bool]  # called between levels; True aborts the search
Root: TypeAlias = int | Ids  # an id, or those of a set: int64 [k], ascending, each once

SUBGRAPHS = ("nn", "nd", "dn", "dd")
UNREACHED = -1


class Event(Protocol):
    """A marker in the order of a stream."""

    def synchronize(self) -> None:
        """Wait until the stream reaches it."""


class Stream(Protocol):
    """A queue of operations that a device runs in order."""

    @property
    def ptr(self) -> int:
        """The runtime's handle."""

    def record(self) -> Event:
        """Record an event after all operations so far, and return it."""

    def wait_event(self, event: Event) -> None:
        """Make later operations wait for the event."""

    def synchronize(self) -> None:
        """Wait for all operations so far."""


class DeviceMemory(Protocol):
    """The memory of an array of a device."""

    @property
    def ptr(self) -> int:
        """The address of the first element."""

    def memset_async(self, value: int, size: int, stream: Stream) -> None:
        """Set ``size`` bytes to a value, in stream order."""


class Device(Protocol):
    """A device, current inside ``with``."""

    def __int__(self) -> int: ...
    def __enter__(self) -> object: ...
    def __exit__(self, *exception: object) -> None: ...


class DeviceArray(Protocol):
    """An array in device memory: the part of ``cupy.ndarray`` that is used.

    Functions document shape and dtype. Operations use the current stream; operators
    work element by element.
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
        """The memory of the first element."""

    @property
    def device(self) -> Device:
        """The device of the array."""

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
        """Return a copy in host memory, in ``out`` if given."""

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
    """The ranks that work together.  All methods except ``abort`` are collective.

    Every rank calls the same methods in the same order with arrays of the same dtype.
    """

    rank: int
    size: int
    hosts: list[str]  # of each rank, by name
    doing: str  # the ranks' present activity, as "level 3", for messages

    def barrier(self) -> None:
        """Wait until every rank is here."""

    def allreduce(self, values: Array, op: Reduction = "sum") -> Array:
        """Reduce an array element by element; its shape is the same on every rank.

        Returns a new array of this shape and dtype, equal on all ranks.
        """

    def allgather(self, values: Array) -> list[Array]:
        """Gather the one-dimensional arrays of all ranks on each rank, in rank order.

        Lengths may differ between ranks.
        """

    def alltoall(self, outgoing: Sequence[Array]) -> list[Array]:
        """Send ``outgoing[r]`` to rank r; return the arrays received, by rank.

        The arrays are one-dimensional, of one dtype and of any length, even above 2^31
        elements.
        """

    def broadcast(self, value: Any, root: int = 0, *, patient: bool = False) -> Any:
        """Send the JSON-like object of ``root`` to every rank.

        patient: whether ``root`` may call it much later; waiting ranks then yield their
        cores to other processes
        """

    def split(self, group: int) -> World:
        """Return a world of the ranks that pass the same number, in order.

        The caller must ``free`` it before this world.
        """

    def free(self) -> None:
        """Free the communicators; the world cannot be used afterwards."""

    def finish(self) -> None:
        """Mark the common end, after which ranks may leave at different times."""

    def abort(self, code: int) -> None:
        """End all ranks with an exit code; does not return on several ranks."""


class TupleSource(Protocol):
    """Edge tuples by position; they do not depend on the number of ranks.

    ``n`` is the number of vertices, ``tuples`` the number of tuples; loops and repeats
    are allowed. A slice may be read any number of times.
    """

    n: int
    tuples: int

    def chunks(self, start: int, stop: int) -> Iterator[tuple[Ids, Ids]]:
        """Yield (u, v) int64 arrays that cover the tuples start … stop-1 in order."""

    def describe(self) -> dict[str, Any]:
        """Describe the tuples by family, parameters and seed (JSON values)."""


def slice_bounds(total: int, pieces: int, index: int) -> tuple[int, int]:
    """Return the half-open range of piece ``index`` if ``total`` is cut evenly."""
    return total * index // pieces, total * (index + 1) // pieces
