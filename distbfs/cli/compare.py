"""``distbfs compare``: engines side by side on one graph, from the same sources."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from distbfs import registry
from distbfs.cli.common import STORE, open_terminal, output_options, share_of_cores
from distbfs.cli.comparing import (
    Entry,
    Sessions,
    choose_sources,
    compare,
    edges_of,
    uses_device,
)
from distbfs.cli.energy import energy_option, print_energy, searches_energy
from distbfs.cli.generate import make_source
from distbfs.cli.loading import need_symmetric
from distbfs.errors import UsageError
from distbfs.options import SearchOptions
from distbfs.report import plots
from distbfs.report.compare import print_comparison
from distbfs.report.provenance import provenance
from distbfs.store.hdf5 import open_store
from distbfs.types import TupleSource

OPTIONS = {
    "frontier": "frontier",
    "balance": "balance",
    "async": "asynchronous",
    "direction": "direction",
    "parents": "parents",
    "stepwise": "stepwise",
    "threads": "threads",
}
SWITCHES = ("async", "parents", "stepwise")
IN_MEMORY = ("kronecker", "uniform", "road")


def split_entries(text: str) -> list[str]:
    """Return the engines of a list; ``key=value`` alone goes to the one before it."""
    found: list[str] = []
    for piece in text.split(","):
        alone = "=" in piece and ":" not in piece
        if alone and found and ":" in found[-1]:
            found[-1] += "," + piece
        else:
            found.append(piece.strip())
    return found


def parse_entry(text: str, threads: int) -> Entry:
    """Return an engine from ``NAME[/METHOD][:KEY=VALUE,…]``."""
    name, _, words = text.partition(":")
    engine, _, method = name.partition("/")
    registry.lookup(registry.ENGINES, "engine", engine)
    values: dict[str, Any] = {"threads": threads}
    for word in words.split(",") if words else []:
        key, _, value = word.partition("=")
        if key not in OPTIONS or not value:
            allowed = ", ".join(f"{key}=…" for key in OPTIONS)
            raise UsageError(f"'{word}' of engine '{text}'; allowed: {allowed}")
        values[OPTIONS[key]] = parsed(text, key, value)
    return Entry(text, SearchOptions(engine=engine, method=method, **values))


def parsed(text: str, key: str, value: str) -> object:
    """Return the value of an option of an engine."""
    if key in SWITCHES:
        if value not in ("yes", "no"):
            raise UsageError(f"'{key}={value}' of engine '{text}'; allowed: yes, no")
        return value == "yes"
    if key == "threads":
        if not value.isdecimal():
            raise UsageError(f"'{key}={value}' of engine '{text}' is no number")
        return int(value)
    return value


def parse_entries(text: str, baseline: str | None, threads: int) -> list[Entry]:
    """Return all engines; UsageError where two are the same or the baseline is none."""
    entries = [parse_entry(one, threads) for one in split_entries(text)]
    labels = [entry.label for entry in entries]
    for label in labels:
        if labels.count(label) > 1:
            raise UsageError(f"engine '{label}' is given twice")
    if baseline is not None and baseline not in labels:
        names = ", ".join(labels)
        raise UsageError(f"baseline '{baseline}' is no engine; allowed: {names}")
    return entries


def given_source(
    store: Path | None, seed: int, threads: int, sizes: dict[str, int | None]
) -> TupleSource | None:
    """Return the graph that is to be built in memory, None for a store."""
    families = [name for name in IN_MEMORY if sizes[name] is not None]
    if (store is not None) + len(families) != 1:
        raise UsageError("give one of STORE, --kronecker, --uniform and --road")
    if store is not None:
        return None
    name = families[0]
    size = "vertices" if name == "road" else "scale"
    return make_source(name, threads, {size: sizes[name] or 0, "seed": seed})


@click.command("compare")
@click.argument("store", type=STORE, required=False)
@click.option(
    "--engines",
    default="openmp,reference",
    help="Engines, as xbfs,xbfs/paper:frontier=scan-free,async=no,openmp/push.  "
    "[openmp,reference]",
)
@click.option("--kronecker", type=click.IntRange(1, 48), help="Graph of 2^scale.")
@click.option("--uniform", type=click.IntRange(1, 48), help="2^scale, degree 32.")
@click.option("--road", type=click.IntRange(4), help="About so many vertices.")
@click.option(
    "--sources",
    "count",
    type=click.IntRange(1, 1 << 20),
    default=16,
    help="Vertices of the largest component to search from.  [16]",
)
@click.option("--seed", type=int, default=1, help="Seed of sources and graph.  [1]")
@click.option(
    "--repeats",
    type=click.IntRange(1, 10_000),
    default=3,
    help="Searches from each source by each engine.  [3]",
)
@click.option("--baseline", help="Engine that speed-ups refer to; default: the first.")
@click.option(
    "--threads",
    type=click.IntRange(0, 4096),
    default=0,
    help="OpenMP threads a rank; 0: this rank's share of the cores.  [0]",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path),
    help="Draw the GTEPS as bars: a .png, .svg or .pdf file.",
)
@energy_option
@output_options
def command(
    store: Path | None,
    engines: str,
    count: int,
    seed: int,
    repeats: int,
    baseline: str | None,
    threads: int,
    plot: Path | None,
    with_energy: bool,
    json_output: bool,
    log_format: str,
    **sizes: int | None,
) -> None:
    """Compare engines on STORE, or on a graph that is built in memory.

    An engine is NAME, NAME/METHOD or either with options after a colon, separated by
    commas: frontier, balance, async (yes, no), direction, parents (yes, no), stepwise
    (yes, no), threads.  All search the same sources, taking turns; their levels must be
    the same, else the exit code is 1.

    Times are by events on a device, by the clock on CPUs.  A speed-up is the ratio of
    median times.  Over limit is the time over that which memory would take for what a
    search must do at least, both measured in this run; edge checks are counted in
    searches of their own.
    """
    terminal = open_terminal(json_output=json_output, log_format=log_format)
    world = terminal.world
    share = threads or share_of_cores(world)
    entries = parse_entries(engines, baseline, share)
    if plot is not None:
        plots.check_target(plot)
    source = given_source(store, seed, share, sizes)
    opened = None if store is None else open_store(store)
    if opened is not None:
        need_symmetric(opened, "compare")
    sessions = Sessions(terminal, opened, source)
    for entry in entries:
        sessions.check(entry.options)
    with ExitStack() as stack:
        for entry in entries:
            entry.session = sessions.open(entry.options)
            stack.callback(entry.session.close)
        chosen = choose_sources(entries[0].open, count, seed)
        label = baseline or entries[0].label
        ids = opened.load_ids() if opened and world.rank == 0 else None
        told = compare(terminal, entries, chosen, repeats, label, ids)
        if with_energy:
            roots, edges = chosen.tolist(), sum(told["nedge"])
            for entry, figures in zip(entries, told["engines"], strict=True):
                figures["energy"] = searches_energy(entry.open, roots, edges)
        graph = {
            "title": str(store) if source is None else title_of(source),
            "source": opened.manifest.source if opened else described(source),
            "n": entries[0].open.layout.n,
            "m": edges_of(entries),
        }
        device = any(uses_device(entry) for entry in entries)
    values = provenance(["distbfs", *sys.argv[1:]], device=device) | {
        "graph": graph,
        **told,
    }
    values["ranks"] = world.size
    if plot is not None and world.rank == 0:
        plots.draw_comparison(values, plot)
        terminal.say(f"wrote {plot}")
    terminal.result(values, lambda: print_all(values))


def print_all(values: dict[str, Any]) -> None:
    """Print the comparison and, where it was asked for, each engine's energy."""
    print_comparison(values)
    for engine in values["engines"]:
        if "energy" in engine:
            click.echo(f"{engine['engine']}:")
            print_energy(engine["energy"])


def described(source: TupleSource | None) -> dict[str, Any]:
    """Return what recreates a source."""
    return {} if source is None else source.describe()


def title_of(source: TupleSource) -> str:
    """Return a source in words."""
    told = source.describe()
    size = told.get("scale", told.get("vertices", told.get("n")))
    return f"{told['family']} {size}"
