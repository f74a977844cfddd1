"""What entries measure with: graphs, roots, engines taking turns, counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import engine_runs
import figures
import many_searches as many
import numpy as np

from distbfs.benchmark.libraries.base import installed, library_session, rows_of
from distbfs.device import cuda
from distbfs.engines.cuda.papers.xbfs.search import PaperSearch
from distbfs.errors import UsageError
from distbfs.formats.tuples import open_tuples
from distbfs.partition.share import Share
from distbfs.ranks.world import SoloWorld
from distbfs.store.hdf5 import open_store
from distbfs.store.tuples import StoreTuples
from distbfs.types import TupleSource
from papers.entries import Row
from papers.graphs import BY_PAPER, Published

PEER_EDGES = 1 << 27  # stored edges of the largest graph that other libraries get


@dataclass
class Bench:
    """Settings of a run, and the graph that is on the device.

    each: seconds for the measurements of a graph; most: vertices, None: as published
    files: graphs that are read, by name; peers: whether other libraries search too
    looked: roots whose searches of parts are looked at; part_engine: of parts
    """

    each: float = 1.0
    roots: int = 8
    sources: int = 1024
    seed: int = 1
    most: int | None = None
    files: Mapping[str, Path] = field(default_factory=dict)
    peers: bool = False
    threads: Sequence[int] = (1, 2, 4, 8, 16)
    looked: int = 2
    world: Any = field(default_factory=SoloWorld)
    part_engine: str = "pan"
    _graph: tuple[str, Share, TupleSource, list[int]] | None = None

    def published(self, paper: str, name: str) -> Published:
        """Return the published facts of a graph."""
        return BY_PAPER[paper][name]

    def source(self, paper: str, name: str) -> TupleSource:
        """Return the tuples of a graph: of its file, else of its generator."""
        path = self.files.get(name)
        if path is not None and path.is_dir():
            return StoreTuples(open_store(path))
        if path is not None:
            return open_tuples(SoloWorld(), path)
        return self.published(paper, name).source(self.most)

    def graph(self, paper: str, name: str) -> tuple[Share, TupleSource]:
        """Return a graph on the device, and its tuples; one is kept."""
        key = f"{paper} {name}"
        if self._graph is None or self._graph[0] != key:
            self._graph = None
            source = self.source(paper, name)
            graph = figures.built(source)
            roots, _ = figures.roots_of(graph, self.roots, self.seed)
            if not roots:
                raise UsageError(f"graph {name}: no vertex has a neighbour")
            self._graph = key, graph, source, roots
        return self._graph[1:3]

    def drop(self) -> None:
        """Let go of the graph."""
        if self._graph is not None:
            self._graph = None
            cuda.release()

    @property
    def starts(self) -> list[int]:
        """Roots of the graph that is kept, ids."""
        assert self._graph is not None
        return self._graph[3]

    @property
    def numbers(self) -> list[int]:
        """The same roots by vertex number."""
        assert self._graph is not None
        return figures.numbers_of(self._graph[1], self.starts)

    def about(self, paper: str, name: str) -> Row:
        """Return the fields of a row that describe its graph."""
        graph, _ = self.graph(paper, name)
        return engine_runs.about(graph, name) | {"file": name in self.files}

    def engines(self, paper: str, name: str, ways: Sequence[str]) -> Row:
        """Measure engines (ENGINE/METHOD/DIRECTION:knobs), taking turns, validated.

        ``seconds`` has medians by way, ``runs`` all that is known of each
        """
        graph, source = self.graph(paper, name)
        searches, missing = engine_runs.searches_of(graph, ways)
        done = engine_runs.run(searches, self.starts, self.each, source)
        return self.about(paper, name) | {
            "levels": max(one["levels"] for one in done.values()),
            "seconds": {way: one["median_seconds"] for way, one in done.items()},
            "searches": {way: one["searches"] for way, one in done.items()},
            "missing": missing,
            "runs": done,
        }

    def strategies(self, paper: str, name: str, ways: Mapping[str, Any]) -> Row:
        """Measure searches by number, taking turns: levels alone, without validation.

        ways: by name, the options of a ``PaperSearch``, or a search
        """
        graph, _ = self.graph(paper, name)
        searches = {
            way: PaperSearch(graph, parents=False, **made)
            if isinstance(made, dict)
            else made
            for way, made in ways.items()
        }
        done = engine_runs.run(searches, self.numbers, self.each)
        return self.about(paper, name) | {
            "seconds": {way: one["median_seconds"] for way, one in done.items()},
            "searches": {way: one["searches"] for way, one in done.items()},
        }

    def rivals(self, paper: str, name: str) -> Row:
        """Return median seconds of other libraries, where they are asked for."""
        graph, source = self.graph(paper, name)
        if not self.peers or graph.m > PEER_EDGES:
            return {}
        rows, seconds = rows_of(source), {}
        for peer in installed():
            session = library_session(SoloWorld(), peer, rows)
            taken = [session.search(root).seconds for root in self.starts[:3]]
            seconds[peer] = float(np.median(taken))
            session.close()
        return {"peers": seconds}

    def many(
        self, paper: str, name: str, ways: Mapping[str, tuple[str, int | str]]
    ) -> Row:
        """Measure many searches at once by methods of engine xbfs; joules by NVML.

        ways: by name, (method, T or None); edge-parallel comes after the others and is
        cut off where it takes longer than the slowest of these.
        """
        graph, _ = self.graph(paper, name)
        sources = many.sources_of(graph, self.sources, self.seed)
        edges, deepest = many.traversed(graph, sources)
        rows: Row = {}
        for way, (method, least) in sorted(
            ways.items(), key=lambda item: item[1][0] == "edge-parallel"
        ):
            slowest = max((row["seconds"] for row in rows.values()), default=0.0)
            rows[way] = many.measure_method(
                *(graph, sources, method, self.each, deepest, edges, least),
                enough=1.2 * slowest,
            )
        about = {"sources": len(sources), "edges": edges, "deepest": deepest}
        return self.about(paper, name) | about | {"methods": rows}
