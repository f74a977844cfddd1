"""``distbfs plan``: the memory of each device before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from distbfs.cli.graphs import sizes_of
from distbfs.cli.options.plan import PlanOptions
from distbfs.cli.plan_gpus import (
    Machine,
    gpu_memory,
    planned_split,
    refusal,
)
from distbfs.cli.plan_input import (
    PlannedGraph,
    check_domain,
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
from distbfs.plan.memory import readable
from distbfs.plan.search_time import LinkReads, SearchTime
from distbfs.plan.threshold import DELEGATES_PER_PART
from distbfs.report.tables import print_fields, print_table, shown
from distbfs.search.domains import counted

MOST_VERTICES = 1 << 31  # of a part that openmp searches whole
SHOWN = ("basis", "exact", "domain", "tuples", "threshold", "delegates", "nn")


def device_bytes(graph: PlannedGraph, index: int) -> dict[str, int]:
    """Return the bytes of one part on its device, item by item.

    On disk, HDF5 adds some KiB to the arrays of a part that does not exist yet.
    """
    shape = graph.shapes[index]
    arrays = memory.array_bytes(shape)
    rows = {name.replace("/", "_"): size for name, size in arrays.items()}
    kept, moment = memory.session_bytes(shape)
    rows["stored"] = sum(arrays.values())
    rows["search"] = bytes_needed(shape)
    rows["session"] = kept + moment
    rows["process"] = memory.PROCESS
    needs = ("stored", "search", "session", "process")
    rows["searching"] = sum(rows[name] for name in needs)
    rows["building"] = memory.build_bytes(shape, graph.tuples)
    rows["disk"] = graph.files[index] if graph.files else rows["stored"]
    return rows


def notes_of(
    graph: PlannedGraph, gpus: Mapping[str, Any], time: SearchTime | None
) -> list[str]:
    """Return notes on what is impossible, and on what a predicted time leaves out."""
    notes = []
    part = gpus["gpu_part"]
    if graph.directed:
        notes.append(
            "the time of searches of directed graphs is not predicted for stores as "
            "they are, nor where edges are in host memory"
            if time is None or time.arcs is None
            else "the time of a search is that of the same edges in both directions, "
            f"times {time.arcs} as measured"
        )
        if gpus["gpu_search"] is None:
            notes.append(
                "engine xbfs searches directed graphs up to 2^31 vertices on a device"
            )
    elif part["outer_on_host"] and planned_split(graph, gpus) is part:
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


def split_arcs(graph: PlannedGraph, planned: Mapping[str, Any]) -> bool:
    """Return whether a directed graph has edges in host memory."""
    on_host = planned.get("kept") is not None or planned.get("outer_on_host")
    return graph.directed and bool(on_host)


def weigh(
    graph: PlannedGraph,
    hosted: int,
    gpus: Mapping[str, Any],
    time: SearchTime | None,
) -> dict[str, Any]:
    """Return the plan (JSON values).

    hosted: number of devices of a host
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
        **sizes_of(graph.n, graph.m, directed=graph.directed),
        "directed": graph.directed,
        **{name: getattr(graph, name) for name in SHOWN},
        "devices": graph.parts,
        "threshold_origin": graph.origin,
        "delegates_allowed": allowed,
        "delegates_hold": graph.delegates <= allowed,
        "formula_bytes": (1 + graph.directed)
        * memory.formula_bytes(
            graph.n, graph.m, graph.parts, graph.delegates, graph.nn
        ),
        "mode": "whole" if graph.shapes[0].whole else "part by part",
        "device": largest,
        "total": every,
        **gpus,
        "host": host,
        "notes": notes_of(graph, gpus, time),
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
    if store is not None and asked.directed:
        raise UsageError("--directed is settled by the store")
    if asked.host_memory is not None and asked.device_memory is None:
        raise UsageError("--host-memory goes with --device-memory")
    terminal = open_terminal(asked)
    if terminal.world.rank:
        return
    if store is not None:
        count = asked.device_memory is not None
        graph = of_store(terminal, store, devices, threshold, domain, count=count)
    else:
        numbers = (int(scale or 0), asked.edge_factor or 16)
        parts = check_domain(devices or terminal.world.size, domain)
        directed = asked.directed
        graph = of_kronecker(*numbers, parts, threshold, domain, directed=directed)
    hosted = min(per_host or graph.parts, graph.parts)
    machine = Machine(asked.device_memory, asked.host_memory, hosted)
    gpus = gpu_memory(graph, machine)
    planned, time = planned_split(graph, gpus) or {}, None
    if planned.get("fits") is not False and not split_arcs(graph, planned):
        time = search_time(
            graph,
            asked.gpu,
            asked.exchange,
            hosts=hosted < graph.parts,
            bandwidth=asked.network_bandwidth,
            link=LinkReads.of(planned.get("link")),
        )
    plan = weigh(graph, hosted, gpus, time)
    on_gpus = asked.device_memory is not None
    whole = asked.verbose
    terminal.result(plan, lambda: print_plan(plan, time, on_gpus=on_gpus, whole=whole))
    if problem := refusal(graph, gpus, machine):
        raise OutOfMemory(problem)


GPU_COLUMNS = (
    "memory of a GPU",
    "graph",
    "to search",
    "at most",
    "fits",
    "columns of a row",
    "of its host",
    "over the link",
)


