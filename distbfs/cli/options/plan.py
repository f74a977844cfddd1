"""The options of ``distbfs plan``."""

from __future__ import annotations

from typing import Any

import click

from distbfs.cli.options import carry_out
from distbfs.plan.cost_model import BANDWIDTH, LATENCY, RATE
from distbfs.plan.search_time import NETWORK, load_constants
from distbfs.terminal.command import (
    ADVANCED,
    DEVICES,
    INPUT,
    InputPath,
    grouped_command,
)
from distbfs.terminal.options import STORE, output_options
from distbfs.terminal.sizes import parse_size


@grouped_command("plan")
@click.argument("store", type=STORE, required=False)
@INPUT.option(
    "--scale", "-s", type=click.IntRange(1, 48), help="A Kronecker graph's scale."
)
@INPUT.option(
    "--edge-factor",
    type=click.IntRange(1, 4096),
    help="Tuples per vertex of the Kronecker graph.  [16]",
)
@DEVICES.option(
    "--devices",
    "-p",
    type=click.IntRange(1),
    help="Devices; default: the parts of STORE, or one a rank.",
)
@INPUT.option(
    "--threshold",
    "-t",
    type=click.IntRange(0),
    help="Degree threshold TH; default: that of STORE, or suggested.",
)
@DEVICES.option(
    "--devices-per-host", type=click.IntRange(1), help="Devices a host.  [all]"
)
@DEVICES.option(
    "--domain",
    type=click.IntRange(1),
    default=1,
    help="Devices of a domain, which share their memory; up to 8.  [1]",
)
@DEVICES.option(
    "--devices-per-rank",
    type=click.IntRange(1),
    default=1,
    help="Devices a rank, p_gpu; masks are reduced between ranks.  [1]",
)
@DEVICES.option(
    "--device-memory",
    callback=parse_size,
    metavar="BYTES",
    help="Memory of a device, as 141GB, of which some stays free.",
)
@DEVICES.option(
    "--host-memory",
    callback=parse_size,
    metavar="BYTES",
    help="Memory of a host for neighbours that do not fit on its devices, as 128GiB; "
    "goes with --device-memory.",
)
@DEVICES.option(
    "--gpu",
    type=click.Choice(sorted(load_constants()["devices"]), case_sensitive=False),
    default="H200",
    help="GPU whose constants the time of engine xbfs is predicted with.  [H200]",
)
@DEVICES.option(
    "--exchange",
    type=click.Choice(sorted(load_constants()["exchanges"])),
    default="nccl",
    help="Exchange between domains in that time.  [nccl]",
)
@ADVANCED.option(
    "--device-rate",
    callback=parse_size,
    metavar="NUMBER",
    help=f"Edge checks and vertices of frontiers that a device visits a second.  "
    f"[fitted, or {RATE:.0e}, assumed]",
)
@ADVANCED.option(
    "--network-bandwidth",
    callback=parse_size,
    metavar="BYTES/S",
    help="Bytes a second that a device sends to other ranks.  [fitted, or "
    f"{BANDWIDTH:.2g}, assumed; of engine xbfs between hosts {NETWORK:.2g}, assumed]",
)
@ADVANCED.option(
    "--latency",
    type=click.FloatRange(0),
    help=f"Further seconds that each level takes.  [fitted, or {LATENCY:.0e}, assumed]",
)
@ADVANCED.option(
    "--records",
    type=InputPath(),
    multiple=True,
    help="Fit the cost model to this file of level records, from a search over parts "
    "(graph500 --records); may be given several times.",
)
@ADVANCED.option(
    "--report",
    "reports",
    type=InputPath(),
    multiple=True,
    help="What graph500 --json printed in the run of the --records before it; without "
    "it, records are taken to be of the planned graph and devices.",
)
@output_options
def command(**values: Any) -> Any:
    """Show the memory per device, and the time of a search, before anything is loaded.

    Figures are exact for a STORE, and expected values for a Kronecker graph that does
    not exist yet.  The time is predicted for engine xbfs, by constants fitted to runs,
    where degrees are known, and by the cost model of Pan et al., level by level.  With
    --device-memory, a graph that fits neither devices nor host ends with exit code 3.
    """
    return carry_out("plan", values)
