"""Levels of requested pairs (source, target) on one CUDA device (bits_meet.cu).

Lookups of edges find most of them. For the other pairs, searches from the sources look
back from the targets between two levels, and end as soon as all levels are known.
Sources: Then et al., The more the merrier, VLDB 2014; Pohl, Bi-directional search,
1971; Akiba et al., Fast exact shortest-path distance queries, SIGMOD 2013.
"""

from __future__ import annotations

import numpy as np

from distbfs.device import cuda, programs
from distbfs.device.array_table import total_bytes
from distbfs.device.stop_word import StopWord
from distbfs.device.structures import structure
from distbfs.engines.cuda.xbfs.lookups import DeviceLookups
from distbfs.errors import SearchStopped, UsageError
from distbfs.multisearch.cuda_bits import (
    KERNELS,
    SEARCHES,
    THREADS,
    check_ids,
    shared_of,
)
from distbfs.multisearch.domain_share import LaunchedShare
from distbfs.multisearch.started import Started
from distbfs.partition.share import Share
from distbfs.plan import pull_shares
from distbfs.types import Array, DeviceArray, Ids, Stop

SOURCE = KERNELS / "bits_meet.cu"
OPEN_WORDS = 12


class MeetingSearches:
    """Finds levels of pairs in a graph on one device, from up to 128 sources at once.

    Raises UsageError if the graph is too large or has columns in host memory,
    ResourceError if device memory is short.
    """

    def __init__(self, graph: Share) -> None:
        if graph.out.tails is not None:
            raise UsageError("searches for pairs need all columns on the device")
        self._graph = graph
        module = programs.Module(SOURCE, PIECES=1)
        with cuda.memory_of("searches that meet"):
            self._open = cuda.cupy().zeros(OPEN_WORDS, np.uint32)
            memory = cuda.cupy().zeros(total_bytes(shared_of(graph, 1)), np.uint8)
            self._bits = LaunchedShare(graph, 1, memory)
        self._bits.params.pull_edges = max(graph.m // pull_shares.MEETING, 1)
        self._meet = structure(SOURCE, "Meet")(p=self._bits.params)
        self._meeting = module.kernel("meet").prepare(
            self._meet, cuda.multiprocessors(), THREADS, cooperative=True
        )
        self._lookups = DeviceLookups(graph)
        self._lookups.pairs.set(open=self._open)
        self._word = StopWord()

    def levels_at(
        self, sources: Ids, rows: Ids, vertices: Ids, stop: Stop | None = None
    ) -> Array:
        """Return the level of vertices[j] from sources[rows[j]], int32 [k] on the host.

        sources: int64, up to 128 ids; rows, vertices: int64 [k]. Level -1 means
        unreached.

        stop: function that is called before and during the launch; SearchStopped is
        raised if it returns True
        """
        return self.start(sources, rows, vertices, stop).finish()[1]

    def near(self, source: int, vertices: Ids) -> Array:
        """Return the level of vertices from a source by lookups alone, int32 [k].

        vertices: int64 [k]. Level -1 means unreached, lookups.OPEN not known.
        """
        targets = check_ids(self._graph, vertices, "target")
        ids, rows = check_ids(self._graph, [source]), np.zeros_like(targets)
        levels = self._point(ids, rows, targets)
        self._lookups.near()
        known: Array = levels.get()[:-1]
        return known

    def _point(self, ids: Ids, rows: Ids, targets: Ids) -> DeviceArray:
        """Pass pairs to the kernels, which keep them; return the array for levels."""
        packed = np.concatenate([ids, rows, targets]).astype(np.uint32)
        held, second = cuda.cupy().asarray(packed), len(ids) + len(rows)
        levels = cuda.cupy().empty(len(targets) + 1, np.int32)
        pairs = self._lookups.pairs
        pairs.set(source=held[: len(ids)], search=held[len(ids) : second])
        pairs.set(target=held[second:], level=levels, count=len(targets))
        self._meet.set(pairs=pairs, k=len(ids))
        return levels

    def start(
        self, sources: Ids, rows: Ids, vertices: Ids, stop: Stop | None = None
    ) -> Started[Array]:
        """Begin ``levels_at``; ``finish`` returns the seconds of the kernels.

        Finish it before the next start; ``finish`` calls ``stop`` while it waits.
        """
        ids = check_ids(self._graph, sources)
        targets = check_ids(self._graph, vertices, "target")
        if len(ids) > SEARCHES:
            raise UsageError(f"{len(ids)} searches at once; allowed: {SEARCHES}")
        if stop is not None and stop():
            raise SearchStopped("the searches were stopped before they began")
        levels = self._point(ids, rows, targets)
        word = self._word
        word.stop = stop
        self._meet.p.stop = word.address
        before = [(self._bits.control.view(np.uint32), 0), (self._open, 0)]
        graph = self._lookups.near.record(before, then=self._meeting)
        graph.set_arguments()
        graph.launch()

        def finish() -> tuple[float, Array]:
            seconds = graph.wait(word)
            known: Array = levels.get()
            if known[-1]:
                raise SearchStopped("the searches were stopped")
            return seconds, known[:-1]

        return Started(finish, graph.ended)
