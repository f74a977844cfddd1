"""``distbfs plan``: the memory per device before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from distbfs.build.cuda.room import LEAST_KEPT
from distbfs.cli.info import print_right
from distbfs.engines.cuda.xbfs.memory import part_problem
from distbfs.engines.openmp.memory import bytes_needed
from distbfs.errors import OutOfMemory, UsageError
from distbfs.graph.keys import KeyFormat
from distbfs.plan import memory
from distbfs.plan.cost_model import BANDWIDTH, CONSTANTS, LATENCY, RATE, Prediction
from distbfs.plan.memory import PartShape, readable
from distbfs.plan.search_time import NETWORK, SearchTime, load_constants
from distbfs.plan.threshold import DELEGATES_PER_PART
from distbfs.report.tables import print_fields, shown
from distbfs.search.domains import counted
from distbfs.store import schema
from distbfs.terminal.command import ADVANCED, DEVICES, INPUT, grouped_command
from distbfs.terminal.plan_gpus import (
    GpuMemory,
    Machine,
    gpu_memory,
    refusal,
    validation_memory,
)
from distbfs.terminal.plan_input import (
    Graph,
    check_domain,
    model_of,
    of_kronecker,
    of_store,
    ranks_of,
    runs_of,
    search_time,
)
from distbfs.terminal.shared import PLACE, STORE, Speech, open_terminal, output_options
from distbfs.terminal.sizes import parse_size

FILE_OVERHEAD = 7 << 10  # HDF5 headers of a file, about
CHUNK_OVERHEAD = 20  # checksum and place of a chunk
MOST_VERTICES = 1 << 31  # of a part that openmp searches whole
ARRAY_ROWS = {
    **{
        f"{name}_{array}": (f"{name}/{array}",)
        for name in ("nn", "nd", "dn", "dd")
        for array in ("offsets", "columns")
    },
    "vertices": ("vertices",),
    "degrees": ("degrees", "tuple_degrees"),
    "delegates": ("delegates", "delegate_degrees"),
    "sources": ("nd_sources", "dn_sources", "dd_sources"),
}
GROUPS = ("stored", "building")
LABELS = {
    "stored": "stored arrays",
    "search": "search by openmp",
    "session": "session, at most",
    "process": "process, about",
    "building": "building, about",
    "disk": "on disk",
}


def disk_bytes(shape: PartShape) -> int:
    """Return the bytes of the file of a part: whole chunks and what HDF5 adds."""
    total = FILE_OVERHEAD
    for size in memory.array_bytes(shape).values():
        if size:
            chunk = min(size, schema.CHUNK_BYTES)
            total += -(-size // chunk) * (chunk + CHUNK_OVERHEAD)
    return total


def device_bytes(graph: Graph, index: int) -> dict[str, int]:
    """Return the bytes of one part on its device, item by item."""
    shape = graph.shapes[index]
    arrays = memory.array_bytes(shape)
    rows = {row: sum(arrays[k] for k in keys) for row, keys in ARRAY_ROWS.items()}
    kept, moment = memory.session_bytes(shape)
    rows["stored"] = sum(arrays.values())
    rows["search"] = bytes_needed(shape)
    rows["session"] = kept + moment
    rows["process"] = memory.PROCESS
    needs = ("stored", "search", "session", "process")
    rows["searching"] = sum(rows[name] for name in needs)
    rows["building"] = memory.build_bytes(shape, graph.tuples)
    rows["disk"] = graph.files[index] if graph.files else disk_bytes(shape)
    return rows


def room_words(about: Mapping[str, Any]) -> str:
    """Return the words for a GPU's memory where rows are split; see ``split``."""
    return f"{readable(about['have'])} ({readable(about['spare'])} of it kept free)"


def tails_words(tails: Mapping[str, Any], devices: int) -> str:
    """Return the words about a GPU's memory for the line about that GPU."""
    size = room_words(tails)
    if not tails["fits"]:
        needs = tails["needs"]
        host = f"{readable(needs['host'], needed=True)} of the host"
        if needs["device"] <= tails["have"]:
            kept = shown(tails["kept"])
            return f"; in {size} with {kept} columns of a row, but not {host}"
        words = f"; {LEAST_KEPT} columns of a row do not fit in {size}, but in "
        return f"{words}{readable(needs['device'], needed=True)}, with {host}"
    if tails["kept"] is None:
        return f"; fits in {readable(tails['have'])}"
    words = f"; in {size} with {shown(tails['kept'])} columns of a row, and about "
    words += f"{readable(tails['host'])} of the host"
    return words if devices == 1 else f"{words} for all of them"


