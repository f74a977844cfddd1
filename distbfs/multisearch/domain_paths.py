"""Brandes' dependencies of searches over parts on devices (paths.cu).

Searches of one traversal (``domain_bits``) have found the levels. For 32 of them at a
time, or 8 where memory is short, a sweep over the levels counts the shortest paths to
each vertex, and one in the reverse direction sums up dependencies. Between domains,
each level sends the value of each of its vertices once to every device that has edges
to it, and a domain's share of a delegate's sum to the other domains.

For each simultaneous search, a device takes 8 bytes for each position of any device of
its domain, 8 for each own vertex and up to 4 to list it by level, 8 for each target of
outer edges, and 16 for each own vertex that is such a target and for each delegate.

Sources: Brandes, A faster algorithm for betweenness centrality, 2001; Then et al., The
more the merrier, VLDB 2014.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cuda
from distbfs.device.array_table import (
    ArrayPlan,
    ArrayTable,
    allocate,
    pieces,
    total_bytes,
)
from distbfs.device.structures import structure
from distbfs.engines.cuda.common.paths import SOURCE, Sweeps
from distbfs.errors import ResourceError, SearchStopped
from distbfs.exchange.peer_memory import on_device
from distbfs.multisearch.cuda_bits import largest_that_fits
from distbfs.multisearch.outer_bits import Sender, exchanged
from distbfs.partition.share import GRANULE
from distbfs.ranks.agreement import errors_of_all

if TYPE_CHECKING:
    from distbfs.multisearch.domain_share import BitShare
    from distbfs.multisearch.part_messages import PartMessages
    from distbfs.partition.share import Outer as OuterEdges
    from distbfs.partition.share import Share
    from distbfs.search.domain_group import DomainGroup
    from distbfs.types import Array, DeviceArray, Ids, Stop

WIDTHS = (8, 32)  # searches at a time
ITEM = 2  # words of 64 bits


@dataclass(frozen=True)
class AskedVertices:
    """The vertices of a device that devices of other domains have edges to.

    outer: the edges along which this device asks others in the same sweep
    numbers: uint32 [k], grouped by the share that asks for them; targets: uint32 [k],
    the index of each among the targets of that share; first: where the vertices for
    each share begin, int64 [shares + 1] on the host
    """

    outer: OuterEdges
    numbers: DeviceArray
    targets: DeviceArray
    first: Ids


def asked_of(
    members: Sequence[Share], outers: Sequence[OuterEdges], messages: PartMessages
) -> list[AskedVertices]:
    """Exchange the vertices that devices ask each other for (collective).

    outers: the edges of each member along which it asks
    """

    def targets(place: int, group: int, count: int) -> DeviceArray:
        cp, outer = cuda.cupy(), outers[place]
        first = int(outer.starts[group])
        index = cp.arange(first, first + count, dtype=np.uint64)
        some = outer.targets[first : first + count].astype(np.uint64)
        return index << np.uint64(32) | some

    shares = members[0].layout.parts
    counts = [np.zeros(shares + x.domain.lanes, np.int64) for x in members]
    for groups, outer in zip(counts, outers, strict=True):
        groups[:shares] = np.diff(outer.starts)
    arrived: list[dict[int, DeviceArray]] = [{} for _ in members]  # by who asks
    for route, array in messages.deliver(counts, 1, targets):
        arrived[route.place][route.source] = array
    asked = []
    for member, outer, of_shares in zip(members, outers, arrived, strict=True):
        sizes = [len(of_shares.get(share, ())) for share in range(shares)]
        with on_device(member.cuda_device), cuda.memory_of("values of betweenness"):
            cp = cuda.cupy()
            by_share = [of_shares[share] for share in sorted(of_shares)]
            items = cp.concatenate([cp.zeros(0, np.uint64), *by_share])
            places = (items & np.uint64(0xFFFFFFFF)).astype(np.int64)
            numbers = cp.ascontiguousarray(member.numbers[places])
            indices = cp.asarray((items >> np.uint64(32)).astype(np.uint32))
        first = np.append(0, np.cumsum(sizes))
        asked.append(AskedVertices(outer, numbers, indices, first))
    return asked


def shared_table(member: Share, width: int) -> ArrayTable:
    """Return the arrays that other devices access, in one allocation."""
    positions = member.domain.granules * GRANULE * member.domain.devices
    return {
        "values": ArrayPlan(np.float64, width * positions),
        "bits": [ArrayPlan(np.uint32, positions)] * 2,
    }


def own_table(
    member: Share, width: int, deepest: int, asked: Sequence[AskedVertices]
) -> ArrayTable:
    """Return the arrays that only this device accesses; see ``PathShare``."""
    active = max(member.active, 1)
    digits = 1 + deepest.bit_length(), active
    listed = min(width, deepest + 1) * active
    table: ArrayTable = {
        "paths": ArrayPlan(np.float64, active * width),
        "sums": ArrayPlan(np.float64, active),
        "digit": ArrayPlan(np.uint32, digits, later=True),
        "order": ArrayPlan(np.uint32, listed, later=True),
    }
    if asked:
        targets = max(1, *(len(one.outer.targets) for one in asked))
        most = max(len(one.numbers) for one in asked)
        room = max((most + member.normals) * width, 1)
        table["far"] = ArrayPlan(np.float64, targets * width)
        table["far_bits"] = ArrayPlan(np.uint32, targets)
        table["box"] = ArrayPlan(np.uint64, room * ITEM)
    return table


def bytes_needed(
    member: Share, width: int, deepest: int, asked: Sequence[AskedVertices] = ()
) -> int:
    """Return the bytes for dependencies; asked: see ``PathShare``."""
    own = own_table(member, width, deepest, asked)
    return total_bytes(shared_table(member, width)) + total_bytes(own)


class PathShare(Sender):
    """One device's share of the sweeps; call its methods with the device current.

    memory: uint8 zeros, as many bytes as ``shared_table`` needs
    bases: addresses of the memory of the domain's devices, [devices]
    asked: the vertices that others ask for forward and backward; empty if there is only
    one domain
    """

    def __init__(
        self,
        share: BitShare,
        width: int,
        memory: DeviceArray,
        bases: Ids,
        asked: Sequence[AskedVertices],
    ) -> None:
        cp, member = cuda.cupy(), share.member
        self.share, self._width, self._asked = share, width, asked
        params = structure(SOURCE, "Paths")(
            **allocate(shared_table(member, width), pieces(memory)),
            **allocate(own_table(member, width, 0, asked), cp.zeros),
            shift=(bases - bases[member.device]).tolist(),
            magic=-(-(1 << 32) // member.domain.devices),
            active=member.active,
            hubs=share.params.hubs,
            parts=member.domain.devices,
            index=member.device,
            several=bool(asked),
            normals=member.normals if asked else 0,
        )
        starts = asked[0].first if asked else np.zeros(1, np.int64)
        super().__init__(params, ITEM, starts, member.domain.lanes, width)
        self._sweeps = Sweeps(params, width)
        self.prepare(self._sweeps.module, "collect", "take", "settle_delegates")

    def _turn(self, *, back: bool) -> None:
        """Begin a sweep: backward along rows out, forward along rows in."""
        graph, p = self.share.member, self._params
        rows = graph.out if back else graph.into
        p.set(row=rows.offsets, adj=rows.columns)
        if self._asked:
            one = self._asked[back]
            self._starts = one.first
            p.set(outer_row=one.outer.offsets, outer_adj=one.outer.columns)
            p.set(asked=one.numbers, target=one.targets)
            p.set(asked_first=cuda.cupy().asarray(one.first.astype(np.uint32)))

    def clear(self) -> None:
        """Forget all sums."""
        self._clear("sums")

    def begin(self, deepest: int, first: int) -> None:
        """Read the levels of the searches from number ``first`` on; list vertices."""
        digits = self.share.digits_of(deepest, first, self._width)
        self._params.set(digit=digits, digits=len(digits) - 1)
        with cuda.memory_of("lists of betweenness"):
            self._sweeps.begin(deepest)

    def carry(self, level: int, *, back: bool, begins: bool) -> None:
        """Sum up values of the level before, or after it if ``back``."""
        if begins:
            # mutant: back=back -> back=False : test_directed_bits::test_dependencies
            self._turn(back=back)
        self._sweeps.carry(level, back=back, begins=begins)

    def collect(self) -> None:
        """Collect the messages; start copying their sizes to the host."""
        self._clear("sizes")
        self._steps["collect"]()
        self._sizes_copy.begin(cuda.cupy().cuda.get_current_stream())
        self._clear("far_bits")

    def settle_delegates(self) -> None:
        """Complete the delegates for which the sums of all domains have arrived."""
        if self._params.normals and not self._params.begins:
            self._steps["settle_delegates"]()

    def sums(self) -> Array:
        """Return the sums of dependencies, float64 by local id, on the host."""
        return self.share.by_local(self._params.held["sums"])


class DomainPaths:
    """Computes the dependencies of searches of all shares; methods are collective.

    messages: sends messages between domains; None if there is only one

    Raises OutOfMemory on all ranks if memory is short on one.
    """

    def __init__(
        self,
        group: DomainGroup,
        shares: Sequence[BitShare],
        messages: PartMessages | None,
        deepest: int,
    ) -> None:
        self._group, self._messages, what = group, messages, "values of betweenness"
        members = [share.member for share in shares]
        asked: list[Sequence[AskedVertices]] = [()] * len(members)
        if messages is not None:  # forward along edges in, backward along edges out
            back = asked_of(members, [x.out.outer for x in members], messages)
            forth = back
            if members[0].directed:
                forth = asked_of(members, [x.into.outer for x in members], messages)
            asked = [*zip(forth, back, strict=True)]
        self.width = largest_that_fits(
            group.world,
            WIDTHS,
            group.devices,
            lambda k, width: bytes_needed(members[k], width, deepest, asked[k]),
            what,
        )
        self._shares = group.make(
            [total_bytes(shared_table(x, self.width)) for x in members],
            what,
            lambda k, held, at: PathShare(shares[k], self.width, held, at, asked[k]),
        )

    def _each(self, work: Callable[[PathShare], Any]) -> list[Any]:
        return self._group.each(self._shares, work)

    def dependencies(self, count: int, deepest: int, stop: Stop | None) -> list[Array]:
        """Return the dependencies of ``count`` searches, float64 by local id.

        They are summed over the searches, for each part of this rank. deepest: largest
        level of the searches; stop: function that is called between sweeps;
        SearchStopped is raised on all ranks if it returns True on one
        """
        world = self._group.world
        self._each(PathShare.clear)
        for first in range(0, count, self.width):
            asked = np.array([stop is not None and stop()])
            if world.allreduce(asked, "or")[0]:
                raise SearchStopped(f"stopped after {first} of {count} sources")
            with errors_of_all(world, ResourceError):
                self._each(partial(PathShare.begin, deepest=deepest, first=first))
            self._group.meet()
            for level in range(deepest + 1):
                self._step(level, back=False, begins=level == 0)
            for level in range(deepest, 0, -1):
                self._step(level, back=True, begins=level == deepest)
        world.doing = ""
        return self._each(PathShare.sums)

    def _step(self, level: int, *, back: bool, begins: bool) -> None:
        """Compute the values of a level on all devices."""
        group = self._group
        group.world.doing = f"paths of level {level}"
        self._each(lambda share: share.carry(level, back=back, begins=begins))
        if self._messages is not None:
            self._each(PathShare.collect)
            exchanged(self._messages, self._shares, group.devices)
            self._each(PathShare.settle_delegates)
        group.meet()
