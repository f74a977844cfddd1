"""The options of ``distbfs verify``."""

from __future__ import annotations

from typing import Any

import click

from distbfs.cli.options import carry_out
from distbfs.terminal.command import grouped_command
from distbfs.terminal.options import STORE, output_options


@grouped_command("verify")
@click.argument("store", type=STORE)
@output_options
def command(**values: Any) -> Any:
    """Check every byte of STORE and every rule that its parts must keep.

    The parts are shared out among the ranks.  Exit code 2 where anything is wrong.
    """
    return carry_out("verify", values)
