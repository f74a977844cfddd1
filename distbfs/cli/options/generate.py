"""The options of ``distbfs generate``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import click

from distbfs import registry
from distbfs.cli.options import carry_out
from distbfs.generate.families import parameters_of
from distbfs.generate.parameters import Parameter
from distbfs.generate.uniform import MAX_VERTICES
from distbfs.terminal.command import INPUT, OUTPUT, Choice, grouped_command
from distbfs.terminal.options import (
    PLACE,
    build_options,
    directed_option,
    on_devices_option,
    output_options,
)

Command: TypeAlias = Callable[..., None]


def family_options(function: Command) -> Command:
    """Add an option for each parameter that a family has."""
    holders: dict[Parameter, list[str]] = {}
    for family in registry.FAMILIES:
        for parameter in parameters_of(family):
            holders.setdefault(parameter, []).append(family)
    for parameter, families in reversed(holders.items()):
        number: Callable[..., Any] = (
            click.IntRange if parameter.kind is int else click.FloatRange
        )
        function = INPUT.option(
            f"--{parameter.name.replace('_', '-')}",
            type=number(parameter.low, parameter.high, parameter.above),
            help=f"{parameter.help}; {', '.join(families)}.  "
            f"[{parameter.shown or parameter.usual}]",
        )(function)
    return function


def help_text() -> str:
    """Return the help of the command and of each family."""
    width = max(map(len, registry.FAMILIES)) + 2
    lines = ["Generate a graph of a FAMILY and store it.\n\n\b"]
    for family in registry.FAMILIES:
        kind = registry.lookup(registry.FAMILIES, "family", family)
        lines.append(f"{family:<{width}}{getattr(kind, 'about', '')}".rstrip())
    return "\n".join(lines)


@grouped_command("generate", help=help_text())
@click.argument("family", type=Choice(list(registry.FAMILIES)), metavar="FAMILY")
@INPUT.option("--scale", "-s", type=click.IntRange(1, 48), help="2^scale vertices.")
@INPUT.option(
    "--vertices",
    "-n",
    type=click.IntRange(1, MAX_VERTICES),
    help="Vertices instead; for road, geometric and triangulation about as many.",
)
@family_options
@INPUT.option("--seed", type=int, help="Seed of the tuples.  [1]")
@OUTPUT.option("--output", "-o", type=PLACE, required=True, help="Folder of the store.")
@OUTPUT.option("--force", is_flag=True, help="Replace a store that is there.")
@on_devices_option
@directed_option
@build_options
@output_options
def command(**values: Any) -> Any:
    """Generate a graph of a FAMILY and store it."""
    return carry_out("generate", values)
