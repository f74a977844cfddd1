"""Checks of requests: bytes become a request of an operation or a one-line refusal."""

from __future__ import annotations

from typing import Any, Union

import msgspec
from msgspec import UNSET

from distbfs.errors import ServiceError
from distbfs.service.fields import REQUIRED, Served, refused, shown
from distbfs.service.limits import Limits
from distbfs.service.operations import ID, NAMES, OPERATIONS, Operation, Request
from distbfs.service.vertex_names import Names

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def unknown_op(name: object) -> ServiceError:
    """Return the refusal of an unknown operation."""
    return refused("op", name, NAMES, "unknown_op")


def too_long(limits: Limits) -> ServiceError:
    """Return the refusal of a request that has too many bytes."""
    text = f"a request may have up to {limits.line} bytes; send fewer vertices"
    return ServiceError("too_large", text)


class Checker:
    """Checks requests; converts vertex names to numbers."""

    def __init__(self, names: Names, limits: Limits) -> None:
        self._served = served = Served(names, limits)
        self._models = {op: x.model(served) for op, x in OPERATIONS.items()}
        self._plain: dict[str | None, Any] = {}
        if names.first == 0:  # msgspec alone can check such requests
            models = {op: x for op, x in self._models.items() if op != "bfs"}
            either: Any = Union[tuple(models.values())]  # noqa: UP007
            kinds: dict[Any, Any] = {None: either, **models}
            self._plain = {op: msgspec.json.Decoder(kinds[op]) for op in kinds}

    def check(self, data: bytes, op: str | None = None) -> Request:
        """Parse a request; raise ServiceError, with its id, if it is invalid.

        op: name of the operation, if the request itself does not have it
        """
        if op in self._plain:
            try:
                request: Request = self._plain[op].decode(data)
            except UNREADABLE:
                return self._checked(data, op)
            searches = not request.operation.immediate
            if not searches or (request.source is UNSET) != (request.sources is UNSET):
                return request
        return self._checked(data, op)

    def _checked(self, data: bytes, op: str | None) -> Request:
        """Parse a request field by field, whatever its operation."""
        try:
            value = msgspec.json.decode(data)
        except UNREADABLE as error:
            raise self._no_request(f"not JSON: {error}", op) from error
        if not isinstance(value, dict):
            raise self._no_request("a request is a JSON object", op)
        number = value.get("id")
        if number is not None:
            number = value["id"] = ID.kind.read("id", number, self._served)
        try:
            return self._request(self._operation(value, op), value)
        except ServiceError as error:
            error.id = number
            raise

    @staticmethod
    def _operation(value: dict[str, Any], op: str | None) -> Operation:
        """Remove the operation's name from a request; return the operation."""
        name = value.pop("op", op)
        if op and name != op:
            raise refused("op", name, op)
        if name is None:
            text = f"a request lacks 'op'; allowed: {NAMES}"
            raise ServiceError("bad_request", text)
        if not isinstance(name, str) or name not in OPERATIONS:
            raise unknown_op(name)
        return OPERATIONS[name]

    def _request(self, operation: Operation, values: dict[str, Any]) -> Request:
        """Check the fields of a request; return the request."""
        fields, served = operation.fields, self._served
        for name in values.keys() - fields.keys():
            allowed = ", ".join(("op", *fields))
            text = f"{operation.name} has no field {shown(name)}; allowed: {allowed}"
            raise ServiceError("bad_request", text)
        for name, field in fields.items():
            if field.default is REQUIRED and name not in values:
                raise self._lacks(operation, name)
        for name, value in values.items():
            values[name] = fields[name].kind.read(name, value, served)
        if not operation.immediate:
            if "source" not in values and "sources" not in values:
                raise self._lacks(operation, "source")
            if "source" in values and "sources" in values:
                text = f"{operation.name} takes 'source' or 'sources', not both"
                raise ServiceError("bad_request", text)
        for name in values:
            if fields[name].inline and values.get("result") == "summary":
                text = f"'{name}' is not read with the result 'summary'; leave it out"
                raise ServiceError("bad_request", text)
        return self._models[operation.name](**values)

    def _lacks(self, operation: Operation, name: str) -> ServiceError:
        text = f"{operation.name} lacks '{name}': {operation.fields[name].text}"
        return self._no_request(text, operation.name)

    def _no_request(self, why: str, op: str | None) -> ServiceError:
        advice = OPERATIONS[op or "distances"].advice(self._served.names)
        return ServiceError("bad_request", f"{why}; {advice}")
