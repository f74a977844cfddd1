"""The domains that devices form, and the exchange between domains.

A domain has as many devices as can map each other's memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs import registry
from distbfs.device import cuda
from distbfs.engines.streamed import has_streams, launch_problem
from distbfs.errors import UsageError
from distbfs.exchange import nccl_link, peer_memory, symmetric
from distbfs.options import EXCHANGE_OPTIONS, FACTOR_OPTIONS, SearchOptions
from distbfs.partition.layout import MAX_LOCAL, Domains, Placement, in_turn
from distbfs.ranks.agreement import first_reason, gather_texts

if TYPE_CHECKING:
    from distbfs.types import World

BETWEEN_OPTIONS = (*EXCHANGE_OPTIONS, *FACTOR_OPTIONS)
MOST_DEVICES = 8  # most devices of a domain
ONE_HOST = "of one host, as memory of other hosts is not mapped, even over NVLink"
MOST_VERTICES = (1 << 32) - (1 << 24)  # most of a domain's part: positions have 32 bits


def too_many_problem(asked: int) -> str:
    """Return the reason why no domain can have ``asked`` devices, "" if one can."""
    if asked <= MOST_DEVICES:
        return ""
    return (
        f"a domain has up to {MOST_DEVICES} devices {ONE_HOST}; more devices make "
        "several domains"
    )


def between_asked(options: SearchOptions) -> list[str]:
    """Return the changed options that apply only to searches between domains."""
    now, usual = options.as_dict(), SearchOptions().as_dict()
    return [x for x in BETWEEN_OPTIONS if now[x] != usual[x]]


def between_reason(
    options: SearchOptions, separate: str, domain: int | None, total: int
) -> str:
    """Return the reason to search between domains on a single host, "" if none.

    separate, domain: see ``Request``; total: number of devices of all ranks
    """
    asked = [separate] if separate else []
    asked += between_asked(options)
    if asked:
        return f"{asked[0]} is for searches between domains"
    if domain not in (None, total):
        return f"domains of {counted(domain)} were requested"
    return ""


class HostDevices:
    """The devices of all ranks, by host (creating it is collective).

    devices: the devices of this rank; kind: class of the engine
    counts: number of devices of each rank; total: of all ranks; most: the largest
    number that a domain can have
    several: whether there are several hosts
    """

    def __init__(self, world: World, devices: tuple[int, ...], kind: Any) -> None:
        self.world, self.devices = world, devices
        counts = world.allgather(np.array([len(devices)]))
        self.counts = [int(count[0]) for count in counts]
        self.total = sum(self.counts)
        self.most = min(self.total, kind.devices, MOST_DEVICES)
        self._hosts = world.hosts
        self.several = len(set(self._hosts)) > 1

    @property
    def sizes(self) -> list[int]:
        """Possible sizes of a domain, ascending."""
        made = (self.cut(size).domains.sizes for size in range(1, self.most + 1))
        return sorted({max(sizes) for sizes in made})

    def check(self, asked: int | None, engine: str) -> None:
        """Raise UsageError if domains cannot have ``asked`` devices."""
        if asked is None or asked in self.sizes:
            return
        allowed = ", ".join(str(size) for size in self.sizes)
        reason = too_many_problem(asked)
        most = max(self._of_hosts().values())
        if not reason and self.several and most < asked <= self.total:
            reason = f"its devices are {ONE_HOST}; no host has more than {most} here"
        why = f"; {reason}" if reason else ""
        raise UsageError(
            f"domain is {asked}{why}; allowed with engine {engine}: {allowed}"
        )

    def _of_hosts(self) -> Counter[str]:
        """Return the number of devices of each host."""
        devices: Counter[str] = Counter()
        for host, count in zip(self._hosts, self.counts, strict=True):
            devices[host] += count
        return devices

    def cut(self, size: int, *, even: bool = False) -> Placement:
        """Place domains of up to ``size`` devices; the last of a host may be smaller.

        Either a domain consists of consecutive ranks of its host, with all of their
        devices, or a rank serves one or more whole domains.
        even: balance the sizes of a host's domains if that does not change their number
        """
        of_hosts = self._of_hosts()

        def most(devices: int) -> int:
            # mutant: if even -> if False : test_where_one_domain_cannot_be
            return -(-devices // -(-devices // size)) if even else size

        groups: list[list[int]] = []  # ranks of a domain, or domains of a rank
        limits: list[int] = []  # devices of these domains
        last: dict[str, list[int]] = {}
        for rank, (host, count) in enumerate(
            zip(self._hosts, self.counts, strict=True)
        ):
            limit = most(count) if count > size else max(most(of_hosts[host]), count)
            joined = last.get(host, [])
            if joined and sum(self.counts[x] for x in joined) + count <= limit:
                joined.append(rank)
                continue
            last[host] = [rank]
            groups.append(last[host])
            limits.append(limit)
        every = [self._in_turn(ranks) for ranks in groups]
        times = [-(-len(x) // limit) for x, limit in zip(every, limits, strict=True)]
        owners = [
            every[group][k * limits[group] : (k + 1) * limits[group]]
            for group, k in in_turn(times)
        ]
        return Placement.of_domains(owners, self.world.size)

    def _in_turn(self, ranks: Sequence[int]) -> list[int]:
        """Return the rank of each device of some ranks, in the order of a domain."""
        return [ranks[k] for k, _ in in_turn([self.counts[rank] for rank in ranks])]

    def choose_domains(
        self, options: SearchOptions, n: int, asked: int | None, free: bool, whole: str
    ) -> tuple[Placement, str]:
        """Choose the domains of a search between domains, with the reason (collective).

        Domains have ``asked`` devices if a number is given. Otherwise, if ``free``, and
        if there are several hosts or all devices cannot form one domain, they have as
        many devices as can map each other's memory.
        whole: the reason why all devices cannot form one domain, "" if not tested
        """
        if asked is not None:
            placement = self.cut(asked)
            problem = self.problem(options, n, placement) if asked > 1 else ""
            if problem:
                raise UsageError(f"domain is {asked}, but {problem}; allowed: 1")
            uneven = len(set(placement.domains.sizes)) > 1
            return placement, described(placement.domains) if uneven else ""
        reason = whole
        if free and (whole or self.several):
            for placement in self._candidates():
                problem = self.problem(options, n, placement)
                if not problem:
                    made = described(placement.domains)
                    return placement, f"{made}: {reason}" if reason else made
                reason = reason or problem
        placement = self.cut(1)
        return placement, f"domains of one device: {reason}" if reason else ""

    def _candidates(self) -> Iterator[Placement]:
        """Yield placements of domains of several devices, the largest first."""
        before = None
        # mutant: range(self.most, 1, -1) -> () : test_domains_of_hosts
        for size in range(self.most, 1, -1):
            placement = self.cut(size, even=True)
            if placement != before and max(placement.domains.sizes) > 1:
                yield placement
            before = placement

    def whole_problem(self, options: SearchOptions, n: int) -> str:
        """Return why all devices cannot form one domain, or "" (collective)."""
        reason = domain_problem(self.world, options, self.devices)
        if not reason and n > MAX_LOCAL * self.total:
            reason = f"{n} vertices; a device has up to 2^32 of them"
        if not reason and len(set(self.counts)) > 1:
            reason = "ranks have different numbers of devices"
        return reason

    def problem(self, options: SearchOptions, n: int, placement: Placement) -> str:
        """Return the reason why domains cannot be placed like this, or "" (collective).

        All ranks return the same text.
        """
        world, domains = self.world, placement.domains
        ranks = split_by_domain(world, placement)
        reason = ""
        for domain, places in placement.places_of(world.rank).items():
            share = -(-n * domains.sizes[domain] // domains.shares)
            devices = [self.devices[place] for place in places]
            problem = domain_problem(ranks, options, devices)
            if share > MOST_VERTICES:
                problem = problem or f"{share} vertices; positions have 32 bits"
            reason = reason or problem
        ranks.free()
        return first_reason(world, reason)


def split_by_domain(world: World, placement: Placement) -> World:
    """Return a world of the ranks that share this rank's domains (collective)."""
    first = next(iter(placement.places_of(world.rank)))
    return world.split(placement.owners[first][0])


