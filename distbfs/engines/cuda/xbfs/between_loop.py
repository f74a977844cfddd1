"""Searches between domains in one launch on each device (between_loop.cu)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from distbfs.device import cuda, programs, sources
from distbfs.device.array_table import places
from distbfs.device.structures import structure
from distbfs.device.take import Back
from distbfs.engines.cuda.xbfs.arrays import KERNELS, ways
from distbfs.engines.cuda.xbfs.between_params import LINE, reply_slot, symmetric_table
from distbfs.engines.cuda.xbfs.block_memory import THREADS
from distbfs.engines.cuda.xbfs.share_search import CONTROL_BYTES
from distbfs.errors import DistbfsError
from distbfs.exchange.traffic import KINDS

if TYPE_CHECKING:
    from distbfs.engines.base import Targets
    from distbfs.engines.cuda.xbfs.between_share import BetweenShare
    from distbfs.exchange.symmetric import NvshmemMemory
    from distbfs.exchange.traffic import Traffic
    from distbfs.types import Ids, Root, World

SOURCE = KERNELS / "between_loop.cu"
LEVELS, FAULT, BYTES = 0, 1, 2  # ``Told`` in between_loop.cu
TOLD = BYTES + 2 * len(KINDS)
TURNS = 7  # words before these
# of a frontier between hosts: what it sends takes longer than a meeting of all blocks
WIDE = 1 << 14
NEVER = (1 << 32) - 1


class BetweenLoop:
    """All levels of a search, parents and results, in one launch on a device.

    Creating it is collective. Raises OutOfMemory on all ranks if boxes of all others do
    not fit a device.
    ranks: the rank of each share, int64 [shares]
    """

    def __init__(
        self, search: BetweenShare, memory: NvshmemMemory, world: World, ranks: Ids
    ) -> None:
        cp, params, domains = cuda.cupy(), search.params, search.part.domain.of
        self._search, self._memory, self._world = search, memory, world
        most = np.array([int(np.diff(search.box_at).max())])
        slot = int(world.allreduce(most, "max")[0])
        owned = search.most_owned
        table = symmetric_table(domains, slot, owned, params.dwords)
        begins, size = places(table, LINE)
        room = memory.allocate(size, "boxes of other domains")
        own = cp.zeros(TURNS + TOLD, np.uint64)
        self._controls = cp.zeros(2 * CONTROL_BYTES, np.uint8)
        self._searches = 0
        self._told = Back(own[TURNS:])
        # a domain of one device between larger ones has the same form
        self._exact = search.exact | {"SEVERAL": int(max(domains.sizes) > 1)}
        apart = [domains.apart_from(share) for share in range(domains.shares)]
        bits = [sum(1 << share for share in others) for others in apart]
        self.params = structure(SOURCE, "Loop", ways(search.part))(
            slot=slot,
            reply_slot=reply_slot(slot, owned),
            wide=NEVER if memory.near else WIDE,
            turn=own,
            masked=own[1:],
            arrived=own[2:],
            next=own[3:],
            told=own[TURNS:],
            apart=cp.asarray(np.array(bits, np.uint64)),
            elements=cp.asarray(ranks.astype(np.uint32)),
            **{name: room[at:] for name, at in begins.items()},
        )
        self._launches: dict[bool, programs.Launch] = {}
        self._launch(masked=False)

    def _launch(self, *, masked: bool) -> programs.Launch:
        """Return the kernel, loaded at first use."""
        if masked not in self._launches:
            arrays, split = self._search.arrays, self._search.part.out.tails is not None
            needs = {"SPLIT": split, "MASKED": masked}
            form = sources.serving(SOURCE, self._exact, needs)
            module = self._memory.module(SOURCE, **dict(form))
            self._launches[masked] = module.kernel("loop").prepare(
                self.params,
                arrays.grid,
                THREADS,
                shared=arrays.shared_bytes,
                cooperative=True,
            )
        return self._launches[masked]

    def start(
        self,
        local: Root | None,
        delegate: Root | None,
        *,
        counting: bool = False,
        targets: Targets | None = None,
    ) -> None:
        """Set the root or roots, like ``DomainSearch.start``, without counters."""
        if counting or targets is not None:
            raise ValueError("a search in one launch counts nothing")
        with self._search.device:
            self._search.aim(local, delegate)

    def run(self, hidden: int, traffic: Traffic, *, parents: bool) -> tuple[int, float]:
        """Run a search that was started (collective); ``finish`` follows.

        hidden: number of delegates that are not roots
        parents: whether parents of delegates are wanted; traffic: counts the data sent

        Returns (number of levels, seconds of this device). Raises DistbfsError if
        another domain did not answer in time.
        """
        search, params = self._search, self.params
        with search.device:
            search.clean_up()
            search.take_counters(self._searches & 1, self._controls)
            params.set(b=search.params)
            params.hidden, params.parents = hidden, parents
            launch = self._launch(masked=search.masked)
            graph = launch.record(then=search.results, back=self._told)
            graph.set_arguments()
            self._searches += 1
            self._world.barrier()  # devices wait for each other from here on
            graph.launch()
            seconds = graph.wait()
        report = self._told.pinned.tolist()
        if report[FAULT]:
            raise DistbfsError(
                f"part {report[FAULT] - 1} did not answer in time; this session cannot "
                "search any more"
            )
        search.went(report[LEVELS])
        sent, messages = np.split(np.array(report[BYTES:]), 2)
        for kind, size, count in zip(KINDS, sent, messages, strict=True):
            traffic.count(int(size), kind, part=0, messages=int(count))
        return int(report[LEVELS]), seconds
