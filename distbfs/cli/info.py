"""``distbfs info``: show what a store holds."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import click
import numpy as np

from distbfs.build.host.parts import construct
from distbfs.cli.graphs import (
    COUNTS,
    SearchedGraph,
    degrees_of,
    graph_fields,
    open_graph,
    sizes_of,
)
from distbfs.cli.options.info import InfoOptions
from distbfs.cli.shared import Terminal, open_terminal, share_of_cores
from distbfs.errors import UsageError
from distbfs.formats.ids import first_of
from distbfs.generate.derived import Counted
from distbfs.graph.components import component_labels
from distbfs.graph.degrees import DegreeHistogram
from distbfs.options import SearchOptions
from distbfs.plan.memory import formula_bytes, readable, subgraph_bytes
from distbfs.report import plots
from distbfs.report.tables import counted, print_fields, print_table, shown
from distbfs.search.holding import Source
from distbfs.search.vertices import gather_on_first
from distbfs.store.hdf5 import Store
from distbfs.store.schema import MANIFEST_NAME
from distbfs.store.shape import shape_of
from distbfs.types import SUBGRAPHS, TupleSource

STATISTICS = ("mean", "largest")
UNTOLD = ("n", "tuples", "xxh3_128")  # of a source: told otherwise, or for programs
KINDS = {"integer": "whole numbers", "text": "text"}  # of ids
# what a text shows of the storage of a graph, and of each part
STORED = ("format_version", "created_by", "source", "relabel", "ids", "stored_edges")
SEPARATED = ("parts", "threshold", "delegates")
EACH = ("part", "vertices", "active", "edges", "array_bytes", "file_bytes")


def describe_file(
    terminal: Terminal, graph: SearchedGraph
) -> tuple[dict[str, Any], DegreeHistogram]:
    """Build the graph of a file; return its counts and degrees (collective)."""
    source, tuples = graph.source, graph.source.any_tuples()
    with terminal.progress("counting", tuples.tuples // terminal.world.size) as tell:
        counted, discard = Counted(tuples, tell), lambda _: None
        way = (terminal.world, source.parts, source.build)
        summary = construct(counted, *way, discard)
    first, ids = first_of(graph.ids), graph.ids
    kinds = {} if ids is None or first is not None else {"ids": {"kind": ids.kind}}
    return {
        "store": str(graph.path),
        **sizes_of(summary.n, summary.m, directed=graph.source.directed),
        **{name: getattr(summary, name) for name in COUNTS},
        "source": tuples.describe(),
        "statistics": summary.histogram.summary(),
        "directed": graph.source.directed,
        **({"first_id": first} if first else {}),
        **kinds,
    }, summary.histogram


def describe(store: Store) -> dict[str, Any]:
    """Return the facts of the manifest, and figures derived from them (JSON values)."""
    manifest = store.manifest
    shapes = [shape_of(store, index) for index in range(manifest.parts)]
    subgraphs = [subgraph_bytes(shape) for shape in shapes]
    per_part: list[dict[str, Any]] = [
        {
            "part": record.index,
            "vertices": shape.local,
            "active": record.active,
            "edges": shape.stored_edges,
            **{f"{name}_edges": record.edges[name] for name in SUBGRAPHS},
            "subgraph_bytes": dict(size),
            "array_bytes": record.array_bytes,
            "file_bytes": record.file_bytes,
        }
        for record, shape, size in zip(manifest.records, shapes, subgraphs, strict=True)
    ]
    parts, n, m = manifest.parts, manifest.n, manifest.m
    total = sum(sum(sizes.values()) for sizes in subgraphs)
    sides = 1 + manifest.directed
    formula = sides * formula_bytes(
        n, m, parts, manifest.delegates, manifest.edges["nn"]
    )
    return {
        "store": str(store.folder),
        **sizes_of(n, m, directed=manifest.directed),
        **{k: v for k, v in manifest.summary().items() if k not in {"n", "m"}},
        "directed": manifest.directed,
        "shares": {name: count / max(m, 1) for name, count in manifest.edges.items()},
        "bytes": {
            "formula": formula,
            "subgraphs": total,
            "subgraphs_over_formula": total / max(formula, 1),
            "arrays": sum(record.array_bytes for record in manifest.records),
            "files": sum(record.file_bytes for record in manifest.records)
            + (0 if manifest.ids is None else manifest.ids.file_bytes)
            + (store.folder / MANIFEST_NAME).stat().st_size,
        },
        "per_part": per_part,
    }


def graph_text(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the lines about the graph, by name."""
    source = {k: v for k, v in values["source"].items() if k not in UNTOLD}
    words = [source.pop("family"), *([shown(source)] if source else [])]
    if words[0] == "file":
        words = [f"{source['name']} ({source['format']})"]
    statistics = values["statistics"]
    degrees = [
        f"{name} {shown(statistics[name])}" for name in STATISTICS if name in statistics
    ]
    out = {
        "store": values["store"],
        "made of": ", ".join(words).replace("_", " "),
        **graph_fields(values, directed=values["directed"]),
    }
    if "ids" in values:
        out["ids"] = f"{KINDS[values['ids']['kind']]}, as in the file"
    elif first := values.get("first_id"):
        out["ids"] = f"whole numbers from {first}, as in the file"
    if degrees:
        out["degrees"] = ", ".join(degrees)
    if "isolated" in statistics:
        out["without edges"] = f"{statistics['isolated']} vertices"
    if values.get("attributes"):
        kinds = ((k, x["kind"]) for k, x in values["attributes"].items())
        out["edges have"] = ", ".join(f"{name} ({kind})" for name, kind in kinds)
    if size := values.get("bytes"):
        out["size"] = (
            f"{readable(size['files'])} on disk, {readable(size['arrays'])} loaded"
        )
    return out


