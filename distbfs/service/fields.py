"""Fields of requests: the values that each takes, for checks and for JSON schemas.

A kind of values depends on the graph that is served and on the limits of its service.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

from distbfs.errors import ServiceError, legible
from distbfs.service.limits import MAX_ID_TEXT, Limits
from distbfs.service.vertex_names import Names

SHOWN = 40  # characters of a wrong value in a message
NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}(?!\n)$")
SMALLEST_DEADLINE = 1e-3
WHOLE = 1 << 63
REQUIRED = object()  # the default of a field that has none


class Served(NamedTuple):
    """What values depend on: the names of a graph's vertices, and limits."""

    names: Names
    limits: Limits


def shown(value: object) -> str:
    """Return a JSON value for a message, cut and escaped."""
    return legible(json.dumps(value), SHOWN)


def refused(name: str, value: object, allowed: str) -> ServiceError:
    """Return the refusal of a field's value."""
    return ServiceError("bad_request", f"{name} is {shown(value)}; allowed: {allowed}")


class Kind(ABC):
    """The values that a field takes."""

    @abstractmethod
    def schema(self, served: Served) -> dict[str, Any]:
        """Return the JSON schema of values."""

    @abstractmethod
    def read(self, name: str, value: Any, served: Served) -> Any:
        """Check a JSON value of a field, and return what the service works with.

        Raises ServiceError that names the field, and what is allowed.
        """

    def example(self, value: Any, names: Names) -> Any:  # noqa: ARG002
        """Return a value of an example, which counts vertices from 0, as JSON."""
        return value


class Vertex(Kind):
    """A vertex by its name; read as its number."""

    def schema(self, served: Served) -> dict[str, Any]:
        """Return the range of numbers, or any number or text where ids are kept."""
        first, n = served.names.first, served.names.n
        if first is None:
            return {"type": ["integer", "string"]}
        return {"type": "integer", "minimum": first, "maximum": first + n - 1}

    def read(self, name: str, value: Any, served: Served) -> int:
        """Return the number of a vertex."""
        vertex = served.names.find(value)
        if vertex < 0:
            raise refused(name, value, served.names.allowed)
        return vertex

    def example(self, value: Any, names: Names) -> Any:
        """Return the name of a vertex, the last one for numbers that there are not."""
        return names.of(min(value, names.n - 1))


class Vertices(Kind):
    """A list of vertices by their names, at least one; read as their numbers."""

    def schema(self, served: Served) -> dict[str, Any]:
        """Return the schema of a list."""
        each, most = Vertex().schema(served), served.limits.ids
        return {"type": "array", "items": each, "minItems": 1, "maxItems": most}

    def read(self, name: str, value: Any, served: Served) -> list[int]:
        """Return the numbers of vertices."""
        names, most = served.names, served.limits.ids
        if not isinstance(value, list) or not value:
            raise refused(name, value, "a list of vertices, at least one")
        if len(value) > most:
            text = f"{name} has {len(value)} vertices; allowed: 1 to {most}"
            raise ServiceError("too_large", text)
        vertices = names.find_all(value)
        if min(vertices) < 0:
            place = next(k for k, vertex in enumerate(vertices) if vertex < 0)
            raise refused(f"{name}[{place}]", value[place], names.allowed)
        return vertices

    def example(self, value: Any, names: Names) -> Any:
        """Return the names of vertices."""
        return [Vertex().example(vertex, names) for vertex in value]


@dataclass(frozen=True)
class OneOf(Kind):
    """One of some values of one type."""

    values: tuple[Any, ...]

    def schema(self, served: Served) -> dict[str, Any]:  # noqa: ARG002
        """Return the values."""
        kind = "boolean" if self.values[0] is True else "string"
        return {"type": kind, "enum": list(self.values)}

    def read(self, name: str, value: Any, served: Served) -> Any:  # noqa: ARG002
        """Return the value."""
        if not isinstance(value, type(self.values[0])) or value not in self.values:
            words = (x if isinstance(x, str) else json.dumps(x) for x in self.values)
            raise refused(name, value, ", ".join(words))
        return value


class FileName(Kind):
    """The name of a file, without its ending."""

    def schema(self, served: Served) -> dict[str, Any]:  # noqa: ARG002
        """Return the pattern of names."""
        return {"type": "string", "pattern": NAME.pattern}

    def read(self, name: str, value: Any, served: Served) -> str:  # noqa: ARG002
        """Return the name."""
        if not isinstance(value, str) or not NAME.match(value):
            characters = "a-z A-Z 0-9 and, but for the first, . _ -"
            raise refused(name, value, f"up to 100 of {characters}")
        return value


class Seconds(Kind):
    """A time that an answer may take."""

    def schema(self, served: Served) -> dict[str, Any]:
        """Return the range."""
        most = served.limits.deadline
        return {"type": "number", "minimum": SMALLEST_DEADLINE, "maximum": most}

    def read(self, name: str, value: Any, served: Served) -> float:
        """Return the seconds."""
        most = served.limits.deadline
        if type(value) not in (int, float) or not SMALLEST_DEADLINE <= value <= most:
            raise refused(name, value, f"{SMALLEST_DEADLINE} to {most} seconds")
        return float(value)


class RequestId(Kind):
    """What the answer repeats: an integer of 64 bits, a short text, or null."""

    def schema(self, served: Served) -> dict[str, Any]:  # noqa: ARG002
        """Return the schema of each of these."""
        number = {"type": "integer", "minimum": -WHOLE, "maximum": WHOLE - 1}
        text = {"type": "string", "maxLength": MAX_ID_TEXT}
        return {"oneOf": [number, text, {"type": "null"}]}

    def read(self, name: str, value: Any, served: Served) -> Any:  # noqa: ARG002
        """Return the id."""
        if type(value) is float and value.is_integer():
            value = int(value)
        if value is None or (type(value) is int and -WHOLE <= value < WHOLE):
            return value
        if isinstance(value, str) and len(value) <= MAX_ID_TEXT:
            return value
        text = f"a 64-bit integer or a text of up to {MAX_ID_TEXT} characters"
        raise refused(name, value, text)


class Field(NamedTuple):
    """A field of requests.

    text: what it is; default: REQUIRED if there is none; read_with: values of
    ``result`` with which the service reads it, () for any
    """

    name: str
    kind: Kind
    text: str
    default: Any = REQUIRED
    read_with: tuple[str, ...] = ()
