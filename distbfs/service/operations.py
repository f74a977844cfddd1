"""The operations of a service: models of their requests and answers.

A request is a JSON object: ``{"id": 7, "op": "path", "source": 0, "target": 3}``.
``"sources": [0, 9]`` instead of ``source`` searches from a set of vertices at once.
``id`` is an integer or a short text that the answer repeats; ``deadline`` is the number
of seconds the answer may take. ``checker`` checks requests against these models, and
``openapi`` derives their JSON schemas.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, TypeAlias, get_args

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.inspect import BoolType, Field, Metadata, UnionType, type_info

from distbfs.errors import ServiceError
from distbfs.service.limits import MAX_ID_TEXT, Limits

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}(?!\n)$"
SMALLEST_DEADLINE = 1e-3
WHOLE = 1 << 63
ID_SCHEMA = {
    "oneOf": [
        {"type": "integer", "minimum": -WHOLE, "maximum": WHOLE - 1},
        {"type": "string", "maxLength": MAX_ID_TEXT},
        {"type": "null"},
    ]
}

Id: TypeAlias = int | str | None
Name: TypeAlias = int | str | None  # of a vertex; None: no vertex


class Vertex(int):
    """The number of a vertex; in a request its name."""


class Vertices(list[int]):
    """The numbers of vertices; in a request a list of their names."""


class Seconds(float):
    """A time that an answer may take."""


def about(text: str, **more: Any) -> Meta:
    """Return the description of a field."""
    return Meta(description=text, **more)


def array_of(*kinds: str) -> dict[str, Any]:
    """Return the JSON schema of an array."""
    return {"type": "array", "items": {"type": list(kinds)}}


class Request(Struct, tag_field="op", forbid_unknown_fields=True, kw_only=True):
    """What all requests have; ``immediate`` ones are answered without the queue."""

    immediate: ClassVar[bool] = False
    op: ClassVar[str]  # the name of the operation, as its tag

    id: Annotated[Any, about("repeated in the answer", extra_json_schema=ID_SCHEMA)] = (
        None
    )
    deadline: (
        Annotated[Seconds, about("seconds that the answer may take")] | UnsetType
    ) = UNSET


Source: TypeAlias = Annotated[Vertex, about("where the search begins")] | UnsetType
Set: TypeAlias = (
    Annotated[Vertices, about("instead of it: a set, whose nearest counts")] | UnsetType
)


class Start:
    """What requests for one search have: ``source``, or ``sources`` of a set."""

    __slots__ = ()
    source: Source
    sources: Set

    @property
    def start(self) -> int | tuple[int, ...]:
        """The source, or the vertices of a set, rising; a single one as such."""
        if self.source is not UNSET:
            return self.source
        several = sorted(set(self.sources or ()))
        return several[0] if len(several) == 1 else tuple(several)


Arrays: TypeAlias = Annotated[
    Literal["json", "npy"], about("how arrays come; npy: each as .npy after the answer")
]


class WithResults(Request, kw_only=True):
    """What requests for the levels and parents of all vertices have."""

    result: Annotated[
        Literal["auto", "inline", "file", "summary"],
        about("where levels and parents go; auto: inline where they are few"),
    ] = "auto"
    format: Annotated[Literal["hdf5", "npy"], about("of a result file")] = "hdf5"
    name: (
        Annotated[
            str,
            about(
                "of a result file, without its ending",
                pattern=NAME,
                extra={
                    "allowed": "up to 100 of a-z A-Z 0-9 and, but for the first, . _ -"
                },
            ),
        ]
        | UnsetType
    ) = UNSET
    parents: Annotated[bool, about("whether parents are wanted")] = True
    arrays: Arrays = "json"


class Bfs(WithResults, Start, tag="bfs", kw_only=True):
    """Search from a source, or a set."""

    source: Source = UNSET
    sources: Set = UNSET


class ToTargets(Request, Start, kw_only=True):
    """What small requests have: those that one traversal answers for many sources."""

    source: Source = UNSET
    sources: Set = UNSET
    targets: Annotated[Vertices, about("vertices that are asked for")]


class Distances(ToTargets, tag="distances", kw_only=True):
    """Levels of targets from a source, -1 where it does not reach."""

    arrays: Arrays = "json"


class Reachable(ToTargets, tag="reachable", kw_only=True):
    """Whether a source reaches targets."""


class ToTarget(Request, Start, kw_only=True):
    """What requests for paths have."""

    source: Source = UNSET
    sources: Set = UNSET
    target: Annotated[Vertex, about("where a path ends")]


class Path(ToTarget, tag="path", kw_only=True):
    """One shortest path, null where there is none."""


class AllPaths(ToTarget, tag="all_paths", kw_only=True):
    """All shortest paths: their number and edges, null where there are none."""


class MultiBfs(WithResults, tag="multi_bfs", kw_only=True):
    """Search from several sources."""

    sources: Annotated[Vertices, about("where searches begin")]


class Stats(Request, tag="stats", kw_only=True):
    """Counts and times so far, and the graph."""

    immediate: ClassVar[bool] = True


class Health(Request, tag="health", kw_only=True):
    """Whether the service answers."""

    immediate: ClassVar[bool] = True


class Shutdown(Request, tag="shutdown", kw_only=True):
    """Answer what is queued, then end."""

    immediate: ClassVar[bool] = True


AnyRequest: TypeAlias = (
    Bfs | Distances | Path | AllPaths | Reachable | MultiBfs | Stats | Health | Shutdown
)


def name_of(model: type[Request]) -> str:
    """Return the name of a model's operation."""
    return str(model.__struct_config__.tag)