def link_line(tails: Mapping[str, Any] | None, where: str) -> str:
    """Return the line about what a GPU reads of tails, "" where it reads none.

    where: what searches
    """
    if tails is None or tails["link"] is None:
        return ""
    link = tails["link"]
    return (
        f"over the link to the host, {where}: about {readable(link['bytes'])} a search "
        f"for each GPU, {1e3 * link['seconds']:.4g} ms ({link['columns']:.3g} columns "
        f"of {link['visits']:.3g} tails)"
    )


def gpu_line(
    sizes: Mapping[str, int] | None,
    tails: Mapping[str, Any] | None,
    devices: int = 1,
) -> str:
    """Return the line about engine xbfs on one GPU, or on each of a domain."""
    what = "device memory of one GPU search"
    if devices > 1:
        what = f"device memory of each GPU of a domain of {devices}"
    if sizes is None:
        return f"{what}: none, as a GPU has up to 2^32 vertices"
    size = {name: readable(count) for name, count in sizes.items()}
    line = (
        f"{what}: at most {size['total']} (graph {size['graph']}, search by xbfs "
        f"{size['search']})"
    )
    return line if tails is None else line + tails_words(tails, devices)


def validation_line(sizes: Mapping[str, int]) -> str:
    """Return the line about validation on GPUs."""
    shown = {name: readable(size) for name, size in sizes.items()}
    line = (
        f"validation on each GPU besides results: about {shown['table']}, or "
        f"{shown['asked']} where that is not free"
    )
    if sizes["mailbox"]:
        line += f"; and a mailbox of {shown['mailbox']} for the other ranks of the host"
    return line


def part_line(sizes: Mapping[str, Any]) -> str:
    """Return the line about one part on a GPU."""
    names = ("graph", "numbering", "inner", "search", "messages", "streams")
    items = ", ".join(f"{name} {readable(sizes[name])}" for name in names)
    where = "a domain of its own"
    if sizes["domain"] > 1:
        where = f"in domains of {sizes['domain']}"
    line = f"device memory of a part on a GPU, {where}: about "
    line += f"{readable(sizes['total'])} "
    line += f"({items})"
    if sizes["fits"] is None:
        return line
    have = readable(sizes["have"])
    if not sizes["fits"]:
        line += f"; does not fit in {have}"
        if "needs" in sizes:
            needs = {k: readable(x, needed=True) for k, x in sizes["needs"].items()}
            line += f", but in {needs['device']}, with {needs['host']} of its host"
        return line
    if sizes["host"]:
        kept = "all" if sizes["kept"] is None else shown(sizes["kept"])
        line += f"; in {room_words(sizes)} with {kept} columns of a row, and about "
        line += f"{readable(sizes['host'])} of its host"
        if sizes["outer_on_host"]:
            line += ", where its edges to other parts are"
    else:
        line += f"; fits in {have}"
    if sizes["host_building"]:
        line += f"; built with {readable(sizes['host_building'])} of its host"
    return line


def print_search(time: SearchTime) -> None:
    """Print the predicted time of engine xbfs, term by term."""
    layout, exchange = time.layout, time.exchange
    where = "1 domain" if layout.domains == 1 else f"{shown(layout.domains)} domains"
    where += f" of {counted(layout.devices)}"
    if exchange is not None:
        where += f", exchange {exchange.name}"
        where += " between hosts" if exchange.hosts else " inside a host"
        where += f", levels begun by {'devices' if layout.streamed else 'hosts'}"
    click.echo()
    click.echo(
        f"engine xbfs on {time.device.name}, {where}: "
        f"about {time.seconds * 1e3:.4g} ms a search, {time.teps / 1e9:.4g} GTEPS"
    )
    rows = [[name, f"{1e3 * seconds:.3f}"] for name, seconds in time.terms.items()]
    print_right(("term", "ms"), [*rows, ["all", f"{1e3 * time.seconds:.3f}"]])
    if time.bytes:
        sent = ", ".join(f"{name} {readable(x)}" for name, x in time.bytes.items())
        click.echo(f"a device sends in a search: {sent}")
    if time.link is not None:
        tails = f"{readable(time.link.bytes)} of tails in host memory"
        click.echo(f"a device reads in a search: {tails}")
    used = [
        f"{name} {x['value']:.3g} ({x['origin'].partition(':')[0]})"
        for name, x in time.constants().items()
    ]
    click.echo(f"constants: {', '.join(used)}")


