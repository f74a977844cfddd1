"""``distbfs query``: ask a service."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from distbfs.cli.options.query import QueryOptions
from distbfs.errors import ServiceError, UsageError
from distbfs.formats.text import read_text
from distbfs.service.client import connect
from distbfs.service.fields import FLAG, SECONDS, VERTEX, VERTICES, Kind
from distbfs.service.operations import OPERATIONS

TOKEN = "DISTBFS_TOKEN"  # noqa: S105


def read_fields(op: str, words: Sequence[str]) -> dict[str, Any]:
    """Parse words like ``source=0`` or ``targets=3,9`` into fields."""
    fields: dict[str, Any] = {}
    kinds = {
        name: field.kind
        for name, field in OPERATIONS[op].fields.items()
        if name not in ("id", "arrays")
    }
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or name not in kinds:
            raise UsageError(
                f"'{word}' is not a field of {op}; allowed: {', '.join(kinds)}, as "
                "name=value"
            )
        try:
            fields[name] = READERS.get(kinds[name], str)(text)
        except ValueError as error:
            raise UsageError(f"{name} is '{text}', which cannot be read") from error
    return fields


def _vertex(text: str) -> int | str:
    """Return the number if the text is an integer of JSON, else the text."""
    return int(text) if re.fullmatch("0|-?[1-9][0-9]{0,18}", text) else text


def _vertices(text: str) -> list[int | str]:
    return [*map(_vertex, text.split(","))]


def _flag(text: str) -> bool | str:
    return {"true": True, "false": False}.get(text, text)


READERS: dict[Kind, Callable[[str], Any]] = {
    VERTEX: _vertex,
    VERTICES: _vertices,
    SECONDS: float,
    FLAG: _flag,
}


def read_token(path: Path | None) -> str | None:
    """Return the token in a file or, without one, in the environment."""
    if path is None:
        return os.environ.get(TOKEN)
    return read_text(path).strip()


def run(asked: QueryOptions) -> int:
    """Run the command."""
    op, token = asked.op, read_token(asked.token_file)
    wanted = read_fields(op, asked.fields)
    with connect(asked.address, token=token, timeout=asked.timeout) as client:
        try:
            answer = client.call(op, **wanted)
        except ServiceError as error:
            raise ServiceError(error.code, f"{error.code}: {error}") from error
    click.echo(json.dumps(answer))
    return int(op == "health" and answer.get("state") == "stuck")
