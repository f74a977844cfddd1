"""Answers to requests, and the parts of a search's result that they need."""

from __future__ import annotations

from dataclasses import dataclass
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
    PathAnswer,
    Request,
    Search,
)
from distbfs.service.rank_calls import Step
from distbfs.service.vertex_names import Names


@dataclass
class Answers:
    """Makes answers from what their steps return after a search.

    parents: whether searches return parents
    metrics: counts the traversed edges
    """

    names: Names
    limits: Limits
    metrics: Metrics
    parents: bool

    def make(self, request: Request, value: Any) -> Answer:
        """Return the answer to a request, from the value of its step.

        Raises ServiceError ``too_large``.
        """
        made: Answer = getattr(self, f"_{request.op}")(request, value)
        return made

    def check(self, request: Request) -> None:
        """Refuse a request for parents that are not kept or for too large an answer."""
        if request.op == "path" and not self.parents:
            text = "the service runs with --no-parents; ask for distances"
            raise ServiceError("bad_request", text)
        if request.op == "bfs" and request.result == "inline":
            self._check_size(request)

    def step(self, request: Request) -> Step:
        """Return the step that a request needs after its search."""
        if request.op == "path":
            return "path", request.target, self.limits.inline
        if request.op == "all_paths":
            return "all_paths", request.target, self.limits.inline // 2
        if request.op == "distances":
            return "at", request.targets
        whole = request.result == "inline"
        return "result", whole, whole and self._with_parents(request)

    def _with_parents(self, request: Request) -> bool:
        return bool(request.parents and self.parents)

    def _check_size(self, request: Request) -> None:
        """Refuse a request for too many values; names are text in any case."""
        parents = self._with_parents(request)
        named = self.names.first is None
        text = self.names.n * (named * (parents + 1))
        arrays = self.names.n * (1 + (not named) * parents)
        if request.arrays == "json":
            text, arrays = text + arrays, 0
        for values, most, place in (
            (text, self.limits.inline, "inline"),
            (arrays, self.limits.binary, "in arrays"),
        ):
            if values > most:
                why = f"{values} values {place}; allowed: {most}; ask for distances, or"
                raise ServiceError("too_large", f"{why} the result 'summary'")

    def _bfs(self, request: Request, value: Any) -> Answer:
        seconds, counts, nedge, level, parent = value
        fields: dict[str, Any] = {
            "reached": sum(counts),
            "depth": len(counts) - 1,
            "nedge": nedge,
            "seconds": seconds,
            "TEPS": nedge / seconds if seconds else 0.0,
            "levels": counts,
        }
        start, first = request.start, self.names.first
        if isinstance(start, tuple):
            fields["sources"] = self.names.each(np.array(start))
        else:
            fields["source"] = self.names.of(start)
        self.metrics.traversed(Search(**fields))
        if level is None:
            return BfsAnswer(**fields)
        as_arrays = request.arrays == "npy"
        fields["level"] = level if as_arrays else level.tolist()
        if parent is not None:
            keep = as_arrays and first is not None
            fields["parent"] = (self.names.numbers if keep else self.names.each)(parent)
        if first is None:
            fields["ids"] = self.names.each(np.arange(self.names.n, dtype=np.int64))
        elif first:
            fields["first_id"] = first
        return BfsAnswer(**fields)

    def _distances(self, request: Request, levels: list[int]) -> Answer:
        as_arrays = request.arrays == "npy"
        kept = np.array(levels, dtype=np.int32) if as_arrays else levels
        return DistancesAnswer(distances=kept)

    def _path(self, _: Request, value: Any) -> Answer:
        distance, path = value
        most = self.limits.inline
        if path is None and distance >= 0:
            text = f"the path has {distance + 1} vertices; allowed: {most}"
            raise ServiceError("too_large", f"{text}; ask for distances")
        if path is not None:
            path = self.names.each(np.array(path, dtype=np.int64))
        return PathAnswer(distance=distance, path=path)

    def _all_paths(self, _: Request, value: Any) -> Answer:
        distance, number, pairs = value
        most = self.limits.inline
        if pairs is None and distance >= 0:
            text = f"the paths have more than {most // 2} edges, which are more than"
            raise ServiceError("too_large", f"{text} the allowed {most} values")
        edges = None
        if pairs is not None:
            names = self.names.each(np.array(pairs, dtype=np.int64).ravel())
            edges = [names[k : k + 2] for k in range(0, len(names), 2)]
        return AllPathsAnswer(distance=distance, count=number, edges=edges)
