"""The options of ``distbfs partition``."""

from __future__ import annotations

from typing import Any

import click

from distbfs.cli.options import carry_out
from distbfs.terminal.command import OUTPUT, grouped_command
from distbfs.terminal.options import (
    PLACE,
    STORE,
    build_options,
    on_devices_option,
    output_options,
)


@grouped_command("partition")
@click.argument("store", type=STORE)
@OUTPUT.option("--output", "-o", type=PLACE, required=True, help="Folder of the store.")
@OUTPUT.option("--force", is_flag=True, help="Replace a store that is there.")
@on_devices_option
@build_options
@output_options
def command(**values: Any) -> Any:
    """Store the graph of STORE again, in other parts or with another threshold."""
    return carry_out("partition", values)
