"""Fields of requests: the allowed values of each, for checks and for JSON schemas.

For some fields, they depend on the graph that is served and the limits of the service.
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
    """What allowed values depend on: the names of the vertices, and the limits."""

    names: Names
    limits: Limits


def shown(value: object) -> str:
    """Return a JSON value as text for a message, shortened and escaped."""
    return legible(json.dumps(value), SHOWN)


def refused(
    name: str, value: object, allowed: str, code: str = "bad_request"
) -> ServiceError:
    """Return the refusal of a field's value."""
    return ServiceError(code, f"{name} is {shown(value)}; allowed: {allowed}")


@dataclass(frozen=True)
class Kind:
    """The allowed values of a field: their type for msgspec, and in words."""

    type: Any
    allowed: str

    def of(self, served: Served) -> Kind:  # noqa: ARG002
        """Return the kind with the limits and names of a service filled in."""
        return self

    def read(self, name: str, value: Any, served: Served) -> Any:
        """Check a JSON value of a field, and return the value that the service uses.

        Raises ServiceError, which names the field and the allowed values.
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
        """Return the kind with its range in seconds."""
        least, most = SMALLEST_DEADLINE, served.limits.deadline
        number = Annotated[float, Meta(ge=least, le=most)]
        return Kind(number, f"{least} to {most} seconds")


@dataclass(frozen=True)
class Vertex(Kind):
    """A vertex by its name; ``read`` returns its number."""

    def of(self, served: Served) -> Kind:
        """Return a kind for a range of numbers, or for any id where ids are kept."""
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
    """A list of at least one vertex by name; ``read`` returns their numbers."""

    def of(self, served: Served) -> Kind:
        """Return the kind with the longest allowed list."""
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
    """Return an example with names for numbers of vertices, cut to the last vertex."""
    if isinstance(example, list):
        return [named(vertex, names) for vertex in example]
    return names.of(min(example, names.n - 1)) if isinstance(example, int) else example


def one_of(*values: str) -> Kind:
    """Return a kind that allows some texts."""
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

    text: description of the field
    default: value if it is left out; UNSET for none, REQUIRED if requests must have it
    example: value in examples, with vertices counted from 0; None to leave it out
    inline: whether it concerns levels and parents, which a summary does not have
    """

    name: str
    kind: Kind
    text: str
    default: Any = UNSET
    example: Any = None
    inline: bool = False

    def declared(self, served: Served) -> tuple[str, Any, Any]:
        """Return the field's name, type and default, for ``msgspec.defstruct``."""
        kind: Any = Annotated[self.kind.of(served).type, Meta(description=self.text)]
        kind = kind | UnsetType if self.default is UNSET else kind
        return self.name, kind, self.default
