"""The OpenAPI description of the HTTP service, from its operations."""

from __future__ import annotations

from typing import Any

import msgspec

from distbfs import __version__
from distbfs.errors import ServiceError
from distbfs.service.encoding import MEDIA_TYPE
from distbfs.service.fields import Served
from distbfs.service.limits import Limits
from distbfs.service.operations import (
    ARRAYS,
    OPERATIONS,
    HealthAnswer,
    Refusal,
)
from distbfs.service.vertex_names import Names

CODES = {code: status for code, (_, status) in ServiceError.CODES.items() if status}
OF_ROUTES = (404, 405)  # statuses of no operation
REF = "#/components/schemas/{name}"
GUARDED: dict[str, Any] = {"security": [{"token": []}]}
BINARY = {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}}
INFO = {
    "title": "distbfs",
    "version": __version__,
    "description": "Breadth-first search on a graph that stays loaded.",
}
ROUTES = {
    "healthz": "Whether the process answers and its ranks live.",
    "readyz": "Whether requests are taken.",
}


def request_schemas(served: Served) -> list[dict[str, Any]]:
    """Return the JSON schema of each operation's request body, with an example."""
    models = [operation.model(served) for operation in OPERATIONS.values()]
    _, made = msgspec.json.schema_components(models, ref_template=REF)
    for name, schema in made.items():
        operation = OPERATIONS[name]
        schema["required"].remove("op")  # the path of the route names it
        schema["properties"]["op"]["description"] = "may be left out"
        schema["examples"] = [operation.example_for(served.names)]
        if not operation.immediate:
            schema["oneOf"] = [{"required": ["source"]}, {"required": ["sources"]}]
    return [made[name] for name in OPERATIONS]


def _json(schema: dict[str, Any], text: str) -> dict[str, Any]:
    return {"description": text, "content": {"application/json": {"schema": schema}}}


def describe_api(names: Names, limits: Limits) -> dict[str, Any]:
    """Return the description (OpenAPI 3.1) of a service for a graph."""
    served = Served(names, limits)
    models = [*(x.answer for x in OPERATIONS.values()), HealthAnswer, Refusal]
    refs, schemas = msgspec.json.schema_components(models, ref_template=REF)
    *answers, state, refused = refs
    problem = {"code": {"enum": sorted(CODES)}, "message": {"type": "string"}}
    schemas["Refusal"]["properties"]["error"] = {
        "type": "object",
        "properties": problem,
        "required": [*problem],
    }
    refusals = {
        str(status): _json(refused, "Codes: " + ", ".join(codes))
        for status in sorted({*CODES.values()} - {*OF_ROUTES})
        if (codes := [code for code in CODES if CODES[code] == status])
    }
    paths: dict[str, Any] = {}
    schemas_of = zip(OPERATIONS.values(), request_schemas(served), answers, strict=True)
    for operation, asked, answer in schemas_of:
        done = _json(answer, "Done.")
        if ARRAYS in operation.own:
            done["content"].update(BINARY)
        body = _json(asked, operation.text)["content"]
        post: dict[str, Any] = {
            "operationId": operation.name,
            "summary": operation.text,
            **GUARDED,
            "requestBody": {"required": True, "content": body},
            "responses": {"200": done, **refusals},
        }
        paths[f"/v1/{operation.name}"] = {"post": post}
    for name, text in ROUTES.items():
        shown = {s: _json(state, "The state of the service.") for s in ("200", "503")}
        get: dict[str, Any] = {"operationId": name, "summary": text, "responses": shown}
        paths[f"/{name}"] = {"get": get}
    plain = {"text/plain": {"schema": {"type": "string"}}}
    shown = {"200": {"description": "Prometheus text.", "content": plain}}
    shown["401"] = refusals["401"]
    get = {"operationId": "metrics", "summary": "Prometheus metrics.", **GUARDED}
    paths["/metrics"] = {"get": {**get, "responses": shown}}
    tokens = {"token": {"type": "http", "scheme": "bearer"}}
    parts = {"securitySchemes": tokens, "schemas": schemas}
    return {"openapi": "3.1.0", "info": INFO, "paths": paths, "components": parts}