def described(domains: Domains) -> str:
    """Describe the sizes of domains, for messages."""
    times = sorted(Counter(domains.sizes).items(), reverse=True)
    if len(times) == 1:
        return f"domains of {counted(domains.sizes[0])}"
    several = "domains" if times[0][1] > 1 else "domain"
    first, *others = [(count, counted(size)) for size, count in times]
    rest = "".join(f" and {count} of {size}" for count, size in others)
    return f"{first[0]} {several} of {first[1]}{rest}"


def counted(devices: int | None) -> str:
    """Return a number of devices as text, for messages."""
    return "one device" if devices == 1 else f"{devices} devices"


def domain_problem(world: World, options: SearchOptions, devices: Sequence[int]) -> str:
    """Return the reason why all devices cannot form one domain, "" if they can.

    Collective; all ranks return the same text.
    """
    total = int(world.allreduce(np.array([len(devices)]))[0])
    # mutant: MOST_DEVICES -> 2 * MOST_DEVICES : test_where_one_domain_cannot_be
    if total > MOST_DEVICES:
        return f"{total} devices; a domain has up to {MOST_DEVICES}"
    if options.stepwise:
        return "levels led by the host were requested"
    names = [device_model(device) for device in devices]
    kinds = {
        text for x in gather_texts(world, "|".join(names)) for text in x.split("|")
    }
    if len(kinds) > 1:  # mutant: > 1 -> > 2 : test_where_one_domain_cannot_be
        return f"the devices are of several kinds: {', '.join(sorted(kinds))}"
    return peer_memory.peer_problem(world, devices)


