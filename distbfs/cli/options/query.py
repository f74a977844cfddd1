"""The options of ``distbfs query``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from distbfs.cli.command import Choice, argument, command_of
from distbfs.options import CONNECTIONS, option
from distbfs.service.limits import SECONDS
from distbfs.service.operations import OPERATIONS


@dataclass(frozen=True, kw_only=True)
class QueryOptions:
    """Ask the service at ADDRESS, a socket's path or an http address.

    Operations: {operations}.  The answer is JSON.

    For instance: distbfs query /tmp/graph.sock distances source=0 targets=3,9

    The exit code of health is 1 if a rank is stuck.

    token_file: File with the token of an HTTP service; else DISTBFS_TOKEN.
    timeout: Seconds to wait for the answer.
    """

    address: str = argument(str)
    op: str = argument(Choice(list(OPERATIONS)), "OPERATION")
    fields: tuple[str, ...] = argument(str, "[NAME=VALUE]...", nargs=-1)
    token_file: Path | None = option(CONNECTIONS)
    timeout: float = option(CONNECTIONS, default=SECONDS, low=0, above=True)


command = command_of("query", QueryOptions, operations=", ".join(OPERATIONS))
