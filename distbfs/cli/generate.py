"""``distbfs generate``: make a graph of a family and store it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import click

from distbfs import registry
from distbfs.cli.common import (
    STORE,
    build_options,
    make_build_options,
    open_terminal,
    output_options,
    share_of_cores,
)
from distbfs.cli.storing import store_graph
from distbfs.errors import UsageError
from distbfs.generate.uniform import MAX_VERTICES
from distbfs.types import TupleSource

EDGE_FACTOR = 16
SIZES = ("scale", "vertices")
OPTIONS = {
    "kronecker": ("scale", "edge_factor"),
    "uniform": ("scale", "vertices", "edge_factor", "degree"),
    "road": ("scale", "vertices"),
}


def spelt(names: Iterable[str], between: str = ", ") -> str:
    """Return options as they are written on the command line."""
    return between.join(f"'--{name.replace('_', '-')}'" for name in names)


def check_options(family: str, given: Mapping[str, float]) -> None:
    """Raise UsageError for options that a family does not have, or those it lacks."""
    allowed = OPTIONS[family]
    strange = [name for name in given if name not in allowed]
    if strange:
        raise UsageError(
            f"{family} has no {spelt(strange)}; allowed: {spelt((*allowed, 'seed'))}"
        )
    for names in (SIZES, ("edge_factor", "degree")):
        if all(name in given for name in names):
            raise UsageError(f"give either {spelt(names, ' or ')}")
    if not any(name in given for name in SIZES):
        lacking = [name for name in SIZES if name in allowed]
        raise UsageError(f"{family} needs {spelt(lacking, ' or ')}")


def make_source(
    family: str, seed: int, threads: int, given: Mapping[str, float]
) -> TupleSource:
    """Return the tuples of a family from the options that were given."""
    check_options(family, given)
    kind = registry.lookup(registry.FAMILIES, "family", family)
    factor = given.get("edge_factor", EDGE_FACTOR)
    n = 1 << int(given["scale"]) if "scale" in given else int(given["vertices"])
    source: TupleSource
    if family == "kronecker":
        source = kind(int(given["scale"]), int(factor), seed, threads)
    elif family == "uniform":
        source = kind.of_degree(n, given.get("degree", 2 * factor), seed, threads)
    else:
        source = kind(n, seed, threads)
    return source


@click.command("generate")
@click.argument("family", type=click.Choice(list(registry.FAMILIES)))
@click.option("--scale", "-s", type=click.IntRange(1, 48), help="2^scale vertices.")
@click.option(
    "--vertices",
    "-n",
    type=click.IntRange(1, MAX_VERTICES),
    help="Vertices, for road about as many; uniform and road only.",
)
@click.option(
    "--edge-factor",
    type=click.IntRange(1, 4096),
    help=f"Tuples per vertex; not for road.  [{EDGE_FACTOR}]",
)
@click.option(
    "--degree",
    type=click.FloatRange(0, 8192, min_open=True),
    help="Mean degree, twice the edge factor; uniform only.",
)
@click.option("--seed", type=int, default=1, help="Seed of the tuples.  [1]")
@click.option("--output", "-o", type=STORE, required=True, help="Folder of the store.")
@click.option("--force", is_flag=True, help="Replace a store that is there.")
@build_options
@output_options
def command(
    family: str,
    seed: int,
    output: Path,
    force: bool,
    parts: int | None,
    threshold: int | None,
    pass_gib: float,
    json_output: bool,
    log_format: str,
    **sizes: float | None,
) -> None:
    """Generate a graph of a FAMILY, separate it by degree and store it.

    kronecker: Graph500's graph.  uniform: tuples with independent uniform ends.  road:
    a thinned grid whose edges are chains, of many levels.
    """
    terminal = open_terminal(json_output=json_output, log_format=log_format)
    given = {name: value for name, value in sizes.items() if value is not None}
    threads = share_of_cores(terminal.world)
    source = make_source(family, seed, threads, given)
    options = make_build_options(
        threshold=threshold, pass_gib=pass_gib, permute_seed=None
    )
    store_graph(terminal, source, output, parts, options, force=force)
