"""Checks of requests: from bytes to a model of ``operations``, or one clear line."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any, NoReturn

import msgspec
from msgspec import UNSET, Meta, UnsetType, inspect

from distbfs.errors import ServiceError, legible
from distbfs.service.limits import MAX_ID_TEXT, Limits
from distbfs.service.operations import (
    OPERATIONS,
    SMALLEST_DEADLINE,
    WHOLE,
    AnyRequest,
    Distances,
    Id,
    Reachable,
    Request,
    Seconds,
    Start,
    Vertex,
    Vertices,
    WithResults,
    fields_of,
)
from distbfs.service.vertex_names import Names

SHOWN = 40  # characters of a wrong value in a message
NAMES = ", ".join(OPERATIONS)
REFUSALS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class WrongFieldError(ValueError):
    """What is wrong with a field: a text that goes on after its name."""

    def __init__(self, text: str, code: str = "bad_request") -> None:
        super().__init__(text)
        self.code = code


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


DECODER = json.JSONDecoder(parse_constant=_no_constant)


def _shown(value: object) -> str:
    try:
        text = json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        text = type(value).__name__
    return legible(text, SHOWN)


def _is(value: object, allowed: str) -> WrongFieldError:
    return WrongFieldError(f" is {_shown(value)}; allowed: {allowed}")


def allowed(kind: inspect.Type) -> str:
    """Return the allowed values of a field's type, "" where the type does not say."""
    if isinstance(kind, inspect.Metadata):
        return str((kind.extra or {}).get("allowed") or allowed(kind.type))
    if isinstance(kind, inspect.UnionType):
        return allowed(kind.types[0])
    if isinstance(kind, inspect.LiteralType):
        return ", ".join(map(str, kind.values))
    return "true, false" if isinstance(kind, inspect.BoolType) else ""


def read_json(data: bytes) -> Any:
    """Parse JSON text; ServiceError that says why, where it is invalid."""
    try:
        value = DECODER.decode(data.decode("utf-8"))
        json.dumps(value, ensure_ascii=False).encode()
        return value
    except UnicodeEncodeError as error:
        raise ServiceError("bad_request", "not Unicode: a lone surrogate") from error
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else error
        raise ServiceError("bad_request", f"not JSON: {why}") from error


def unknown_op(name: object) -> ServiceError:
    """Return the refusal of an operation that there is not."""
    return ServiceError("unknown_op", f"op{_is(name, NAMES)}")


def too_long(limits: Limits) -> ServiceError:
    """Return the refusal of a request of too many bytes."""
    return ServiceError("too_large", f"a request has up to {limits.line} bytes")