def device_model(device: int) -> str:
    """Return the model of a device."""
    with cuda.cupy().cuda.Device(device):
        return str(cuda.describe()["device"])


def exchange_kind(name: str) -> Any:
    """Return the class of an exchange; UsageError for an unknown name."""
    return registry.lookup(registry.EXCHANGES, "exchange", name)


def choose_exchange(
    world: World,
    name: str,
    devices: Sequence[int] = (),
    streams: Placement | None = None,
) -> tuple[str, str]:
    """Return (registry name, reason) of the exchange between domains (collective).

    devices: the devices of this rank, none where arrays are in host memory
    streams: the domains, if levels may run on streams of devices

    ``auto`` means host for one rank and for arrays in host memory. Otherwise it means
    nvshmem if a search may be one launch on each device, these map each other's memory
    and NVSHMEM is installed; nccl if CuPy has it, no two ranks share a device, and each
    has one or levels run on streams; else host.
    """
    if name != "auto":
        if exchange_kind(name).needs_devices and not devices:
            others = [
                x for x in registry.EXCHANGES if not exchange_kind(x).needs_devices
            ]
            raise UsageError(
                f"exchange '{name}' is for parts on devices; allowed: auto, "
                f"{', '.join(others)}"
            )
        missing = symmetric.nvshmem_problem(world) if name == "nvshmem" else ""
        if missing:
            return "nccl", f"exchange nccl: {missing}"
        return name, f"exchange {name} as requested"
    if world.size == 1 or not devices:
        return "host", "arrays are in host memory" if world.size > 1 else "one rank"
    streamed = streams is not None and has_streams(streams)
    own = "" if streamed or len(devices) == 1 else f"it has {len(devices)} devices"
    if reason := first_reason(world, own) or nccl_link.nccl_problem(world, devices):
        return "host", f"exchange host: {reason}"
    one_launch = streams and not launch_problem(streams, streamed=True, stepwise=False)
    if one_launch and not (
        peer_memory.peer_problem(world, devices) or symmetric.nvshmem_problem(world)
    ):
        return "nvshmem", "exchange nvshmem: the devices map each other's memory"
    return "nccl", "exchange nccl: no two ranks share a device"