OPERATIONS: dict[str, type[Request]] = {
    name_of(model): model for model in get_args(AnyRequest)
}
for _op, _model in OPERATIONS.items():
    _model.op = _op


def fields_of(op: str) -> dict[str, Field]:
    """Return the fields of an operation's requests."""
    return {field.name: field for field in type_info(OPERATIONS[op]).fields}  # type: ignore[attr-defined]


def kinds_of(op: str) -> dict[str, type]:
    """Return the type of each field of an operation's requests."""
    kinds = {}
    for name, field in fields_of(op).items():
        kind: Any = field.type
        while isinstance(kind, Metadata | UnionType):
            kind = kind.type if isinstance(kind, Metadata) else kind.types[0]
        kinds[name] = bool if isinstance(kind, BoolType) else getattr(kind, "cls", str)
    return kinds


# answers


class Problem(Struct):
    """Why there is no good answer."""

    code: str
    message: str


class Refusal(Struct, kw_only=True):
    """The answer to a request that failed."""

    id: Any = None
    ok: Literal[False] = False
    error: Problem


class Good(Struct, kw_only=True):
    """What answers to completed requests have; fields without a value are left out."""

    id: Id = None
    ok: Literal[True] = True


# lists, or arrays of NumPy where they are asked for; parents with other names: lists
Levels: TypeAlias = Annotated[Any, Meta(extra_json_schema=array_of("integer"))]
Parents: TypeAlias = Annotated[
    Any, Meta(extra_json_schema=array_of("integer", "string", "null"))
]


class Search(Struct, kw_only=True):
    """One search: counts, and levels and parents where they are inline."""

    source: Name | UnsetType = UNSET
    sources: Annotated[list[Name], about("of a set")] | UnsetType = UNSET
    reached: int
    depth: int
    nedge: int
    seconds: float
    TEPS: float
    levels: list[int]
    level: Levels = UNSET
    parent: Parents = UNSET


Ids: TypeAlias = Annotated[list[Name], about("of all vertices")] | UnsetType
FirstId: TypeAlias = Annotated[int, about("of the first vertex, if not 0")] | UnsetType
Files: TypeAlias = Annotated[list[str], about("paths of results")] | UnsetType


class BfsAnswer(Search, kw_only=True):
    """Counts of a search, and its results inline or in files."""

    id: Id = None
    ok: Literal[True] = True
    ids: Ids = UNSET
    first_id: FirstId = UNSET
    files: Files = UNSET


class MultiBfsAnswer(Good, kw_only=True):
    """Counts of searches, and their results inline or in files."""

    searches: list[Search]
    ids: Ids = UNSET
    first_id: FirstId = UNSET
    files: Files = UNSET


class DistancesAnswer(Good, kw_only=True):
    """A level for each target, -1 for unreached."""

    distances: Levels


class ReachableAnswer(Good, kw_only=True):
    """A flag for each target."""

    reachable: list[bool]


class PathAnswer(Good, kw_only=True):
    """Hops and vertices of a path; -1 and null for none."""

    distance: int
    path: list[Name] | None


class AllPathsAnswer(Good, kw_only=True):
    """Hops, number and edges of all shortest paths; -1, 0 and null for none."""

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


Answer: TypeAlias = Good | BfsAnswer | Refusal
ANSWERS: dict[str, type[Good | BfsAnswer]] = {
    "bfs": BfsAnswer,
    "distances": DistancesAnswer,
    "path": PathAnswer,
    "all_paths": AllPathsAnswer,
    "reachable": ReachableAnswer,
    "multi_bfs": MultiBfsAnswer,
    "stats": StatsAnswer,
    "health": HealthAnswer,
    "shutdown": HealthAnswer,
}


def refusal(error: ServiceError) -> Refusal:
    """Return the answer for an error."""
    message = " ".join(str(error).split())
    return Refusal(id=error.id, error=Problem(error.code, message))
