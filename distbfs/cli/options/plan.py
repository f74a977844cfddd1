"""The options of ``distbfs plan``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from distbfs.cli.command import STORE, InputPath, Size, argument, command_of
from distbfs.cli.options import SCALES, Speech
from distbfs.options import ADVANCED, DEVICES, INPUT, option
from distbfs.plan.cost_model import BANDWIDTH, LATENCY, RATE
from distbfs.plan.search_time import NETWORK, load_constants

GPUS = click.Choice(sorted(load_constants()["devices"]), case_sensitive=False)
SIZE: dict[str, Any] = {"kind": Size(float), "metavar": "BYTES"}


@dataclass(frozen=True, kw_only=True)
class PlanOptions(Speech):
    """Show the memory per device, and the time of a search, before anything is loaded.

    Figures are exact for a STORE, and expected values for a Kronecker graph that does
    not exist yet.  The time is predicted for engine xbfs, by constants fitted to runs,
    where degrees are known, and by the cost model of Pan et al., level by level.  With
    --device-memory, a graph that fits neither devices nor host ends with exit code 3.

    scale: A Kronecker graph's scale.
    edge_factor: Tuples per vertex of the Kronecker graph.  [16]
    devices: Devices; default: the parts of STORE, or one a rank.
    threshold: Degree threshold TH; default: that of STORE, or suggested.
    devices_per_host: Devices a host.  [all]
    domain: Devices of a domain, which share their memory; up to 8.
    devices_per_rank: Devices a rank, p_gpu; masks are reduced between ranks.
    device_memory: Memory of a device, as 141GB; some of it stays free.
    host_memory: Memory of a host for neighbours that do not fit on its devices, as
        128GiB; goes with --device-memory.
    gpu: GPU whose constants predict the time of engine xbfs.
    exchange: Exchange between domains for that time.
    device_rate: Edge checks and vertices of frontiers that a device visits a second.
        [fitted, or {RATE:.0e}, assumed]
    network_bandwidth: Bytes a second that a device sends to other ranks.  [fitted, or
        {BANDWIDTH:.2g}, assumed; of engine xbfs between hosts {NETWORK:.2g}, assumed]
    latency: Further seconds that each level takes.  [fitted, or {LATENCY:.0e}, assumed]
    records: Fit the cost model to this file of level records, from a search over parts
        (graph500 --records); may be given several times.
    report: Output of graph500 --json from the run of the preceding --records; without
        it, records are taken to be of the planned graph and devices.
    """

    store: Path | None = argument(STORE, default=None)
    scale: int | None = option(INPUT, "-s", **SCALES)
    edge_factor: int | None = option(INPUT, low=1, high=4096)
    devices: int | None = option(DEVICES, "-p", low=1)
    threshold: int | None = option(INPUT, "-t", low=0)
    devices_per_host: int | None = option(DEVICES, low=1)
    domain: int = option(DEVICES, default=1, low=1)
    devices_per_rank: int = option(DEVICES, default=1, low=1)
    device_memory: float | None = option(DEVICES, **SIZE)
    host_memory: float | None = option(DEVICES, **SIZE)
    gpu: str = option(DEVICES, default="H200", kind=GPUS)
    exchange: str = option(
        DEVICES, default="nccl", allowed=tuple(sorted(load_constants()["exchanges"]))
    )
    device_rate: float | None = option(ADVANCED, kind=Size(float), metavar="NUMBER")
    network_bandwidth: float | None = option(
        ADVANCED, kind=Size(float), metavar="BYTES/S"
    )
    latency: float | None = option(ADVANCED, low=0)
    records: tuple[Path, ...] = option(ADVANCED, default=(), kind=InputPath())
    report: tuple[Path, ...] = option(ADVANCED, default=(), kind=InputPath())


command = command_of(
    "plan",
    PlanOptions,
    RATE=RATE,
    BANDWIDTH=BANDWIDTH,
    LATENCY=LATENCY,
    NETWORK=NETWORK,
)
