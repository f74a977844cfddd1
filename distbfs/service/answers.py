"""What requests need from a search, and the answers that are made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from msgspec import UNSET

from distbfs.errors import ServiceError
from distbfs.service.limits import Limits
from distbfs.service.metrics import Metrics
from distbfs.service.operations import (
    AllPaths,
    AllPathsAnswer,
    Answer,
    BfsAnswer,
    DistancesAnswer,
    MultiBfs,
    MultiBfsAnswer,
    Path,
    PathAnswer,
    ReachableAnswer,
    Request,
    Search,
    ToTargets,
    WithResults,
)
from distbfs.service.rank_calls import Step
from distbfs.service.results import ResultFolder
from distbfs.service.vertex_names import Names
from distbfs.types import Array

NO_FOLDER = "start the service with --results, or ask for the result 'summary'"

Source = int | tuple[int, ...]  # a vertex, or those of a set
Row = tuple[Array, Array | None]  # level int32 [n] and parent int64 [n] by id
Searched = tuple[float, list[Any]]  # seconds, and the values of the steps


class Answers:
    """Makes answers of the values that steps after a search give.

    parents: whether searches give them, where asked; results: folder of bulk results,
    None for none; metrics: where traversed edges are counted
    """

    def __init__(
        self,
        names: Names,
        limits: Limits,
        metrics: Metrics,
        results: ResultFolder | None,
        *,
        parents: bool,
    ) -> None:
        self.names = names
        self.limits = limits
        self.metrics = metrics
        self._results = results
        self._parents = parents
        self._made: dict[str, Callable[[Any, float, Sequence[Any]], Answer]] = {
            "bfs": self._bfs,
            "distances": self._distances,
            "path": self._path,
            "all_paths": self._all_paths,
            "reachable": self._reachable,
        }

    def make(self, request: Request, seconds: float, values: Sequence[Any]) -> Answer:
        """Return the answer to a request of one search.

        seconds: of the search; values: of the request's steps. Raises ServiceError:
        ``too_large``, ``bad_request``.
        """
        return self._made[request.op](request, seconds, values)

    def make_many(
        self, request: MultiBfs, search: Callable[[int], Searched]
    ) -> MultiBfsAnswer:
        """Return the answer to a request of several searches, made in turn.

        search: searches from a source, with the request's steps. Raises as ``make``.
        """
        where = self._where(request)
        answer = MultiBfsAnswer(searches=[])

        def rows() -> Iterator[Row]:
            for source in request.sources:
                seconds, (counts, nedge, *blocks) = search(source)
                counted = self._search(source, seconds, counts, nedge)
                answer.searches.append(Search(**counted))
                yield from blocks

        if where == "file":
            answer.files = self._file(request, request.sources, rows())
            return answer
        for level, parent in rows():
            self._inline(request, answer.searches[-1], level, parent)
        if where == "inline":
            self._tell_ids(answer)
        return answer

    def check(self, request: Request) -> None:
        """Refuse, before any search, a result that has no valid destination."""
        if not isinstance(request, WithResults):
            return
        where = self._where(request)
        if where == "file":
            if self._results is None:
                raise ServiceError("bad_request", f"no folder for results; {NO_FOLDER}")
            parents = request.parents and self._parents
            self._results.check_name(
                request.format, request.name or None, parents=parents
            )
        if where == "inline" and (why := self._too_many(request)):
            raise ServiceError(
                "too_large", f"{why}; use the result 'file' or 'summary'"
            )

    def steps(self, request: Request) -> tuple[list[Step], bool]:
        """Return a request's steps after a search, and whether it needs parents."""
        if isinstance(request, Path):
            return [["path", request.target, self.limits.inline]], True
        if isinstance(request, AllPaths):
            return [["all_paths", request.target, self.limits.inline // 2]], False
        if isinstance(request, WithResults):
            steps: list[Step] = [["counts"], ["traversed"]]
            if self._where(request) == "summary":
                return steps, False
            return [*steps, ["block"]], request.parents and self._parents
        return [["at", targets_of(request)]], False

    def _where(self, request: WithResults) -> str:
        """Choose where a result goes: inline, file or summary; raise for others."""
        if request.result != "auto":
            return request.result
        small = not self._too_many(request)
        return "inline" if small and request.name is UNSET else "file"

    def _too_many(self, request: WithResults) -> str:
        """Return the limit that an inline result exceeds, in words; "" if none.

        Names of vertices are text in any case.
        """
        rows = len(request.sources) if isinstance(request, MultiBfs) else 1
        parents = rows * (request.parents and self._parents)
        named = self.names.ids is not None
        text = self.names.n * (named * (parents + 1))
        arrays = self.names.n * (rows + (not named) * parents)
        if request.arrays == "json":
            text, arrays = text + arrays, 0
        most = self.limits
        if text > most.inline:
            return f"{text} values inline; allowed: {most.inline}"
        if arrays > most.binary:
            return f"{arrays} values in arrays; allowed: {most.binary}"
        return ""

    def _search(
        self, source: Source, seconds: float, counts: list[int], nedge: int
    ) -> dict[str, Any]:
        """Return the counts of a search: fields of ``Search``."""
        self.metrics.traversed(nedge, seconds)
        begun: dict[str, Any] = {}
        if isinstance(source, tuple):
            begun["sources"] = self.names.each(np.array(source))
        else:
            begun["source"] = self.names.of(source)
        summary = {
            **begun,
            "reached": sum(counts),
            "depth": len(counts) - 1,
            "nedge": nedge,
            "seconds": seconds,
            "TEPS": nedge / seconds if seconds else 0.0,
            "levels": counts,
        }
        self.metrics.last = Search(**summary)
        return summary

    def _distances(self, request: Any, _: float, values: Sequence[Any]) -> Answer:
        levels = values[0]
        if request.arrays == "npy":
            levels = np.array(levels, dtype=np.int32)
        return DistancesAnswer(distances=levels)

    def _reachable(self, _: Request, __: float, values: Sequence[Any]) -> Answer:
        return ReachableAnswer(reachable=[level >= 0 for level in values[0]])

    def _path(self, _: Request, __: float, values: Sequence[Any]) -> Answer:
        [(distance, path)] = values
        if path is None and distance >= 0:
            raise ServiceError(
                "too_large",
                f"the path has {distance + 1} vertices; allowed: {self.limits.inline}",
            )
        if path is not None:
            path = self.names.each(np.array(path, dtype=np.int64))
        return PathAnswer(distance=distance, path=path)

    def _all_paths(self, _: Request, __: float, values: Sequence[Any]) -> Answer:
        [(distance, number, pairs)] = values
        if pairs is None and distance >= 0:
            raise ServiceError(
                "too_large",
                f"the paths have more than {self.limits.inline // 2} edges, which are "
                f"more than the allowed {self.limits.inline} values",
            )
        edges = None
        if pairs is not None:
            names = self.names.each(np.array(pairs, dtype=np.int64).ravel())
            edges = [names[k : k + 2] for k in range(0, len(names), 2)]
        return AllPathsAnswer(distance=distance, count=number, edges=edges)

    def _bfs(self, request: Any, seconds: float, values: Sequence[Any]) -> Answer:
        counts, nedge, *blocks = values
        answer = BfsAnswer(**self._search(request.start, seconds, counts, nedge))
        if not blocks:
            return answer
        level, parent = blocks[0]
        if not request.parents:
            parent = None
        if self._where(request) == "inline":
            self._inline(request, answer, level, parent)
            self._tell_ids(answer)
        else:
            answer.files = self._file(request, [request.start], [(level, parent)])
        return answer

    def _inline(
        self, request: WithResults, search: Search, level: Array, parent: Array | None
    ) -> None:
        """Put levels and parents into an answer, as arrays or as lists."""
        as_arrays = request.arrays == "npy"
        search.level = level if as_arrays else level.tolist()
        if parent is not None:
            keep = as_arrays and self.names.ids is None
            each = self.names.numbers if keep else self.names.each
            search.parent = each(parent)

    def _tell_ids(self, answer: BfsAnswer | MultiBfsAnswer) -> None:
        """Say which vertices inline results are of, where not from 0 on."""
        if self.names.ids is not None:
            answer.ids = self.names.all()
        elif self.names.first:
            answer.first_id = self.names.first

    def _file(
        self, request: WithResults, sources: Sequence[Source], rows: Iterable[Row]
    ) -> list[str]:
        """Write rows of (level, parent); return the paths of the files."""
        if self._results is None:
            raise ServiceError("bad_request", f"no folder for results; {NO_FOLDER}")
        stem = request.op
        first, *others = sources
        if not (others or isinstance(first, tuple) or self.names.kind == "text"):
            stem = f"bfs-{self.names.of(first)}"
        made = self._results.new(
            request.format,
            [x if isinstance(x, int) else np.array(x) for x in sources],
            self.names.n,
            name=request.name or None,
            stem=stem,
            parents=request.parents and self._parents,
        )
        with made as (file, paths):
            for row, (level, parent) in enumerate(rows):
                file.write(row, level, parent)
        return paths


def targets_of(request: Request) -> list[int]:
    """Return the vertices whose levels a request asks for, [] for others."""
    return request.targets if isinstance(request, ToTargets) else []
