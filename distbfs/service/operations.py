"""The operations of a service, their fields, and checks of requests.

A request is a JSON object: ``{"id": 7, "op": "path", "source": 0, "target": 3}``.
``"sources": [0, 9]`` instead of ``source`` searches from a set of vertices at once.
``id`` is an integer or a short text that the answer repeats; ``deadline`` is the number
of seconds the answer may take. The same table yields the description of the HTTP
service.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

from distbfs.errors import ServiceError
from distbfs.service.limits import MAX_ID_TEXT, Limits
from distbfs.service.vertex_names import Names

Kind = Literal["vertex", "vertices", "choice", "flag", "name", "seconds"]
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
NAMED = re.compile(NAME)
SHOWN = 40  # characters of a wrong value in a message
SMALLEST_DEADLINE = 1e-3


@dataclass(frozen=True)
class Field:
    """One field of a request; optional with a ``default``, which may be None."""

    kind: Kind
    text: str
    required: bool = False
    choices: tuple[str, ...] = ()
    default: str | bool | None = None


DEADLINE = Field("seconds", "that the answer may take")


@dataclass(frozen=True)
class Operation:
    """One operation; ``immediate`` ones are answered without the queue.

    accepted: all fields of a request, including those common to all operations
    """

    text: str
    fields: Mapping[str, Field] = field(default_factory=dict)
    immediate: bool = False
    accepted: Mapping[str, Field] = field(init=False)

    def __post_init__(self) -> None:
        accepted = {**self.fields, "deadline": DEADLINE}
        object.__setattr__(self, "accepted", accepted)

    @property
    def takes_sets(self) -> bool:
        """Whether ``sources`` may replace ``source``."""
        return "source" in self.fields


START = {
    "source": Field("vertex", "where the search begins", required=True),
    "sources": Field("vertices", "instead of it: those of a set, the nearest counts"),
}
TARGETS = Field("vertices", "vertices that are asked for", required=True)
RESULTS = {
    "result": Field(
        "choice",
        "where levels and parents go; auto: inline where they are few, else a file",
        choices=("auto", "inline", "file", "summary"),
        default="auto",
    ),
    "format": Field(
        "choice", "of a result file", choices=("hdf5", "npy"), default="hdf5"
    ),
    "name": Field("name", "of a result file, without its ending"),
    "parents": Field("flag", "whether parents are wanted", default=True),
}
OPERATIONS: dict[str, Operation] = {
    "bfs": Operation("Search from a source, or a set.", {**START, **RESULTS}),
    "distances": Operation(
        "Levels of targets from a source, -1 where it does not reach.",
        {**START, "targets": TARGETS},
    ),
    "path": Operation(
        "One shortest path, null where there is none.",
        {
            **START,
            "target": Field("vertex", "where the path ends", required=True),
        },
    ),
    "all_paths": Operation(
        "All shortest paths: their number and edges, null where there are none.",
        {
            **START,
            "target": Field("vertex", "where the paths end", required=True),
        },
    ),
    "reachable": Operation(
        "Whether a source reaches targets.", {**START, "targets": TARGETS}
    ),
    "multi_bfs": Operation(
        "Search from several sources.",
        {
            "sources": Field("vertices", "where searches begin", required=True),
            **RESULTS,
        },
    ),
    "stats": Operation("Counts and times so far, and the graph.", immediate=True),
    "health": Operation("Whether the service answers.", immediate=True),
    "shutdown": Operation("Answer what is queued, then end.", immediate=True),
}


@dataclass(frozen=True)
class Request:
    """A checked request; ``values`` has every field of its operation.

    For a set, its ``source`` is a tuple of vertices, and there are no ``sources``.
    """

    id: int | str | None
    op: str
    values: dict[str, Any]
    deadline: float | None = None


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


DECODER = json.JSONDecoder(parse_constant=_no_constant)


def _shown(value: object) -> str:
    try:
        text = json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        text = type(value).__name__
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."


class Checker:
    """Checks requests; converts vertex names to numbers."""

    def __init__(self, names: Names, limits: Limits) -> None:
        self.names = names
        self.limits = limits

    def line(self, data: bytes) -> Request:
        """Parse a line to a request; ServiceError, with its id, for an invalid one."""
        return self.request(self.decode(data))

    def decode(self, data: bytes) -> Any:
        """Parse JSON text; ServiceError if it is invalid."""
        try:
            value = DECODER.decode(data.decode("utf-8"))
            if b"\\u" in data:  # a lone surrogate cannot be encoded
                json.dumps(value, ensure_ascii=False).encode()
            return value
        except UnicodeEncodeError as error:
            raise ServiceError(
                "bad_request", "not Unicode: a lone surrogate"
            ) from error
        except (ValueError, RecursionError) as error:
            why = "nested too deeply" if isinstance(error, RecursionError) else error
            raise ServiceError("bad_request", f"not JSON: {why}") from error

    def request(self, value: object, op: str | None = None) -> Request:
        """Check a JSON value; return its request.

        op: the operation, if the request does not name it itself
        """
        if not isinstance(value, dict):
            raise ServiceError("bad_request", "a request is a JSON object")
        values = dict(value)
        number = self._id(values.pop("id", None))
        try:
            name = values.pop("op", None) if op is None else op
            return self._checked(number, name, values)
        except ServiceError as error:
            error.id = number
            raise

    def _id(self, value: object) -> int | str | None:
        if type(value) is float and value.is_integer():
            value = int(value)
        if value is None or (type(value) is int and -(1 << 63) <= value < 1 << 63):
            return value
        if isinstance(value, str) and len(value) <= MAX_ID_TEXT:
            return value
        raise ServiceError(
            "bad_request",
            f"id is {_shown(value)}; allowed: a 64-bit integer or a text of up to "
            f"{MAX_ID_TEXT} characters",
        )

    def _checked(
        self, number: int | str | None, name: object, values: dict[str, Any]
    ) -> Request:
        if not isinstance(name, str) or name not in OPERATIONS:
            allowed = ", ".join(OPERATIONS)
            raise ServiceError(
                "unknown_op", f"op is {_shown(name)}; allowed: {allowed}"
            )
        fields = OPERATIONS[name].accepted
        for key in values:
            if key not in fields:
                allowed = ", ".join(("id", "op", *fields))
                raise ServiceError(
                    "bad_request",
                    f"{name} has no field {_shown(key)}; allowed: {allowed}",
                )
        checked: dict[str, Any] = {}
        if OPERATIONS[name].takes_sets:
            fields = {key: item for key, item in fields.items() if key != "sources"}
            if "sources" in values:
                checked["source"] = self._set(name, values)
        for key, item in fields.items():
            if key in checked:
                continue
            if key in values:
                checked[key] = self._value(key, item, values[key])
            elif item.required:
                text = f"{name} lacks '{key}': {item.text}"
                raise ServiceError("bad_request", text)
            else:
                checked[key] = item.default
        deadline = checked.pop("deadline")
        if checked.get("result") in ("inline", "summary") and "name" in values:
            raise ServiceError(
                "bad_request", f"result {checked['result']} writes no file to name"
            )
        return Request(number, name, checked, deadline)

    def _set(self, name: str, values: dict[str, Any]) -> int | tuple[int, ...]:
        """Return the vertices of a set, rising; a single one as such."""
        if "source" in values:
            text = f"{name} takes 'source' or 'sources', not both"
            raise ServiceError("bad_request", text)
        several = sorted(set(self._vertices("sources", values["sources"])))
        return several[0] if len(several) == 1 else tuple(several)

    def _value(self, key: str, item: Field, value: Any) -> Any:
        if item.kind == "vertices":
            return self._vertices(key, value)
        if item.kind == "vertex":
            return self._vertex(key, value)
        if item.kind == "choice" and value not in item.choices:
            self._wrong(key, value, ", ".join(item.choices))
        elif item.kind == "flag" and not isinstance(value, bool):
            self._wrong(key, value, "true, false")
        elif item.kind == "name" and not (
            isinstance(value, str) and NAMED.fullmatch(value)
        ):
            self._wrong(
                key, value, "up to 100 of a-z A-Z 0-9 and, but for the first, . _ -"
            )
        elif item.kind == "seconds":
            self._seconds(key, value)
        return value

    def _wrong(self, key: str, value: object, allowed: str) -> NoReturn:
        raise ServiceError(
            "bad_request", f"{key} is {_shown(value)}; allowed: {allowed}"
        )

    def _vertex(self, key: str, value: object) -> int:
        vertex = self.names.find(value)
        if vertex < 0:
            self._wrong(key, value, self.names.allowed)
        return vertex

    def _vertices(self, key: str, value: object) -> list[int]:
        if not isinstance(value, list) or not value:
            self._wrong(key, value, "a list of vertices, at least one")
        if len(value) > self.limits.ids:
            raise ServiceError(
                "too_large",
                f"{key} has {len(value)} vertices; allowed: 1 to {self.limits.ids}",
            )
        vertices = [*map(self.names.find, value)]
        if min(vertices) < 0:
            place = next(k for k, vertex in enumerate(vertices) if vertex < 0)
            self._wrong(f"{key}[{place}]", value[place], self.names.allowed)
        return vertices

    def _seconds(self, key: str, value: Any) -> None:
        most = self.limits.deadline
        if type(value) not in (int, float) or not SMALLEST_DEADLINE <= value <= most:
            self._wrong(key, value, f"{SMALLEST_DEADLINE} to {most} seconds")


def good(number: int | str | None, values: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a completed request."""
    return {"id": number, "ok": True, **values}


def bad(error: ServiceError) -> dict[str, Any]:
    """Return the answer for an error."""
    what = {"code": error.code, "message": " ".join(str(error).split())}
    return {"id": error.id, "ok": False, "error": what}
