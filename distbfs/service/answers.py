"""Answers to requests, and the parts of a search's result that they need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

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
from distbfs.service.rank_calls import Searched, Step
from distbfs.service.vertex_names import Names

Source = int | tuple[int, ...]  # a vertex, or those of a set


@dataclass
class Answers:
    """Makes answers from what the steps after a search return.

    parents: whether searches return parents
    metrics: counts the traversed edges
    """

    names: Names
    limits: Limits
    metrics: Metrics
    parents: bool

    def make(self, request: Request, searches: Sequence[Searched]) -> Answer:
        """Return the answer to a request, from the searches of its sources.

        Raises ServiceError ``too_large``.
        """
        made: Answer = getattr(self, f"_{request.op}")(request, *searches)
        return made

    def check(self, request: Request) -> None:
        """Refuse a request for parents that are not kept or for too large an answer."""
        if request.op == "path" and not self.parents:
            text = "the service runs with --no-parents; ask for distances"
            raise ServiceError("bad_request", text)
        if self._whole(request) and (why := self._too_many(request)):
            text = f"{why}; ask for distances, or the result 'summary'"
            raise ServiceError("too_large", text)

    def steps(self, request: Request) -> list[Step]:
        """Return the steps that a request needs after each of its searches."""
        if request.op == "path":
            return [["path", request.target, self.limits.inline]]
        if request.op == "all_paths":
            return [["all_paths", request.target, self.limits.inline // 2]]
        if not request.operation.with_results:
            return [["at", request.targets]]
        steps: list[Step] = [["counts"], ["traversed"]]
        if self._whole(request):
            steps.append(["block", self._with_parents(request)])
        return steps

    def _with_parents(self, request: Request) -> bool:
        return bool(request.parents and self.parents)

    @staticmethod
    def _whole(request: Request) -> bool:
        """Return whether the answer to a request has the levels of all vertices."""
        return request.operation.with_results and request.result == "inline"

    def _too_many(self, request: Request) -> str:
        """Return, in words, the limit that an answer exceeds; "" if it exceeds none.

        Names of vertices are text in any case.
        """
        rows = len(request.sources) if request.op == "multi_bfs" else 1
        parents = rows * self._with_parents(request)
        named = self.names.first is None
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

    def _fields(
        self, request: Request, source: Source, searched: Searched
    ) -> dict[str, Any]:
        """Return the values of the fields of ``Search``."""
        seconds, (counts, nedge, *block) = searched
        self.metrics.traversed(nedge, seconds)
        fields: dict[str, Any] = {
            "reached": sum(counts),
            "depth": len(counts) - 1,
            "nedge": nedge,
            "seconds": seconds,
            "TEPS": nedge / seconds if seconds else 0.0,
            "levels": counts,
        }
        if isinstance(source, tuple):
            fields["sources"] = self.names.each(np.array(source))
        else:
            fields["source"] = self.names.of(source)
        self.metrics.last = Search(**fields)
        as_arrays = request.arrays == "npy"
        for level, parent in block:
            fields["level"] = level if as_arrays else level.tolist()
            if parent is not None:
                keep = as_arrays and self.names.first is not None
                each = self.names.numbers if keep else self.names.each
                fields["parent"] = each(parent)
        return fields

    def _ids(self, request: Request) -> dict[str, Any]:
        """Return the field that names the vertices of the levels, {} if from 0 on."""
        if not self._whole(request):
            return {}
        if self.names.first is None:
            return {"ids": self.names.all()}
        return {"first_id": self.names.first} if self.names.first else {}

    def _bfs(self, request: Request, searched: Searched) -> Answer:
        fields = self._fields(request, request.starts[0], searched)
        return BfsAnswer(**fields, **self._ids(request))

    def _multi_bfs(self, request: Request, *searches: Searched) -> Answer:
        each = map(partial(self._fields, request), request.starts, searches)
        made = [Search(**fields) for fields in each]
        return MultiBfsAnswer(searches=made, **self._ids(request))

    def _distances(self, request: Request, searched: Searched) -> Answer:
        levels = searched[1][0]
        if request.arrays == "npy":
            levels = np.array(levels, dtype=np.int32)
        return DistancesAnswer(distances=levels)

    def _reachable(self, _: Request, searched: Searched) -> Answer:
        return ReachableAnswer(reachable=[level >= 0 for level in searched[1][0]])

    def _path(self, _: Request, searched: Searched) -> Answer:
        distance, path = searched[1][0]
        most = self.limits.inline
        if path is None and distance >= 0:
            text = f"the path has {distance + 1} vertices; allowed: {most}"
            raise ServiceError("too_large", f"{text}; ask for distances")
        if path is not None:
            path = self.names.each(np.array(path, dtype=np.int64))
        return PathAnswer(distance=distance, path=path)

    def _all_paths(self, _: Request, searched: Searched) -> Answer:
        distance, number, pairs = searched[1][0]
        most = self.limits.inline
        if pairs is None and distance >= 0:
            text = f"the paths have more than {most // 2} edges, which are more than"
            raise ServiceError("too_large", f"{text} the allowed {most} values")
        edges = None
        if pairs is not None:
            names = self.names.each(np.array(pairs, dtype=np.int64).ravel())
            edges = [names[k : k + 2] for k in range(0, len(names), 2)]
        return AllPathsAnswer(distance=distance, count=number, edges=edges)
