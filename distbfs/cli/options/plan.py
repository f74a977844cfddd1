"""The options of ``distbfs plan``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from distbfs.cli.command import STORE, Size, argument, command_of
from distbfs.cli.options import SCALES, Speech
from distbfs.options import ADVANCED, DEVICES, INPUT, option
from distbfs.plan.search_time import NETWORK, load_constants

GPUS = click.Choice(sorted(load_constants()["devices"]), case_sensitive=False)
SIZE: dict[str, Any] = {"kind": Size(float), "metavar": "BYTES"}


@dataclass(frozen=True, kw_only=True)
class PlanOptions(Speech):
    """Show the memory per device, and the time of a search, before anything is loaded.

    Figures are exact for a STORE, and expected values for a Kronecker graph that does
    not exist yet.  The time is predicted for engine xbfs, by constants fitted to runs,
    where degrees are known.  With --device-memory, a graph that fits neither devices
    nor host ends with exit code 3.

    scale: A Kronecker graph's scale.
    edge_factor: Tuples per vertex of the Kronecker graph.  [16]
    directed: Edges of the Kronecker graph lead one way.
    devices: Devices; default: the parts of STORE, or one per rank.
    threshold: Degree threshold TH; default: that of STORE, or suggested.
    devices_per_host: Devices per host.  [all]
    domain: Devices of a domain, which share their memory; up to 8.
    device_memory: Memory of a device, such as 141GB; some of it stays free.
    host_memory: Memory of a host for neighbours that do not fit on its devices, such as
    128GiB; goes with --device-memory.
    gpu: GPU whose constants predict the time of engine xbfs.
    exchange: Exchange between domains for that time.
    network_bandwidth: Bytes a second that a device sends to other ranks.  [fitted, or
        {NETWORK:.2g} between hosts, assumed]
    """

    store: Path | None = argument(STORE, default=None)
    scale: int | None = option(INPUT, "-s", **SCALES)
    edge_factor: int | None = option(INPUT, low=1, high=4096)
    directed: bool = option(INPUT, default=False)
    devices: int | None = option(DEVICES, "-p", low=1)
    threshold: int | None = option(INPUT, "-t", low=0)
    devices_per_host: int | None = option(DEVICES, low=1)
    domain: int = option(DEVICES, default=1, low=1)
    device_memory: float | None = option(DEVICES, **SIZE)
    host_memory: float | None = option(DEVICES, **SIZE)
    gpu: str = option(DEVICES, default="H200", kind=GPUS)
    exchange: str = option(
        DEVICES, default="nccl", allowed=tuple(sorted(load_constants()["exchanges"]))
    )
    network_bandwidth: float | None = option(
        ADVANCED, kind=Size(float), metavar="BYTES/S"
    )


command = command_of("plan", PlanOptions, NETWORK=NETWORK)
