"""The OpenAPI description of the HTTP service, from the table of operations."""

from __future__ import annotations

from typing import Any

from distbfs import __version__
from distbfs.service.limits import MAX_ID_TEXT, Limits
from distbfs.service.operations import (
    NAME,
    OPERATIONS,
    SMALLEST_DEADLINE,
    Field,
    Operation,
)
from distbfs.service.vertex_names import Names

STATUS = {
    "bad_request": 400,
    "unauthorized": 401,
    "unknown_op": 404,
    "not_found": 404,
    "not_allowed": 405,
    "exists": 409,
    "too_large": 413,
    "not_json": 415,
    "busy": 503,
    "draining": 503,
    "deadline": 504,
    "no_room": 507,
}
TEXTS = {
    400: "A field is missing, unknown or wrong.",
    401: "The token is missing or wrong.",
    409: "There is a result of that name.",
    413: "The request is too long, or the answer would be.",
    415: "The body is not application/json.",
    503: "Too many requests wait, or the service ends.",
    504: "The deadline passed.",
    507: "There is no room for results.",
}
LEVELS = {"type": "array", "items": {"type": "integer"}}
FILES = {"type": "array", "items": {"type": "string"}}
NAMES = {"number": "integer", "integer": "integer", "text": "string"}


def answers(kind: str) -> dict[str, tuple[list[str], dict[str, Any]]]:
    """Return the required fields of each answer, and all; kind: of vertex names."""
    name: dict[str, Any] = {"type": NAMES[kind]}
    parent = name if kind == "number" else {"type": [NAMES[kind], "null"]}
    kept = {} if kind == "number" else {"ids": {"type": "array", "items": name}}
    summary = {
        "source": name,
        "sources": {"type": "array", "items": name, "description": "of a set"},
        "reached": {"type": "integer"},
        "depth": {"type": "integer"},
        "nedge": {"type": "integer"},
        "seconds": {"type": "number"},
        "TEPS": {"type": "number"},
        "levels": LEVELS,
        "level": LEVELS,
        "parent": {"type": "array", "items": parent},
    }
    path = {"type": ["array", "null"], "items": name}
    each = {"type": "object", "properties": summary}
    return {
        "bfs": (["reached", "levels"], {**summary, **kept, "files": FILES}),
        "distances": (["distances"], {"distances": LEVELS}),
        "path": (
            ["distance", "path"],
            {"distance": {"type": "integer"}, "path": path},
        ),
        "all_paths": (
            ["distance", "count", "edges"],
            {
                "distance": {"type": "integer"},
                "count": {"type": "integer", "minimum": 0},
                "edges": {
                    "type": ["array", "null"],
                    "items": {
                        "type": "array",
                        "items": name,
                        "minItems": 2,
                        "maxItems": 2,
                    },
                },
            },
        ),
        "reachable": (
            ["reachable"],
            {"reachable": {"type": "array", "items": {"type": "boolean"}}},
        ),
        "multi_bfs": (
            ["searches"],
            {"searches": {"type": "array", "items": each}, **kept, "files": FILES},
        ),
        "stats": (["state", "graph", "answers"], {"graph": {"type": "object"}}),
        "health": (["state"], {}),
        "shutdown": (["state"], {}),
    }


STATE = {
    "state": {"type": "string", "enum": ["ready", "draining", "stuck"]},
    "why": {"type": "string", "description": "which rank is stuck"},
}


def field_schema(item: Field, names: Names, limits: Limits) -> dict[str, Any]:
    """Return the JSON schema of one field."""
    vertex: dict[str, Any] = {"type": "integer", "minimum": 0, "maximum": names.n - 1}
    if names.ids is not None:
        vertex = {"type": ["integer", "string"]}
    kinds: dict[str, dict[str, Any]] = {
        "vertex": vertex,
        "vertices": {
            "type": "array",
            "items": vertex,
            "minItems": 1,
            "maxItems": limits.ids,
        },
        "choice": {"type": "string", "enum": list(item.choices)},
        "flag": {"type": "boolean"},
        "name": {"type": "string", "pattern": f"^{NAME}$"},
        "seconds": {
            "type": "number",
            "minimum": SMALLEST_DEADLINE,
            "maximum": limits.deadline,
        },
    }
    made = {**kinds[item.kind], "description": item.text}
    return made if item.default is None else {**made, "default": item.default}


