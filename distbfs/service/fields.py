"""Fields of requests: the values that each takes, for checks and for JSON schemas.

The values of some depend on the graph that is served and on the limits of its service.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Meta, UnsetType

from distbfs.errors import ServiceError, legible
from distbfs.service.limits import MAX_ID_TEXT, Limits
from distbfs.service.vertex_names import Names

SHOWN = 40  # characters of a wrong value in a message
SMALLEST_DEADLINE = 1e-3
WHOLE = 1 << 63
REQUIRED = msgspec.NODEFAULT


class Served(NamedTuple):
    """The context of values: the names of a graph's vertices, and limits."""

    names: Names
    limits: Limits


def shown(value: object) -> str:
    """Return a JSON value for a message, cut and escaped."""
    return legible(json.dumps(value), SHOWN)


def refused(
    name: str, value: object, allowed: str, code: str = "bad_request"
) -> ServiceError:
    """Return the refusal of a field's value."""
    return ServiceError(code, f"{name} is {shown(value)}; allowed: {allowed}")


@dataclass(frozen=True)
class Kind:
    """The values that a field takes: their type for msgspec, and in words."""

    type: Any
    allowed: str

    def of(self, served: Served) -> Kind:  # noqa: ARG002
        """Return the kind for a service."""
        return self

    def read(self, name: str, value: Any, served: Served) -> Any:
        """Check a JSON value of a field, and return the value that the service uses.

        Raises ServiceError that names the field, and what is allowed.
        """
        kind = self.of(served)
        if type(value) is float and value.is_integer():
            value = int(value)  # as in JSON
        try:
            return msgspec.convert(value, kind.type)
        except msgspec.ValidationError as error:
            raise refused(name, value, kind.allowed) from error


@dataclass(frozen=True)
class Seconds(Kind):
    """A time that an answer may take, in seconds."""

    def of(self, served: Served) -> Kind:
        """Return the range."""
        least, most = SMALLEST_DEADLINE, served.limits.deadline
        number = Annotated[float, Meta(ge=least, le=most)]
        return Kind(number, f"{least} to {most} seconds")


@dataclass(frozen=True)
class Vertex(Kind):
    """A vertex by its name; read as its number."""

    def of(self, served: Served) -> Kind:
        """Return the range of numbers, or any number or text where ids are kept."""
        names, first = served.names, served.names.first
        if first is None:
            return Kind(int | str, names.allowed)
        number = Annotated[int, Meta(ge=first, le=first + names.n - 1)]
        return Kind(number, names.allowed)

    def read(self, name: str, value: Any, served: Served) -> int:
        """Return the number of a vertex."""
        vertex = served.names.find(value)
        if vertex < 0:
            raise refused(name, value, served.names.allowed)
        return vertex


@dataclass(frozen=True)
class Vertices(Kind):
    """A list of vertices by their names, at least one; read as their numbers."""

    def of(self, served: Served) -> Kind:
        """Return the type of a list."""
        size = Meta(min_length=1, max_length=served.limits.ids)
        each: Any = VERTEX.of(served).type
        several: Any = list[each]
        return Kind(Annotated[several, size], "a list of vertices, at least one")

    def read(self, name: str, value: Any, served: Served) -> list[int]:
        """Return the numbers of vertices."""
        names, most = served.names, served.limits.ids
        if not isinstance(value, list) or not value:
            raise refused(name, value, self.of(served).allowed)
        if len(value) > most:
            text = f"{name} has {len(value)} vertices; allowed: 1 to {most}"
            raise ServiceError("too_large", text)
        vertices = names.find_all(value)
        if min(vertices) < 0:
            place = next(k for k, vertex in enumerate(vertices) if vertex < 0)
            raise refused(f"{name}[{place}]", value[place], names.allowed)
        return vertices


def named(example: Any, names: Names) -> Any:
    """Return an example with names of vertices, the last one for larger numbers."""
    if isinstance(example, list):
        return [named(vertex, names) for vertex in example]
    return names.of(min(example, names.n - 1)) if isinstance(example, int) else example


def one_of(*values: str) -> Kind:
    """Return a kind of some texts."""
    return Kind(Literal[values], ", ".join(values))


VERTEX, VERTICES, SECONDS = Vertex(int, ""), Vertices(list, ""), Seconds(float, "")
FLAG = Kind(bool, "true, false")
REQUEST_ID = Kind(
    Annotated[int, Meta(ge=-WHOLE, le=WHOLE - 1)]
    | Annotated[str, Meta(max_length=MAX_ID_TEXT)]
    | None,
    f"a 64-bit integer or a text of up to {MAX_ID_TEXT} characters",
)


class Field(NamedTuple):
    """A field of requests.

    text: its description; default: UNSET for none, REQUIRED where requests must have
    it;
    example: a value for examples, with vertices counted from 0, None to leave it out
    inline: whether it concerns levels and parents, and is not used with a summary
    """

    name: str
    kind: Kind
    text: str
    default: Any = UNSET
    example: Any = None
    inline: bool = False

    def declared(self, served: Served) -> tuple[str, Any, Any]:
        """Return name, type and default, for ``msgspec.defstruct``."""
        kind: Any = Annotated[self.kind.of(served).type, Meta(description=self.text)]
        kind = kind | UnsetType if self.default is UNSET else kind
        return self.name, kind, self.default
