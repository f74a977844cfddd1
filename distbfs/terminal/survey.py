"""What ``distbfs info --degrees`` finds out of a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
import numpy as np

from distbfs.graph.components import component_labels, component_sizes
from distbfs.graph.degrees import DegreeHistogram, histogram_of
from distbfs.options import SearchOptions
from distbfs.ranks.world import SoloWorld
from distbfs.report.tables import counted, print_table, shown
from distbfs.search.vertices import gather_on_first
from distbfs.store.hdf5 import Store
from distbfs.store.tuples import StoreTuples
from distbfs.terminal.shared import Terminal, prepare_stored

SWEEPS = 4  # searches, each from the vertex that the last one found farthest
SHOWN_COMPONENTS = 5


def survey(terminal: Terminal, store: Store) -> dict[str, Any]:
    """Return degrees, components and a bound of the diameter (collective, JSON values).

    One rank reads all parts, one at a time, for degrees and components, and holds 24
    bytes a vertex; searches run on all ranks.
    """
    figures: dict[str, Any] = {}
    if terminal.world.rank == 0:
        figures = {"degrees": degrees_of(store), **components_of(store)}
    figures = terminal.world.broadcast(figures)
    begin = figures.pop("begin")
    return {**figures, "diameter": swept(terminal, store, begin)}


def degrees_of(store: Store) -> dict[str, list[int]]:
    """Return how many vertices have each degree."""
    parts = range(store.manifest.parts)
    one_by_one = (store.load_part(index).degrees for index in parts)
    histogram: DegreeHistogram = histogram_of(SoloWorld(), one_by_one)
    return {
        "degree": histogram.degrees.tolist(),
        "vertices": histogram.counts.tolist(),
    }


def components_of(store: Store) -> dict[str, Any]:
    """Return the sizes of components, and a vertex of the largest to begin with."""
    tuples = StoreTuples(store)
    label = component_labels(tuples.n, lambda: tuples.chunks(0, tuples.tuples))
    sizes = component_sizes(label)
    size, count = np.unique(sizes, return_counts=True)
    begin = int(np.bincount(label).argmax()) if len(label) else -1
    return {
        "components": {
            "count": len(sizes),
            "largest": sizes[:SHOWN_COMPONENTS].tolist(),
            "size": size.tolist(),
            "components": count.tolist(),
        },
        "begin": begin,
    }


def swept(terminal: Terminal, store: Store, begin: int) -> dict[str, int]:
    """Return the largest distance that searches back and forth find (collective).

    A lower bound of the diameter of the largest component.  Source: Magnien, Latapy,
    Habib 2009 (double sweep).
    """
    if begin < 0:
        return {"at_least": 0, "searches": 0}
    options = SearchOptions(engine="auto", parents=False)
    session = prepare_stored(terminal, store, options).open()
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
    """Return rows (degrees, vertices, share), an octave of degrees each."""
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
    """Print what ``survey`` found, for people."""
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
