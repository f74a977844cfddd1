"""``distbfs generate``: make a graph of a family and store it."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from distbfs import registry
from distbfs.errors import UsageError
from distbfs.generate.uniform import MAX_VERTICES
from distbfs.progress import Progress, no_progress
from distbfs.terminal.shared import (
    PLACE,
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

EDGE_FACTOR = 16
SIZES = ("scale", "vertices")
ANY_SIZE = ("scale", "vertices")
OPTIONS: dict[str, tuple[str, ...]] = {
    "kronecker": ("scale", "edge_factor"),
    "uniform": ("scale", "vertices", "edge_factor", "degree"),
    "road": ANY_SIZE,
    "geometric": (*ANY_SIZE, "degree"),
    "triangulation": ANY_SIZE,
    "small-world": (*ANY_SIZE, "neighbours", "rewired"),
    "forest-fire": (*ANY_SIZE, "forward", "backward"),
    "rmat-er": ("scale", "edge_factor"),
    "rmat-g": ("scale", "edge_factor"),
    "rmat-b": ("scale", "edge_factor"),
    "complete": ANY_SIZE,
    "star": ANY_SIZE,
    "path": ANY_SIZE,
    "binary-tree": ANY_SIZE,
}
# Gen-SmallWorld (k: 10 on each side, p: 0.3) and Gen-ForestFire (f: 0.35 and against
# links 0.32, which is 0.914 of f) of Busato and Bombieri 2015, Table 1
USUAL = {"neighbours": 20, "rewired": 0.3, "forward": 0.35, "backward": 0.914}


def spelt(names: Iterable[str], between: str = ", ") -> str:
    """Return options as they are written on the command line."""
    return between.join(f"'--{name.replace('_', '-')}'" for name in names)


def check_options(family: str, options: Mapping[str, float]) -> None:
    """Raise UsageError for options that a family does not have, or those it lacks."""
    kind = registry.lookup(registry.FAMILIES, "family", family)
    seeded = "seed" in inspect.signature(kind).parameters
    allowed = (*OPTIONS[family], *(["seed"] if seeded else []))
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
    kind = registry.lookup(registry.FAMILIES, "family", family)
    factor, seed = options.get("edge_factor", EDGE_FACTOR), int(options.get("seed", 1))
    n = 1 << int(options["scale"]) if "scale" in options else int(options["vertices"])
    source: TupleSource
    if "vertices" not in OPTIONS[family]:
        source = kind(int(options["scale"]), int(factor), seed, threads)
    elif family == "uniform":
        source = kind.of_degree(n, options.get("degree", 2 * factor), seed, threads)
    else:
        usual = {k: v for k, v in USUAL.items() if k in OPTIONS[family]}
        every: dict[str, Any] = {**usual, **options, "vertices": n, "seed": seed}
        every["threads"] = threads
        wanted = inspect.signature(kind).parameters
        tells = "tell" in wanted
        with progress("generating", 0) if tells else no_progress() as every["tell"]:
            source = kind(**{k: v for k, v in every.items() if k in wanted})
    return source


@click.command("generate")
@click.argument("family", type=click.Choice(list(registry.FAMILIES)))
@click.option("--scale", "-s", type=click.IntRange(1, 48), help="2^scale vertices.")
@click.option(
    "--vertices",
    "-n",
    type=click.IntRange(1, MAX_VERTICES),
    help="Vertices instead; for road, geometric and triangulation about as many.",
)
@click.option(
    "--edge-factor",
    type=click.IntRange(1, 4096),
    help=f"Tuples per vertex; kronecker, rmat, uniform.  [{EDGE_FACTOR}]",
)
@click.option(
    "--degree",
    type=click.FloatRange(0, 8192, min_open=True),
    help="Mean degree; uniform, geometric.  [geometric: radius .55 (ln n / n)^.5]",
)
@click.option(
    "--neighbours",
    type=click.IntRange(2),
    help=f"Nearest on the ring, both sides; small-world.  [{USUAL['neighbours']}]",
)
@click.option(
    "--rewired",
    type=click.FloatRange(0, 1),
    help=f"Chance that an edge leads elsewhere; small-world.  [{USUAL['rewired']}]",
)
@click.option(
    "--forward",
    type=click.FloatRange(0, 0.9),
    help=f"Chance f to burn on along links; forest-fire.  [{USUAL['forward']}]",
)
@click.option(
    "--backward",
    type=click.FloatRange(0, 1),
    help=f"Chance against links over f; forest-fire.  [{USUAL['backward']}]",
)
@click.option("--seed", type=int, help="Seed of the tuples.  [1]")
@click.option("--output", "-o", type=PLACE, required=True, help="Folder of the store.")
@click.option("--force", is_flag=True, help="Replace a store that is there.")
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
    json_output: bool,
    log_format: str,
    **choices: float | None,
) -> None:
    """Generate a graph of a FAMILY, separate it by degree and store it.

    kronecker: Graph500's graph; rmat-er, rmat-g, rmat-b: with other initiators.
    uniform: tuples with independent uniform ends.  road: a thinned grid whose edges are
    chains, of many levels.  geometric: points in a square, edges where they are near.
    triangulation: moved grid points, six neighbours on average.  small-world: a ring
    whose edges partly lead elsewhere.  forest-fire: grows vertex by vertex.  complete,
    star, path, binary-tree.
    """
    terminal = open_terminal(json_output=json_output, log_format=log_format)
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
