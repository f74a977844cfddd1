"""The GPU memory that ``distbfs plan`` reports: what fits, and what goes to the host.

If rows have tails in host memory, it also reports the expected reads of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from distbfs.build.cuda.room import SPARE, SPARE_VERTEX
from distbfs.cli.plan_input import PlannedGraph
from distbfs.device.array_table import total_bytes
from distbfs.engines.cuda.xbfs.link_reads import expected_reads
from distbfs.engines.cuda.xbfs.memory import (
    member_bytes,
    part_bytes,
    part_problem,
    search_bytes,
    split_part,
    split_rows,
    symmetric_bytes,
)
from distbfs.engines.cuda.xbfs.shared import MOST_PARTS
from distbfs.graph.device_graph import MAX_VERTICES, graph_table
from distbfs.partition.layout import MAX_LOCAL
from distbfs.plan.memory import PartShape, readable
from distbfs.search.choose import ONE_DEVICE_BELOW
from distbfs.search.runners.seat import streams_table


@dataclass(frozen=True)
class Machine:
    """The memory of a machine; None if it is not known.

    device: bytes of a GPU; host: bytes of a host for the columns of all its GPUs
    devices: number of GPUs of a host
    """

    device: float | None
    host: float | None
    devices: int


def gpu_memory(graph: PlannedGraph, machine: Machine) -> dict[str, Any]:
    """Return the bytes of engine xbfs on GPUs (JSON values), by kind of search.

    gpu_search: a single GPU; gpu_domain: each GPU of a single domain; gpu_part: each
    GPU of several domains; *_tails: how rows are split between GPU and host memory, see
    ``split``.
    """
    search, domain = gpu_search(graph), gpu_domain(graph)
    return {
        "gpu_search": search,
        "gpu_search_tails": split(graph, search, machine),
        "gpu_domain": domain,
        "gpu_domain_tails": split(graph, domain, machine, graph.parts),
        "gpu_part": part_memory(graph, machine),
    }


def planned_split(
    graph: PlannedGraph, gpus: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """Return the split of rows in the search whose time is predicted."""
    if graph.domains > 1:
        return gpus["gpu_part"]
    one = graph.parts == 1 or graph.n < ONE_DEVICE_BELOW
    return gpus["gpu_search_tails" if one else "gpu_domain_tails"]


def gpu_search(graph: PlannedGraph) -> dict[str, int] | None:
    """Return the bytes of engine xbfs on one GPU; None if it cannot search it."""
    n, counts, directed = graph.n, (graph.n, graph.active, graph.m), graph.directed
    if n > MAX_LOCAL or (directed and n > MAX_VERTICES):
        return None
    if n > MAX_VERTICES:
        return member_bytes(*counts, 1)
    stored = total_bytes(graph_table(*counts, directed=directed))
    search = search_bytes(*counts, bare=directed)
    return {"graph": stored, "search": search, "total": stored + search}


def gpu_domain(graph: PlannedGraph) -> dict[str, int] | None:
    """Return the bytes on each GPU if all form one domain; None if they cannot."""
    devices = graph.parts
    if not 1 < devices <= MOST_PARTS or graph.n > MAX_LOCAL * devices:
        return None
    counts, several = (graph.n, graph.active, graph.m, devices), None
    if graph.histogram is not None and not graph.directed:
        several = graph.histogram.above(1)
    return member_bytes(*counts, several=several, directed=graph.directed)


def split(
    graph: PlannedGraph,
    sizes: Mapping[str, int] | None,
    machine: Machine,
    devices: int = 1,
) -> dict[str, Any] | None:
    """Return the split of rows between GPU and host memory; None if it is unknown.

    sizes: bytes by item on one GPU that has all columns

    The result has
    have, spare: bytes of a GPU, and how many of them stay free
    kept: number of columns of a row on a GPU, None for all
    device, host: bytes on a GPU, and bytes of the host for all GPUs
    link: see ``LinkReads.as_dict``; None if nothing is read from the host
    needs: if the graph does not fit, the least bytes of a GPU (device), the bytes of
    the host for the present GPU or, if that is too small, for this least one (host),
    and the bytes of a GPU that needs no host memory (whole)
    """
    if sizes is None or machine.device is None:
        return None
    spare = SPARE + SPARE_VERTEX * -(-graph.n // devices)
    about: dict[str, Any] = {"have": machine.device, "spare": spare}
    about |= {"fits": True, "kept": None}
    free = int(machine.device) - spare
    if sizes["total"] <= free:
        return about | {"host": 0, "link": None}
    if graph.histogram is None:
        return None
    ends = graph.active if graph.directed else None
    rows = split_rows(graph.histogram, sizes["total"], free, devices, ends=ends)
    about |= rows | {"link": None}
    if rows["device"] > free or rows["host"] > (machine.host or rows["host"]):
        return about | lacking(rows["device"], rows["host"], sizes["total"], spare)
    if graph.directed:
        return about
    reads = expected_reads(graph.histogram, rows["kept"], devices=devices)
    return about | {"link": reads.as_dict()}


def lacking(device: int, host: int, whole: int, spare: int) -> dict[str, Any]:
    """Return the needs of a graph that does not fit; see ``split``."""
    needs = {"device": device + spare, "host": host, "whole": whole + spare}
    return {"fits": False, "needs": needs}


def part_memory(graph: PlannedGraph, machine: Machine) -> dict[str, Any]:
    """Return the bytes of the largest part on a GPU, and whether a device has them.

    The result has
    symmetric: further bytes with exchange nvshmem
    kept: number of columns of a row for which a device has room, None for all or if it
    is not known
    outer_on_host: whether edges to other parts lie in the memory of the host
    host, host_building: bytes of the host for one part, and while the part is built
    link, needs: see ``split``; link is None if edges to other parts are on the host
    """
    every = []
    for shape in graph.shapes:
        table = streams_table(shape.parts, shape.owned, shape.delegates)
        streams = total_bytes(table)
        sizes = part_bytes(shape)
        more = {x: sizes[x] + streams for x in ("searching", "total")}
        every.append((sizes | {"streams": streams} | more, shape))
    sizes, shape = max(every, key=lambda x: x[0]["total"])
    have = machine.device
    about: dict[str, Any] = {"domain": shape.domain, "have": have}
    about |= {"symmetric": max(symmetric_bytes(one) for one in graph.shapes)}
    about |= {"fits": None, "kept": None, "link": None}
    about |= {"outer_on_host": False, "host": 0, "host_building": 0}
    if have is None:
        return sizes | about
    spare = SPARE + SPARE_VERTEX * shape.local
    about |= {"spare": spare}
    return sizes | about | _fit_part(graph, shape, sizes, machine, spare)


def _fit_part(
    graph: PlannedGraph,
    shape: PartShape,
    sizes: Mapping[str, int],
    machine: Machine,
    spare: int,
) -> dict[str, Any]:
    """Compute which arrays of a part fit a GPU; spare: bytes that stay free on it."""
    free = int(machine.device or 0) - spare
    if not graph.exact and part_problem(shape):
        return {"fits": False}
    kept, host, outer = None, 0, 0
    needed = sizes["searching"]
    for outer in (0, sizes["outer"]):
        needed, kept, host = sizes["searching"] - outer, None, outer
        if needed <= free or graph.histogram is None:
            break
        rows = split_part(graph.histogram, shape, needed, free)
        needed, kept, host = rows["device"], rows["kept"], outer + rows["host"]
        if needed <= free:
            break
    needed = max(needed, sizes["making"])
    building = sizes["graph"] + host if sizes["total"] > free else 0
    most = max(building, host) * min(machine.devices, graph.parts)
    if needed > free or most > (machine.host or most):
        return lacking(needed, max(building, host), sizes["total"], spare)
    about: dict[str, Any] = {"fits": True, "kept": kept, "host": host}
    about |= {"host_building": building, "outer_on_host": outer > 0}
    if kept is not None and graph.histogram is not None and not outer:
        reads = expected_reads(
            graph.histogram, kept, graph.domains, graph.threshold, graph.domain
        )
        about["link"] = reads.as_dict()
    return about


def refusal(graph: PlannedGraph, gpus: Mapping[str, Any], machine: Machine) -> str:
    """Return a message for a graph that does not fit, "" if it does.

    The message gives the sizes that would fit. Devices of one host are also tried as
    one domain. A graph that GPUs cannot build, or whose degrees are not known, is not
    refused.
    """
    ways: dict[str, dict[str, Any] | None] = {}
    alone = graph.domain == 1 and machine.devices >= graph.parts
    if graph.domains == 1 or alone:
        if graph.parts == 1:
            ways["one GPU"] = gpus["gpu_search_tails"]
        elif gpus["gpu_domain"] is not None:
            ways[f"each of {graph.parts} GPUs"] = gpus["gpu_domain_tails"]
    if graph.domains > 1:
        ways["the GPU of each part"] = gpus["gpu_part"]
    known = [(what, x) for what, x in ways.items() if x is not None]
    short = [(what, x["needs"]) for what, x in known if "needs" in x]
    if (
        machine.device is None
        or len(known) < len(ways)
        or any(x["fits"] for _, x in known)
        or not short
    ):
        return ""
    what, needs = min(short, key=lambda x: x[1]["device"])
    limit = "" if machine.host is None else f" and {readable(machine.host)} of a host"
    size = {name: readable(x, needed=True) for name, x in needs.items()}
    each = " for each" if what.startswith("the GPU") else ""
    return (
        f"{graph.title}: does not fit in {readable(machine.device)} of a GPU{limit}; "
        f"{what} needs {size['device']} and {size['host']} of the host{each}, or "
        f"{size['whole']} and no host memory; more --devices need less"
    )