def print_storage(values: Mapping[str, Any]) -> None:
    """Print the storage of a graph as text: its facts, its subgraphs, its parts."""
    sizes, per_part = dict(values["bytes"]), values["per_part"]
    share = sizes.pop("subgraphs_over_formula")
    facts = {x: values[x] for x in (*STORED, *SEPARATED) if x in values}
    facts["bytes"] = {name: readable(size) for name, size in sizes.items()}
    click.echo()
    print_fields(facts | {"subgraphs over formula": share})
    rows = []
    for name in SUBGRAPHS:
        total = sum(part["subgraph_bytes"][name] for part in per_part)
        cells = (shown(values[name]), f"{values['shares'][name]:.1%}", readable(total))
        rows.append([name, *cells])
    click.echo()
    print_table(("subgraph", "edges", "of m", "bytes in memory"), rows, right=True)
    click.echo()
    heads = [name.replace("_", " ") for name in EACH]
    print_table(heads, [[part[name] for name in EACH] for part in per_part])


def run(asked: InfoOptions) -> None:
    """Run the command."""
    terminal, degrees, plot = open_terminal(asked), asked.degrees, asked.plot
    place = terminal.stdout_place(plot)
    if plot is not None:
        if not degrees:
            raise UsageError("--plot draws the figures of --degrees; give both")
        plots.check_target(plot)
    threads = share_of_cores(terminal.world)
    with ExitStack() as stack:
        graph = open_graph(terminal, stack, asked.graph, asked, threads)
        store = graph.source.store
        if store is not None:
            values, histogram = describe(store), None
        else:
            values, histogram = describe_file(terminal, graph)
        if degrees:
            if store is not None and terminal.world.rank == 0:
                histogram = degrees_of(store, terminal)
            values |= survey(terminal, graph.source, histogram)
    if plot is not None and terminal.world.rank == 0:
        plots.draw_survey(values, plot)

    def show() -> None:
        print_fields(graph_text(values))
        if degrees:
            print_survey(values)
        if asked.verbose and store is not None:
            print_storage(values)

    terminal.result(values, show, place)


