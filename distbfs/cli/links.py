"""Measured times of messages between the ranks of this launch, pair by pair.

Ranks meet in rounds, so that pairs that are measured at the same time share no rank.
Each pair exchanges words and then long messages, both ways at once. Latency is the time
to exchange a word; the rate counts the bytes of one direction.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs import registry
from distbfs.device import cuda
from distbfs.errors import DistbfsError, LaunchError
from distbfs.exchange.device_choice import take_devices
from distbfs.exchange.nccl_link import Link, link_of, nccl_problem
from distbfs.options import SearchOptions
from distbfs.ranks.mpi import MpiWorld
from distbfs.report.tables import counted as in_words
from distbfs.search.domains import HostDevices, choose_exchange, counted, described

if TYPE_CHECKING:
    from distbfs.ranks.world import Ranks

ROUNDS = 32  # at most: each rank then meets so many others
TRIPS, EXCHANGES = 21, 5  # of which the median counts
WORD, LONG = 8, 1 << 22  # bytes of a message

# Exchange so many bytes with a rank, both ways at once; return after they have arrived.
Swap = Callable[[int, int], None]


def partners(size: int, index: int) -> Iterator[int | None]:
    """Yield the partner of one of ``size`` in each round, None if it has none.

    In each round the numbers of partners differ in the same bits, so that all ranks
    meet each other once, or, in ROUNDS rounds, some near and far ones.
    """
    rounds = (1 << (size - 1).bit_length()) - 1
    for bits in range(1, rounds + 1, max(-(-rounds // ROUNDS), 1)):
        other = index ^ bits
        yield other if other < size else None


def measure(swap: Swap, other: int) -> tuple[float, float]:
    """Return (seconds to exchange a word, bytes per second in one direction)."""

    def median(count: int, size: int) -> float:
        swap(other, size)  # connects
        seconds = []
        for _ in range(count):
            began = time.perf_counter()
            swap(other, size)
            seconds.append(time.perf_counter() - began)
        return float(np.median(seconds))

    return median(TRIPS, WORD), LONG / median(EXCHANGES, LONG)


def pairs_of(world: Ranks, swap: Swap) -> list[dict[str, Any]]:
    """Measure the pairs of ranks; return them on all ranks (collective)."""
    mine = []
    for other in partners(world.size, world.rank):
        world.barrier()
        if other is None:
            continue
        latency, rate = measure(swap, other)
        if world.rank < other:
            mine.append((world.rank, other, latency, rate))
    own = np.array(mine, dtype=np.float64).reshape(-1)
    every = np.concatenate(world.allgather(own)).reshape(-1, 4)
    return [
        {
            "ranks": [int(a), int(b)],
            "hosts": len({world.hosts[int(a)], world.hosts[int(b)]}),
            "latency": float(latency),
            "rate": float(rate),
        }
        for a, b, latency, rate in every
    ]


def messages(world: MpiWorld) -> Swap:
    """Return the MPI transfer between two ranks, from host memory."""
    out, into = np.zeros(LONG, np.uint8), np.zeros(LONG, np.uint8)

    def swap(other: int, size: int) -> None:
        world.comm.Sendrecv(out[:size], other, recvbuf=into[:size], source=other)

    return swap


def transfers(link: Link) -> Swap:
    """Return the NCCL transfer between the first devices of two ranks."""
    end = link.ends[0]
    with end.here():
        out, into = (cuda.cupy().zeros(LONG // 4, np.uint32) for _ in range(2))

    def swap(other: int, size: int) -> None:
        there = link.starts[other]
        with link.group():
            end.send(out[: size // 4], there)
            end.receive(into[: size // 4], there)
        link.wait(end.mark())

    return swap


def own_devices(world: Ranks) -> tuple[list[int], str]:
    """Return this rank's devices, or none and the reason (collective).

    If some rank has no device, all ranks get none, and the reason is "".
    """
    missing = 0
    try:
        missing = int(not cuda.cupy().cuda.runtime.getDeviceCount())
    except Exception:  # noqa: BLE001 - the lines of the hosts say what is missing
        missing = 1
    if world.allreduce(np.array([missing]), "max")[0]:
        return [], ""
    try:
        return take_devices(world, share=False), ""
    except LaunchError as error:
        return [], str(error)


def domain_facts(world: Ranks, devices: Sequence[int]) -> str:
    """Return which domains the devices of all ranks form (collective)."""
    kind = registry.lookup(registry.ENGINES, "engine", "xbfs")
    hosts, options = HostDevices(world, tuple(devices), kind), SearchOptions()
    whole = hosts.whole_problem(options, 1)
    if not whole:
        return f"one domain of {counted(hosts.total)}"
    placement, why = hosts.choose_domains(options, 1, None, free=True, whole=whole)
    return why or described(placement.domains)


def link_facts(world: Ranks) -> dict[str, Any]:
    """Choose domains and exchange, and measure the links of the ranks (collective).

    The result has
    domains: which domains of devices, which read each other's memory, there are; None
    without devices
    exchange: the exchange between domains, or between ranks without devices
    messages, transfers: pairs of ranks, measured by MPI and by NCCL: latencies in
    seconds and rates in bytes per second
    """
    devices, why = own_devices(world)
    exchange, reason = choose_exchange(world, "auto", devices)
    facts: dict[str, Any] = {
        "domains": domain_facts(world, devices) if devices else None,
        "exchange": exchange,
        "reason": f"{reason}: {why}" if why else reason,
        "messages": [],
        "transfers": [],
    }
    if not isinstance(world, MpiWorld):
        return facts
    facts["messages"] = pairs_of(world, messages(world))
    if devices and not nccl_problem(world, devices):
        try:
            swap = transfers(link_of(world, devices))
            facts["transfers"] = pairs_of(world, swap)
        except DistbfsError as error:
            facts["reason"] = f"{reason}; {error}"
    return facts


def summaries(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (what, text) for the pairs within hosts, and for those between hosts."""
    for kind, key in (("MPI", "messages"), ("NCCL", "transfers")):
        for hosts, where in ((1, "one host"), (2, "two hosts")):
            pairs = [one for one in facts[key] if one["hosts"] == hosts]
            if pairs:
                yield f"{kind}, {where}", summary(pairs)


def summary(pairs: Sequence[dict[str, Any]]) -> str:
    """Describe measured pairs: the median, and the worst if there are several."""
    count = in_words(len(pairs), "pair")
    latency = float(np.median([one["latency"] for one in pairs]))
    rate = float(np.median([one["rate"] for one in pairs]))
    text = f"{count}: {latency * 1e6:.3g} us, {rate / 1e9:.3g} GB/s"
    if len(pairs) == 1:
        return text
    late = max(pairs, key=lambda one: float(one["latency"]))
    slow = min(pairs, key=lambda one: float(one["rate"]))
    return (
        f"{text} (medians); worst {late['latency'] * 1e6:.3g} us, ranks "
        f"{late['ranks'][0]} and {late['ranks'][1]}, {slow['rate'] / 1e9:.3g} GB/s, "
        f"ranks {slow['ranks'][0]} and {slow['ranks'][1]}"
    )
