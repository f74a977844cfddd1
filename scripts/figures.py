"""Shared by the scripts of figures and tables: graphs, roots, timing, results.

Times come from searches without counters, counts from searches with records.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.benchmark.roots import choose_roots
from distbfs.build.cuda.graph import build
from distbfs.device import cuda
from distbfs.engines.base import WholeResult
from distbfs.engines.cuda.common.host_results import host_levels
from distbfs.engines.cuda.papers.xbfs.engine import XbfsPaperEngine
from distbfs.errors import DistbfsError
from distbfs.graph.device_graph import ISOLATED
from distbfs.options import BuildOptions, SearchOptions
from distbfs.partition.share import Share
from distbfs.ranks.world import SoloWorld
from distbfs.report.provenance import provenance
from distbfs.search.holding import Source
from distbfs.search.open import open_source
from distbfs.search.session import Session
from distbfs.store.whole import NO_DELEGATES
from distbfs.types import TupleSource

RESULTS = Path(__file__).parent / "results"


def arguments(description: str | None, *, roots: int = 16) -> argparse.ArgumentParser:
    """Return a parser with the options of every script."""
    parser = argparse.ArgumentParser(
        description=(description or "").partition("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--out", type=Path, default=RESULTS, help="output folder")
    parser.add_argument("--small", action="store_true", help="a quick check")
    parser.add_argument("--roots", type=int, default=roots, help="searches a graph")
    parser.add_argument("--seed", type=int, default=1, help="seed of the roots")
    return parser


def main(work: Callable[[], None], *, device: bool = True) -> None:
    """Run a script; an error of the package is one line and its exit code."""
    try:
        if device and not {"-h", "--help"} & set(sys.argv):
            cuda.cupy()
        work()
    except DistbfsError as error:
        print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


def write(
    folder: Path, name: str, values: dict[str, Any], *, device: bool = True
) -> Path:
    """Write NAME.json atomically, with the origin of its figures; return its path.

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

    device: as in ``write``; size: of the figure, inches.  The usual folder, beside the
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


def roots_of(graph: Share, count: int, seed: int) -> tuple[list[int], int]:
    """Return roots in the largest component, and how many others were skipped.

    The candidates are those of Graph500; the largest component is that of the first
    candidate found in more than half of the vertices with edges, or the largest of 16
    candidates.
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
    """Return a session on threads for each way, over one graph without delegates."""
    build_options = BuildOptions(threshold=NO_DELEGATES)
    made = Source(source.n, 1, tuples=source, build=build_options)
    sessions: dict[Any, Session] = {}
    for name, options in ways.items():
        held = [session.held for session in sessions.values()]
        sessions[name] = open_source(SoloWorld(), made, options, held=held)
    return sessions


def by_id(graph: Share, result: WholeResult) -> tuple[Any, Any]:
    """Return (level, parent) by id, new CuPy arrays, from a result by number."""
    cp = cuda.cupy()
    level = cp.full(graph.n, -1, result.level.dtype)
    level[graph.vertices] = result.level
    parent = cp.full(graph.n, -1, np.int32)
    ids = graph.vertices[cp.maximum(result.parent, 0)].astype(np.int32)
    parent[graph.vertices] = cp.where(result.parent < 0, np.int32(-1), ids)
    return level, parent


def numbers_of(graph: Share, roots: Iterable[int]) -> list[int]:
    """Return the vertex numbers of ids."""
    return [int(graph.numbers[root]) for root in roots]


def built(source: TupleSource) -> Share:
    """Build the graph of a source, after freeing unused memory."""
    cuda.release()
    return build(source)
