"""``distbfs plan``: the memory per device before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
    model_of,
    of_kronecker,
    of_store,
    runs_of,
    search_time,
)
from distbfs.cli.plan_text import print_plan
from distbfs.cli.shared import open_terminal
from distbfs.engines.cuda.xbfs.memory import part_problem
from distbfs.engines.openmp.memory import bytes_needed
from distbfs.errors import OutOfMemory, UsageError
from distbfs.graph.keys import KeyFormat
from distbfs.plan import memory
from distbfs.plan.cost_model import Prediction
from distbfs.plan.memory import PartShape
from distbfs.plan.search_time import LinkReads, SearchTime
from distbfs.plan.threshold import DELEGATES_PER_PART
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


def notes_of(graph: PlannedGraph, gpus: Mapping[str, Any]) -> list[str]:
    """Return the steps that are impossible, and what a predicted time leaves out."""
    notes = []
    part = gpus["gpu_part"]
    if part["outer_on_host"] and planned_split(graph, gpus) is part:
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
    graph: PlannedGraph,
    hosted: int,
    per_rank: int,
    model: Prediction,
    gpus: Mapping[str, Any],
    time: SearchTime | None,
) -> dict[str, Any]:
    """Return the plan (JSON values); hosted, per_rank: devices of a host, of a rank."""
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
        **gpus,
        "gpu_validation": validation_memory(graph, hosted, per_rank),
        "building_basis": memory.build_basis(),
        "host": host,
        "notes": notes_of(graph, gpus),
        "thresholds": [x.as_dict() for x in graph.threshold_costs(model.constants)],
        "model": model.as_dict(),
        "xbfs": None if time is None else time.as_dict(),
    }


def run(asked: PlanOptions) -> None:
    """Run the command."""
    store, scale, devices = asked.store, asked.scale, asked.devices
    threshold, domain, per_host = asked.threshold, asked.domain, asked.devices_per_host
    if (store is None) == (scale is None):
        raise UsageError("give either a STORE or --scale")
    if asked.report and not asked.records:
        raise UsageError("--report goes with --records")
    if store is not None and asked.edge_factor is not None:
        raise UsageError("--edge-factor goes with --scale; a STORE has its edges")
    if asked.host_memory is not None and asked.device_memory is None:
        raise UsageError("--host-memory goes with --device-memory")
    terminal = open_terminal(asked)
    if terminal.world.rank:
        return
    if store is not None:
        form = (devices, threshold, domain)
        count = asked.device_memory is not None
        graph = of_store(terminal, store, *form, count=count)
    else:
        parts = check_domain(devices or terminal.world.size, domain)
        size = (int(scale or 0), asked.edge_factor or 16)
        graph = of_kronecker(*size, parts, threshold, domain)
    per_rank = asked.devices_per_rank
    ranks = groups(graph.parts, per_rank, f"{per_rank} devices a rank")
    counts = graph.counts(ranks)
    model = model_of(
        counts,
        runs_of(asked.records, asked.report, counts),
        rate=asked.device_rate,
        bandwidth=asked.network_bandwidth,
        latency=asked.latency,
    )
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
            bandwidth=asked.network_bandwidth,
            link=LinkReads.of(planned.get("link")),
        )
    plan = weigh(graph, hosted, per_rank, model, gpus, time)
    terminal.result(plan, lambda: print_plan(plan, time))
    if problem := refusal(graph, gpus, machine):
        raise OutOfMemory(problem)
