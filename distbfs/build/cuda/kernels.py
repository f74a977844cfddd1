"""Launches, by number of items, of the kernels that build graphs on CUDA devices."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.build.cuda.chunks import Passes
from distbfs.device import cuda, programs
from distbfs.device.structures import uints
from distbfs.errors import InputError
from distbfs.timing import Stopwatch
from distbfs.types import DeviceArray, KernelArgument

FOLDER = Path(__file__).parent
BLOCK = 256
# kernels, with definitions, that build a graph on one device
OF_GRAPHS: list[tuple[Path, dict[str, str | int]]] = [
    (FOLDER / name, {}) for name in ("graph.cu", "keys.cu")
]
SCAN_BLOCK = 1024
KEYS_TILE = 2048  # keys or tuples that a block handles at a time


@cache
def _of_keys() -> set[str]:
    """Return the names of the kernels in keys.cu."""
    text = (FOLDER / "keys.cu").read_text()
    return set(re.findall(r"__launch_bounds__\(\w+\)\s+(\w+)\(", text))


class Kernels:
    """Kernels that are launched by number of items, and the clock.

    own: source of the other kernels beside keys.cu, by default graph.cu
    """

    def __init__(self, clock: Stopwatch, own: programs.Module | None = None) -> None:
        self.clock = clock
        self._own = own or programs.Module(FOLDER / "graph.cu")
        self._keys = programs.Module(FOLDER / "keys.cu")

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time of a ``with`` block and of its launches to a phase."""
        with self.clock(name):
            yield
            cuda.cupy().cuda.Device().synchronize()

    def launch(
        self, name: str, items: int, per_block: int, *arguments: KernelArgument
    ) -> None:
        """Launch a kernel with a block for every ``per_block`` of the ``items``."""
        if items:
            grid = cuda.blocks_for(items, per_block)
            self.kernel(name)(grid, BLOCK, *arguments)

    def over(
        self, name: str, items: int, *arguments: KernelArgument, per_block: int = BLOCK
    ) -> None:
        """Launch a kernel whose first argument is the number of items, uint64."""
        self.launch(name, items, per_block, np.uint64(items), *arguments)

    def kernel(self, name: str) -> programs.Kernel:
        """Return the kernel of a name from either file."""
        return (self._keys if name in _of_keys() else self._own).kernel(name)

    def scan(
        self, values: Any, dtype: type[np.unsignedinteger[Any]] = np.uint64
    ) -> Any:
        """Return the exclusive prefix sums, [values + 1]; the last is the total.

        values: uint32; dtype: uint64, or uint32, which must have room for the total
        """
        starts, count = cuda.cupy().empty(len(values) + 1, dtype), len(values)
        self.kernel("scan")(1, SCAN_BLOCK, np.uint64(count), values, uints(starts))
        return starts

    def gather(self, values: DeviceArray, index: DeviceArray) -> DeviceArray:
        """Return values[index], without a kernel of CuPy; both are uint32."""
        out: DeviceArray = cuda.cupy().empty(len(index), np.uint32)
        self.over("gather", len(index), values, index, out)
        return out

    def scatter(
        self, values: DeviceArray, index: DeviceArray, out: DeviceArray
    ) -> None:
        """Set out[index] = values, without a kernel of CuPy; all are uint32."""
        self.over("scatter", len(index), values, index, out)

    def fresh_before(self, keys: Any) -> tuple[Any, int]:
        """Count the distinct keys before each tile, and in all.

        keys: uint64, sorted. Returns the counts before each tile, uint64 [tiles + 1],
        and in all.
        """
        tiles = cuda.cupy().empty(-(-len(keys) // KEYS_TILE), np.uint32)
        self.over("count_fresh", len(keys), keys, tiles, per_block=KEYS_TILE)
        starts = self.scan(tiles)
        return starts, int(starts[-1:].get()[0])

    def each(
        self,
        chunks: Passes,
        phase: str,
        work: Callable[[DeviceArray, DeviceArray], None],
    ) -> None:
        """Call ``work(u, v)``, CuPy uint32, on all chunks; time each separately."""
        waiting = iter(chunks)
        while True:
            with self.phase("generation"):
                pair = next(waiting, None)
            if pair is None:
                return
            with self.phase(phase):
                work(*pair)


def check_keys(count: int, expected: int) -> None:
    """Raise InputError if there are other keys than in the pass that counted them."""
    if count != expected:
        raise InputError(
            "the edge tuples changed while the graph was built: "
            f"{count} instead of {expected} keys"
        )


def check_ends(total: int, tuples: int) -> None:
    """Raise InputError if the ends at all vertices are not twice the tuples."""
    if total != 2 * tuples:
        raise InputError("a vertex has 2^32 ends of edge tuples or more")
