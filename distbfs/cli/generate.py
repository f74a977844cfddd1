"""``distbfs generate``: generate a graph of a family and store it."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from distbfs.cli.graphs import devices_to_build, store_graph
from distbfs.cli.options.generate import GenerateOptions
from distbfs.cli.shared import open_terminal, share_of_cores
from distbfs.errors import UsageError
from distbfs.generate.families import SIZES, declared, maker
from distbfs.progress import Progress, no_progress
from distbfs.types import TupleSource


def spelt(names: Iterable[str], between: str = ", ") -> str:
    """Spell names as options of the command line."""
    return between.join(f"'--{name.replace('_', '-')}'" for name in names)


def check_options(family: str, options: Mapping[str, float]) -> None:
    """Raise UsageError for options that a family does not have, or those it lacks."""
    arguments = inspect.signature(maker(family)).parameters
    allowed = [
        *(SIZES if "vertices" in arguments else ("scale",)),
        *(item.name for item in declared(family)[1]),
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

    progress: receives the progress of families that are counted or grown before there
    are tuples
    """
    check_options(family, options)
    make = maker(family)
    wanted = inspect.signature(make).parameters
    every: dict[str, Any] = {"seed": 1, "threads": threads, **options}
    if "scale" in options:
        every.setdefault("vertices", 1 << int(options["scale"]))
    tells = "tell" in wanted
    with progress("generating", 0) if tells else no_progress() as every["tell"]:
        return make(**{k: v for k, v in every.items() if k in wanted})


def run(asked: GenerateOptions) -> None:
    """Run the command."""
    terminal = open_terminal(asked)
    sizes = {name: getattr(asked, name) for name in (*SIZES, "seed")}
    chosen = {name: x for name, x in sizes.items() if x is not None} | asked.parameters
    threads = share_of_cores(terminal.world)
    source = make_source(asked.family, threads, chosen, terminal.progress)
    devices = devices_to_build(terminal, asked)
    store_graph(terminal, source, asked, directed=asked.directed, devices=devices)