def print_model(model: Prediction) -> None:
    """Print what the cost model says, level by level."""
    constants = model.constants
    values = {
        "rate": f"{constants.rate:.3g} visits/s a device",
        "bandwidth": f"{constants.bandwidth / 1e9:.4g} GB/s between ranks",
        "latency": f"{constants.latency * 1e6:.3g} us a level",
        "finish": f"{constants.finish * 1e12:.3g} ps a vertex of a device at the end",
    }
    click.echo()
    click.echo(
        f"cost model (Pan et al. 2018, Section V), p_rank {shown(model.counts.ranks)}: "
        f"about {model.seconds * 1e3:.4g} ms a search, {model.teps / 1e9:.4g} GTEPS"
    )
    used = [f"{values[name]} ({constants.origin[name]})" for name in CONSTANTS]
    click.echo(f"with {', '.join(used)}")
    times = ("work", "masks", "normals", "latency", "seconds")
    rows = []
    for x in model.levels:
        sent = (readable(x.mask_bytes), readable(x.normal_bytes))
        spent = [f"{getattr(x, name) * 1e3:.3f}" for name in times]
        rows.append([str(x.level), f"{x.visits:.3g}", *sent, *spent])
    rows.append(["end", *[""] * 7, f"{model.finish * 1e3:.3f}"])
    sent = (readable(model.total("mask_bytes")), readable(model.total("normal_bytes")))
    spent = [f"{model.total(name) * 1e3:.3f}" for name in times[:-1]]
    spent.append(f"{model.seconds * 1e3:.3f}")
    rows.append(["all", f"{model.total('visits'):.3g}", *sent, *spent])
    heads = ("level", "visits a device", "mask bytes", "normal bytes")
    print_right((*heads, "work", "masks", "normals", "latency", "all, ms"), rows)


def print_thresholds(plan: Mapping[str, Any]) -> None:
    """Print what a search between the parts takes at thresholds, side by side."""
    volumes, times = ("masks", "normals", "parents"), ("work", "latency")
    rows = []
    for x in plan["thresholds"]:
        sent, spent = x["bytes"], x["seconds"]
        wire = sum(spent[name] for name in volumes)
        ms = (wire, *(spent[name] for name in times), x["total"])
        chosen = "*" if x["threshold"] == plan["threshold"] else ""
        rows.append(
            [
                f"{chosen}{x['threshold']}",
                f"{x['delegates'] / plan['n']:.3%}",
                f"{x['outer_edges'] / max(plan['m'], 1):.1%}",
                *(readable(sent[name]) for name in volumes),
                *(f"{1e3 * seconds:.3f}" for seconds in ms),
            ]
        )
    click.echo()
    click.echo(
        "TH, by expected counts of a search between domains: what a part sends, and "
        "the time besides that of inner edges (* planned)"
    )
    heads = ("TH", "delegates, of n", "outer edges, of m", *volumes, "wire", *times)
    print_right((*heads, "all, ms"), rows)


def notes_of(graph: Graph, gpus: GpuMemory) -> list[str]:
    """Return the steps that are impossible, and what a predicted time leaves out."""
    notes = []
    if gpus.part["outer_on_host"] and gpus.planned(graph) is gpus.part:
        notes.append(
            "the time of a search leaves out what it reads over the link of edges to "
            "other parts"
        )
    shape = graph.shapes[0]
    if shape.whole and shape.local >= MOST_VERTICES:
        notes.append(
            f"engine openmp searches up to 2^31 - 1 vertices on one device, not "
            f"{shape.local}; use more devices"
        )
    if graph.exact:
        return notes
    try:
        KeyFormat.for_graph(graph.n, shape.local)
    except UsageError as error:
        notes.append(f"ranks without GPUs cannot build it: {error}")
    if not shape.whole and (problem := part_problem(shape)):
        notes.append(f"GPUs cannot build it: {problem}")
    return notes


