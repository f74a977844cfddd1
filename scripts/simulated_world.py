"""One rank of many whose other ranks are simulated: they return what they receive.

``Mirror`` replaces the communicator below ``MpiWorld``: that of the first of ``size``
ranks, whose partners return what they are sent. Messages use MPI's COMM_SELF, so that
calls have their real cost; no rank is waited for, so only the host's time remains.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from distbfs.engines.openmp.part import OpenMPPart
from distbfs.exchange.host import HostExchange
from distbfs.graph.csr import CSR
from distbfs.options import SearchOptions
from distbfs.partition.layout import Layout, Placement
from distbfs.partition.part import PART_SHIFT, Part
from distbfs.ranks.mpi import MpiWorld
from distbfs.search.runners.between import BetweenDomains

TAGS = 16  # of messages; COMM_SELF has the source in the rest of the tag


class Mirror:
    """A communicator of which this process is rank 0.

    calls: how often each method was called, over all duplicates
    made: the duplicates; early: messages that another rank sent here unasked
    """

    def __init__(
        self, size: int, real: Any = None, calls: Counter[str] | None = None
    ) -> None:
        from mpi4py import MPI  # noqa: PLC0415

        self._mpi: Any = MPI
        self._size, self._real = size, (real or MPI.COMM_SELF).Dup()
        self.calls: Counter[str] = Counter() if calls is None else calls
        self.made: list[Mirror] = []
        self.early = 0

    def __getattr__(self, name: str) -> Any:
        self.calls[name] += 1
        return getattr(self._real, name)

    def Dup(self) -> Mirror:  # noqa: N802 - names of mpi4py
        """Return a duplicate."""
        self.made.append(Mirror(self._size, self._real, self.calls))
        return self.made[-1]

    def Get_size(self) -> int:  # noqa: N802
        """Return the number of simulated ranks."""
        return self._size

    def Allgather(self, values: Any, gathered: Any) -> None:  # noqa: N802
        """Simulate the same values on all ranks."""
        self.calls["Allgather"] += 1
        gathered.reshape(self._size, -1)[...] = values

    def Allgatherv(self, values: Any, gathered: Any) -> None:  # noqa: N802
        """Simulate the same values on all ranks."""
        self.calls["Allgatherv"] += 1
        gathered[0].reshape(self._size, -1)[...] = values

    def Reduce_scatter_block(self, sent: Any, coming: Any) -> None:  # noqa: N802
        """Return as many messages as are sent, plus the unasked ones."""
        self.calls["Reduce_scatter_block"] += 1
        coming[0] = np.add.reduce(sent) + self.early
        self.early = 0

    def Isend(self, values: Any, rank: int, tag: int = 0) -> Any:  # noqa: N802
        """Send to a rank, which returns it at once."""
        self.calls["Isend"] += 1
        return self._real.Isend(values, 0, rank * TAGS + tag)

    def Mprobe(self, source: int, tag: int, status: Any) -> Any:  # noqa: N802, ARG002
        """Return the next message, from any source."""
        self.calls["Mprobe"] += 1
        message = self._real.Mprobe(0, self._mpi.ANY_TAG, status)
        self._name_source(status)
        return message

    def Recv(self, values: Any, status: Any) -> None:  # noqa: N802
        """Receive the next message, from any source."""
        self.calls["Recv"] += 1
        self._real.Recv(values, 0, self._mpi.ANY_TAG, status)
        self._name_source(status)

    @staticmethod
    def _name_source(status: Any) -> None:
        source, tag = divmod(status.Get_tag(), TAGS)
        status.Set_source(source)
        status.Set_tag(tag)


def chain(parts: int, levels: int, partners: int) -> Part:
    """Return the first part of a graph where each level finds one vertex.

    Vertex v has an edge to vertex v + 1 of each partner, which sends that number back,
    and one to delegate v, which the second part owns.
    """
    layout = Layout(2 * levels * parts, parts)
    others = np.linspace(1, parts, partners, endpoint=False).astype(np.uint64)
    following = np.arange(1, levels, dtype=np.uint64)
    columns = (others << np.uint64(PART_SHIFT)) + following[:, None]
    offsets = np.append(np.arange(levels), levels - 1) * partners
    each, one = np.arange(levels, dtype=np.uint32), np.arange(levels + 1)
    delegates = layout.global_of(1, levels + np.arange(levels))
    degrees = np.zeros(2 * levels, np.int64)
    degrees[:levels] = np.diff(offsets) + 1
    return Part(
        layout=layout,
        index=0,
        threshold=partners + 1,
        delegates=delegates,
        delegate_degrees=np.full(levels, partners + 2),
        nn=CSR(_rows(offsets, 2 * levels), columns.ravel()),
        nd=CSR(_rows(one, 2 * levels), each),
        dn=CSR(one.astype(np.uint32), each),
        dd=CSR(np.zeros(levels + 1, np.uint32), each[:0]),
        vertices=np.arange(2 * levels, dtype=np.uint32),
        degrees=degrees,
        tuple_degrees=degrees,
        active=levels,
    )


def _rows(offsets: Any, rows: int) -> Any:
    """Return offsets with empty rows appended."""
    behind = np.full(rows + 1 - len(offsets), offsets[-1])
    return np.concatenate([offsets, behind]).astype(np.uint32)


class Simulated:
    """The search of the first of ``size`` ranks, each with a part; made by one process.

    comm: see ``Mirror``; each level has ``partners`` messages out and as many in
    """

    def __init__(self, size: int, levels: int = 200, partners: int = 4) -> None:
        self.comm = Mirror(size)
        self.world = MpiWorld(self.comm)
        self.part = chain(size, levels, min(partners, size - 1))
        self.placement = Placement(size, size)
        options = SearchOptions(threads=1, parents=False, direction="push")
        self.exchange = HostExchange(
            self.world, self.placement, self.part.delegate_count, options.exchange
        )
        search = OpenMPPart(
            self.part, self.placement, threads=1, parents=False, direction="push"
        )
        self.runner = BetweenDomains(self.world, [search], self.exchange, options)

    def close(self) -> None:
        """Free the MPI resources."""
        self.runner.close()
        self.world.free()
