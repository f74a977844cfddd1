"""``distbfs graph500``: generation, construction, 64 searches, validation, report."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import click
import numpy as np

from distbfs.benchmark import graph500_report as reports
from distbfs.benchmark.graph500 import run_searches
from distbfs.benchmark.roots import (
    Connected,
    choose_roots,
    connected_from_tuples,
    some_roots,
)
from distbfs.cli.measures import searches_energy, traced
from distbfs.cli.options.graph500 import Graph500Options
from distbfs.cli.shared import (
    AT_ONCE,
    Terminal,
    engine_line,
    make_request,
    open_terminal,
    searched,
    stop_requests,
    warn_of_rest,
    write_records,
)
from distbfs.errors import UsageError
from distbfs.formats.ids import IdMap, name_of
from distbfs.generate.families import from_description
from distbfs.generate.kronecker import Kronecker
from distbfs.options import SearchOptions
from distbfs.progress import Sum
from distbfs.ranks.watch import Watch
from distbfs.report.energy import energy_lines
from distbfs.report.provenance import machine, versions
from distbfs.search.choose import Request
from distbfs.search.session import Session
from distbfs.store.hdf5 import Store, open_store
from distbfs.store.tuples import StoreTuples
from distbfs.timing import COMPILING, clock
from distbfs.types import TupleSource

BUILD_OPTIONS = ("edge_factor", "directed", "parts", "threshold", "pass_bytes")
NOTED_SECONDS = 0.1  # of compiling that a report tells
VALIDATION_SECONDS = 3.0  # that one may go on when a stop was requested
MANY_TUPLES = 1 << 26  # whose graph is not built in a moment


def slowest(terminal: Terminal, seconds: float) -> float:
    """Return the largest of the ranks' times (collective)."""
    return float(terminal.world.allreduce(np.array([seconds]), "max")[0])


def compile_note(terminal: Terminal) -> dict[str, str]:
    """Return the line of a report on compiled kernels (collective)."""
    seconds = slowest(terminal, COMPILING.seconds)
    if seconds < NOTED_SECONDS:
        return {}
    return {
        "kernels": f"compiled in {seconds:.2g} s at first use, counted in no figure"
    }


@dataclass(frozen=True)
class BenchmarkGraph:
    """A graph to be searched, and the validator of its searches.

    directed: whether edges lead one way
    exact: whether ``tuples`` are the tuples that the graph was built from
    facts: facts for the report
    """

    session: Session
    tuples: TupleSource
    directed: bool
    exact: bool
    facts: dict[str, Any]

    @property
    def connected(self) -> Connected:
        """A collective function that says which vertices have edges to others."""
        if not self.directed:
            return self.session.connected
        world, tuples = self.session.world, self.tuples
        # mutant: directed=True -> directed=False : test_graph500_of_a_directed_graph
        return connected_from_tuples(world, tuples, directed=True)


def open_tuples(
    terminal: Terminal,
    asked: Graph500Options,
    options: SearchOptions,
    request: Request,
    buffer_bytes: int | None,
) -> BenchmarkGraph:
    """Generate and build a graph (collective)."""
    tuples = Kronecker(
        int(asked.scale or 0), asked.edge_factor, asked.seed, options.threads
    )
    if tuples.tuples >= MANY_TUPLES:
        terminal.say(f"building {tuples.n} vertices from {tuples.tuples} tuples")
    build = asked.build | {"directed": asked.directed}
    source = terminal.source(tuples, options.threads, request.parts, **build)
    source = replace(source, buffer_bytes=buffer_bytes)
    session = terminal.prepare(source, options, request).open()
    held, notes = session.held, {}
    if making := held.facts.get("part", {}).get("making"):
        from distbfs.build.cuda.making import IN_WORDS  # noqa: PLC0415

        notes["tuples"] = IN_WORDS[making]
    facts = {"scale": tuples.scale, "edgefactor": tuples.edge_factor, "notes": notes}
    for name in ("generation_seconds", "construction_seconds"):
        facts[name] = slowest(terminal, getattr(held, name))
    return BenchmarkGraph(session, tuples, asked.directed, exact=True, facts=facts)


def open_a_store(
    terminal: Terminal, store: Store, options: SearchOptions, request: Request
) -> BenchmarkGraph:
    """Load a stored graph (collective)."""
    manifest, began = store.manifest, clock()
    session = terminal.prepare(terminal.source(store), options, request).open()
    seconds = slowest(terminal, clock() - began)
    with terminal.progress("generating", 0) as tell:
        tuples = from_description(manifest.source, options.threads, tell)
    size = (manifest.n, manifest.tuples)
    exact = tuples is not None and (tuples.n, tuples.tuples) == size
    loaded = f"loaded from {store.folder}; construction_time is the time to load"
    checked = "its tuples" if exact else "its stored edges"
    facts: dict[str, Any] = {
        "scale": max(manifest.n - 1, 1).bit_length(),
        "edgefactor": round(manifest.tuples / max(manifest.n, 1)),
        "generation_seconds": 0.0,
        "construction_seconds": seconds,
        "notes": {"graph": loaded, "validated by": checked},
    }
    source = tuples if exact and tuples else StoreTuples(store)
    return BenchmarkGraph(session, source, manifest.directed, exact, facts)


