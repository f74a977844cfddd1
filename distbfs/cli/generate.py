"""``distbfs generate``: make a graph of a family and store it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import click

from distbfs import registry
from distbfs.errors import UsageError
from distbfs.generate.families import maker, parameters_of
from distbfs.generate.parameters import Parameter
from distbfs.generate.uniform import MAX_VERTICES
from distbfs.progress import Progress, no_progress
from distbfs.terminal.command import INPUT, OUTPUT, Choice, grouped_command
from distbfs.terminal.shared import (
    PLACE,
    Speech,
    build_options,
    directed_option,
    make_build_options,
    open_terminal,
    output_options,
    share_of_cores,
)
from distbfs.terminal.store_writing import (
    devices_to_build,
    on_devices_option,
    store_graph,
)
from distbfs.types import TupleSource

SIZES = ("scale", "vertices")
Command: TypeAlias = Callable[..., None]


def spelt(names: Iterable[str], between: str = ", ") -> str:
    """Return options as they are written on the command line."""
    return between.join(f"'--{name.replace('_', '-')}'" for name in names)


def check_options(family: str, options: Mapping[str, float]) -> None:
    """Raise UsageError for options that a family does not have, or those it lacks."""
    arguments = inspect.signature(maker(family)).parameters
    allowed = [
        *(SIZES if "vertices" in arguments else ("scale",)),
        *(parameter.name for parameter in parameters_of(family)),
        *(["seed"] if "seed" in arguments else []),
    ]
    strange = [name for name in options if name not in allowed]
    if strange:
        raise UsageError(f"{family} has no {spelt(strange)}; allowed: {spelt(allowed)}")
    for names in (SIZES, ("edge_factor", "degree")):
        if all(name in options for name in names):
            raise UsageError(f"give either {spelt(names, ' or ')}")
    if not any(name in options for name in SIZES):
        lacking = [name for name in SIZES if name in allowed]
        raise UsageError(f"{family} needs {spelt(lacking, ' or ')}")


def make_source(
    family: str, threads: int, options: Mapping[str, float], progress: Progress
) -> TupleSource:
    """Return the tuples of a family from the options that were given.

    progress: of families that are counted or grow before their tuples are there
    """
    check_options(family, options)
    make = maker(family)
    wanted = inspect.signature(make).parameters
    every: dict[str, Any] = {
        x.name: x.usual for x in parameters_of(family) if x.usual is not None
    }
    every |= {"seed": 1, "threads": threads, **options}
    if "scale" in options:
        every.setdefault("vertices", 1 << int(options["scale"]))
    tells = "tell" in wanted
    with progress("generating", 0) if tells else no_progress() as every["tell"]:
        return make(**{k: v for k, v in every.items() if k in wanted})


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
def command(
    family: str,
    output: Path,
    force: bool,
    on_devices: bool,
    directed: bool,
    parts: int | None,
    threshold: int | None,
    pass_gib: float,
    speech: Speech,
    **choices: float | None,
) -> None:
    """Generate a graph of a FAMILY and store it."""
    terminal = open_terminal(speech)
    chosen = {name: value for name, value in choices.items() if value is not None}
    threads = share_of_cores(terminal.world)
    source = make_source(family, threads, chosen, terminal.progress)
    options = make_build_options(
        threshold=threshold,
        pass_gib=pass_gib,
        permute_seed=None,
        threads=threads,
        directed=directed,
    )
    devices = devices_to_build(terminal, directed=directed) if on_devices else None
    store_graph(terminal, source, output, parts, options, force=force, devices=devices)
