"""Parts in the memory of devices, one rank a device; see ``session.AnySession``.

Results stay on the devices; they come to the host in ``block`` and to the device of one
rank in ``gathered``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np

from distbfs.device import cuda
from distbfs.engines.base import DeviceEngine, DevicePartSearch
from distbfs.engines.cuda.results import host_levels
from distbfs.errors import UsageError
from distbfs.exchange.base import Exchange
from distbfs.exchange.choose import choose_exchange
from distbfs.exchange.local import brought_here
from distbfs.exchange.peers import PeerGroup
from distbfs.generate.hashing import Permutation
from distbfs.options import SearchOptions
from distbfs.partition.device_part import DevicePart
from distbfs.partition.layout import Placement
from distbfs.partition.memory import readable
from distbfs.search.blocks import BlockMap, input_ids
from distbfs.search.driver import Driver
from distbfs.search.lookup import values_at
from distbfs.search.parents import CarriedParents
from distbfs.search.peer_driver import PeerDriver
from distbfs.search.session import (
    Outcome,
    check_roots,
    make_exchange,
    outcome_copied,
)
from distbfs.timing import Trace
from distbfs.types import Array, Ids, Stop, World

PLAIN = SearchOptions()
BY_HOST = ("mask_reduce", "local_all2all", "uniquify")  # options of levels by the host
NARROW = 127  # levels, 0 to 126, that results give as bytes


class DevicePartsSession:
    """The parts of this rank on its device; all methods but ``keep`` are collective.

    An outcome has CuPy arrays by local id, as ``DevicePartSearch.result`` says.  Its
    ``seconds`` are device time, between events, of the slowest rank.
    """

    def __init__(
        self,
        world: World,
        engine: DeviceEngine,
        parts: Sequence[DevicePart],
        options: SearchOptions,
        permutation: Permutation | None = None,
    ) -> None:
        if options.internal_ids:
            raise UsageError(
                "internal_ids is not for parts that are separated by degree"
            )
        self.world = world
        self.engine = engine
        self.parts: list[Any] = list(parts)
        self.options = options
        self.permutation: Permutation | None = permutation
        self.layout = parts[0].layout
        placement = Placement(self.layout.parts, world.size)
        self.devices = [int(part.vertices.device) for part in parts]
        by_host = any(getattr(options, x) != getattr(PLAIN, x) for x in BY_HOST)
        self.exchange_name, self.why = choose_exchange(
            world, options.exchange, True, self.devices
        )
        captured = self.exchange_name in ("p2p", "solo")
        self.exchange: Exchange | None = None
        self._peers: PeerDriver | None = None
        if captured and not options.stepwise and not by_host:
            self._peers = self._captured(placement)
            self._driver: Driver | PeerDriver = self._peers
        else:
            self.exchange = make_exchange(
                world,
                placement,
                parts[0].delegate_count,
                options,
                item=np.uint64,
                on_device=True,
                name=self.exchange_name,
            )
            searches = [self._stepwise(part, placement) for part in parts]
            finder = CarriedParents(self.exchange, searches)
            self._driver = Driver(world, searches, self.exchange, options, finder)
        self._clock = DeviceClock(self.devices)

    def _stepwise(self, part: DevicePart, placement: Placement) -> DevicePartSearch:
        """Return a search that the host calls; on another device through a proxy."""
        device, current = int(part.vertices.device), cuda.cupy().cuda.Device()
        if device == int(current):
            return self.engine.on_part(part, placement)
        with cuda.cupy().cuda.Device(device):
            found: Any = OnDevice(self.engine.on_part(part, placement), device)
        return cast(DevicePartSearch, found)

    def _captured(self, placement: Placement) -> PeerDriver:
        """Return searches whose levels run without the host (collective)."""
        searches = []
        for part, device in zip(self.parts, self.devices, strict=True):
            with cuda.cupy().cuda.Device(device):
                searches.append(self.engine.on_level(part, placement))
        group = PeerGroup(self.world, self.devices)
        return PeerDriver(self.world, searches, group)

    @property
    def mode(self) -> str:
        """How searches run: levels by the host, or captured, which it only launches."""
        return "captured" if self._peers else "stepwise"

    @property
    def extent(self) -> int:
        """Rows of all blocks together: vertices."""
        return self.layout.n

    def describe(self) -> dict[str, Any]:
        """Return what searches run on, for reports."""
        return {
            **self.engine.describe(),
            "method": "parts",
            "mode": self.mode,
            "exchange": self.exchange_name,
            "uuid": " ".join(uuids_of(self.devices)),
            "part": {
                "bytes": sum(part.graph_bytes for part in self.parts),
                "delegates": self.parts[0].delegate_count,
                "threshold": self.parts[0].threshold,
            },
        }

    def _device_count(self) -> int:
        return self.world.size * len(set(self.devices))

    def notes(self) -> dict[str, str]:
        """Return what the text of a report adds: name -> text."""
        told = cuda.describe()
        return {
            "devices": f"{self._device_count()} x {told['device']}",
            "device memory": readable(told["memory_bytes"]),
            "time": "device events around each search, the slowest rank",
        }

    def check(self, roots: Ids) -> None:
        """Raise UsageError for what is no vertex."""
        check_roots(roots, self.layout.n)

    def search(
        self,
        root: int,
        *,
        records: bool = False,
        parents: bool = True,
        stop: Stop | None = None,
    ) -> Outcome:
        """Search from an input id; UsageError where it is no vertex.

        Captured levels run without the host: ``stop`` is asked before them alone.
        """
        self.check(np.array([root]))
        inside = root
        if self.permutation is not None:
            inside = int(self.permutation.forward(np.array([root]))[0])
        self._clock.settle()
        self.world.barrier()
        began = time.perf_counter()
        self._clock.begin()
        with cuda.memory_of("a search"):
            found = self._driver.search(
                inside, records=records, parents=parents, stop=stop
            )
        taken = self._clock.end()
        seconds = np.array([taken, time.perf_counter() - began])
        device, wall = self.world.allreduce(seconds, "max").tolist()
        return Outcome(
            root,
            list(found.level),
            list(found.parent),
            found.levels,
            device,
            [record.as_dict() for record in found.records],
            found.seconds,
            found.parent_cost,
            wall=wall,
        )

    def watch(self, trace: Trace) -> None:
        """Keep the phases of searches in a trace from now on."""
        self._driver.trace = trace

    def at(self, outcome: Outcome, ids: Ids) -> tuple[Array, Array | None]:
        """Return level and parent of input ids; see ``session.AnySession``."""
        where = (self.world, self.layout, self.permutation)
        return values_at(*where, outcome.level, outcome.parent, ids, cuda.take)

    def level_counts(self, outcome: Outcome) -> Ids:
        """Return how many vertices each level has, int64 [levels]."""
        counts = np.zeros(outcome.levels, dtype=np.int64)
        for level in outcome.level:
            with level.device:
                counts += cuda.counts(level[level >= 0], outcome.levels)
        return self.world.allreduce(counts)

    def keep(self, outcome: Outcome) -> Outcome:
        """Return a search whose results outlast the next one."""
        with cuda.memory_of("results that wait for validation"):
            return outcome_copied(outcome)

    def room(self, most: int) -> int:
        """Return the bytes that kept results may take, the same on all ranks."""
        free = np.array([min(most, cuda.free_bytes() // 4)])
        return int(self.world.allreduce(free, "min")[0])

    def gathered(self, outcomes: Sequence[Outcome]) -> tuple[Any, Any] | None:
        """Return (level, parent or None) of outcome number ``rank``, [n] by vertex id.

        CuPy arrays; None where there is no outcome for this rank.  Level int8 to 126,
        else int32.
        """
        level = self._collect(outcomes, _short_levels)
        parent = None
        if self.options.parents:
            parent = self._collect(outcomes, lambda outcome: list(outcome.parent))
        return None if level is None else (level, parent)

    def _collect(
        self, outcomes: Sequence[Outcome], arrays: Callable[[Outcome], list[Any]]
    ) -> Any:
        """Return arrays by vertex id of outcome number ``rank`` from all parts."""
        cp, layout, size = cuda.cupy(), self.layout, self.world.size
        if size == 1:
            here = arrays(outcomes[0])
            with cuda.memory_of("results of all parts"):
                out = cp.empty(layout.n, dtype=here[0].dtype)
                for part, array in enumerate(here):
                    out[part :: layout.parts] = brought_here(array)
            return out
        kinds = [[a.get() for a in arrays(x)] for x in outcomes]
        none = np.zeros(0, kinds[0][0].dtype)
        outgoing = [np.concatenate(kind) for kind in kinds]
        outgoing += [none] * (size - len(outgoing))
        arrived = self.world.alltoall(outgoing)
        if self.world.rank >= len(outcomes):
            return None
        with cuda.memory_of("results of all parts"):
            out = cp.empty(layout.n, dtype=none.dtype)
            placement = Placement(layout.parts, size)
            for rank, found in enumerate(arrived):
                start = 0
                for part in placement.parts_of(rank):
                    stop = start + layout.local_count(part)
                    out[part :: layout.parts] = cp.asarray(found[start:stop])
                    start = stop
        return out

    @cached_property
    def _block(self) -> BlockMap:
        return BlockMap(self.world, self.layout, self.parts, self.permutation)

    def vertices(self) -> None:
        """Return None: rows of blocks are input ids."""

    def block(self, outcome: Outcome) -> tuple[Array, Array | None]:
        """Return this rank's block of the results in input ids, on the host.

        Rank r has the ids ``slice_bounds(n, size, r)``: level int32, parent int64.
        """
        level = self._block.gather([host_levels(x) for x in outcome.level])
        if any(parent is None for parent in outcome.parent):
            return level, None
        parents = [parent.get().astype(np.int64) for parent in outcome.parent]
        outside = [input_ids(parent, self.permutation) for parent in parents]
        return level, self._block.gather(outside)

    def reached(self, outcome: Outcome) -> tuple[int, int]:
        """Return (vertices reached, largest level)."""
        count = 0
        for level in outcome.level:
            with level.device:
                count += int((level >= 0).sum())
        total = self.world.allreduce(np.array([count]))
        return int(total[0]), outcome.levels - 1

    def traversed(self, outcome: Outcome) -> int:
        """Return the input tuples with an end in the reached component."""
        ends = 0
        for part, level in zip(self.parts, outcome.level, strict=True):
            with level.device:
                by_number = level[part.vertices] >= 0
                ends += int(part.tuple_degrees[by_number].sum(dtype=np.uint64))
        return int(self.world.allreduce(np.array([ends]))[0]) // 2

    def connected(self, ids: Ids) -> Array:
        """Return which input ids have a neighbour besides themselves, bool [k]."""
        inside = ids if self.permutation is None else self.permutation.forward(ids)
        found = np.isin(inside, self.parts[0].delegates).astype(np.uint8)
        for part in self.parts:
            here = np.flatnonzero(self.layout.part_of(inside) == part.index)
            with part.numbers.device:
                local = cuda.cupy().asarray(self.layout.local_of(inside[here]))
                found[here] |= (part.numbers[local] < part.active).get()
        seen: Array = self.world.allreduce(found, "max").astype(np.bool_)
        return seen

    def close(self) -> None:
        """Free what the exchange holds, and spare device memory."""
        if self.exchange is not None:
            self.exchange.close()
        if self._peers is not None:
            self._peers.close()
        cuda.release()


class OnDevice:
    """Calls a ``DevicePartSearch`` with its device current, arrays brought there."""

    def __init__(self, search: DevicePartSearch, device: int) -> None:
        self._search, self._device = search, device

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._search, name)
        if not callable(found):
            return found

        def call(*arguments: Any, **named: Any) -> Any:
            with cuda.cupy().cuda.Device(self._device):
                return found(*[brought_here(x) for x in arguments], **named)

        return call


class DeviceClock:
    """Events around the work of devices of this process.

    devices: of each part; the time is that of the one that takes longest
    """

    def __init__(self, devices: Sequence[int]) -> None:
        cp = cuda.cupy()
        self._events = []
        for device in sorted(set(devices)):
            with cp.cuda.Device(device):
                pair = [cp.cuda.Event() for _ in range(2)]
            self._events.append((cp.cuda.Device(device), pair))

    def settle(self) -> None:
        """Wait for what the devices have to do."""
        for device, _ in self._events:
            with device:
                cuda.cupy().cuda.get_current_stream().synchronize()

    def begin(self) -> None:
        """Mark the beginning on each device."""
        for device, pair in self._events:
            with device:
                pair[0].record(cuda.cupy().cuda.get_current_stream())

    def end(self) -> float:
        """Mark the end, wait for it, and return seconds."""
        cp, most = cuda.cupy(), 0.0
        for device, pair in self._events:
            with device:
                pair[1].record(cp.cuda.get_current_stream())
        for device, pair in self._events:
            with device:
                pair[1].synchronize()
                most = max(most, cp.cuda.get_elapsed_time(*pair) * 1e-3)
        return most


def uuids_of(devices: Sequence[int]) -> list[str]:
    """Return what tells the devices of this process apart."""
    found = []
    for device in sorted(set(devices)):
        with cuda.cupy().cuda.Device(device):
            found.append(cuda.uuid())
    return found


def _short_levels(outcome: Outcome) -> list[Any]:
    if outcome.levels > NARROW:
        return list(outcome.level)
    narrow = []
    for level in outcome.level:
        with level.device:
            narrow.append(level.astype(np.int8, copy=False))
    return narrow