class Checker:
    """Checks requests; converts vertex names to numbers."""

    def __init__(self, names: Names, limits: Limits) -> None:
        self.names, self.limits = names, limits
        self._kinds: dict[Any, Callable[[Any], Any]] = {
            Vertex: self._vertex,
            Vertices: self._vertices,
            Seconds: self._seconds,
        }
        self._any = msgspec.json.Decoder(AnyRequest, dec_hook=self.convert)
        self._plain = self._any
        if names.first == 0:
            kind = _of_numbers(names.n, limits.ids)
            self._plain = msgspec.json.Decoder(kind, dec_hook=self.convert)
        self._one = {
            op: msgspec.json.Decoder(model, dec_hook=self.convert)
            for op, model in OPERATIONS.items()
        }

    def check(self, data: bytes, op: str | None = None) -> Request:
        """Parse a request; ServiceError, with its id, for an invalid one.

        op: the operation, if the request does not name it itself
        """
        try:
            request = self._decode(data, op)
            if request.id is not None:
                request.id = check_id(request.id)
            if isinstance(request, Start):
                _check_start(request, request.source, request.sources)
            if isinstance(request, WithResults):
                _check_result(request)
        except (*REFUSALS, WrongFieldError) as error:
            raise self._refusal(error, data, op) from error
        return request

    def _decode(self, data: bytes, op: str | None) -> Request:
        """Parse a request; a small one with numbers takes no calls of ``convert``."""
        if op is None:
            try:
                small: Request = self._plain.decode(data)
                return small
            except REFUSALS:
                pass  # another operation, 3.0 for 3, or an error to be told
        request: Request = (self._one[op] if op else self._any).decode(data)
        return request

    def convert(self, kind: type, value: Any) -> Any:
        """Return the value of a field from JSON."""
        return self._kinds[kind](value)

    def _refusal(self, error: Exception, data: bytes, op: str | None) -> ServiceError:
        """Return the refusal of a request: its id, which field, and what is allowed."""
        value = read_json(data)
        if not isinstance(value, dict):
            return ServiceError("bad_request", "a request is a JSON object")
        try:
            number = check_id(value.get("id"))
        except WrongFieldError as wrong:
            return ServiceError("bad_request", str(wrong))
        code, text = self._why(error, value, op)
        return ServiceError(code, text, number)

    def _why(
        self, error: Exception, value: dict[str, Any], op: str | None
    ) -> tuple[str, str]:
        """Return (code, what is wrong with the fields of a request)."""
        name = value.get("op", op)
        if op and name != op:
            return "bad_request", f"op{_is(name, op)}"
        if name is None:
            return "bad_request", f"a request lacks 'op'; allowed: {NAMES}"
        if not isinstance(name, str) or name not in OPERATIONS:
            refused = unknown_op(name)
            return refused.code, str(refused)
        return self._field(error, value, name)

    def _field(
        self, error: Exception, value: dict[str, Any], name: str
    ) -> tuple[str, str]:
        """Return (code, which field of an operation is wrong, and what is allowed)."""
        fields = fields_of(name)
        unknown = [key for key in value if key not in fields and key != "op"]
        missing = [x for x in fields.values() if x.required and x.name not in value]
        key = str(error).rpartition(" - at `$.")[2].rstrip("`")
        code, text = "bad_request", f"not JSON: {error}"
        if unknown:
            names = ", ".join(("op", *fields))
            text = f"{name} has no field {_shown(unknown[0])}; allowed: {names}"
        elif missing:
            text = f"{name} lacks '{missing[0].name}'{_text(missing[0])}"
        elif isinstance(error, WrongFieldError):
            code, text = error.code, str(error)
        elif isinstance(cause := error.__cause__, WrongFieldError):
            code, text = cause.code, f"{key}{cause}"
        elif key in fields and (values := allowed(fields[key].type)):
            text = f"{key}{_is(value[key], values)}"
        return code, text

    def _vertex(self, value: object) -> Vertex:
        vertex = self.names.find(value)
        if vertex < 0:
            raise _is(value, self.names.allowed)
        return Vertex(vertex)

    def _vertices(self, value: object) -> Vertices:
        if not isinstance(value, list) or not value:
            raise _is(value, "a list of vertices, at least one")
        most = self.limits.ids
        if len(value) > most:
            text = f" has {len(value)} vertices; allowed: 1 to {most}"
            raise WrongFieldError(text, "too_large")
        vertices = Vertices(self.names.find_all(value))
        if min(vertices) < 0:
            place = next(k for k, vertex in enumerate(vertices) if vertex < 0)
            raise WrongFieldError(f"[{place}]{_is(value[place], self.names.allowed)}")
        return vertices

    def _seconds(self, value: Any) -> Seconds:
        most = self.limits.deadline
        if type(value) not in (int, float) or not SMALLEST_DEADLINE <= value <= most:
            raise _is(value, f"{SMALLEST_DEADLINE} to {most} seconds")
        return Seconds(value)


def _of_numbers(n: int, most: int) -> Any:
    """Return a type of small requests whose vertices are integers, 0 to n - 1.

    msgspec checks these itself; most: vertices of a list
    """
    vertex = Annotated[int, Meta(ge=0, lt=n)]
    some = Annotated[list[vertex], Meta(min_length=1, max_length=most)]
    fields: list[Any] = [
        ("source", vertex | UnsetType, UNSET),
        ("sources", some | UnsetType, UNSET),
        ("targets", some),
    ]
    config: Any = {"kw_only": True, "forbid_unknown_fields": True}
    models = [
        msgspec.defstruct(one.__name__, fields, bases=(one,), tag=one.op, **config)
        for one in (Distances, Reachable)
    ]
    return models[0] | models[1]


def _text(field: inspect.Field) -> str:
    """Return the description of a field after a colon, "" if it has none."""
    kind = field.type
    known = isinstance(kind, inspect.Metadata) and kind.extra_json_schema
    return f": {known['description']}" if known else ""


def check_id(value: object) -> Id:
    """Return the id of a request; WrongFieldError for what cannot be one."""
    if type(value) is float and value.is_integer():
        value = int(value)
    if value is None or (type(value) is int and -WHOLE <= value < WHOLE):
        return value
    if isinstance(value, str) and len(value) <= MAX_ID_TEXT:
        return value
    text = f"a 64-bit integer or a text of up to {MAX_ID_TEXT} characters"
    raise WrongFieldError(f"id{_is(value, text)}")


def _check_start(request: Request, source: object, several: object) -> None:
    """Refuse a search from nowhere, and one from a source and a set."""
    if source is not UNSET and several is not UNSET:
        raise WrongFieldError(f"{request.op} takes 'source' or 'sources', not both")
    if source is several:
        raise WrongFieldError(f"{request.op} lacks 'source': where the search begins")


def _check_result(request: WithResults) -> None:
    """Refuse the name of a file that is not written."""
    if request.name is not UNSET and request.result in ("inline", "summary"):
        raise WrongFieldError(f"result {request.result} writes no file to name")
