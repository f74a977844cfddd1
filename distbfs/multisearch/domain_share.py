"""One device's share of many searches over parts on devices.

The host launches the steps of a level on all devices of a domain (bits_domain.cu). A
device that holds a whole graph is a domain of one, whose steps are fused: one launch
runs all levels (bits.cu).
"""

from __future__ import annotations

import ctypes
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from distbfs.device import cuda, programs
from distbfs.device.array_table import allocate, pieces
from distbfs.device.stop_word import StopWord
from distbfs.device.structures import Record, structure
from distbfs.device.take import take
from distbfs.engines.cuda.common.arguments import row_arguments
from distbfs.engines.cuda.common.hubs import above
from distbfs.engines.cuda.xbfs.share_search import LINE_BYTES
from distbfs.errors import SearchStopped
from distbfs.graph.device_graph import ISOLATED
from distbfs.multisearch.base import SUMS, level_dtype
from distbfs.multisearch.cuda_bits import (
    HUB_DEGREE,
    KERNELS,
    LANES,
    LEVELS,
    MORE_LEVELS,
    MORE_PLANES,
    NO_LIMIT,
    SEARCHES,
    THREADS,
    WIDE_DEGREE,
    own_table,
    shared_of,
)
from distbfs.multisearch.outer_bits import Outside
from distbfs.multisearch.part_loop import Wanted
from distbfs.types import UNREACHED

if TYPE_CHECKING:
    from distbfs.partition.share import Share
    from distbfs.types import Array, DeviceArray, Ids

TURNS, TALLY_WORDS = 3, 2
STEPS = (
    "live_level",
    "pull_level",
    "push_level",
    "list_level",
    "empty_level",
    "settle_level",
    "count_searches",
)
BLOCK = 32  # searches whose levels are read together
IDS_AT_ONCE = 1 << 20  # of which levels are read, in RESERVE: 128 bytes each at most


