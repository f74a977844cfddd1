"""Up to 128 searches in one traversal over the devices of a domain (bits_domain.cu).

The devices hold the rows of one graph and map each other's memory, in one process or in
one for each. The host launches a level on all of them and waits for all before the
next. A device takes 32.5 bytes for each position of any device: two frontiers and their
marks. For each own vertex it takes 16 for visited bits, 16 for each binary digit of the
levels, and 8 for queues.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from distbfs.build.cuda.domain import GRANULE, MemberRows
from distbfs.device import cuda, programs
from distbfs.engines.cuda.xbfs.shared import MOST_PARTS
from distbfs.errors import LaunchError, ResourceError, SearchStopped, UsageError
from distbfs.exchange.agreement import first_reason
from distbfs.exchange.peer_memory import PeerGroup, on_device
from distbfs.graph.device_graph import ISOLATED
from distbfs.multisearch.cuda_bits import (
    HUB_DEGREE,
    KERNELS,
    MARKS,
    MORE_PLANES,
    RESERVE,
    SEARCHES,
    THREADS,
    WIDE_DEGREE,
    Params,
    above,
    asked_kernel,
    asked_levels,
    need_all_columns,
)
from distbfs.types import UNREACHED, Array, DeviceArray, Ids, Stop, World

PULL_SHARE = 40  # pull frontiers of m / PULL_SHARE edges, since pushes go to peers
ROW_BYTES = SEARCHES // 8
TURNS, TALLY_WORDS = 3, 2


class DomainParams(Params):
    """``Domain`` in bits_domain.cu."""

    _fields_ = (
        ("shift", ctypes.c_int64 * MOST_PARTS),
        ("magic", ctypes.c_uint64),
        ("tally", ctypes.c_void_p),
        *((name, ctypes.c_uint32) for name in ("parts", "index", "depth", "pad")),
    )


class Begin(ctypes.Structure):
    """``Begin`` in bits_domain.cu."""

    _fields_ = (
        ("d", DomainParams),
        ("number", ctypes.c_void_p),
        ("k", ctypes.c_uint32),
        ("pad", ctypes.c_uint32),
    )


class Share:
    """One device's share of the searches; call its methods with the device current.

    memory: uint8, of ``shared_sizes`` bytes, zeros
    bases: [parts] addresses of all parts' memory
    """

    def __init__(self, part: MemberRows, memory: DeviceArray, bases: Ids) -> None:
        self.part, graph = part, part.graph
        self.device = int(graph.numbers.device)
        cp = cuda.cupy()
        cuts = np.cumsum(shared_sizes(part))[:-1].tolist()
        self._shared = cp.split(memory, cuts)
        self._seen = self._shared[-1][: ROW_BYTES * graph.active].view(np.uint32)
        self._queue = [cp.empty(max(graph.active, 1), np.uint32) for _ in range(2)]
        self._tally = cp.zeros(TURNS * TALLY_WORDS, np.uint64)
        self._tally_copy = cuda.HostCopy(self._tally)
        self._planes: list[DeviceArray] = []
        self._begin = Begin(d=self._parameters(bases))
        self._params: DomainParams = self._begin.d
        module = programs.Module(
            KERNELS / "bits_domain.cu",
            OFFSET="u64" if graph.offsets.dtype.itemsize == 8 else "u32",
            PIECES=1,
        )
        grid = cuda.multiprocessors()
        self._steps = {
            name: module.kernel(f"{name}_level").prepare(self._params, grid, THREADS)
            for name in ("pull", "push", "list", "empty", "settle")
        }
        begin = module.kernel("begin_level")
        self._steps["begin"] = begin.prepare(self._begin, 1, THREADS)
        self._asked = asked_kernel()

    def _parameters(self, bases: Ids) -> DomainParams:
        part, graph = self.part, self.part.graph
        parts, (*fronts, seen) = part.layout.parts, self._shared
        fronts, marks = fronts[:2], fronts[2:]
        d = DomainParams(
            row=graph.offsets.data.ptr,
            adj=graph.columns.data.ptr,
            seen=seen.data.ptr,
            tally=self._tally.data.ptr,
            active=graph.active,
            words=marks[0].nbytes // 4,
            hubs=above(graph, HUB_DEGREE) // 32 * 32,
            wide=above(graph, WIDE_DEGREE) // 32 * 32,
            magic=-(-(1 << 32) // parts),
            parts=parts,
            index=part.index,
        )
        d.shift[:parts] = (bases - bases[part.index]).tolist()
        arrays = (("front", fronts), ("mark", marks), ("queue", self._queue))
        for name, held in arrays:
            for k, array in enumerate(held):
                getattr(d, name)[k] = array.data.ptr
        return d

    def numbers_of(self, ids: Ids) -> Array:
        """Return the own numbers of vertex ids, uint32; ISOLATED for others."""
        layout = self.part.layout
        numbers = np.full(len(ids), ISOLATED, dtype=np.uint32)
        own = layout.part_of(ids) == self.part.index
        numbers[own] = self.part.graph.numbers_at(layout.local_of(ids[own]))
        return numbers

    def clear(self) -> None:
        """Reset the state of searches."""
        stream = cuda.cupy().cuda.get_current_stream()
        for array in (*self._shared[2:], self._tally, *self._planes):
            cuda.clear(array, stream)
        for depth in (0, 1):
            self.step("empty", depth)

    def begin(self, numbers: Array, there: Array) -> None:
        """Write level 0.

        numbers: of ``numbers_of``; there: bool [k], sources that any part has
        """
        bits = np.zeros(SEARCHES, dtype=np.uint8)
        bits[: len(there)] = there
        full = np.packbits(bits, bitorder="little").view(np.uint32)
        self._params.full[: len(full)] = full.tolist()
        self._sources = cuda.cupy().asarray(numbers)
        self._begin.number, self._begin.k = self._sources.data.ptr, len(numbers)
        self.step("begin", 0)

    def step(self, name: str, depth: int) -> None:
        """Launch a step of a level, see bits_domain.cu."""
        self._params.depth = depth
        self._steps[name]()

    def tell(self) -> None:
        """Start copying the counts of levels to the host."""
        self._tally_copy.begin(cuda.cupy().cuda.get_current_stream())

    def edges(self, depth: int) -> int:
        """Return the edges out of the own vertices of a level, after ``tell``."""
        return int(self._tally_copy.wait()[depth % TURNS * TALLY_WORDS])

    def add_planes(self) -> None:
        """Allocate planes for more levels."""
        cp, d = cuda.cupy(), self._params
        with cuda.memory_of("levels of bit-parallel searches"):
            for _ in range(MORE_PLANES):
                self._planes.append(cp.zeros(max(self._seen.size, 1), np.uint32))
        for k, plane in enumerate(self._planes):
            d.plane[k] = plane.data.ptr
        d.planes = len(self._planes)

    def levels_at(self, deepest: int, searches: Ids, targets: Ids) -> Array:
        """Return the levels of targets, ids of this part, int32 on the host."""
        rows = self._seen, self._planes[: deepest.bit_length()]
        local = self.part.layout.local_of(targets)
        graph = self.part.graph
        levels: Array = asked_levels(self._asked, graph, rows, searches, local).get()
        return levels


def shared_sizes(part: MemberRows) -> list[int]:
    """Return the bytes accessed by others: 2 fronts, MARKS marks, visited bits."""
    own = part.granules * GRANULE
    positions = own * part.layout.parts
    return [ROW_BYTES * positions] * 2 + [positions // 8] * MARKS + [ROW_BYTES * own]


def require_room(parts: Sequence[MemberRows]) -> None:
    """Raise ResourceError unless the devices of parts have enough memory."""
    for part in parts:
        own = (2 * MORE_PLANES * ROW_BYTES + 8) * part.graph.active
        with part.graph.numbers.device:
            cuda.require(
                sum(shared_sizes(part)) + own + RESERVE, "bit-parallel searches"
            )


class DomainBitSearches:
    """Searches a graph on the devices of all ranks; methods are collective.

    parts: of this rank; pull_edges: pull frontiers of this many edges (default: m /
    PULL_SHARE)

    Raises UsageError where rows have columns in host memory, ResourceError on all ranks
    where device memory is short on one.
    """

    width = SEARCHES

    def __init__(
        self,
        world: World,
        parts: Sequence[MemberRows],
        *,
        pull_edges: int | None = None,
    ) -> None:
        need_all_columns(parts[0].graph)  # of a domain all or none have them
        self._world, self._layout = world, parts[0].layout
        share = max(parts[0].edges // PULL_SHARE, 1)
        self._pull_edges = share if pull_edges is None else pull_edges
        self._shares: list[Share] = []
        self._sources: Ids = np.zeros(0, dtype=np.int64)
        self._deepest = self._planes = 0
        devices = [int(part.graph.numbers.device) for part in parts]
        self._agreed(lambda: require_room(parts))
        self._group = PeerGroup(world, devices)
        sizes = [sum(shared_sizes(part)) for part in parts]
        try:
            held = self._group.share(sizes, "bit-parallel searches")
            self._agreed(lambda: self._make(parts, *held))
        except (LaunchError, ResourceError):
            self.close()
            raise

    def _make(
        self, parts: Sequence[MemberRows], memory: list[DeviceArray], bases: list[Ids]
    ) -> None:
        for part, array, table in zip(parts, memory, bases, strict=True):
            with part.graph.numbers.device, cuda.memory_of("bit-parallel searches"):
                self._shares.append(Share(part, array, table))

    def _agreed(self, work: Callable[[], object]) -> None:
        """Call ``work`` on each rank; ResourceError on all if one fails."""
        reason = ""
        try:
            work()
        except ResourceError as error:
            reason = str(error)
        if reason := first_reason(self._world, reason):
            raise ResourceError(reason)

    def _each(self, work: Callable[[Share], Any]) -> list[Any]:
        results = []
        for share in self._shares:
            with on_device(share.device):
                results.append(work(share))
        return results

    def _step(self, depth: int, *names: str) -> None:
        """Launch steps of a level on all devices of this rank."""
        for name in names:
            for share in self._shares:
                with on_device(share.device):
                    share.step(name, depth)

    def _meet(self) -> None:
        """Wait until all devices of all ranks have finished their steps."""
        self._each(lambda _: cuda.cupy().cuda.Device().synchronize())
        self._world.barrier()

    def run(self, sources: Ids, *, stop: Stop | None = None) -> None:
        """Search from up to 128 vertex ids, int64 [k], the same on all ranks.

        stop: called before each level, on any rank; SearchStopped on all ranks if one
        returns True. Raises UsageError for invalid or too many ids, ResourceError where
        memory for levels is short.
        """
        self._check(sources)
        if len(sources) > self.width:
            raise UsageError(f"{len(sources)} searches at once; allowed: {self.width}")
        depth, listed = 0, True
        self._open(sources)
        while edges := self._edges(depth, stop):
            depth += 1
            self._make_room(depth)
            if edges >= self._pull_edges:
                self._step(depth, "pull")
                listed = False
                continue
            if not listed:
                self._step(depth - 1, "list")
                self._step(depth, "empty")
                self._meet()
                listed = True
            self._step(depth, "push")
            self._meet()
            self._step(depth, "list", "settle")
        self._deepest = depth

    def _check(self, ids: Ids) -> None:
        wrong = ids[(ids < 0) | (ids >= self._layout.n)]
        if len(wrong):
            raise UsageError(
                f"{wrong[0]} is not a vertex; allowed: 0 to {self._layout.n - 1}"
            )

    def _open(self, sources: Ids) -> None:
        """Initialise level 0."""
        self._sources = sources
        numbers = self._each(lambda share: share.numbers_of(sources))
        connected = np.any([x != ISOLATED for x in numbers], axis=0).astype(np.uint8)
        there = self._world.allreduce(connected, "max").astype(np.bool_)
        for share, own in zip(self._shares, numbers, strict=True):
            with on_device(share.device):
                share.clear()
                share.begin(own, there)
        self._meet()
        self._step(0, "list", "settle")

    def _edges(self, depth: int, stop: Stop | None) -> int:
        """Return the edges out of a level, of all parts, when all have finished it."""
        self._each(lambda share: share.tell())
        edges = sum(self._each(lambda share: share.edges(depth)))
        asked = stop is not None and stop()
        counts = np.array([edges, asked], dtype=np.int64)
        edges, stopped = self._world.allreduce(counts).tolist()
        if stopped:
            raise SearchStopped(f"the searches were stopped at level {depth}")
        return edges

    def _make_room(self, depth: int) -> None:
        """Allocate room for a level."""
        while 1 << self._planes <= depth:
            self._agreed(lambda: self._each(lambda share: share.add_planes()))
            self._planes += MORE_PLANES

    def levels_at(self, searches: Ids, vertices: Ids) -> Array:
        """Return the level of each vertex id in each search (row), int32; -1 if none.

        Equal on all ranks.
        """
        self._check(vertices)
        levels = np.full(len(vertices), UNREACHED, dtype=np.int32)
        for share in self._shares:
            own = self._layout.part_of(vertices) == share.part.index
            with on_device(share.device):
                levels[own] = share.levels_at(
                    self._deepest, searches[own], vertices[own]
                )
        levels = self._world.allreduce(levels, "max")
        levels[self._sources[searches] == vertices] = 0  # including those without edges
        return levels

    def close(self) -> None:
        """Free the shared memory."""
        self._shares = []
        self._group.close()
