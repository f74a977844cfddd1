"""What the scripts of figures and tables share: graphs, roots, timing, results.

Times come from searches without counters, counts from searches with records.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.benchmark.roots import choose_roots
from distbfs.build.cuda.graph import build
from distbfs.device import cuda
from distbfs.engines.base import DeviceResult
from distbfs.engines.cuda.common.host_results import host_levels
from distbfs.engines.cuda.papers.xbfs.engine import XbfsPaperEngine
from distbfs.engines.cuda.papers.xbfs.search import PaperSearch
from distbfs.errors import DistbfsError
from distbfs.exchange.world import SoloWorld
from distbfs.generate.kronecker import Kronecker
from distbfs.generate.uniform import Uniform
from distbfs.graph.device_graph import ISOLATED, DeviceGraph
from distbfs.multisearch.input_graph import NO_DELEGATES
from distbfs.options import BuildOptions, SearchOptions
from distbfs.report.provenance import provenance
from distbfs.search.holding import Source, graph_on_device
from distbfs.search.open import open_source, source_of
from distbfs.search.session import Session
from distbfs.types import TupleSource

RESULTS = Path(__file__).parent / "results"


def arguments(
    description: str | None, *, roots: int = 16, stores: bool = False
) -> argparse.ArgumentParser:
    """Return a parser with the options that every script has.

    stores: the script may be given stores instead of its own graphs
    """
    parser = argparse.ArgumentParser(
        description=(description or "").partition("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--out", type=Path, default=RESULTS, help="output folder")
    parser.add_argument("--small", action="store_true", help="a quick check")
    parser.add_argument("--roots", type=int, default=roots, help="searches a graph")
    parser.add_argument("--seed", type=int, default=1, help="seed of the roots")
    if stores:
        parser.add_argument(
            "stores", type=Path, nargs="*", help="search these, not the stand-ins"
        )
    return parser


def main(work: Callable[[], None]) -> None:
    """Run a script; an error of the package is one line and its exit code."""
    try:
        if not {"-h", "--help"} & set(sys.argv):
            cuda.cupy()
        work()
    except DistbfsError as error:
        print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


def write(
    folder: Path, name: str, values: dict[str, Any], *, device: bool = True
) -> Path:
    """Write NAME.json whole, with where its figures come from; return its path.

    device: whether a CUDA device was used, to be described too
    """
    folder.mkdir(parents=True, exist_ok=True)
    facts = provenance(sys.argv, device=device) | values
    path = folder / f"{name}.json"
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    partial.replace(path)
    return path


def save(
    folder: Path,
    name: str,
    values: dict[str, Any],
    draw: Callable[[Any], None] | None = None,
    *,
    device: bool = True,
    size: tuple[float, float] = (7, 4),
) -> None:
    """Write NAME.json and, where ``draw(figure)`` is given, NAME.png beside it.

    device: as of ``write``; size: of the figure, inches.  The usual folder, beside the
    source, is for numbers alone.
    """
    path = write(folder, name, values, device=device)
    print(f"wrote {path}")
    if draw is None:
        return
    if folder == RESULTS:
        print(f"no {name}.png: give --out a folder to have it drawn")
        return
    drawn(path.with_suffix(""), draw, size)


def drawn(
    path: Path, draw: Callable[[Any], None], size: tuple[float, float] = (7, 4)
) -> None:
    """Write PATH.png, as ``draw(figure)`` makes it; say so where matplotlib is not.

    size: of the figure, inches
    """
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError:
        print(f"no {path.name}.png: matplotlib is not installed", file=sys.stderr)
        return
    figure = Figure(figsize=size, dpi=150, layout="constrained")
    draw(figure)
    path.parent.mkdir(parents=True, exist_ok=True)
    image = path.parent / f"{path.name}.png"
    figure.savefig(image)
    print(f"wrote {image}")


def stand_in(scale: int, factor: int) -> Callable[[int], TupleSource]:
    """Return what makes a Kronecker graph, of a scale that is lower by some."""
    return lambda less: Kronecker(scale - less, factor)


def scattered(n: int, tuples: int) -> Callable[[int], TupleSource]:
    """Return what makes a uniform graph, 2^less times smaller."""
    return lambda less: Uniform(n >> less, tuples >> less)


# Graphs as large as those of Table 1 of the XBFS paper, by its abbreviations: Kronecker
# of the nearest scale and edge factor for the skewed ones, uniform for the two whose
# degrees are even.
STAND_INS: dict[str, Callable[[int], TupleSource]] = {
    "DB": stand_in(22, 3),
    "DP": scattered(4_000_150, 8_649_016),
    "EW": stand_in(24, 16),
    "FR": stand_in(26, 11),
    "LJ": stand_in(22, 8),
    "OR": stand_in(22, 28),
    "TR": stand_in(25, 4),
    "US": scattered(3_774_768, 16_518_947),
    "WK": stand_in(24, 10),
    "WL": stand_in(24, 23),
}
SMALLER = 8  # --small: 2^SMALLER times smaller


def graphs(args: argparse.Namespace) -> Iterator[tuple[str, DeviceGraph]]:
    """Yield the graphs of a figure one after another: stand-ins, or given stores."""
    for path in args.stores:
        cuda.release()
        yield path.name, stored(path)
    if args.stores:
        return
    for name, make in STAND_INS.items():
        yield name, built(make(SMALLER if args.small else 0))


def stored(path: Path) -> DeviceGraph:
    """Return the graph of a store."""
    return graph_on_device(source_of(path, SoloWorld(), None, None), "xbfs")


def over_graphs(
    args: argparse.Namespace,
    measure: Callable[[DeviceGraph, list[int]], dict[str, Any]],
) -> list[dict[str, Any]]:
    """Measure every graph; return one dict each.

    measure: takes a graph and the roots by vertex number
    """
    rows = []
    for name, graph in graphs(args):
        roots, _ = roots_of(graph, args.roots, args.seed)
        row = {
            "graph": name,
            "source": graph.source,
            "n": graph.n,
            "active": graph.active,
            "m": graph.m,
            "roots": len(roots),
        }
        rows.append(row | measure(graph, numbers_of(graph, roots)))
        print(f"{name}: n {graph.n}, m {graph.m}", flush=True)
        del graph
    return rows


def bars(
    axes: Any, names: Sequence[str], series: dict[str, list[float]], label: str
) -> None:
    """Draw groups of bars, one group a name."""
    axes.set_axisbelow(True)
    axes.grid(axis="y", alpha=0.3)
    width = 0.8 / len(series)
    for k, (title, values) in enumerate(series.items()):
        at = [x + (k - (len(series) - 1) / 2) * width for x in range(len(names))]
        axes.bar(at, values, width, label=title)
    finish(axes, names, label)


def stacked(
    axes: Any, names: Sequence[str], series: dict[str, list[float]], label: str
) -> None:
    """Draw stacks of bars, one stack a name."""
    base = np.zeros(len(names))
    for title, values in series.items():
        axes.bar(range(len(names)), values, 0.7, bottom=base, label=title)
        base += values
    finish(axes, names, label)


def finish(axes: Any, names: Sequence[str], label: str) -> None:
    """Name the groups of bars and the axis; show what the colours mean."""
    axes.set_xticks(range(len(names)), names)
    axes.set_ylabel(label)
    legend_above(axes, 4)


def legend_above(axes: Any, columns: int) -> None:
    """Show what the colours mean, above the axes."""
    place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
    axes.legend(fontsize=8, ncols=columns, frameon=False, **place)


def column(rows: Sequence[dict[str, Any]], *keys: str) -> list[Any]:
    """Return one value of each row, keys one inside the other."""
    values = []
    for row in rows:
        value: Any = row
        for key in keys:
            value = value[key]
        values.append(value)
    return values


def roots_of(graph: DeviceGraph, count: int, seed: int) -> tuple[list[int], int]:
    """Return roots in the largest component, and how many others were passed over.

    The candidates are those of Graph500; the largest component is the one that a
    candidate is found in that has more than half of the vertices with edges, or the
    largest of 16 candidates.
    """
    numbers = graph.numbers

    def connected(ids: Any) -> Any:
        return (numbers[cuda.cupy().asarray(ids)] != ISOLATED).get()

    options = SearchOptions(engine="xbfs-paper", parents=False)
    search = XbfsPaperEngine(options).on_graph(graph)
    candidates = choose_roots(graph.n, 2 * count + 16, seed, connected)
    largest, inside = 0, None
    for root in candidates[:16].tolist():
        reached = host_levels(search.search(root).level) >= 0
        size = int(reached.sum())
        if size > largest:
            largest, inside = size, reached
        if 2 * size > graph.active:
            break
    if inside is None:
        return [], 0
    there = inside[candidates]
    roots = candidates[there][:count].tolist()
    upto = int(np.flatnonzero(there)[len(roots) - 1]) + 1
    return roots, upto - len(roots)


def host_sessions(
    source: TupleSource, ways: Mapping[Any, SearchOptions]
) -> dict[Any, Session]:
    """Return a session of each way, by threads, over one graph without delegates."""
    build_options = BuildOptions(threshold=NO_DELEGATES)
    made = Source(source.n, 1, tuples=source, build=build_options)
    sessions: dict[Any, Session] = {}
    for name, options in ways.items():
        held = [session.held for session in sessions.values()]
        sessions[name] = open_source(SoloWorld(), made, options, held=held)
    return sessions


def by_id(graph: DeviceGraph, result: DeviceResult) -> tuple[Any, Any]:
    """Return (level, parent) by id, new CuPy arrays, from a result by number."""
    cp = cuda.cupy()
    level = cp.full(graph.n, -1, result.level.dtype)
    level[graph.vertices] = result.level
    parent = cp.full(graph.n, -1, np.int32)
    ids = graph.vertices[cp.maximum(result.parent, 0)].astype(np.int32)
    parent[graph.vertices] = cp.where(result.parent < 0, np.int32(-1), ids)
    return level, parent


def paper_seconds(
    searches: Mapping[str, PaperSearch], numbers: Sequence[int], repeats: int = 3
) -> dict[str, float]:
    """Return the median seconds of each search, which alternate, over all roots.

    numbers: roots by vertex number; a root counts by its shortest repeat
    """
    times: dict[str, list[float]] = {name: [] for name in searches}
    for number in [numbers[0], *numbers]:
        taken: dict[str, list[float]] = {name: [] for name in searches}
        for _ in range(repeats):
            for name, search in searches.items():
                taken[name].append(search.search(number).seconds)
        for name, seconds in taken.items():
            times[name].append(min(seconds))
    return {name: statistics.median(x[1:]) for name, x in times.items()}


def shares(search: PaperSearch, numbers: Sequence[int]) -> dict[str, float]:
    """Return the share of time of each kind of level, over all roots.

    Of searches with counters, by the device's clock.
    """
    spent: dict[str, float] = {}
    for number in numbers:
        for record in search.search(number, records=True).records:
            kind = record["direction"]
            spent[kind] = spent.get(kind, 0.0) + record["seconds"]
    total = sum(spent.values())
    return {kind: seconds / total for kind, seconds in spent.items()}


def numbers_of(graph: DeviceGraph, roots: Iterable[int]) -> list[int]:
    """Return the vertex numbers of ids."""
    return [int(graph.numbers[root]) for root in roots]


def built(source: TupleSource) -> DeviceGraph:
    """Return the graph of a source, with what was free given back before."""
    cuda.release()
    return build(source)
