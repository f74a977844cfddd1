"""The options of ``distbfs serve``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distbfs.cli.command import STORE, argument, borrowed, command_of
from distbfs.cli.options import (
    FirstIdOption,
    PatienceOption,
    SearchChoices,
    Speech,
    TraceOption,
)
from distbfs.options import CONNECTIONS, REQUEST_LIMITS, option
from distbfs.service.limits import Limits


@dataclass(frozen=True, kw_only=True)
class LimitOptions:
    """Limits of a service for its clients.

    queue: Requests that may wait; further ones get the error busy.
    clients: Connections of the socket, and as many of HTTP.
    deadline: Seconds that a request may take; it may say less.
    line: Bytes of a request.
    ids: Sources or targets of a request.
    inline: Values in an answer.
    binary: Values in a binary answer.
    """

    queue: int = option(REQUEST_LIMITS, default=Limits.queue)
    clients: int = option(REQUEST_LIMITS, default=Limits.clients)
    deadline: float = option(REQUEST_LIMITS, default=Limits.deadline)
    line: int = option(REQUEST_LIMITS, "--max-line", default=Limits.line)
    ids: int = option(REQUEST_LIMITS, "--max-ids", default=Limits.ids)
    inline: int = option(REQUEST_LIMITS, "--max-inline", default=Limits.inline)
    binary: int = option(REQUEST_LIMITS, "--max-binary", default=Limits.binary)


@dataclass(frozen=True, kw_only=True)
class ServeOptions(FirstIdOption, TraceOption, SearchChoices, PatienceOption, Speech):
    """Load the graph of STORE and answer queries until told to end.

    One JSON object a line: {"id": 7, "op": "distances", "source": 0, "targets": [3]}.
    Operations: bfs, distances, path, all_paths, reachable, multi_bfs, stats, health,
    shutdown.  Prints "ready" when it answers, and with --json its counts at the end.
    SIGTERM and SIGUSR1: answer waiting requests, exit 0.

    socket: Unix socket to listen on, mode 0600.  Without this and --http: stdin.
    http: Port for HTTP; 0 takes a free one.  Needs --token-file.
    http_host: Address.
    token_file: File with the token that clients must send, mode 0600; made if missing.
    allow_remote: Allow any address for --http-host.
    """

    store: Path = argument(STORE)
    socket: Path | None = option(CONNECTIONS)
    http: int | None = option(CONNECTIONS, low=0, high=65535)
    http_host: str = option(CONNECTIONS, default="127.0.0.1")
    token_file: Path | None = option(CONNECTIONS)
    allow_remote: bool = option(CONNECTIONS, default=False)
    limits: dict[str, Any] = borrowed(LimitOptions)


command = command_of("serve", ServeOptions)