def weigh(
    graph: Graph,
    per_host: int | None,
    per_rank: int,
    model: Prediction,
    gpus: GpuMemory,
    time: SearchTime | None,
) -> dict[str, Any]:
    """Return the plan (JSON values); per_host, per_rank: devices."""
    devices = [device_bytes(graph, index) for index in range(len(graph.shapes))]
    largest = max(devices, key=lambda rows: rows["searching"])
    every = {name: sum(rows[name] for rows in devices) for name in largest}
    if not graph.exact:
        every = {name: graph.parts * size for name, size in largest.items()}
    hosted = min(per_host or graph.parts, graph.parts)
    have, kind = memory.machine_memory()
    host: dict[str, Any] = {"devices": hosted, "memory": have, "limit": kind}
    for name in ("searching", "building"):
        sizes = sorted((rows[name] for rows in devices), reverse=True)
        need = sum(sizes[:hosted]) if graph.exact else sizes[0] * hosted
        host |= {name: need, f"{name}_fits": need <= have}
    allowed = DELEGATES_PER_PART * graph.n // graph.domains
    return {
        "graph": graph.title,
        "basis": graph.basis,
        "exact": graph.exact,
        "devices": graph.parts,
        "domain": graph.domain,
        "n": graph.n,
        "m": graph.m,
        "tuples": graph.tuples,
        "threshold": graph.threshold,
        "threshold_origin": graph.origin,
        "delegates": graph.delegates,
        "delegates_allowed": allowed,
        "delegates_hold": graph.delegates <= allowed,
        "nn": graph.nn,
        "formula_bytes": memory.formula_bytes(
            graph.n, graph.m, graph.parts, graph.delegates, graph.nn
        ),
        "mode": "whole" if graph.shapes[0].whole else "part by part",
        "device": largest,
        "total": every,
        "gpu_search": gpus.search,
        "gpu_search_tails": gpus.search_tails,
        "gpu_domain": gpus.domain,
        "gpu_domain_tails": gpus.domain_tails,
        "gpu_validation": validation_memory(graph, hosted, per_rank),
        "gpu_part": gpus.part,
        "building_basis": memory.build_basis(),
        "host": host,
        "notes": notes_of(graph, gpus),
        "thresholds": [x.as_dict() for x in graph.threshold_costs(model.constants)],
        "model": model.as_dict(),
        "xbfs": None if time is None else time.as_dict(),
    }


def shown_devices(plan: Mapping[str, Any]) -> str:
    """Return the number of devices, and how many a domain has if several."""
    devices, domain = plan["devices"], plan["domain"]
    return str(devices) if domain == 1 else f"{devices}, in domains of {domain}"


