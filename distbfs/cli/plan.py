"""``distbfs plan``: the memory of each device before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from distbfs.build.cuda.room import LEAST_KEPT
from distbfs.cli.options.plan import PlanOptions
from distbfs.cli.plan_gpus import (
    Machine,
    gpu_memory,
    planned_split,
    refusal,
    validation_memory,
)
from distbfs.cli.plan_input import (
    PlannedGraph,
    check_domain,
    groups,
    of_kronecker,
    of_store,
    search_time,
)
from distbfs.cli.shared import open_terminal
from distbfs.engines.cuda.xbfs.memory import part_problem
from distbfs.engines.openmp.memory import bytes_needed
from distbfs.errors import OutOfMemory, UsageError
from distbfs.graph.keys import KeyFormat
from distbfs.plan import memory
from distbfs.plan.memory import PartShape, readable
from distbfs.plan.search_time import LinkReads, SearchTime
from distbfs.plan.threshold import DELEGATES_PER_PART
from distbfs.report.tables import print_fields, print_right, shown
from distbfs.search.domains import counted
from distbfs.store import schema

FILE_OVERHEAD = 7 << 10  # HDF5 headers of a file, about
CHUNK_OVERHEAD = 20  # checksum and place of a chunk
MOST_VERTICES = 1 << 31  # of a part that openmp searches whole
SHOWN = ("basis", "exact", "domain", "n", "m", "tuples", "threshold", "delegates", "nn")
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


def disk_bytes(shape: PartShape) -> int:
    """Return the bytes of the file of a part: whole chunks and what HDF5 adds."""
    total = FILE_OVERHEAD
    for size in memory.array_bytes(shape).values():
        if size:
            chunk = min(size, schema.CHUNK_BYTES)
            total += -(-size // chunk) * (chunk + CHUNK_OVERHEAD)
    return total


def device_bytes(graph: PlannedGraph, index: int) -> dict[str, int]:
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


def owner_bytes(graph: PlannedGraph) -> int | None:
    """Return the bytes of a rank that owns rows while it searches (``construct``).

    None where ranks search the parts as they are, or degrees are not known.
    """
    if graph.exact or graph.parts == 1 or graph.histogram is None:
        return None
    shape = memory.expected_shape(graph.histogram, graph.parts, 0, 0)
    stored = sum(memory.array_bytes(shape).values())
    searching = bytes_needed(shape, owned=True) + sum(memory.session_bytes(shape))
    return stored + searching + memory.PROCESS


def notes_of(graph: PlannedGraph, gpus: Mapping[str, Any]) -> list[str]:
    """Return the steps that are impossible, and what a predicted time leaves out."""
    notes = []
    part = gpus["gpu_part"]
    if part["outer_on_host"] and planned_split(graph, gpus) is part:
        notes.append(
            "the time of a search does not count the link reads of edges to other parts"
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
    graph: PlannedGraph,
    hosted: int,
    per_rank: int,
    bandwidth: float | None,
    gpus: Mapping[str, Any],
    time: SearchTime | None,
) -> dict[str, Any]:
    """Return the plan (JSON values); hosted, per_rank: devices of a host, of a rank.

    bandwidth: bytes a second between ranks, where it is given
    """
    devices = [device_bytes(graph, index) for index in range(len(graph.shapes))]
    largest = max(devices, key=lambda rows: rows["searching"])
    every = {name: sum(rows[name] for rows in devices) for name in largest}
    if not graph.exact:
        every = {name: graph.parts * size for name, size in largest.items()}
    have, kind = memory.machine_memory()
    host: dict[str, Any] = {"devices": hosted, "memory": have, "limit": kind}
    for name in ("searching", "building"):
        sizes = sorted((rows[name] for rows in devices), reverse=True)
        need = sum(sizes[:hosted]) if graph.exact else sizes[0] * hosted
        host |= {name: need, f"{name}_fits": need <= have}
    allowed = DELEGATES_PER_PART * graph.n // graph.domains
    return {
        "graph": graph.title,
        **{name: getattr(graph, name) for name in SHOWN},
        "devices": graph.parts,
        "threshold_origin": graph.origin,
        "delegates_allowed": allowed,
        "delegates_hold": graph.delegates <= allowed,
        "formula_bytes": memory.formula_bytes(
            graph.n, graph.m, graph.parts, graph.delegates, graph.nn
        ),
        "mode": "whole" if graph.shapes[0].whole else "part by part",
        "device": largest,
        "total": every,
        "owner": owner_bytes(graph),
        **gpus,
        "gpu_validation": validation_memory(graph, hosted, per_rank),
        "building_basis": memory.build_basis(),
        "host": host,
        "notes": notes_of(graph, gpus),
        "thresholds": [x.as_dict() for x in graph.threshold_costs(bandwidth)],
        "xbfs": None if time is None else time.as_dict(),
    }


def run(asked: PlanOptions) -> None:
    """Run the command."""
    store, scale, devices = asked.store, asked.scale, asked.devices
    threshold, domain, per_host = asked.threshold, asked.domain, asked.devices_per_host
    if (store is None) == (scale is None):
        raise UsageError("give either a STORE or --scale")
    if store is not None and asked.edge_factor is not None:
        raise UsageError("--edge-factor goes with --scale; a STORE has its edges")
    if asked.host_memory is not None and asked.device_memory is None:
        raise UsageError("--host-memory goes with --device-memory")
    terminal = open_terminal(asked)
    if terminal.world.rank:
        return
    if store is not None:
        count = asked.device_memory is not None
        graph = of_store(terminal, store, devices, threshold, domain, count=count)
    else:
        parts = check_domain(devices or terminal.world.size, domain)
        graph = of_kronecker(
            int(scale or 0), asked.edge_factor or 16, parts, threshold, domain
        )
    per_rank = asked.devices_per_rank
    groups(graph.parts, per_rank, f"{per_rank} devices a rank")
    bandwidth = asked.network_bandwidth
    hosted = min(per_host or graph.parts, graph.parts)
    machine = Machine(asked.device_memory, asked.host_memory, hosted)
    gpus = gpu_memory(graph, machine)
    planned, time = planned_split(graph, gpus) or {}, None
    if planned.get("fits") is not False:
        time = search_time(
            graph,
            asked.gpu,
            asked.exchange,
            hosts=hosted < graph.parts,
            bandwidth=bandwidth,
            link=LinkReads.of(planned.get("link")),
        )
    plan = weigh(graph, hosted, per_rank, bandwidth, gpus, time)
    on_gpus = asked.device_memory is not None
    whole = terminal.verbose
    terminal.result(plan, lambda: print_plan(plan, time, on_gpus=on_gpus, whole=whole))
    if problem := refusal(graph, gpus, machine):
        raise OutOfMemory(problem)


GROUPS = ("stored", "building")
SHORT = {"devices p": "devices", "vertices n": "vertices", "stored edges m": "edges"}
LABELS = {
    "stored": "stored arrays",
    "search": "search by openmp",
    "session": "session, at most",
    "process": "process, about",
    "building": "building, about",
    "disk": "on disk",
}


def room_words(about: Mapping[str, Any]) -> str:
    """Describe the memory of a GPU whose rows are split."""
    return f"{readable(about['have'])} ({readable(about['spare'])} of it kept free)"


def kept_words(about: Mapping[str, Any]) -> str:
    """Describe split rows, up to the owner of the host memory for the rest."""
    kept = "all" if about["kept"] is None else shown(about["kept"])
    words = f"; in {room_words(about)} with {kept} columns of a row, and about "
    return words + readable(about["host"])


def tails_words(tails: Mapping[str, Any], devices: int) -> str:
    """Describe the rows on a GPU, for the line about that GPU."""
    if tails["fits"]:
        if tails["kept"] is None:
            return f"; fits in {readable(tails['have'])}"
        every = "" if devices == 1 else " for all of them"
        return f"{kept_words(tails)} of the host{every}"
    size, needs = room_words(tails), tails["needs"]
    host = f"{readable(needs['host'], needed=True)} of the host"
    if needs["device"] <= tails["have"]:
        return (
            f"; in {size} with {shown(tails['kept'])} columns of a row, but not {host}"
        )
    device = readable(needs["device"], needed=True)
    rows = f"{LEAST_KEPT} columns of a row"
    return f"; {rows} do not fit in {size}, but in {device}, with {host}"


def link_line(link: Mapping[str, float], where: str) -> str:
    """Return the line about the tail reads of a GPU; where: of which search."""
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
    domain = sizes["domain"]
    where = "a domain of its own" if domain == 1 else f"in domains of {domain}"
    line = (
        f"device memory of a part on a GPU, {where}: about {readable(sizes['total'])} "
        f"to build it, {readable(sizes['searching'])} to search it ({items})"
    )
    if sizes["fits"] is None:
        return line
    if not sizes["fits"]:
        line += f"; does not fit in {readable(sizes['have'])}"
        if "needs" in sizes:
            needs = {k: readable(x, needed=True) for k, x in sizes["needs"].items()}
            line += f", but in {needs['device']}, with {needs['host']} of its host"
        return line
    if sizes["host"]:
        outer = ", where its edges to other parts are" * sizes["outer_on_host"]
        line += f"{kept_words(sizes)} of its host{outer}"
    else:
        line += f"; fits in {readable(sizes['have'])}"
    if sizes["host_building"]:
        line += f"; built with {readable(sizes['host_building'])} of its host"
    return line


def search_line(time: SearchTime) -> str:
    """Return the line about the predicted time of engine xbfs."""
    layout, exchange = time.layout, time.exchange
    where = "1 domain" if layout.domains == 1 else f"{shown(layout.domains)} domains"
    where += f" of {counted(layout.devices)}"
    if exchange is not None:
        where += f", exchange {exchange.name}"
        where += " between hosts" if exchange.hosts else " inside a host"
        where += f", levels begun by {'devices' if layout.streamed else 'hosts'}"
    return (
        f"engine xbfs on {time.device.name}, {where}: "
        f"about {time.seconds * 1e3:.4g} ms a search, {time.teps / 1e9:.4g} GTEPS"
    )


def print_search(time: SearchTime) -> None:
    """Print the predicted time of engine xbfs, term by term."""
    click.echo()
    click.echo(search_line(time))
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


def print_thresholds(plan: Mapping[str, Any]) -> None:
    """Print the cost of a search between the parts, by threshold, side by side."""
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
        "TH, by expected counts of a search between domains: bytes that a part sends, "
        "and the time without inner edges (* planned)"
    )
    heads = ("TH", "delegates, of n", "outer edges, of m", *volumes, "wire", *times)
    print_right((*heads, "all, ms"), rows)


def print_plan(
    plan: Mapping[str, Any], time: SearchTime | None, *, on_gpus: bool, whole: bool
) -> None:
    """Print a plan as text.

    on_gpus: whether the memory of devices is given; whole: with all that is known
    """
    about = "" if plan["exact"] else "about "
    devices = str(plan["devices"])
    devices += "" if plan["domain"] == 1 else f", in domains of {plan['domain']}"
    nn = f"{about}{shown(plan['nn'])}, {plan['nn'] / max(plan['m'], 1):.1%} of m"
    delegates = f"{about}{shown(plan['delegates'])}"
    delegates += f"; at most 4n/p = {shown(plan['delegates_allowed'])}: "
    delegates += "holds" if plan["delegates_hold"] else "does not hold"
    fields = {
        "graph": plan["graph"],
        "figures": plan["basis"],
        "devices p": devices,
        "vertices n": plan["n"],
        "stored edges m": about + shown(plan["m"]),
        "threshold TH": f"{shown(plan['threshold'])}, {plan['threshold_origin']}",
        "delegates d": delegates,
        "nn edges": nn,
        "formula": f"8n + 8dp + 4m + 4|Enn| = {readable(plan['formula_bytes'])}",
    }
    if whole:
        print_fields(fields)
        print_whole(plan, time)
        return
    host, several = plan["host"], plan["devices"] > plan["domain"]
    left_out = {"nn edges", "formula"}
    left_out |= set() if several else {"threshold TH", "delegates d"}
    fields = {k: x for k, x in fields.items() if k not in left_out}
    fields["stored edges m"] = f"{about}{shown(plan['m'] // 2)}"
    fields = {SHORT.get(k, k): x for k, x in fields.items()}
    for name in () if on_gpus else ("searching", "building"):
        fits = "fits" if host[f"{name}_fits"] else "does not fit"
        words = f"{readable(host[name])} of {readable(host['memory'])}: {fits}"
        fields[f"{name} on CPUs"] = words
    fields["on disk"] = readable(plan["total"]["disk"])
    print_fields(fields)
    click.echo(planned_line(plan))
    for note in plan["notes"]:
        click.echo(f"note: {note}")
    if time is not None:
        click.echo(search_line(time))


def planned_line(plan: Mapping[str, Any]) -> str:
    """Return the line about a GPU in the form that the plan has."""
    devices = plan["devices"]
    if devices > plan["domain"]:
        return part_line(plan["gpu_part"])
    if plan["gpu_domain"] is not None:
        return gpu_line(plan["gpu_domain"], plan["gpu_domain_tails"], devices)
    return gpu_line(plan["gpu_search"], plan["gpu_search_tails"])


def print_whole(plan: Mapping[str, Any], time: SearchTime | None) -> None:
    """Print the bytes of each array, what fits, and the terms of each time."""
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
    if plan["owner"] is not None:
        click.echo(
            "ranks without GPUs on one host own the rows of their vertices: about "
            f"{readable(plan['owner'])} each to search; on several hosts, or where "
            "they have less, they search the parts above"
        )
    click.echo(gpu_line(plan["gpu_search"], plan["gpu_search_tails"]))
    links = {"one GPU": plan["gpu_search_tails"]}
    if plan["gpu_domain"] is not None:
        tails = links[f"a domain of {plan['devices']}"] = plan["gpu_domain_tails"]
        click.echo(gpu_line(plan["gpu_domain"], tails, plan["devices"]))
    click.echo(part_line(plan["gpu_part"]))
    if plan["devices"] > plan["domain"]:
        links["several domains"] = plan["gpu_part"]
    for where, split in links.items():
        if split is not None and split["link"] is not None:
            click.echo(link_line(split["link"], where))
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
