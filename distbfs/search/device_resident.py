"""Searching a graph whose searches run whole on the devices of one host.

Which searches can: ``resident_reason``.  How: search/resident_driver.py.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from distbfs.device import cuda
from distbfs.engines.base import DeviceEngine
from distbfs.engines.cuda.resident import ResidentSearch, resident_problem
from distbfs.exchange.peers import PeerGroup, peer_problem
from distbfs.options import SearchOptions
from distbfs.partition.device_resident import ResidentPart
from distbfs.partition.layout import Layout
from distbfs.search.device_parts import BY_HOST, PLAIN, DevicePartsSession, uuids_of
from distbfs.search.resident_driver import ResidentDriver
from distbfs.search.session import Outcome, records_of
from distbfs.types import Array, Ids, Stop, World

RESIDENT = "resident"
FACTORS = ("dd", "dn", "nd")
MOST_VERTICES = (1 << 32) - (1 << 24)  # positions have 32 bits


def resident_reason(
    world: World,
    options: SearchOptions,
    n: int,
    parts: int,
    devices: Sequence[int],
    *,
    separated: str = "",
) -> str:
    """Return why searches cannot be resident, "" where they can; equal on all ranks.

    devices: of each part of this rank; separated: what asks for delegates, if anything.
    Collective.
    """
    changed = [
        name
        for name in (*BY_HOST, *FACTORS, "balance")
        if getattr(options, name) != getattr(PLAIN, name)
    ]
    reasons = {
        f"{separated} is for parts with delegates": separated,
        f"{', '.join(changed)} is for parts with delegates": changed,
        resident_problem(parts, options): True,
        f"exchange {options.exchange} is asked for": options.exchange != "auto",
        f"{n} vertices; positions have 32 bits": n > MOST_VERTICES,
    }
    found = next((why for why, holds in reasons.items() if why and holds), "")
    return found or ("" if parts == 1 else peer_problem(world, devices))


class ResidentSession(DevicePartsSession):
    """The parts of this rank; all methods but ``keep`` are collective.

    Outcomes are those of DevicePartsSession; ``seconds`` is device time between events
    around the kernels of a search, of the slowest device.  With internal_ids they are
    turned to the input's ids after that time.
    """

    def __init__(
        self,
        world: World,
        engine: DeviceEngine,
        parts: Sequence[ResidentPart],
        options: SearchOptions,
    ) -> None:
        self.world, self.engine, self.options = world, engine, options
        self.parts: list[Any] = list(parts)
        self.permutation = None
        self.layout: Layout = parts[0].layout
        self.devices = [int(part.ids.device) for part in parts]
        self.exchange_name, self.why = "none", "resident"
        self.exchange = None
        searches = []
        for part, device in zip(parts, self.devices, strict=True):
            with (
                cuda.cupy().cuda.Device(device),
                cuda.memory_of("a resident search"),
            ):
                searches.append(ResidentSearch(part, options))
        group = PeerGroup(world, self.devices)
        self._resident = ResidentDriver(world, searches, group)

    @property
    def mode(self) -> str:
        """How searches run: whole on the devices."""
        return RESIDENT

    def describe(self) -> dict[str, Any]:
        """Return what searches run on, for reports."""
        return {
            **self.engine.describe(),
            "method": RESIDENT,
            "mode": self.mode,
            "exchange": self.exchange_name,
            "uuid": " ".join(uuids_of(self.devices)),
            "part": {"bytes": sum(part.graph.nbytes for part in self.parts)},
        }

    def search(
        self,
        root: int,
        *,
        records: bool = False,
        parents: bool = True,
        stop: Stop | None = None,
    ) -> Outcome:
        """Search from an input id; UsageError where it is no vertex.

        ``stop`` is asked before the search alone, which runs without the host.
        """
        self.check(np.array([root]))
        self.world.barrier()
        began = time.perf_counter()
        with cuda.memory_of("a search"):
            found = self._resident.search(
                root, records=records, parents=parents, stop=stop
            )
        wall = np.array([time.perf_counter() - began])
        return Outcome(
            root,
            found.level,
            found.parent,
            found.levels,
            found.seconds,
            records_of(found.records),
            found.phases,
            wall=float(self.world.allreduce(wall, "max")[0]),
        )

    def watch(self, trace: Any) -> None:
        """Keep the phases of searches in a trace from now on."""
        self._resident.trace = trace

    def traversed(self, outcome: Outcome) -> int:
        """Return the input tuples with an end in the reached component."""
        ends = 0
        for part, level in zip(self.parts, outcome.level, strict=True):
            with level.device:
                found = part.graph.tuple_degrees[level >= 0]
                ends += int(found.sum(dtype=np.uint64))
        return int(self.world.allreduce(np.array([ends]))[0]) // 2

    def connected(self, ids: Ids) -> Array:
        """Return which input ids have a neighbour besides themselves, bool [k]."""
        found = np.zeros(len(ids), dtype=np.uint8)
        for part in self.parts:
            here = np.flatnonzero(self.layout.part_of(ids) == part.index)
            with part.ids.device:
                local = cuda.cupy().asarray(self.layout.local_of(ids[here]))
                numbers = part.graph.numbers[local]
                found[here] = (numbers < part.graph.active).get()
        seen: Array = self.world.allreduce(found, "max").astype(np.bool_)
        return seen

    def close(self) -> None:
        """Free the memory that parts share, and spare device memory."""
        self._resident.close()
        cuda.release()
