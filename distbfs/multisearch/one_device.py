"""The share of a device that holds a whole graph: one launch runs all levels (bits.cu).

The device is a domain of one, whose steps are fused; see ``domain_share``.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import numpy as np

from distbfs.device import cuda, programs
from distbfs.device.stop_word import StopWord
from distbfs.device.structures import structure
from distbfs.engines.cuda.common.hubs import above
from distbfs.errors import SearchStopped
from distbfs.multisearch.cuda_bits import (
    HUB_DEGREE,
    KERNELS,
    NO_LIMIT,
    THREADS,
    WIDE_DEGREE,
)
from distbfs.multisearch.domain_share import BitShare

if TYPE_CHECKING:
    from distbfs.partition.share import Share
    from distbfs.types import DeviceArray, Ids


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
        graph = self.member
        in_offsets, in_columns = graph.pulled
        self.params.set(
            in_row=in_offsets,
            in_adj=in_columns,
            control=self.control,
            state=self._state,
        )
        module = programs.Module(
            self.source, PIECES=self.lanes, DIRECTED=int(graph.directed)
        )
        self._begin_level = module.kernel("begin_level").prepare(self.first, 1, THREADS)
        self._launch = module.kernel("search").prepare(
            self.params, cuda.multiprocessors(), THREADS, cooperative=True
        )

    def _split_rows(self, graph: Share) -> list[int]:
        return [above(graph, x) // 32 * 32 for x in (HUB_DEGREE, WIDE_DEGREE)]

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
            self.params.last = min(last, self._room(state.depth))
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

    def _room(self, depth: int) -> int:
        """Allocate more levels than ``depth``; return the last one allocated."""
        last = NO_LIMIT
        self.make_room(depth + 1)
        if self.wanted.levels:
            last = min(last, (1 << len(self._planes)) - 1)
        if self._counts is not None:
            last = min(last, len(self._counts) - 1)
        return last
