"""The input of ``distbfs plan``: a store, or a graph that does not exist yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from distbfs.cli.graphs import degrees_of, row_lengths
from distbfs.cli.shared import Terminal
from distbfs.engines.streamed import MOST_STREAMED
from distbfs.errors import UsageError
from distbfs.graph.degrees import DegreeHistogram
from distbfs.options import RELAY_FROM
from distbfs.plan import memory
from distbfs.plan.host_memory import kronecker_of, nn_edges
from distbfs.plan.memory import PartShape
from distbfs.plan.search_time import (
    LinkReads,
    PlannedLayout,
    SearchTime,
    device_of,
    exchange_of,
    predict_search,
)
from distbfs.plan.threshold import suggest_threshold
from distbfs.search.choose import ONE_DEVICE_BELOW
from distbfs.search.domains import too_many_problem
from distbfs.store.hdf5 import Store, open_store
from distbfs.store.shape import shape_of


@dataclass(frozen=True)
class PlannedGraph:
    """A graph to be planned for.

    title: name of the graph; basis: origin of the counts; origin: origin of the
    threshold
    active: number of vertices with edges
    domain: number of devices in a domain
    shapes: shape of every part if ``exact``, else only that of a mean part
    files: bytes of every part on disk, empty if there is no such store
    histogram: degrees, or the lengths of all rows (of out and in edges) of a directed
    graph; None for a store as it is whose degrees were not read
    sums: of a directed graph that is not stored, sums of degrees out and in
    """

    title: str
    basis: str
    origin: str
    n: int
    m: int
    active: int
    tuples: int
    parts: int
    threshold: int
    delegates: int
    nn: int
    exact: bool
    shapes: Sequence[PartShape]
    files: Sequence[int] = ()
    histogram: DegreeHistogram | None = None
    sums: DegreeHistogram | None = None
    domain: int = 1
    directed: bool = False

    @property
    def domains(self) -> int:
        """Number of domains."""
        return self.parts // self.domain


def stored(store: Store) -> PlannedGraph:
    """Return the plan's graph for a store as it is."""
    manifest = store.manifest
    names = ("n", "m", "tuples", "parts", "threshold", "delegates")
    return PlannedGraph(
        title=str(store.folder),
        basis="exact, from the manifest",
        origin="from the store",
        active=sum(record.active for record in manifest.records) + manifest.delegates,
        exact=True,
        shapes=[shape_of(store, index) for index in range(manifest.parts)],
        files=[record.file_bytes for record in manifest.records],
        directed=manifest.directed,
        nn=manifest.edges["nn"],
        **{name: getattr(manifest, name) for name in names},
    )