def print_plan(
    plan: Mapping[str, Any], model: Prediction, time: SearchTime | None
) -> None:
    """Print a plan for people."""
    about = "" if plan["exact"] else "about "
    nn = f"{about}{shown(plan['nn'])}, {plan['nn'] / max(plan['m'], 1):.1%} of m"
    delegates = f"{about}{shown(plan['delegates'])}"
    delegates += f"; at most 4n/p = {shown(plan['delegates_allowed'])}: "
    delegates += "holds" if plan["delegates_hold"] else "does not hold"
    print_fields(
        {
            "graph": plan["graph"],
            "figures": plan["basis"],
            "devices p": shown_devices(plan),
            "vertices n": plan["n"],
            "stored edges m": about + shown(plan["m"]),
            "threshold TH": f"{shown(plan['threshold'])}, {plan['threshold_origin']}",
            "delegates d": delegates,
            "nn edges": nn,
            "formula": f"8n + 8dp + 4m + 4|Enn| = {readable(plan['formula_bytes'])}",
        }
    )
    click.echo()
    one = "largest device" if plan["exact"] else "a device"
    rows = []
    for name, size in plan["device"].items():
        if name in GROUPS:
            rows.append([""] * 3)
        label = LABELS.get(name, name.replace("_", " "))
        rows.append([label, readable(size), readable(plan["total"][name])])
    print_right(("bytes", one, "all devices"), rows)
    click.echo()
    host = plan["host"]
    click.echo(
        f"this machine: {readable(host['memory'])} ({host['limit']}), "
        f"{host['devices']} of {plan['devices']} devices on a host"
    )
    for name in ("searching", "building"):
        fits = "fits" if host[f"{name}_fits"] else "does not fit"
        click.echo(f"  {name} needs {readable(host[name])}: {fits}")
    click.echo(gpu_line(plan["gpu_search"], plan["gpu_search_tails"]))
    links = [link_line(plan["gpu_search_tails"], "one GPU")]
    if plan["gpu_domain"] is not None:
        tails = plan["gpu_domain_tails"]
        click.echo(gpu_line(plan["gpu_domain"], tails, plan["devices"]))
        links.append(link_line(tails, f"a domain of {plan['devices']}"))
    click.echo(part_line(plan["gpu_part"]))
    if plan["devices"] > plan["domain"]:
        links.append(link_line(plan["gpu_part"], "several domains"))
    for line in filter(None, links):
        click.echo(line)
    if symmetric := plan["gpu_part"]["symmetric"]:
        click.echo(
            f"boxes of other parts with exchange nvshmem: about {readable(symmetric)} "
            "more on each GPU"
        )
    click.echo(validation_line(plan["gpu_validation"]))
    click.echo(f"building is the {plan['building_basis']}")
    for note in plan["notes"]:
        click.echo(f"note: {note}")
    if plan["thresholds"]:
        print_thresholds(plan)
    if time is not None:
        print_search(time)
    print_model(model)


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
    help="Memory of a device, as 141GB.",
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
    type=PLACE,
    multiple=True,
    help="Fit the cost model to this file of level records, from a search over parts "
    "(graph500 --records); may be given several times.",
)
@ADVANCED.option(
    "--report",
    "reports",
    type=PLACE,
    multiple=True,
    help="What graph500 --json printed in the run of the --records before it; without "
    "it, records are taken to be of the planned graph and devices.",
)
@output_options
def command(
    store: Path | None,
    scale: int | None,
    edge_factor: int | None,
    devices: int | None,
    threshold: int | None,
    devices_per_host: int | None,
    domain: int,
    devices_per_rank: int,
    device_memory: float | None,
    host_memory: float | None,
    gpu: str,
    exchange: str,
    device_rate: float | None,
    network_bandwidth: float | None,
    latency: float | None,
    records: tuple[Path, ...],
    reports: tuple[Path, ...],
    speech: Speech,
) -> None:
    """Show the memory per device, and the time of a search, before anything is loaded.

    Figures are exact for a STORE, and expected values for a Kronecker graph that does
    not exist yet.  The time is predicted for engine xbfs, by constants fitted to runs,
    where degrees are known, and by the cost model of Pan et al., level by level.  With
    --device-memory, a graph that fits neither devices nor host ends with exit code 3.
    """
    if (store is None) == (scale is None):
        raise UsageError("give either a STORE or --scale")
    if reports and not records:
        raise UsageError("--report goes with --records")
    if store is not None and edge_factor is not None:
        raise UsageError("--edge-factor goes with --scale; a STORE has its edges")
    if host_memory is not None and device_memory is None:
        raise UsageError("--host-memory goes with --device-memory")
    terminal = open_terminal(speech)
    if terminal.world.rank:
        return
    if store is not None:
        form = (devices, threshold, domain)
        graph = of_store(terminal, store, *form, count=device_memory is not None)
    else:
        parts = check_domain(devices or terminal.world.size, domain)
        size = (int(scale or 0), edge_factor or 16)
        graph = of_kronecker(*size, parts, threshold, domain)
    planned = graph.counts(ranks_of(graph.parts, devices_per_rank))
    model = model_of(
        graph,
        devices_per_rank,
        runs_of(records, reports, planned),
        rate=device_rate,
        bandwidth=network_bandwidth,
        latency=latency,
    )
    hosted = min(devices_per_host or graph.parts, graph.parts)
    machine = Machine(device_memory, host_memory, hosted)
    gpus = gpu_memory(graph, machine)
    time = None
    if gpus.serve(graph):
        time = search_time(
            graph,
            gpu,
            exchange,
            hosts=(devices_per_host or graph.parts) < graph.parts,
            bandwidth=network_bandwidth,
            link=gpus.link(graph),
        )
    plan = weigh(graph, devices_per_host, devices_per_rank, model, gpus, time)
    terminal.result(plan, lambda: print_plan(plan, model, time))
    if problem := refusal(graph, gpus, machine):
        raise OutOfMemory(problem)
