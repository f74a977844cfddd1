"""How the ranks of this launch would exchange data in a search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from distbfs import registry
from distbfs.cli.trials import tried
from distbfs.device import cuda
from distbfs.errors import LaunchError
from distbfs.exchange.device_choice import take_devices
from distbfs.options import SearchOptions
from distbfs.ranks.agreement import first_reason
from distbfs.search.domains import HostDevices, choose_exchange, counted, described

if TYPE_CHECKING:
    from distbfs.partition.layout import Placement
    from distbfs.ranks.world import Ranks


def own_devices(world: Ranks) -> tuple[list[int], str]:
    """Return this rank's devices, or none and the reason (collective).

    If some rank has no device, all ranks get none, and the reason is "".
    """
    if first_reason(world, tried(cuda.cupy)[1]):  # the lines of the hosts say why
        return [], ""
    try:
        return take_devices(world, share=False), ""
    except LaunchError as error:
        return [], str(error)


def domain_facts(world: Ranks, devices: Sequence[int]) -> tuple[str, Placement | None]:
    """Return which domains the devices of all ranks form (collective).

    Second: where they are, if there are several.
    """
    kind = registry.lookup(registry.ENGINES, "engine", "xbfs")
    hosts, options = HostDevices(world, tuple(devices), kind), SearchOptions()
    whole = hosts.whole_problem(options, 1)
    if not whole:
        return f"one domain of {counted(hosts.total)}", None
    placement, why = hosts.choose_domains(options, 1, None, free=True, whole=whole)
    return why or described(placement.domains), placement


def link_facts(world: Ranks) -> dict[str, str | None]:
    """Choose domains and exchange for a search by all ranks (collective).

    The result has
    domains: which domains of devices, which read each other's memory, there are; None
    without devices
    exchange: the exchange between domains, or between ranks without devices
    reason: why this exchange was chosen
    """
    devices, why = own_devices(world)
    domains, placement = domain_facts(world, devices) if devices else (None, None)
    exchange, reason = choose_exchange(world, "auto", devices, placement)
    return {
        "domains": domains,
        "exchange": exchange,
        "reason": f"{reason}: {why}" if why else reason,
    }
