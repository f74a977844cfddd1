"""Searches of parts whose devices see each other's memory: the host only launches.

A level is decided, visited and exchanged by the devices; the host launches levels ahead
and reads what the first device of this rank says.  With records it waits after each.
Source: Pan, Pearce, Owens 2018, Sections IV and V.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cuda
from distbfs.engines.cuda.level import EXCHANGE, LevelPart, seconds_of, work_of
from distbfs.errors import DistbfsError, SearchStopped
from distbfs.exchange.process import processes_beside
from distbfs.search.driver import LevelReport, PartsResult, delegate_finder
from distbfs.timing import Stopwatch, Trace

if TYPE_CHECKING:
    from distbfs.exchange.peers import PeerGroup
    from distbfs.types import Ids, Stop, World

AHEAD = 2  # levels that are launched and not decided
POLLS = 2000  # between two looks at the clock
LOOK_SECONDS = 0.2
MEETING_NAMES = (
    *("delegates that are pulled", "pulled delegates together"),
    *("the visits", "the masks", "the counts"),
)
FORWARD = ("nn", "nd", "dn", "dd")  # as the device numbers subgraphs


class PeerDriver:
    """Runs searches over the parts of this rank together with the other ranks.

    With parts that share a device, kernels of all are launched in turn; what waits for
    another part then finds it done.

    trace: keeps the phases of every search where one is set
    """

    trace: Trace | None = None

    def __init__(
        self, world: World, parts: Sequence[LevelPart], group: PeerGroup
    ) -> None:
        self._world, self._parts, self._group = world, parts, group
        part = parts[0].part
        self._layout = part.layout
        self._delegate_of = delegate_finder(part.delegates)
        self._captured = len(set(group.devices)) == len(parts)
        self._others = processes_beside(world)
        boxes = self._boxes()
        sizes = [x.shared_bytes(boxes[x.part.index]) for x in parts]
        arrays, tables = group.share(sizes, "memory that parts share")
        for one, array, table in zip(parts, arrays, tables, strict=True):
            with cuda.cupy().cuda.Device(one.device):
                one.connect(array, table, boxes)
                one.warm()
                cuda.cupy().cuda.Device().synchronize()
        world.barrier()

    def _boxes(self) -> Ids:
        """Return the items that a part (row) may get from each part (collective)."""
        count, ranks = self._layout.parts, self._world.size
        mine = np.concatenate([x.outgoing for x in self._parts])
        boxes = np.zeros((count, count), dtype=np.int64)
        for rank, told in enumerate(self._world.allgather(mine)):
            for k, row in enumerate(told.reshape(-1, count)):
                boxes[:, rank + k * ranks] = row
        return boxes

    def search(
        self,
        root: int,
        *,
        records: bool = False,
        parents: bool = True,
        stop: Stop | None = None,
    ) -> PartsResult:
        """Search from a vertex id (collective).

        stop: on all ranks or on none, asked before the first level, since the others
        run without the host; SearchStopped on all ranks where one said yes
        """
        if stop is not None:
            asked = np.array([stop()], dtype=np.int64)
            if self._world.allreduce(asked, "max")[0]:
                raise SearchStopped("the search was stopped before it began")
        clock = Stopwatch(self.trace)
        log: list[LevelReport] = []
        with clock("start"):
            self._open(root, counting=records)
        with clock("levels"):
            levels = self._levels(log if records else None)
        with clock("result"):
            results = [part.result() for part in self._parts]
        return PartsResult(
            [level for level, _ in results],
            [parent if parents else None for _, parent in results],
            levels,
            log,
            clock.seconds,
        )

    def _open(self, root: int, *, counting: bool) -> None:
        """Tell every part where the search begins; all ranks find it alike."""
        delegate = self._delegate_of(root)
        index, local = self._layout.part_of(root), self._layout.local_of(root)
        for part in self._parts:
            here = delegate is None and part.part.index == index
            part.open(local if here else None, delegate, counting=counting)
        for name in EXCHANGE[-2:]:
            for part in self._parts:
                part.run(name)

    def _launch(self) -> None:
        """Launch a level of all parts."""
        if self._captured:
            for part in self._parts:
                part.launch()
            return
        for name in LevelPart.order:
            for part in self._parts:
                part.run(name)

    def _levels(self, log: list[LevelReport] | None) -> int:
        """Run all levels; return how many had vertices."""
        decided, launched, ahead = 0, 1, AHEAD if log is None else 0
        told = self._parts[0].told
        states: list[Any] = []
        while True:
            while launched - decided <= ahead:
                self._launch()
                launched += 1
            decided = self._wait(decided)
            if told[2]:
                meeting = MEETING_NAMES[int(told[2]) - 1]
                raise DistbfsError(f"a device waited in vain for {meeting} of another")
            if log is not None:
                states.append([part.state() for part in self._parts])
                if len(states) > 1:
                    log.append(self._report(len(log) + 1, states[-2], states[-1]))
            if told[1]:
                return int(told[3])
            if log is not None:
                self._launch()
                launched += 1

    def _wait(self, decided: int) -> int:
        """Wait until more levels are decided; return how many are."""
        told, polls, since = self._parts[0].told, 0, time.monotonic()
        while int(told[0]) <= decided:
            polls += 1
            if polls % POLLS:
                continue
            for part in self._parts:
                part.check()
            if time.monotonic() - since > LOOK_SECONDS:
                since = time.monotonic()
                for process in self._others:
                    if not process.runs():
                        raise DistbfsError(f"rank {process.rank} ended in a level")
        return int(told[0])

    def _report(self, level: int, before: list[Any], after: list[Any]) -> LevelReport:
        """Return the record of a level from what was known before and after it."""
        begun = before[0]
        work = work_of(begun)
        checks = np.sum([state["checks"].astype(np.int64) for state in after], axis=0)
        total = self._world.allreduce(checks).tolist()
        chosen = {
            name: "pull" if begun[f"pull_{name}"] else "push"
            for name in ("dd", "dn", "nd")
        }
        return LevelReport(
            level,
            {"nn": "push", **chosen},
            work.normals,
            work.delegates,
            dict(zip(FORWARD, total, strict=True)),
            self._sent(begun, after),
            seconds_of(after[0]),
        )

    def _sent(self, begun: Any, after: list[Any]) -> dict[str, int]:
        """Return the bytes that left the parts of this rank in a level."""
        p = self._parts[0].params.part
        others = self._layout.parts - 1
        words = -(-p.dwords // self._layout.parts) * 4 * len(after)
        masks = 2 * words * others if begun["masks"] else 0
        normals = 8 * sum(int(state["posted"]) for state in after)
        if begun["normals"] and begun["dense"]:
            normals = 4 * p.sent_words * others * len(after)
        return {"masks": masks, "normals": normals}

    def close(self) -> None:
        """Give the shared memory back (collective)."""
        self._group.close()
