"""The options of ``distbfs query``."""

from __future__ import annotations

from typing import Any

import click

from distbfs.cli.options import carry_out
from distbfs.service.limits import SECONDS
from distbfs.service.operations import OPERATIONS
from distbfs.terminal.command import CONNECTIONS, Choice, FilePath, grouped_command

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
def command(**values: Any) -> Any:
    """Ask a service and print its answer; see HELP."""
    return carry_out("query", values)
