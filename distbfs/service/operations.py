"""The operations of a service, each declared once: its fields, an example, its answer.

A request is a JSON object: ``{"id": 7, "op": "path", "source": 0, "target": 3}``.
``"sources": [0, 9]`` instead of ``source`` searches from a set of vertices at once.
``id`` is an integer or a short text that the answer repeats; ``deadline`` is the number
of seconds the answer may take. ``checker`` checks requests against OPERATIONS,
``openapi`` describes them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from distbfs.errors import ServiceError
from distbfs.service.fields import (
    FLAG,
    REQUEST_ID,
    REQUIRED,
    SECONDS,
    VERTEX,
    VERTICES,
    Field,
    Served,
    named,
    one_of,
)
from distbfs.service.limits import Limits
from distbfs.service.vertex_names import Names

Name: TypeAlias = int | str | None  # of a vertex; None: no vertex


def about(text: str, **more: Any) -> Meta:
    """Return the metadata that describes a field."""
    return Meta(description=text, **more)


def array_of(*kinds: str) -> Meta:
    """Return the metadata of an array, which is a list or a NumPy array."""
    return Meta(extra_json_schema={"type": "array", "items": {"type": list(kinds)}})


class Refusal(Struct, kw_only=True):
    """The answer to a request that failed."""

    id: Any = None
    ok: Literal[False] = False
    error: dict[str, str]  # code and message


class Good(Struct, kw_only=True):
    """Common fields of answers to completed requests; unset fields are left out."""

    id: int | str | None = None
    ok: Literal[True] = True


class Search(Struct, kw_only=True):
    """The counts of a search."""

    source: Name | UnsetType = UNSET
    sources: Annotated[list[Name], about("of a set")] | UnsetType = UNSET
    reached: int
    depth: int
    nedge: int
    seconds: float
    TEPS: float
    levels: list[int]


class BfsAnswer(Search, kw_only=True):
    """Counts of a search, and levels and parents if requested."""

    level: Annotated[Any, array_of("integer")] = UNSET
    parent: Annotated[Any, array_of("integer", "string", "null")] = UNSET
    id: int | str | None = None
    ok: Literal[True] = True
    ids: Annotated[list[Name], about("of all vertices")] | UnsetType = UNSET
    first_id: Annotated[int, about("of the first vertex, if not 0")] | UnsetType = UNSET


class DistancesAnswer(Good, kw_only=True):
    """A level for each target, -1 for unreached."""

    distances: Annotated[Any, array_of("integer")]


class PathAnswer(Good, kw_only=True):
    """The hops and vertices of a path; -1 and null if there is none."""

    distance: int
    path: list[Name] | None


class AllPathsAnswer(Good, kw_only=True):
    """Hops, number and edges of all shortest paths; -1, 0 and null if there is none."""

    distance: int
    count: Annotated[int, Meta(ge=0)]
    edges: list[Annotated[list[Name], Meta(min_length=2, max_length=2)]] | None


class HealthAnswer(Good, kw_only=True):
    """The state of the service."""

    state: Literal["ready", "draining", "stuck"]
    why: Annotated[str, about("which rank is stuck")] | UnsetType = UNSET


class StatsAnswer(HealthAnswer, kw_only=True):
    """Counts and times so far, in seconds, and the graph."""

    graph: dict[str, Any]
    queue: int
    running: int
    limits: Limits
    uptime: float
    answers: dict[str, dict[str, int]]
    searches: int
    rate: float
    shared: Annotated[int, about("requests that shared a search with others")]
    batch: Annotated[dict[str, float | None], about("requests of a search")]
    queue_wait: dict[str, float | None]
    search: dict[str, float | None]
    last: Search | None


Answer: TypeAlias = Good | BfsAnswer


def refusal(error: ServiceError) -> Refusal:
    """Return the answer for an error."""
    message = " ".join(str(error).split())
    return Refusal(id=error.id, error={"code": error.code, "message": message})


ID = Field("id", REQUEST_ID, "repeated in the answer", None)
DEADLINE = Field("deadline", SECONDS, "seconds that the answer may take")
SOURCE = Field("source", VERTEX, "the source of the search", example=0)
SET = Field(
    "sources",
    VERTICES,
    "several sources, in place of source; levels count from the nearest",
)
TARGETS = Field("targets", VERTICES, "the vertices to reach", REQUIRED, [1, 2])
TARGET = Field("target", VERTEX, "the last vertex of the path", REQUIRED, 2)
RESULT = Field(
    "result",
    one_of("inline", "summary"),
    "inline: levels and parents as well; summary: counts alone",
    "inline",
    "summary",
)
PARENTS = Field("parents", FLAG, "whether to return parents", True, inline=True)
ARRAYS = Field(
    "arrays",
    one_of("json", "npy"),
    "the format of arrays; npy: each as .npy after the answer",
    "json",
    inline=True,
)
START = (SOURCE, SET)
RESULTS = (RESULT, PARENTS, ARRAYS)


@dataclass(frozen=True, eq=False)
class Operation:
    """An operation: its description, its own fields, and the model of its answers.

    immediate: whether requests are answered without the queue, and have no deadline
    """

    name: str
    text: str
    own: tuple[Field, ...]
    answer: type[Answer]
    immediate: bool = False

    @cached_property
    def fields(self) -> dict[str, Field]:
        """All fields of its requests, by name."""
        common = (ID,) if self.immediate else (ID, DEADLINE)
        return {field.name: field for field in (*common, *self.own)}

    def model(self, served: Served) -> type[Request]:
        """Return the type of its requests to a service."""
        made: Any = msgspec.defstruct(
            self.name,
            [field.declared(served) for field in self.fields.values()],
            bases=(Request,),
            namespace={"operation": self, "op": self.name},
            tag=self.name,
            tag_field="op",
            kw_only=True,
            forbid_unknown_fields=True,
        )
        return made

    def example_for(self, names: Names) -> dict[str, Any]:
        """Return an example of a request for a graph, without ``op``."""
        if not names.n:
            return {}
        return {
            field.name: named(field.example, names)
            for field in self.own
            if field.example is not None
        }

    def advice(self, names: Names) -> str:
        """Return an example of a request, for messages."""
        example = {"op": self.name, **self.example_for(names)}
        return f"send, for example, {json.dumps(example)}"


class Request(Struct):
    """A checked request; the fields of its operation are attributes."""

    operation: ClassVar[Operation]
    op: ClassVar[str]

    @property
    def start(self) -> int | tuple[int, ...]:
        """The source of the search: a vertex, or the ascending vertices of a set.

        A set of one vertex counts as that vertex.
        """
        if self.source is not UNSET:
            return int(self.source)
        several = tuple(sorted(set(self.sources)))
        return several if len(several) > 1 else several[0]

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


BFS = "Search from a source, or a set."
DISTANCES = "Levels of targets from a source, -1 for unreached."
PATH = "One shortest path, null where there is none."
ALL_PATHS = "All shortest paths: their number and edges, null where there are none."
STATS = "Counts and times so far, and the graph."
HEALTH = "Whether the service answers."
SHUTDOWN = "Answer the queued requests, then end."
OPERATIONS = {
    operation.name: operation
    for operation in (
        Operation("bfs", BFS, (*START, *RESULTS), BfsAnswer),
        Operation("distances", DISTANCES, (*START, TARGETS, ARRAYS), DistancesAnswer),
        Operation("path", PATH, (*START, TARGET), PathAnswer),
        Operation("all_paths", ALL_PATHS, (*START, TARGET), AllPathsAnswer),
        Operation("stats", STATS, (), StatsAnswer, immediate=True),
        Operation("health", HEALTH, (), HealthAnswer, immediate=True),
        Operation("shutdown", SHUTDOWN, (), HealthAnswer, immediate=True),
    )
}
NAMES = ", ".join(OPERATIONS)
