"""``distbfs query``: ask a service."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from distbfs.cli.options.query import QueryOptions
from distbfs.errors import ServiceError, UsageError
from distbfs.formats.text import read_text
from distbfs.service.client import connect
from distbfs.service.fields import VERTEX, VERTICES, Kind
from distbfs.service.operations import OPERATIONS

TOKEN = "DISTBFS_TOKEN"  # noqa: S105
NUMBER = re.compile("0|-?[1-9][0-9]{0,18}")


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
        fields[name] = read_value(kinds[name], text)
    return fields


def read_value(kind: Kind, text: str) -> Any:
    """Return the JSON value of a field: text unless it is a number or a flag."""
    if kind is VERTICES:
        return [read_value(VERTEX, word) for word in text.split(",")]
    if kind is VERTEX and not NUMBER.fullmatch(text):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


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
