"""The options of ``distbfs serve``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distbfs.cli.command import GRAPH, argument, borrowed, command_of
from distbfs.cli.options import (
    FileOptions,
    PatienceOption,
    ReverseOption,
    SearchChoices,
    Speech,
    TraceOption,
)
from distbfs.options import CONNECTIONS, option
from distbfs.service.limits import Limits

LIMITS = ("queue", "clients", "deadline", "line", "ids", "inline", "binary")


@dataclass(frozen=True, kw_only=True)
class ServeOptions(
    FileOptions, TraceOption, ReverseOption, SearchChoices, PatienceOption, Speech
):
    """Load GRAPH, a store or a file as for bfs, and answer queries until told to end.

    One JSON object per line: {"id": 7, "op": "distances", "source": 0, "targets": [3]}.
    Operations: bfs, distances, path, all_paths, stats, health, shutdown.  Prints
    "ready" when it answers, and with --json its counts at the end.
    SIGTERM and SIGUSR1: answer waiting requests, exit 0.

    socket: Unix socket to listen on, mode 0600.  Without this and --http: stdin.
    http: Port for HTTP; 0 takes a free one.  Needs --token-file.
    http_host: Address that --http listens on.
    token_file: File with the token that clients must send, mode 0600; made if missing.
    allow_remote: Allow any address for --http-host.
    """

    graph: Path = argument(GRAPH)
    socket: Path | None = option(CONNECTIONS)
    http: int | None = option(CONNECTIONS, low=0, high=65535)
    http_host: str = option(CONNECTIONS, default="127.0.0.1")
    token_file: Path | None = option(CONNECTIONS)
    allow_remote: bool = option(CONNECTIONS, default=False)
    limits: dict[str, Any] = borrowed(Limits, names=LIMITS)


command = command_of("serve", ServeOptions)
