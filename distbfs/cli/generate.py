"""``distbfs generate``: make a graph of a family and store it."""

from __future__ import annotations

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


@click.command("generate")
@click.argument("family", type=click.Choice(list(registry.FAMILIES)))
@click.option(
    "--scale", "-s", type=click.IntRange(1, 48), required=True, help="2^scale vertices."
)
@click.option(
    "--edge-factor",
    type=click.IntRange(1, 4096),
    default=16,
    help="Tuples per vertex.  [16]",
)
@click.option("--seed", type=int, default=1, help="Seed of the tuples.  [1]")
@click.option("--output", "-o", type=STORE, required=True, help="Folder of the store.")
@click.option("--force", is_flag=True, help="Replace a store that is there.")
@build_options
@output_options
def command(
    family: str,
    scale: int,
    edge_factor: int,
    seed: int,
    output: Path,
    force: bool,
    parts: int | None,
    threshold: int | None,
    pass_gib: float,
    json_output: bool,
    log_format: str,
) -> None:
    """Generate a graph of a FAMILY, separate it by degree and store it."""
    terminal = open_terminal(json_output=json_output, log_format=log_format)
    source = registry.lookup(registry.FAMILIES, "family", family)(
        scale, edge_factor, seed, share_of_cores(terminal.world)
    )
    options = make_build_options(
        threshold=threshold, pass_gib=pass_gib, permute_seed=None
    )
    store_graph(terminal, source, output, parts, options, force=force)
