"""``distbfs query``: ask a service."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from distbfs.errors import ServiceError, UsageError
from distbfs.formats.text import read_text
from distbfs.service.client import SECONDS, connect
from distbfs.service.operations import (
    OPERATIONS,
    Seconds,
    Vertex,
    Vertices,
    kinds_of,
)
from distbfs.terminal.command import (
    CONNECTIONS,
    Choice,
    FilePath,
    grouped_command,
)

TOKEN = "DISTBFS_TOKEN"  # noqa: S105


def read_fields(op: str, words: Sequence[str]) -> dict[str, Any]:
    """Return the fields that words like ``source=0`` or ``targets=3,9`` give."""
    fields: dict[str, Any] = {}
    kinds = {
        name: kind
        for name, kind in kinds_of(op).items()
        if name not in ("id", "arrays")
    }
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or name not in kinds:
            raise UsageError(
                f"'{word}' is no field of {op}; allowed: {', '.join(kinds)}, as "
                "name=value"
            )
        try:
            fields[name] = READERS.get(kinds[name], str)(text)
        except ValueError as error:
            raise UsageError(f"{name} is '{text}', which cannot be read") from error
    return fields


def _vertex(text: str) -> int | str:
    """Return a whole number where the text is one as JSON has it, else the text."""
    return int(text) if re.fullmatch("0|-?[1-9][0-9]{0,18}", text) else text


def _vertices(text: str) -> list[int | str]:
    return [*map(_vertex, text.split(","))]


def _flag(text: str) -> bool | str:
    return {"true": True, "false": False}.get(text, text)


READERS: dict[type, Callable[[str], Any]] = {
    Vertex: _vertex,
    Vertices: _vertices,
    Seconds: float,
    bool: _flag,
}


def read_token(path: Path | None) -> str | None:
    """Return the token of a file, else of the environment."""
    if path is None:
        return os.environ.get(TOKEN)
    return read_text(path).strip()


HELP = f"""Ask the service at ADDRESS, a socket's path or an http address.

Operations: {", ".join(OPERATIONS)}.  The answer is JSON.

For instance: distbfs query /tmp/graph.sock distances source=0 targets=3,9

The exit code of health is 1 where a rank is stuck.
"""


@grouped_command("query", help=HELP)
@click.argument("address")
@click.argument("op", type=Choice(list(OPERATIONS)), metavar="OPERATION")
@click.argument("fields", nargs=-1, metavar="[NAME=VALUE]...")
@CONNECTIONS.option(
    "--token-file",
    type=FilePath(),
    help="File with the token of an HTTP service; else DISTBFS_TOKEN.",
)
@CONNECTIONS.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=SECONDS,
    help="Seconds to wait for the answer.  [70]",
)
def command(
    address: str,
    op: str,
    fields: tuple[str, ...],
    token_file: Path | None,
    timeout: float,
) -> int:
    """Ask a service and print its answer; see HELP."""
    wanted = read_fields(op, fields)
    with connect(address, token=read_token(token_file), timeout=timeout) as client:
        try:
            answer = client.call(op, **wanted)
        except ServiceError as error:
            raise ServiceError(error.code, f"{error.code}: {error}") from error
    click.echo(json.dumps(answer))
    return int(op == "health" and answer.get("state") == "stuck")
