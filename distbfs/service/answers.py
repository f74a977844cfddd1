"""What requests need from a search, and the answers that are made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from distbfs.errors import ServiceError
from distbfs.service.limits import Limits
from distbfs.service.metrics import Metrics
from distbfs.service.operations import (
    AllPathsAnswer,
    Answer,
    BfsAnswer,
    DistancesAnswer,
    MultiBfsAnswer,
    PathAnswer,
    ReachableAnswer,
    Request,
    Search,
)
from distbfs.service.rank_calls import Step
from distbfs.service.results import ResultFolder
from distbfs.service.vertex_names import Names
from distbfs.types import Array

Source = int | tuple[int, ...]  # a vertex, or those of a set
Row = tuple[Array, Array | None]  # level int32 [n] and parent int64 [n] by id
Searched = tuple[float, list[Any]]  # seconds, and the values of the steps


@dataclass
class Answers:
    """Makes answers of the values that steps after a search give.

    parents: whether searches give them, where asked; results: folder of bulk results,
    None for none; metrics: where traversed edges are counted
    """

    names: Names
    limits: Limits
    metrics: Metrics
    results: ResultFolder | None
    parents: bool

    def make(self, request: Request, seconds: float, values: Sequence[Any]) -> Answer:
        """Return the answer to a request of one search.

        seconds: of the search; values: of the request's steps. Raises ServiceError:
        ``too_large``, ``bad_request``.
        """
        made = getattr(self, f"_{request.op}")(request, seconds, values)
        return cast("Answer", made)

    def make_many(
        self, request: Request, search: Callable[[int], Searched]
    ) -> MultiBfsAnswer:
        """Return the answer to a request of several searches, made in turn.

        search: searches from a source, with the request's steps. Raises as ``make``.
        """
        answer = MultiBfsAnswer(searches=[])

        def rows() -> Iterator[Row]:
            for source in request.sources:
                seconds, (counts, nedge, *blocks) = search(source)
                counted = self._search(source, seconds, counts, nedge)
                answer.searches.append(Search(**counted))
                yield from blocks

        self._place(request, answer, request.sources, rows(), answer.searches)
        return answer

    def check(self, request: Request) -> None:
        """Refuse, before any search, a result that has no valid destination."""
        if not request.operation.with_results:
            return
        where = self._where(request)
        if where == "file":
            parents = self._with_parents(request)
            name = request.name or None
            self._folder().check_name(request.format, name, parents=parents)
        if where == "inline" and (why := self._too_many(request)):
            text = f"{why}; use the result 'file' or 'summary'"
            raise ServiceError("too_large", text)

    def _folder(self) -> ResultFolder:
        """Return the folder of results; ServiceError where there is none."""
        if self.results is None:
            text = "no folder for results; start the service with --results, or ask "
            raise ServiceError("bad_request", f"{text}for the result 'summary'")
        return self.results

    def steps(self, request: Request) -> tuple[list[Step], bool]:
        """Return a request's steps after a search, and whether it needs parents."""
        if request.op == "path":
            return [["path", request.target, self.limits.inline]], True
        if request.op == "all_paths":
            return [["all_paths", request.target, self.limits.inline // 2]], False
        if not request.operation.with_results:
            return [["at", request.targets]], False
        steps: list[Step] = [["counts"], ["traversed"]]
        if self._where(request) == "summary":
            return steps, False
        return [*steps, ["block"]], self._with_parents(request)

    def _with_parents(self, request: Request) -> bool:
        return bool(request.parents and self.parents)

    def _where(self, request: Request) -> str:
        """Choose where a result goes: inline, file or summary; raise for others."""
        if request.result != "auto":
            return str(request.result)
        small = not self._too_many(request)
        return "inline" if small and not request.name else "file"

    def _too_many(self, request: Request) -> str:
        """Return the limit that an inline result exceeds, in words; "" if none.

        Names of vertices are text in any case.
        """
        rows = len(request.sources) if request.op == "multi_bfs" else 1
        parents = rows * self._with_parents(request)
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
        summary: dict[str, Any] = {
            "reached": sum(counts),
            "depth": len(counts) - 1,
            "nedge": nedge,
            "seconds": seconds,
            "TEPS": nedge / seconds if seconds else 0.0,
            "levels": counts,
        }
        if isinstance(source, tuple):
            summary["sources"] = self.names.each(np.array(source))
        else:
            summary["source"] = self.names.of(source)
        self.metrics.last = Search(**summary)
        return summary

    def _distances(self, request: Request, _: float, values: Sequence[Any]) -> Answer:
        levels = values[0]
        if request.arrays == "npy":
            levels = np.array(levels, dtype=np.int32)
        return DistancesAnswer(distances=levels)

    def _reachable(self, _: Request, __: float, values: Sequence[Any]) -> Answer:
        return ReachableAnswer(reachable=[level >= 0 for level in values[0]])

    def _path(self, _: Request, __: float, values: Sequence[Any]) -> Answer:
        [(distance, path)] = values
        most = self.limits.inline
        if path is None and distance >= 0:
            text = f"the path has {distance + 1} vertices; allowed: {most}"
            raise ServiceError("too_large", f"{text}; ask for distances")
        if path is not None:
            path = self.names.each(np.array(path, dtype=np.int64))
        return PathAnswer(distance=distance, path=path)

    def _all_paths(self, _: Request, __: float, values: Sequence[Any]) -> Answer:
        [(distance, number, pairs)] = values
        most = self.limits.inline
        if pairs is None and distance >= 0:
            text = f"the paths have more than {most // 2} edges, which are more than"
            raise ServiceError("too_large", f"{text} the allowed {most} values")
        edges = None
        if pairs is not None:
            names = self.names.each(np.array(pairs, dtype=np.int64).ravel())
            edges = [names[k : k + 2] for k in range(0, len(names), 2)]
        return AllPathsAnswer(distance=distance, count=number, edges=edges)

    def _bfs(self, request: Request, seconds: float, values: Sequence[Any]) -> Answer:
        counts, nedge, *blocks = values
        source: Any = request.start
        answer = BfsAnswer(**self._search(source, seconds, counts, nedge))
        wanted = bool(request.parents)
        rows = [(level, parent if wanted else None) for level, parent in blocks]
        self._place(request, answer, [source], rows, [answer])
        return answer

    def _place(
        self,
        request: Request,
        answer: Any,
        sources: Sequence[Source],
        rows: Iterable[Row],
        searches: Sequence[Any],
    ) -> None:
        """Put the (level, parent) of searches where the request wants them.

        searches: their answers, of which each is there when its row comes
        """
        where = self._where(request)
        if where == "file":
            answer.files = self._file(request, sources, rows)
            return
        for row, (level, parent) in enumerate(rows):
            self._inline(request, searches[row], level, parent)
        if where == "inline":
            self._tell_ids(answer)

    def _inline(
        self, request: Request, search: Any, level: Array, parent: Array | None
    ) -> None:
        """Put levels and parents into an answer, as arrays or as lists."""
        as_arrays = request.arrays == "npy"
        search.level = level if as_arrays else level.tolist()
        if parent is not None:
            keep = as_arrays and self.names.ids is None
            each = self.names.numbers if keep else self.names.each
            search.parent = each(parent)

    def _tell_ids(self, answer: Any) -> None:
        """Say which vertices inline results are of, where not from 0 on."""
        if self.names.ids is not None:
            answer.ids = self.names.all()
        elif self.names.first:
            answer.first_id = self.names.first

    def _file(
        self, request: Request, sources: Sequence[Source], rows: Iterable[Row]
    ) -> list[str]:
        """Write rows of (level, parent); return the paths of the files."""
        stem = request.op
        first, *others = sources
        if not (others or isinstance(first, tuple) or self.names.kind == "text"):
            stem = f"bfs-{self.names.of(first)}"
        made = self._folder().new(
            request.format,
            [x if isinstance(x, int) else np.array(x) for x in sources],
            self.names.n,
            name=request.name or None,
            stem=stem,
            parents=self._with_parents(request),
        )
        with made as (file, paths):
            for row, (level, parent) in enumerate(rows):
                file.write(row, level, parent)
        return paths