SWEEPS = 4  # searches, each from the vertex that the last one found farthest
SHOWN_COMPONENTS = 5


def survey(
    terminal: Terminal, source: Source, histogram: DegreeHistogram | None
) -> dict[str, Any]:
    """Return degrees, components and a bound of the diameter (collective, JSON values).

    histogram: the degrees, on rank 0

    For components, one rank reads all parts, one at a time, and holds 24 bytes per
    vertex.  Searches run on all ranks.
    """
    figures: dict[str, Any] = {}
    if histogram is not None and terminal.world.rank == 0:
        values = (histogram.degrees.tolist(), histogram.counts.tolist())
        degrees = dict(zip(("degree", "vertices"), values, strict=True))
        figures = {"degrees": degrees, **components_of(source.any_tuples())}
    figures = terminal.world.broadcast(figures)
    begin = figures.pop("begin")
    return {**figures, "diameter": swept(terminal, source, begin)}


def components_of(tuples: TupleSource) -> dict[str, Any]:
    """Return the sizes of components, and a vertex of the largest to search from."""
    label = component_labels(tuples.n, lambda: tuples.chunks(0, tuples.tuples))
    counts = np.bincount(label)  # by label, 0 for vertices that are none
    sizes = np.sort(counts[counts > 0])
    size, count = np.unique(sizes, return_counts=True)
    begin = int(counts.argmax()) if len(label) else -1
    return {
        "components": {
            "count": len(sizes),
            "largest": sizes[::-1][:SHOWN_COMPONENTS].tolist(),
            "size": size.tolist(),
            "components": count.tolist(),
        },
        "begin": begin,
    }


def swept(terminal: Terminal, source: Source, begin: int) -> dict[str, int]:
    """Return the largest distance that searches back and forth find (collective).

    It is a lower bound of the diameter of the largest component.  Source: Magnien,
    Latapy, Habib 2009 (double sweep).
    """
    if begin < 0:
        return {"at_least": 0, "searches": 0}
    options = SearchOptions(engine="auto", parents=False)
    session = terminal.prepare(source, options).open()
    at, farthest, searches = begin, -1, 0
    while searches < SWEEPS:
        outcome = session.search(at)
        searches += 1
        level = gather_on_first(session.world, outcome.to_numpy()[0])
        place = [0, 0]
        if level is not None and terminal.world.rank == 0:
            place = [int(level.argmax()), int(level.max())]
        at, depth = terminal.world.broadcast(place)
        if depth <= farthest:
            break
        farthest = depth
    session.close()
    return {"at_least": farthest, "searches": searches}


def degree_rows(degrees: Mapping[str, list[int]], n: int) -> list[list[Any]]:
    """Return rows (degrees, vertices, share), one for each octave of degrees."""
    degree = np.array(degrees["degree"], dtype=np.int64)
    octave = np.frexp(degree)[1]  # 0 for 0, k for 2^(k-1) … 2^k - 1
    rows = []
    for k in np.unique(octave).tolist():
        low, high = (1 << k) >> 1, max((1 << k) - 1, 0)
        name = shown(low) if low == high else f"{shown(low)} - {shown(high)}"
        vertices = int(np.array(degrees["vertices"])[octave == k].sum())
        rows.append([name, vertices, f"{vertices / n:.1%}"])
    return rows


def print_survey(values: Mapping[str, Any]) -> None:
    """Print the figures of ``survey`` as text."""
    n = sum(values["degrees"]["vertices"])
    click.echo()
    print_table(("degree", "vertices", "share"), degree_rows(values["degrees"], n))
    components, diameter = values["components"], values["diameter"]
    click.echo()
    click.echo(
        f"{counted(components['count'], 'component')}, the largest of "
        f"{shown(components['largest'])} vertices"
    )
    click.echo(
        f"diameter of the largest at least {shown(diameter['at_least'])}, by "
        f"{diameter['searches']} searches back and forth"
    )