def request_schema(
    operation: Operation, names: Names, limits: Limits
) -> dict[str, Any]:
    """Return the JSON schema of the body of an operation."""
    fields = operation.accepted
    required = [name for name, item in fields.items() if item.required]
    either: dict[str, Any] = {}
    if operation.takes_sets:
        required.remove("source")
        either["oneOf"] = [{"required": ["source"]}, {"required": ["sources"]}]
    return {
        "type": "object",
        "additionalProperties": False,
        "required": required,
        **either,
        "properties": {
            "id": {
                "description": "repeated in the answer",
                "oneOf": [
                    {
                        "type": "integer",
                        "minimum": -(1 << 63),
                        "maximum": (1 << 63) - 1,
                    },
                    {"type": "string", "maxLength": MAX_ID_TEXT},
                    {"type": "null"},
                ],
            },
            **{
                name: field_schema(item, names, limits) for name, item in fields.items()
            },
        },
    }


def _json(schema: dict[str, Any], text: str) -> dict[str, Any]:
    return {"description": text, "content": {"application/json": {"schema": schema}}}


def _answer_schema(name: str, kind: str) -> dict[str, Any]:
    required, properties = answers(kind)[name]
    state = STATE if "state" in required else {}
    return {
        "type": "object",
        "required": ["id", "ok", *required],
        "properties": {
            "id": {"type": ["integer", "string", "null"]},
            "ok": {"type": "boolean", "enum": [True]},
            **state,
            **properties,
        },
    }


def _operation(name: str, names: Names, limits: Limits) -> dict[str, Any]:
    operation = OPERATIONS[name]
    error = {"$ref": "#/components/schemas/Error"}
    return {
        "operationId": name,
        "summary": operation.text,
        "security": [{"token": []}],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": request_schema(operation, names, limits)}
            },
        },
        "responses": {
            "200": _json(_answer_schema(name, names.kind), "Done."),
            **{str(status): _json(error, text) for status, text in TEXTS.items()},
        },
    }


def describe_api(names: Names, limits: Limits) -> dict[str, Any]:
    """Return the description (OpenAPI 3.1) of a service for a graph."""
    state = _json({"type": "object", "properties": STATE}, "The state of the service.")
    plain = {
        "description": "Prometheus text.",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }
    refused = _json({"$ref": "#/components/schemas/Error"}, TEXTS[401])
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "distbfs",
            "version": __version__,
            "description": "Breadth-first search on a graph that stays loaded.",
        },
        "paths": {
            **{
                f"/v1/{name}": {"post": _operation(name, names, limits)}
                for name in OPERATIONS
            },
            "/healthz": {
                "get": {
                    "operationId": "healthz",
                    "summary": "Whether the process answers and its ranks live.",
                    "responses": {"200": state, "503": state},
                }
            },
            "/readyz": {
                "get": {
                    "operationId": "readyz",
                    "summary": "Whether requests are taken.",
                    "responses": {"200": state, "503": state},
                }
            },
            "/metrics": {
                "get": {
                    "operationId": "metrics",
                    "summary": "Prometheus metrics.",
                    "security": [{"token": []}],
                    "responses": {"200": plain, "401": refused},
                }
            },
        },
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {
                "Error": {
                    "type": "object",
                    "required": ["id", "ok", "error"],
                    "properties": {
                        "id": {"type": ["integer", "string", "null"]},
                        "ok": {"type": "boolean", "enum": [False]},
                        "error": {
                            "type": "object",
                            "required": ["code", "message"],
                            "properties": {
                                "code": {"type": "string", "enum": sorted(STATUS)},
                                "message": {"type": "string"},
                            },
                        },
                    },
                }
            },
        },
    }
