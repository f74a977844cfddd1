"""The options of ``distbfs serve``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from distbfs.cli.options import carry_out
from distbfs.service.limits import Limits
from distbfs.terminal.command import (
    CONNECTIONS,
    OUTPUT,
    REQUEST_LIMITS,
    FilePath,
    grouped_command,
    with_options,
)
from distbfs.terminal.options import (
    STORE,
    first_id_option,
    output_options,
    patience_option,
    search_options,
    trace_option,
)

LIMITS = {
    "queue": ("queue", "Requests that may wait; more are told busy."),
    "clients": ("clients", "Connections of the socket, and as many of HTTP."),
    "per_address": (
        "per-address",
        "HTTP connections from one address; idle ones give way to new ones.",
    ),
    "in_flight": (
        "in-flight",
        "Unanswered requests of a client; more are told too_many; 0: any number.",
    ),
    "rate": (
        "rate",
        "Requests a second of a client; more are told too_many; 0: any number.",
    ),
    "deadline": ("deadline", "Seconds that a request may take; it may say less."),
    "line": ("max-line", "Bytes of a request."),
    "ids": ("max-ids", "Sources or targets of a request."),
    "inline": ("max-inline", "Values in an answer; more go to --results."),
    "binary": ("max-binary", "Values in a binary answer; more go to --results."),
    "files": ("max-files", "Files in the folder of results."),
}


def limit_option(name: str) -> Callable[[Any], Any]:
    """Return the option of one limit."""
    option, text = LIMITS[name]
    usual = getattr(Limits(), name)
    return REQUEST_LIMITS.option(
        f"--{option}",
        name,
        type=type(usual),
        default=usual,
        help=f"{text}  [{usual}]",
    )


http_options = with_options(
    CONNECTIONS.option(
        "--http",
        "port",
        type=click.IntRange(0, 65535),
        help="Port for HTTP; 0 takes a free one.  Needs --token-file.",
    ),
    CONNECTIONS.option(
        "--http-host", "host", default="127.0.0.1", help="Address.  [127.0.0.1]"
    ),
    CONNECTIONS.option(
        "--token-file",
        type=FilePath(),
        help="File with the token that clients must send, mode 0600; made if missing.",
    ),
    CONNECTIONS.option(
        "--allow-remote", "remote", is_flag=True, help="Let --http-host be any address."
    ),
)
limit_options = with_options(*map(limit_option, LIMITS))


@grouped_command("serve")
@click.argument("store", type=STORE)
@CONNECTIONS.option(
    "--socket",
    type=FilePath(),
    help="Unix socket to listen on, mode 0600.  Without this and --http: stdin.",
)
@http_options
@OUTPUT.option(
    "--results",
    type=FilePath(),
    help="Folder for results that are too large for an answer.",
)
@limit_options
@first_id_option
@trace_option
@search_options
@patience_option
@output_options
def command(**values: Any) -> Any:
    """Load the graph of STORE and answer queries until the end is asked for.

    One JSON object a line: {"id": 7, "op": "distances", "source": 0, "targets": [3]}.
    Operations: bfs, distances, path, all_paths, reachable, multi_bfs, stats, health,
    shutdown.  Prints "ready" when it answers, and with --json its counts at the end.
    SIGTERM and SIGUSR1: answer what waits, exit 0.
    """
    return carry_out("serve", values)
