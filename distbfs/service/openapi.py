"""The OpenAPI description of the HTTP service, from the models of its operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from distbfs import __version__
from distbfs.service.encoding import MEDIA_TYPE
from distbfs.service.limits import Limits
from distbfs.service.operations import (
    ANSWERS,
    OPERATIONS,
    SMALLEST_DEADLINE,
    HealthAnswer,
    Refusal,
    Seconds,
    Start,
    Vertex,
    Vertices,
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
    "too_many": 429,
    "broken": 500,
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
    415: "The body is not announced as application/json, or is compressed.",
    429: "The client asks too much at once, or too often.",
    500: "The graph that is served is not sound.",
    503: "Too many requests wait, or the service ends.",
    504: "The deadline passed.",
    507: "There is no room for results.",
}
BYTES = {"type": "string", "format": "binary"}
REF = "#/components/schemas/{name}"
ROUTES = {
    "healthz": "Whether the process answers and its ranks live.",
    "readyz": "Whether requests are taken.",
}


def schemas_of(names: Names, limits: Limits) -> Callable[[type], dict[str, Any]]:
    """Return the JSON schemas of fields that depend on a graph and on limits."""
    vertex: dict[str, Any] = {"type": ["integer", "string"]}
    if names.first is not None:
        first, last = names.first, names.first + names.n - 1
        vertex = {"type": "integer", "minimum": first, "maximum": last}
    several = {"type": "array", "items": vertex, "minItems": 1, "maxItems": limits.ids}
    least, most = SMALLEST_DEADLINE, limits.deadline
    seconds = {"type": "number", "minimum": least, "maximum": most}
    known: dict[type, dict[str, Any]] = {
        Vertex: vertex,
        Vertices: several,
        Seconds: seconds,
    }
    return known.__getitem__


def request_schemas(names: Names, limits: Limits) -> dict[str, dict[str, Any]]:
    """Return the JSON schema of the body of each operation."""
    _, made = msgspec.json.schema_components(
        OPERATIONS.values(), schema_hook=schemas_of(names, limits), ref_template=REF
    )
    bodies = {}
    for op, model in OPERATIONS.items():
        bodies[op] = schema = made[model.__name__]
        schema["required"].remove("op")  # the path of the route names it
        schema["properties"]["op"]["description"] = "may be left out"
        if issubclass(model, Start):
            schema["oneOf"] = [{"required": ["source"]}, {"required": ["sources"]}]
    return bodies


def _json(schema: dict[str, Any], text: str) -> dict[str, Any]:
    return {"description": text, "content": {"application/json": {"schema": schema}}}


def describe_api(names: Names, limits: Limits) -> dict[str, Any]:
    """Return the description (OpenAPI 3.1) of a service for a graph."""
    bodies = request_schemas(names, limits)
    models = [*ANSWERS.values(), HealthAnswer, Refusal]
    refs, schemas = msgspec.json.schema_components(models, ref_template=REF)
    answers, (state, refused) = dict(zip(ANSWERS, refs, strict=False)), refs[-2:]
    schemas["Problem"]["properties"]["code"]["enum"] = sorted(STATUS)
    plain = {
        "description": "Prometheus text.",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }

    def done(op: str) -> dict[str, Any]:
        made = _json(answers[op], "Done.")
        if "arrays" in bodies[op]["properties"]:
            made["content"][MEDIA_TYPE] = {"schema": BYTES}
        return made

    paths: dict[str, Any] = {
        f"/v1/{op}": {
            "post": {
                "operationId": op,
                "summary": model.__doc__,
                "security": [{"token": []}],
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": bodies[op]}},
                },
                "responses": {
                    "200": done(op),
                    **{str(s): _json(refused, text) for s, text in TEXTS.items()},
                },
            }
        }
        for op, model in OPERATIONS.items()
    }
    for name, text in ROUTES.items():
        shown = {s: _json(state, "The state of the service.") for s in ("200", "503")}
        get = {"operationId": name, "summary": text, "responses": shown}
        paths[f"/{name}"] = {"get": get}
    paths["/metrics"] = {
        "get": {
            "operationId": "metrics",
            "summary": "Prometheus metrics.",
            "security": [{"token": []}],
            "responses": {"200": plain, "401": _json(refused, TEXTS[401])},
        }
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "distbfs",
            "version": __version__,
            "description": "Breadth-first search on a graph that stays loaded.",
        },
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas,
        },
    }