class BitShare:
    """One device's share of searches; call its methods with the device current.

    wanted: results of the searches
    memory: uint8 zeros, as many bytes as ``shared_of`` needs
    bases: addresses of the memory of the domain's devices, [devices]
    """

    source = KERNELS / "bits_domain.cu"

    def __init__(
        self, member: Share, lanes: int, memory: DeviceArray, bases: Ids
    ) -> None:
        self.member, self.lanes = member, lanes
        self.device, self.part = member.cuda_device, member.index
        cp = cuda.cupy()
        self._shared = allocate(shared_of(member, lanes), pieces(memory))
        self._seen = self._shared["seen"][: SEARCHES // 32 * lanes * member.active]
        self.wanted = Wanted()
        self._planes: list[DeviceArray] = []
        self._counts: DeviceArray | None = None
        self._tail_reads: dict[str, DeviceArray] = {}
        if member.out.tails is not None:
            self._tail_reads["reads"] = cp.zeros(2, np.uint64)
            self._tail_reads["live"] = cp.zeros(2 * 4 * lanes, np.uint32)
        self.first = structure(self.source, "Begin")()
        self.params: Record = self.first.p
        own = own_table(lanes, member.n, member.active, levels=False, sums=0)
        hubs, wide = (above(member, x) // 32 * 32 for x in (HUB_DEGREE, WIDE_DEGREE))
        self.params.set(
            out=row_arguments(member.out),
            # mutant: member.into -> member.out : test_directed_bits::test_domains
            into=row_arguments(member.into),
            hubs=hubs,
            wide=wide,
            **self._tail_reads,
            **self._shared,
            **allocate(own, cp.empty),
            active=member.active,
            words=len(self._shared["mark"][0]),
        )
        self._open_kernels(bases)

    def _open_kernels(self, bases: Ids) -> None:
        """Prepare launches of a level's steps, and arguments that only they need."""
        member, devices = self.member, self.member.domain.devices
        self._tally = cuda.cupy().zeros(TURNS * TALLY_WORDS, np.uint64)
        self._tally_copy = cuda.HostCopy(self._tally)
        self.params.set(
            tally=self._tally,
            magic=-(-(1 << 32) // devices),
            parts=devices,
            index=member.device,
            shift=(bases - bases[member.device]).tolist(),
            # mutant: member.normals if member.domain.index else 0 -> 0
            #   : test_outer_bits::test_a_last_level
            counted=member.normals if member.domain.index else 0,
        )
        split = int(member.out.tails is not None)
        module = programs.Module(self.source, PIECES=self.lanes, SPLIT=split)
        grid = cuda.multiprocessors()
        self._steps = {
            name: module.kernel(name).prepare(self.params, grid, THREADS)
            for name in STEPS
        }
        begin = module.kernel("begin_level")
        self._begin_level = begin.prepare(self.first, 1, THREADS)
        self.outside: Outside | None = None
        if member.domain.several:
            self.outside = Outside(member, member.out.outer, self.lanes, self.params)

    def clear(self, wanted: Wanted) -> None:
        """Reset the state of searches, and their sums and counts."""
        self.wanted = wanted
        cp, stream = cuda.cupy(), cuda.cupy().cuda.get_current_stream()
        if not wanted.levels:
            self._planes = []
        marks, seen = self._shared["mark"], self._shared["seen"]
        # mutant: *self._tail_reads.values() -> *()
        #   : test_domains_from_the_least_to_all_on_the_devices
        tail_reads = [*self._tail_reads.values()]
        for array in (*marks, seen, *self._fresh(), *self._planes, *tail_reads):
            if array.nbytes:
                cuda.clear(array, stream)
        self._show_planes()
        self._counts = None
        self.params.set(counts=None)  # they go before others come
        with cuda.memory_of("counts of bit-parallel searches"):
            if wanted.counts:
                self._counts = cp.zeros((MORE_LEVELS, SEARCHES * self.lanes), np.uint32)
        self.params.set(counts=self._counts)
        if not wanted.continued:
            self.params.set(**dict.fromkeys(SUMS))  # they go before others come
            active = max(self.member.active, 1)
            with cuda.memory_of("sums of bit-parallel searches"):
                sums = {name: cp.zeros(active, SUMS[name]) for name in wanted.sums}
            self.params.set(**sums)

    def _fresh(self) -> list[DeviceArray]:
        """Clear the arrays that other devices write; return others to be cleared."""
        for depth in (0, 1):  # mutant: (0, 1) -> (1,) : test_a_stop_between_levels
            self.step("empty_level", depth)
        if self.outside is not None:
            self.outside.clear()
        return [self._tally]

    def begin(self, numbers: Array, there: Array) -> None:
        """Write level 0.

        numbers: numbers of the sources, see ``Share.numbers_of_ids``; there: bool
        [k], which sources any device has
        """
        bits = np.zeros(SEARCHES * LANES[-1], dtype=np.uint8)
        bits[: len(there)] = there
        full = np.packbits(bits, bitorder="little")
        np.frombuffer(self.params.full, np.uint8)[:] = full
        self.first.set(number=cuda.cupy().asarray(numbers), k=len(numbers))
        self._begin_level()

    def step(self, name: str, depth: int) -> None:
        """Launch a step of a level; see bits_domain.cu."""
        self.params.depth = depth
        self._steps[name]()

    def tail_reads(self) -> list[int]:
        """Return the counts of tail reads, in the order of ``TAIL_COUNTS``, if any."""
        if not self._tail_reads:
            return []
        columns, lines = self._tail_reads["reads"].get().tolist()
        return [columns, lines * LINE_BYTES]

    def settle(self, depth: int) -> None:
        """Make the new bits the frontier; start copying its size to the host."""
        self.step("list_level", depth)
        self.step("settle_level", depth)
        if self._counts is not None:
            self.step("count_searches", depth)
        self._tally_copy.begin(cuda.cupy().cuda.get_current_stream())

    def frontier(self, depth: int) -> tuple[int, int]:
        """Count a level's vertices here, and edges out of them, after ``settle``."""
        at = depth % TURNS * TALLY_WORDS
        edges, size = self._tally_copy.wait()[at : at + 2].tolist()
        return (size & 0xFFFFFFFF) + (size >> 32), edges

    @property
    def room(self) -> int:
        """The last level that there is memory for; the same for all shares."""
        levels = (1 << len(self._planes)) - 1 if self.wanted.levels else NO_LIMIT
        return min(levels, NO_LIMIT if self._counts is None else len(self._counts) - 1)

    def make_room(self, depth: int) -> None:
        """Allocate room for a level."""
        cp = cuda.cupy()
        if self.wanted.levels and depth >> len(self._planes) > 0:
            with cuda.memory_of("levels of bit-parallel searches"):
                for _ in range(MORE_PLANES):
                    self._planes.append(cp.zeros(max(self._seen.size, 1), np.uint32))
            self._show_planes()
        if self._counts is not None and depth >= len(self._counts):
            with cuda.memory_of("counts of bit-parallel searches"):
                wider = cp.zeros((2 * depth, self._counts.shape[1]), np.uint32)
            wider[: len(self._counts)] = self._counts
            self._counts = wider
            self.params.set(counts=wider)

    def _show_planes(self) -> None:
        self.params.set(plane=self._planes, planes=len(self._planes))

    def level_counts(self, levels: int) -> Array:
        """Return the number of vertices counted here, int64 [levels, width]."""
        if self._counts is None:
            raise ValueError("counts were not requested")
        counts: Array = self._counts[:levels].get().astype(np.int64)
        return counts

    def levels_in(self, deepest: int, searches: Ids, targets: Ids) -> Array:
        """Return the levels of targets, which are ids of this part, int32 on the host.

        A level is -1 for unreached vertices, and 0 for all others if levels are not
        kept.
        """
        levels = np.full(len(searches), UNREACHED, np.int32)
        numbers = self.member.local_numbers(self.member.layout.local_of(targets))
        here = np.flatnonzero(numbers != ISOLATED)
        bit = (searches[here] % 32).astype(np.uint32)
        at = numbers[here].astype(np.int64) * (4 * self.lanes) + searches[here] // 32
        seen, *digits = (
            (take(array, at) >> bit & 1).astype(np.int32)
            for array in (self._seen, *self._planes_of(deepest))
        )
        known = np.zeros(len(at), np.int32)
        for place, digit in enumerate(digits):
            # mutant: << place -> << 0 : test_domain_bits::test_levels
            known |= digit << place
        levels[here] = np.where(seen, known, UNREACHED)
        return levels

    def _planes_of(self, deepest: int) -> list[DeviceArray]:
        """Return the planes of levels up to the deepest, if levels are kept."""
        return self._planes[: deepest.bit_length()]

    def write_levels(
        self, out: DeviceArray, numbers: DeviceArray, deepest: int, block: int = 0
    ) -> None:
        """Write the levels of searches from ``block`` * BLOCK on, -1 = unreached.

        out: integers [searches, n]; numbers: uint32 [n], number of each column's
        vertex, or ISOLATED
        """
        planes = [plane[block:] for plane in self._planes_of(deepest)]
        matrix = structure(LEVELS, "Matrix")(
            numbers=numbers,
            seen=self._seen[block:],
            plane=planes,
            out=out,
            n=out.shape[1],
            k=len(out),
            words=4 * self.lanes,
            planes=len(planes),
        )
        word = programs.word_of(out)
        kernel = programs.kernel_here(LEVELS, "matrix", LEVEL=word)
        kernel.prepare(matrix, 8 * cuda.multiprocessors(), 256)()

    def block_levels(self, deepest: int, block: int, count: int) -> Array:
        """Return the levels of searches from ``block`` * BLOCK on, by local id.

        count: number of all searches. The result is integers [up to BLOCK, local ids]
        on the host.
        """
        n, some = self.member.n, min(BLOCK, count - BLOCK * block)
        levels = np.empty((some, n), level_dtype(deepest))
        for low in range(0, n, IDS_AT_ONCE):
            numbers = self._numbers[low : min(low + IDS_AT_ONCE, n)]
            with cuda.memory_of("levels"):
                out = cuda.cupy().empty((some, len(numbers)), levels.dtype)
            self.write_levels(out, numbers, deepest, block)
            levels[:, low : low + len(numbers)] = out.get()
        return levels

    @cached_property
    def _numbers(self) -> DeviceArray:
        """The number of each local id, uint32, ISOLATED for none."""
        cp, graph = cuda.cupy(), self.member
        if graph.members is None:
            return graph.numbers
        with cuda.memory_of("levels"):
            # one more element takes vertices of other devices
            numbers = cp.full(graph.n + 1, ISOLATED, np.uint32)
        at = cp.minimum(graph.vertices, np.uint32(graph.n))
        numbers[at] = cp.arange(graph.active, dtype=np.uint32)
        return numbers

    def digits_of(self, deepest: int, first: int, width: int) -> DeviceArray:
        """Return which searches reached own vertices, and the binary digits of levels.

        Each search from ``first`` to ``first`` + ``width`` - 1 has a bit in a word of
        32. The result is uint32 [1 + digits, active].
        """
        cp, active = cuda.cupy(), self.member.active
        planes = self._planes_of(deepest)
        word, shift = divmod(first, 32)
        kept = np.uint32((1 << width) - 1)
        with cuda.memory_of("levels of betweenness"):
            digits = cp.empty((1 + len(planes), active), np.uint32)
        for row, bits in zip(digits, (self._seen, *planes), strict=True):
            column = bits[: self._seen.size].reshape(active, 4 * self.lanes)[:, word]
            row[...] = column >> np.uint32(shift) & kept
        return digits

    def sums(self, name: str) -> Array:
        """Return sums of ``base.SUMS`` by local id, on the host."""
        return self.by_local(self.params.held[name])

    def by_local(self, values: DeviceArray) -> Array:
        """Convert values by own number, [active or more], to local ids on the host."""
        graph = self.member
        arranged: Array = np.zeros(graph.n, values.dtype)
        vertices = graph.vertices[: graph.active].get()
        own = vertices < graph.n
        arranged[vertices[own]] = values[: graph.active].get()[own]
        return arranged


class LaunchedShare(BitShare):
    """The only share of searches of a whole graph, all of which is on the device.

    control: uint64, counters of the barriers of blocks; to be cleared before a launch
    seconds: time of the last search's kernels; pulls, pushes: its levels by direction
    """

    source = KERNELS / "bits.cu"

    def __init__(self, member: Share, lanes: int, memory: DeviceArray) -> None:
        self._word = StopWord()
        self._host_state = structure(self.source, "State")
        self.control, self._state = (
            cuda.cupy().zeros(ctypes.sizeof(kind) // 8, np.uint64)
            for kind in (structure(self.source, "Control"), self._host_state)
        )
        self.seconds, self.pulls, self.pushes = 0.0, 0, 0
        super().__init__(member, lanes, memory, np.zeros(1, np.int64))

    def _open_kernels(self, bases: Ids) -> None:  # noqa: ARG002
        """Prepare the launches, and arguments that only they need."""
        self.params.set(control=self.control, state=self._state)
        module = programs.Module(self.source, PIECES=self.lanes)
        self._begin_level = module.kernel("begin_level").prepare(self.first, 1, THREADS)
        self._launch = module.kernel("search").prepare(
            self.params, cuda.multiprocessors(), THREADS, cooperative=True
        )

    def _fresh(self) -> list[DeviceArray]:
        return [*self._shared["front"], self._state]

    def search(self, pull_edges: int) -> int:
        """Search from level 0, which ``begin`` wrote; return the largest level.

        There are several launches if the memory for levels must grow. ``wanted.stop``
        is called before and during each launch; SearchStopped is raised if it returns
        True while levels are left.

        pull_edges: pull frontiers of this many edges or more
        """
        limit, stop = self.wanted.limit, self.wanted.stop
        last = NO_LIMIT if limit is None else limit
        self.params.pull_edges = pull_edges
        self.seconds, state = 0.0, self._state_now()
        while state.edges and state.depth < last:
            if state.stopped or (stop is not None and stop()):
                raise SearchStopped(f"the searches were stopped at level {state.depth}")
            self._word.stop = stop
            self.params.stop = self._word.address
            self.make_room(state.depth + 1)
            self.params.last = min(last, self.room)
            control = self.control.view(np.uint32)
            self.seconds += self._launch.timed([(control, 0)], word=self._word)
            state = self._state_now()
        self.pulls, self.pushes = state.pulls, state.pushes
        # the last level of a complete search found nothing
        deepest: int = state.depth - (not state.edges and state.depth > 0)
        return deepest

    def _state_now(self) -> ctypes.Structure:
        """Return the state that the last launch left."""
        return self._host_state.from_buffer_copy(self._state.get().tobytes())