def expected(
    histogram: DegreeHistogram,
    kronecker: tuple[int, int] | None,
    parts: int,
    threshold: int | None,
    domain: int = 1,
    **about: Any,
) -> PlannedGraph:
    """Return the expected sizes of a graph with these degrees in some parts.

    kronecker: scale and edge factor of a Kronecker graph, None for other graphs
    """
    origin = "suggested" if threshold is None else "given"
    if threshold is None:
        threshold = suggest_threshold(histogram, parts // domain)
    delegates = histogram.above(threshold)
    nn = nn_edges(histogram, kronecker, threshold)
    return PlannedGraph(
        origin=origin,
        n=histogram.n,
        m=histogram.m,
        active=histogram.above(0),
        parts=parts,
        threshold=threshold,
        delegates=delegates,
        nn=round(nn),
        exact=False,
        shapes=[memory.expected_shape(histogram, parts, threshold, nn, domain)],
        histogram=histogram,
        domain=domain,
        **about,
    )


def of_kronecker(
    scale: int,
    edge_factor: int,
    devices: int,
    threshold: int | None,
    domain: int = 1,
    *,
    directed: bool = False,
) -> PlannedGraph:
    """Return the expected sizes of a Kronecker graph; quick at any scale."""
    planned = expected(
        memory.expected_degrees(scale, edge_factor),
        (scale, edge_factor),
        devices,
        threshold,
        domain,
        title=f"kronecker, scale {scale}, edge factor {edge_factor}"
        + ", directed" * directed,
        basis="expected, nothing was generated",
        tuples=edge_factor << scale,
    )
    if not directed:
        return planned
    out = memory.expected_degrees(scale, edge_factor / 2)
    rows = DegreeHistogram(out.degrees, 2 * out.counts)  # out, and in alike
    return one_way(planned, out.m, rows)


def one_way(graph: PlannedGraph, m: int, rows: DegreeHistogram) -> PlannedGraph:
    """Return the plan's graph of m arcs, from that of sums of degrees out and in.

    rows: the lengths of all rows, of edges out and of edges in
    """
    share = m / max(graph.m, 1)
    return replace(
        graph,
        m=m,
        nn=round(share * graph.nn),
        shapes=[memory.one_way(shape, share) for shape in graph.shapes],
        histogram=rows,
        sums=graph.histogram,
        directed=True,
    )


def of_store(
    terminal: Terminal,
    store: Path,
    devices: int | None,
    threshold: int | None,
    domain: int = 1,
    *,
    count: bool = False,
) -> PlannedGraph:
    """Return a store as it is, or as it would be in other parts.

    count: whether to read the degrees of a store as it is
    """
    opened = open_store(store)
    manifest = opened.manifest
    same = devices in (None, manifest.parts) and domain == 1
    if same and threshold in (None, manifest.threshold):
        read = row_lengths if manifest.directed else degrees_of
        return replace(
            stored(opened), histogram=read(opened, terminal) if count else None
        )
    built = expected(
        degrees_of(opened, terminal),
        kronecker_of(manifest.source, manifest.n),
        check_domain(devices or manifest.parts, domain),
        threshold,
        domain,
        title=f"{store}, built anew",
        basis="expected from the degrees of the store",
        tuples=manifest.tuples,
    )
    if not manifest.directed:
        return built
    return one_way(built, manifest.m, row_lengths(opened, terminal))


def check_domain(devices: int, domain: int) -> int:
    """Return the number of devices; UsageError for impossible domains."""
    if problem := too_many_problem(domain):
        raise UsageError(f"domain is {domain}; {problem}")
    if devices % domain:
        raise UsageError(f"{devices} devices do not divide into domains of {domain}")
    return devices


def search_time(
    graph: PlannedGraph,
    gpu: str,
    exchange: str,
    *,
    hosts: bool = False,
    bandwidth: float | None = None,
    link: LinkReads | None = None,
) -> SearchTime | None:
    """Return the predicted time of engine xbfs; None if it cannot be predicted.

    It needs degrees; of a directed graph, which has no tails, those that it would have
    in both directions.

    hosts: whether the domains are on several hosts
    bandwidth: bytes per second between them, in place of the fitted or assumed rate
    link: a device's reads of host memory

    The prediction follows the choices of ``search.choose`` and the runners: a small
    graph is searched on one device, hosts begin the levels of many parts, and exchange
    nvshmem uses NCCL if no single launch is possible.
    """
    histogram = graph.sums if graph.directed else graph.histogram
    if histogram is None:
        return None
    parts, devices = graph.parts, graph.domain
    if graph.domains == 1 and graph.n < ONE_DEVICE_BELOW:
        devices = 1
    streamed = parts <= MOST_STREAMED and exchange != "host"
    if exchange == "nvshmem" and (devices > 1 or not streamed):
        exchange = "nccl"
    layout = PlannedLayout(
        graph.domains,
        devices,
        graph.threshold,
        streamed,
        relayed=not streamed and parts >= RELAY_FROM,
    )
    device, between = device_of(gpu), None
    if graph.domains > 1:
        between = exchange_of(
            exchange, gpu, hosts=hosts, bandwidth=bandwidth, streamed=streamed
        )
    return predict_search(
        histogram,
        graph.tuples,
        layout,
        device,
        between,
        link=link,
        directed=graph.directed,
    )
