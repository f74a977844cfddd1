"""``distbfs multisearch``: applications of many searches at once."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from distbfs import registry
from distbfs.device import cuda
from distbfs.errors import ResourceError, UsageError
from distbfs.exchange.watch import Watch
from distbfs.formats.writing import check_place
from distbfs.multisearch.apps import reachability
from distbfs.multisearch.base import MOST, RunOptions
from distbfs.multisearch.input_graph import whole_graph
from distbfs.multisearch.result_files import check_name
from distbfs.multisearch.searchers import (
    WAYS,
    PartsSearcher,
    Searcher,
    WholeSearcher,
    choose_sharing,
    whole_bytes,
)
from distbfs.options import SearchOptions
from distbfs.plan.memory import readable
from distbfs.search.choose import agreed_runner
from distbfs.store.hdf5 import Store, open_store
from distbfs.terminal.applications import (
    APPS,
    Task,
    pick_sources,
    print_told,
    read_pairs,
)
from distbfs.terminal.energy import energy_of, energy_option
from distbfs.terminal.shared import (
    AT_ONCE,
    STORE,
    Terminal,
    engine_line,
    open_terminal,
    output_options,
    patience_option,
    prepare_stored,
    share_of_cores,
    stop_requests,
    with_options,
)

SAMPLED = 64  # sources whose edges are counted for --energy
PARTS_ENGINES = {"cuda": "pan"}  # what the engine is called that searches parts

source_options = with_options(
    click.option(
        "--sources",
        "chosen",
        default="all",
        metavar="K|FILE|all",
        help="K random vertices, those of a file (one id a line), or all.  [all]",
    ),
    click.option("--seed", default=1, help="Seed of the K random vertices.  [1]"),
    click.option(
        "--pairs",
        type=click.Path(path_type=Path),
        help="File of reachability: two ids a line, from and to, separated by a tab, "
        "a comma or blanks.",
    ),
)

app_options = with_options(
    click.option(
        "--normalized/--no-normalized",
        default=True,
        help="Scale betweenness and closeness as NetworkX does by default.  [yes]",
    ),
    click.option(
        "--dtype",
        type=click.Choice(["auto", *MOST]),
        default="auto",
        help="Type of levels; auto: the narrowest that holds them.  [auto]",
    ),
    click.option("--hops", type=click.IntRange(0), help="Hops of khop; default: all."),
)

run_options = with_options(
    click.option(
        "--engine",
        type=click.Choice(["auto", *registry.RUNNERS]),
        default="auto",
        help="auto takes cuda where there is a device, else openmp.  [auto]",
    ),
    click.option("--method", default="", help="Variant of the engine."),
    click.option(
        "--threshold",
        default="16",
        metavar="T|auto",
        help="Degree from which a warp takes a vertex (hybrid on cuda).  [16]",
    ),
    click.option(
        "--batch",
        type=click.IntRange(0),
        default=0,
        help="Searches at once; 0: what memory allows.  [0]",
    ),
    click.option(
        "--threads",
        type=click.IntRange(0, 4096),
        default=0,
        help="OpenMP threads a rank; 0: this rank's share of the cores.  [0]",
    ),
    click.option(
        "--divide",
        type=click.Choice(WAYS),
        default="auto",
        help="What ranks share: sources, each with the whole graph, or its parts; "
        "auto: sources where the graph fits on each rank.  [auto]",
    ),
)


@click.command("multisearch")
@click.argument("app", type=click.Choice(list(APPS)))
@click.argument("store", type=STORE)
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    help="File of the results: .h5; .parquet too for apsp, .csv for reachability.",
)
@click.option("--force", is_flag=True, help="Replace an output that is there.")
@source_options
@app_options
@run_options
@energy_option
@patience_option
@output_options
def command(
    app: str,
    store: Path,
    output: Path | None,
    force: bool,
    chosen: str,
    seed: int,
    pairs: Path | None,
    normalized: bool,
    dtype: str,
    hops: int | None,
    threshold: str,
    divide: str,
    with_energy: bool,
    patience: float | None,
    json_output: bool,
    log_format: str,
    **choices: Any,
) -> None:
    """Run an application of many searches on the graph of STORE.

    apsp: lengths of shortest paths.  reachability: answers for --pairs.  betweenness,
    closeness, eccentricity: a value for each vertex.  diameter: exact, with the radius.
    khop: vertices within hops.
    """
    terminal = open_terminal(json_output=json_output, log_format=log_format)
    world = terminal.world
    check_given(app, output, force=force, pairs=pairs)
    opened = open_store(store)
    manifest = opened.manifest
    ids = opened.load_ids() if world.rank == 0 else None
    with ExitStack() as stack:
        flag = stack.enter_context(stop_requests())
        stack.enter_context(Watch(world, patience, lambda: flag.requested))
        options = RunOptions(
            method=choices["method"],
            threshold=int(threshold) if threshold.isdigit() else threshold,
            batch=choices["batch"],
            threads=choices["threads"] or share_of_cores(world),
            stop=lambda: flag.requested,
        )
        sources, asked = np.zeros(0, dtype=np.int64), []
        names: list[tuple[str, str]] = []
        if pairs is not None:
            if world.rank == 0:
                found, names = read_pairs(pairs, manifest.n, ids)
                asked = found.ravel().tolist()
            asked = world.broadcast(asked)
        elif app != "diameter":
            sources = pick_sources(terminal, chosen, manifest.n, ids, seed, app)
        with flag.within(AT_ONCE):
            engine = choices["engine"]
            searcher = make_searcher(terminal, opened, engine, options, divide)
        told = {"app": app, "n": manifest.n, "directed": manifest.directed}
        task = Task(
            terminal,
            searcher,
            options,
            sources,
            output,
            force,
            ids,
            {**told, "normalized": normalized},
            normalized,
            dtype,
            hops,
            np.array(asked, dtype=np.int64).reshape(-1, 2),
            names,
        )
        began = time.perf_counter()
        result = APPS[app](task)
        seconds = time.perf_counter() - began
        energy = app_energy(task, app, result) if with_energy else None
    values = {
        "store": str(store),
        **told,
        "engine": searcher.describe(),
        "sources": len(sources),
        "found": result,
        "seconds": seconds,
        **({"energy": energy} if energy is not None else {}),
    }
    terminal.result(values, lambda: print_told(values))
    world.barrier()


def app_energy(task: Task, app: str, found: dict[str, Any]) -> dict[str, Any]:
    """Return the energy of an application, run again without output (collective).

    The edges of all searches are those of at most SAMPLED sources, scaled up.
    """
    again = replace(task, output=None)
    searcher, sources = task.searcher, task.sources
    if app == "reachability":
        sources = np.unique(task.pairs[:, 0])
    count = int(found.get("searches", len(sources)))
    some = sources[:: max(len(sources) // SAMPLED, 1)][:SAMPLED]
    edges = 0
    part = searcher.part
    if len(some) and part is not None:
        degrees = np.empty(part.local_count)
        degrees[part.vertices] = part.degrees
        rows = searcher.run(reachability.PROBLEM, some)["reachable"]
        edges = int((rows @ degrees).sum() / 2 / len(some) * count)
    uuids = [cuda.uuid()] if searcher.engine == "cuda" else []
    world = task.terminal.world
    edges = world.broadcast(edges)
    return energy_of(world, lambda: APPS[app](again), count, edges, uuids)


def check_given(app: str, output: Path | None, *, force: bool, pairs: Any) -> None:
    """Refuse, before the graph is loaded, options that do not fit an application."""
    if (app == "reachability") != (pairs is not None):
        raise UsageError(
            "reachability needs --pairs" if pairs is None else f"{app} takes no --pairs"
        )
    if output is None:
        return
    if app == "diameter":
        raise UsageError("diameter prints what it finds; leave --output out")
    check_name(output, app)
    check_place(output, force=force)


def make_searcher(
    terminal: Terminal, store: Store, engine: str, options: RunOptions, divide: str
) -> Searcher:
    """Load a store and return what searches it (collective); says how."""
    world, manifest = terminal.world, store.manifest
    way, why = choose_sharing(world, world.hosts, manifest, divide)
    if world.size > 1:
        terminal.say(f"ranks share {way}: {why}")
    if way == "parts":
        if options.method:
            raise UsageError(f"method '{options.method}' is not for parts")
        name = PARTS_ENGINES.get(engine, engine)
        wanted = SearchOptions(engine=name, parents=False, threads=options.threads)
        session = prepare_stored(terminal, store, wanted).open()
        terminal.say(engine_line(session))
        return PartsSearcher(session, options)
    try:
        part = whole_graph(store)
        runner, reason = agreed_runner(world, engine, part)
        searcher = WholeSearcher(world, runner, part, options)
    except MemoryError as error:
        need = readable(whole_bytes(manifest))
        raise ResourceError(
            f"{store.folder}: a rank needs about {need} for the whole graph; there is "
            "not enough memory"
        ) from error
    text = f"engine {runner.name}"
    terminal.say(f"{text}; auto: {reason}" if reason else text)
    return searcher