def gpu_rows(plan: Mapping[str, Any], *, whole: bool) -> list[list[str]]:
    """Return the rows on the memory of a GPU, for the plan or for all ways to search.

    If the size of a GPU is given, they say whether the graph fits, or how large the GPU
    must be; how many columns of a row it holds; and how much host memory the others
    take, and how much of that a search reads.
    """
    devices, part = plan["devices"], plan["gpu_part"]
    domain = f"each of a domain of {devices}"
    ways = {
        "one GPU": (plan["gpu_search"], plan["gpu_search_tails"]),
        domain: (plan["gpu_domain"], plan["gpu_domain_tails"]),
        f"each part, in domains of {plan['domain']}": (part, part),
    }
    known = [name for name, (sizes, _) in ways.items() if sizes is not None]
    if not known:
        return []
    planned = known[-1] if devices > plan["domain"] else (known[:-1] or known)[-1]
    rows = []
    for name in known if whole else [planned]:
        sizes, split = ways[name]
        searching = sizes.get("searching", sizes["total"])
        row = [name, *map(readable, (sizes["graph"], searching, sizes["total"]))]
        if split is not None and split["fits"] is not None:
            row += split_cells(split, " for all" if name == domain else "")
        rows.append(row)
    width = max(k + 1 for row in rows for k, cell in enumerate(row) if cell)
    return [[*row, *[""] * len(GPU_COLUMNS)][:width] for row in rows]


def split_cells(split: Mapping[str, Any], whose: str) -> list[str]:
    """Return the cells of a GPU: columns of a row, host memory, reads over the link.

    whose: the GPUs that share the host's memory
    """
    have = readable(split["have"])
    if not split["fits"]:
        needs = split.get("needs")
        if needs is None:
            return [f"not {have}", "", "", ""]
        least = {name: readable(size, needed=True) for name, size in needs.items()}
        return [f"not {have}, but {least['device']}", "", least["host"] + whose, ""]
    kept = "all" if split["kept"] is None else shown(split["kept"])
    host, building = split["host"], split.get("host_building", 0)
    hosted = readable(host) + whose if host else ""
    hosted += f"; {readable(building)} to build" if building else ""
    link = split["link"]
    read = f"{readable(link['bytes'])}, {1e3 * link['seconds']:.4g} ms" if link else ""
    return [have, kept, hosted, read]


def print_time(time: SearchTime) -> None:
    """Print the predicted time of engine xbfs."""
    layout, exchange = time.layout, time.exchange
    where = "1 domain" if layout.domains == 1 else f"{shown(layout.domains)} domains"
    where += f" of {counted(layout.devices)}"
    if exchange is not None:
        where += f", exchange {exchange.name}"
        where += " between hosts" if exchange.hosts else " inside a host"
        where += f", levels begun by {'devices' if layout.streamed else 'hosts'}"
    click.echo(
        f"engine xbfs on {time.device.name}, {where}: "
        f"about {time.seconds * 1e3:.4g} ms a search, {time.teps / 1e9:.4g} GTEPS"
    )


def print_search(time: SearchTime) -> None:
    """Print the predicted time of engine xbfs, term by term."""
    click.echo()
    print_time(time)
    terms = {**time.terms, "all": time.seconds}
    rows = [[name, f"{1e3 * seconds:.3f}"] for name, seconds in terms.items()]
    print_table(("term", "ms"), rows, right=True)
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


def print_plan(
    plan: Mapping[str, Any], time: SearchTime | None, *, on_gpus: bool, whole: bool
) -> None:
    """Print a plan as text.

    on_gpus: whether the memory of devices is given; whole: whether to print everything
    """
    about = "" if plan["exact"] else "about "
    devices, several = str(plan["devices"]), plan["devices"] > plan["domain"]
    devices += "" if plan["domain"] == 1 else f", in domains of {plan['domain']}"
    fields = {"graph": plan["graph"]}
    if several or whole:
        fields |= {"figures": plan["basis"], "devices": devices}
    fields |= {
        "vertices": plan["vertices"],
        "edges": about + shown(plan["edges"]) + ", directed" * plan["directed"],
    }
    if several or whole:
        holds = "holds" if plan["delegates_hold"] else "does not hold"
        fields |= {
            "threshold TH": f"{shown(plan['threshold'])}, {plan['threshold_origin']}",
            "delegates d": f"{about}{shown(plan['delegates'])}; at most 4n/p = "
            f"{shown(plan['delegates_allowed'])}: {holds}",
        }
    if whole:
        nn, m = plan["nn"], plan["stored_edges"]
        formula = readable(plan["formula_bytes"])
        fields |= {
            "stored edges m": about + shown(m),
            "nn edges": f"{about}{shown(nn)}, {nn / max(m, 1):.1%} of m",
            "formula": f"8n + 8dp + 4m + 4|Enn| = {formula}",
        }
    host = plan["host"]
    for name in ("searching", "building") if whole or not on_gpus else ():
        fits = "fits" if host[f"{name}_fits"] else "does not fit"
        words = f"{readable(host[name])} of {readable(host['memory'])}: {fits}"
        fields[f"{name} on CPUs"] = words
    fields["on disk"] = readable(plan["total"]["disk"])
    print_fields(fields)
    click.echo()
    if rows := gpu_rows(plan, whole=whole):
        print_table(GPU_COLUMNS[: len(rows[0])], rows, right=True)
    for note in plan["notes"]:
        click.echo(f"note: {note}")
    if time is not None:
        (print_search if whole else print_time)(time)