def typed(context: click.Context, name: str) -> bool:
    """Return whether an option was given on the command line."""
    return context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


def refuse_together(context: click.Context, asked: Graph500Options) -> None:
    """Raise UsageError for options that do not go together."""
    if (asked.scale is None) == (asked.graph is None):
        raise UsageError("give either --scale or --graph")
    if typed(context, "skip_validation") and typed(context, "validate"):
        raise UsageError("give either --skip-validation or --validate")
    for option in context.command.params if asked.graph is not None else ():
        if option.name in BUILD_OPTIONS and typed(context, option.name):
            name = max(option.opts, key=len)
            raise UsageError(f"{name} is settled by the store; leave it out")


def run(asked: Graph500Options) -> None:
    """Run the command."""
    context, graph = click.get_current_context(), asked.graph
    refuse_together(context, asked)
    terminal = open_terminal(asked)
    world, place = terminal.world, terminal.stdout_place(asked.records, asked.trace)
    request = make_request(asked, asked.parts, asked.build.get("threshold"))
    options = terminal.search_options(asked)
    store = None if graph is None else open_store(graph)
    ids = None if store is None or world.rank else store.load_ids()
    with ExitStack() as stack:
        stop = stack.enter_context(stop_requests())
        stack.enter_context(Watch(world, asked.patience, lambda: stop.requested))
        log = terminal.open_records(stack, asked.records)
        buffer = asked.build["pass_bytes"] if typed(context, "pass_bytes") else None
        with stop.within(AT_ONCE):
            if store is not None:
                opened = open_a_store(terminal, store, options, request)
            else:
                opened = open_tuples(terminal, asked, options, request, buffer)
        session = opened.session
        terminal.say_engine(session)
        n, connected = session.layout.n, opened.connected
        chosen = some_roots(choose_roots(n, asked.roots, asked.seed, connected))
        check = min(asked.validate or len(chosen), len(chosen))
        check = 0 if asked.skip_validation else check
        progress = terminal.progress("searching", len(chosen) + check)
        with traced(terminal, asked.trace, session, ids), progress as tell:
            searches = run_searches(
                session,
                opened.tuples,
                chosen,
                exact=opened.exact,
                directed=opened.directed,
                check=check,
                each=partial(searched, session, flag=stop),
                hurry=lambda: stop.within(VALIDATION_SECONDS),
                done=Sum(tell),
            )
        warn_of_rest(len(searches), len(chosen))
        if asked.records is not None:
            again = chosen[: len(searches)].tolist()
            for result in searched(session, again, stop, records=True):
                write_records(log, {"root": name_of(result.root, ids)}, result.records)
        edges = [x.nedge for x in searches] if asked.energy else []
        energy = searches_energy(session, chosen.tolist(), edges)
        searches = in_ids_of_the_file(searches, ids)
        session.close()
        if not searches:
            return
        lines = energy_lines(energy) if energy is not None else []
        notes = {**opened.facts.pop("notes"), **session.notes()}
        notes |= compile_note(terminal)
        notes |= {f"energy {k}": line for k, line in enumerate(lines, 1)}
        figures = reports.BenchmarkFigures(
            **opened.facts,
            threshold=session.held.threshold,
            processes=world.size,
            searches=searches,
            engine=engine_line(session).removeprefix("engine "),
            parts=session.layout.parts,
            levels=options.levels,
            parents=options.parents,
            directed=opened.directed,
            internal_ids=options.internal_ids,
            versions={**versions(), "mpi": str(world.describe()["library"])},
            machine={**machine(), "hosts": world.describe()["hosts"]},
            notes=notes,
        )
        values = {**reports.as_json(figures), "search": session.describe()}
        values |= {} if energy is None else {"energy": energy}
        text = reports.as_text(figures)
        terminal.result(values, lambda: click.echo(text, nl=False), place)


def in_ids_of_the_file(
    searches: list[reports.SearchFigures], ids: IdMap | None
) -> list[reports.SearchFigures]:
    """Return figures whose roots have the ids that the store keeps, if it does."""
    if ids is None:
        return searches
    more = "(vertices are numbers of the store here, from 0)"
    return [
        replace(
            figures,
            root=name_of(int(figures.root), ids),
            error=figures.error and f"{figures.error} {more}",
        )
        for figures in searches
    ]
