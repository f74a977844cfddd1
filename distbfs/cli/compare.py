"""``distbfs compare``: engines side by side on one graph, from the same sources."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import fields
from typing import Any

import click

from distbfs import registry
from distbfs.benchmark.compare_figures import print_comparison
from distbfs.benchmark.compare_plots import draw_panels
from distbfs.benchmark.libraries.base import installed
from distbfs.cli.comparison import (
    Entry,
    Sessions,
    choose_sources,
    compare,
    spread_threads,
)
from distbfs.cli.graphs import sizes_of
from distbfs.cli.measures import searches_energy
from distbfs.cli.options.compare import CompareOptions
from distbfs.cli.shared import (
    Terminal,
    open_terminal,
    share_of_cores,
)
from distbfs.errors import UsageError
from distbfs.options import MOST_THREADS, Knobs, SearchOptions, check_choice
from distbfs.report import plots
from distbfs.report.energy import energy_lines, joules_of
from distbfs.report.provenance import provenance
from distbfs.store.hdf5 import Store, open_store

KNOBS = tuple(item.name for item in fields(Knobs))
SWITCHES = ("async", "parents", "stepwise")
OPTIONS = ("frontier", "balance", "direction", "threads", *SWITCHES, *KNOBS)


def split_entries(text: str) -> list[str]:
    """Split a list into engines; a lone ``key=value`` belongs to the one before it."""
    entries: list[str] = []
    for piece in text.split(","):
        alone = "=" in piece and ":" not in piece
        if alone and entries and ":" in entries[-1]:
            entries[-1] += "," + piece
        else:
            entries.append(piece.strip())
    return entries


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
        if key in SWITCHES:
            check_choice(f"{key} of engine '{text}'", value, ("yes", "no"))
        if key == "threads" and not value.isdecimal():
            raise UsageError(f"'{word}' of engine '{text}' is not a number")
        if key in KNOBS:
            values["knobs"] = values.get("knobs", Knobs()).with_text(key, value)
        elif key in SWITCHES:
            values["asynchronous" if key == "async" else key] = value == "yes"
        else:
            values[key] = int(value) if key == "threads" else value
    own = values["threads"] if "threads=" in words else None
    options = SearchOptions.named(engine=engine, method=method, **values)
    return Entry(text, options, threads=own)


def parse_entries(
    text: str,
    baseline: str | None,
    threads: Sequence[int],
    libraries: Sequence[str] = (),
) -> list[Entry]:
    """Return all engines; UsageError if two are equal, or the baseline is missing.

    threads: numbers of threads with which engines of the host run, one after another
    """
    parsed = [parse_entry(one, threads[0]) for one in split_entries(text)]
    labels = [entry.label for entry in parsed]
    for label in labels:
        if labels.count(label) > 1:
            raise UsageError(f"engine '{label}' is given twice")
    entries = spread_threads(parsed, threads)
    entries += [Entry(name, SearchOptions(), library=name) for name in libraries]
    labels = [entry.label for entry in entries]
    if baseline is not None and baseline not in labels:
        names = ", ".join(labels)
        raise UsageError(f"baseline '{baseline}' is not an engine; allowed: {names}")
    return entries


def parse_threads(text: str, share: int) -> list[int]:
    """Return the numbers of threads of a list; 0 is this rank's share of the cores."""
    counts = []
    for word in text.split(","):
        if not word.strip().isdecimal() or not 0 <= int(word) <= MOST_THREADS:
            raise UsageError(
                f"threads is '{word}'; allowed: 0 to {MOST_THREADS}, commas between"
            )
        counts.append(int(word) or share)
    return list(dict.fromkeys(counts))


def parse_libraries(text: str | None) -> list[str]:
    """Return the libraries in a list; ``all`` stands for the installed ones."""
    if text is None:
        return []
    names = installed() if text == "all" else text.split(",")
    for name in names:
        registry.lookup(registry.LIBRARIES, "peer", name)
    return list(dict.fromkeys(names))


def run(asked: CompareOptions) -> None:
    """Run the command."""
    terminal = open_terminal(asked)
    world, plot = terminal.world, asked.plot
    place = terminal.stdout_place(plot)
    counts = parse_threads(asked.threads, share_of_cores(world))
    others = parse_libraries(asked.libraries)
    entries = parse_entries(asked.engines, asked.baseline, counts, others)
    if others and world.size > 1:
        raise UsageError("peers search in one process; leave out mpirun")
    if plot is not None:
        plots.check_target(plot)
    stores = [open_store(path) for path in asked.stores]
    comparisons = []
    for store in stores:
        again = parse_entries(asked.engines, asked.baseline, counts, others)
        label = asked.baseline or entries[0].label
        comparisons.append(compare_on(terminal, store, again, asked, label))
    device = any("rates" in x and "cuda" in x["rates"] for x in comparisons)
    values = provenance(["distbfs", *sys.argv[1:]], device=device)
    values |= comparisons[0] if len(stores) == 1 else {"comparisons": comparisons}
    values["ranks"] = world.size
    if plot is not None and world.rank == 0:
        draw_panels(values, plot)
        terminal.say(f"wrote {plot}")
    terminal.result(values, lambda: print_all(values), place)


def compare_on(
    terminal: Terminal,
    store: Store,
    entries: list[Entry],
    asked: CompareOptions,
    baseline: str,
) -> dict[str, Any]:
    """Compare engines on one graph; return the figures (collective)."""
    sessions = Sessions(terminal, store)
    for entry in entries:
        if not entry.library:
            sessions.check(entry.options)
    with ExitStack() as stack:
        for entry in entries:
            if entry.library:
                entry.session = sessions.of_library(entry.library)
            else:
                entry.session = sessions.open(entry.options)
            stack.callback(entry.session.close)
        chosen = choose_sources(
            entries[0].session, asked.sources, asked.seed, directed=sessions.directed
        )
        ids = store.load_ids() if terminal.world.rank == 0 else None
        compared = compare(terminal, entries, chosen, asked.repeats, baseline, ids)
        if asked.energy:
            for entry, figures in zip(entries, compared["engines"], strict=True):
                if not entry.library:
                    energy = searches_energy(
                        entry.session, chosen.tolist(), compared["nedge"]
                    )
                    figures |= {"energy": energy, "joules": joules_of(energy or {})}
        session, directed = entries[0].session, sessions.directed
        about = {
            "title": str(store.folder),
            "source": store.manifest.source,
            **sizes_of(session.n, session.edges, directed=directed),
            "directed": directed,
        }
    return {"graph": about, **compared}


def print_all(values: dict[str, Any]) -> None:
    """Print comparisons and, if requested, each engine's energy."""
    print_comparison(values)
    for comparison in values.get("comparisons", [values]):
        for engine in comparison["engines"]:
            if "energy" in engine:
                lines = [f"{engine['engine']}:", *energy_lines(engine["energy"])]
                click.echo("\n".join(lines))
