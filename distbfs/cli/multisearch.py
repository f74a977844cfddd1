"""``distbfs multisearch``: applications of many searches at once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from distbfs.cli.command import input_path
from distbfs.cli.graphs import SearchedGraph, open_graph
from distbfs.cli.options.multisearch import APPS, MultisearchOptions
from distbfs.cli.shared import (
    AT_ONCE,
    LOG,
    Terminal,
    open_terminal,
    share_of_cores,
    stop_requests,
)
from distbfs.cli.sources import NamedVertices, side_lines
from distbfs.errors import (
    DistbfsError,
    InputError,
    OutOfMemory,
    SearchStopped,
    UsageError,
)
from distbfs.leftovers import DASH
from distbfs.multisearch import cuda_bits
from distbfs.multisearch.application import Application, Facts, Take, Task
from distbfs.multisearch.base import Results, RunOptions
from distbfs.multisearch.pieces import Unfinished
from distbfs.multisearch.result_files import FILES, level_rows, write_arrays
from distbfs.multisearch.searchers import (
    PartsSearcher,
    Searcher,
    WholeSearcher,
    choose_sharing,
    whole_bytes,
)
from distbfs.options import SearchOptions
from distbfs.plan.memory import nothing_beside, readable
from distbfs.ranks.watch import Watch
from distbfs.ranks.world import Ranks
from distbfs.report.tables import print_fields, print_table
from distbfs.search.choose import Request, choose_searcher
from distbfs.search.result_file import partial_name
from distbfs.search.result_table import check_ending
from distbfs.timing import clock
from distbfs.types import Ids, World

if TYPE_CHECKING:
    from distbfs.partition.share import ShareCounts

COUNT = re.compile("[0-9]{1,18}")


def pick_sources(named: NamedVertices, asked: MultisearchOptions) -> Ids:
    """Return ``--sources K|FILE|all``, int64 [k], equal on all ranks (collective).

    K vertices are drawn from all vertices, and are ascending. Vertices of a file stay
    in its order; repeats stay only if the application allows them.
    """
    text, n = asked.sources, named.n
    if text == "all":
        return np.arange(n, dtype=np.int64)
    if COUNT.fullmatch(text):
        if int(text) > n:
            raise UsageError(f"--sources is {text}; allowed: 0 to {n}, a file, all")
        drawn = np.random.default_rng(asked.seed).choice(n, int(text), replace=False)
        return np.sort(drawn.astype(np.int64))
    path = input_path(text)
    sources = named.agreed(lambda: named.sources((), path))
    if not APPS[asked.app].repeats:
        sources = [*dict.fromkeys(sources)]
    return np.array(sources, dtype=np.int64)


def read_pairs(path: Path, named: NamedVertices) -> list[list[int]]:
    """Return the pairs of vertices in a file.

    Each line has two ids, separated by a tab, a comma or blanks, whichever of these
    comes first in this list and is in the line outside quotes; see ``side_lines``.
    Raises InputError or UsageError, which name the line.
    """
    pairs = []
    for place, words in side_lines(path, "\t, "):
        if len(words) != 2:
            raise InputError(f"{place}: {len(words)} words; allowed: two ids")
        ends = zip(words, ("source", "target"), strict=True)
        pairs.append([named.find(word, place, what) for word, what in ends])
    return pairs


def print_facts(values: Facts, app: Application) -> None:
    """Print the report of an application as text."""
    facts = dict(values["found"])
    rows = facts.pop("largest", None)
    facts.pop("answers", None)
    if facts.get("connected") is False:
        facts["connected"] = "no: figures are of the largest component"
    searched = {"sources": values["sources"]}
    if app.takes != "sources" or "samples" in facts:
        searched = {}
    shown = {**searched, **facts, "seconds": values["seconds"]}
    tails = values.get("tails")
    if tails:
        shown["read from host memory"] = (
            f"{tails['tail_edges']} columns of tails, "
            f"{readable(tails['tail_bytes'])} over the link"
        )
    print_fields({k: v for k, v in shown.items() if v is not None})
    if rows:
        click.echo()
        print_table(("vertex", app.name), rows)


LOST = "; what was done is lost"


def run(asked: MultisearchOptions) -> None:
    """Run the command."""
    terminal, output = open_terminal(asked), asked.output
    world, application = terminal.world, APPS[asked.app]
    own = application.options_of(asked.own)
    check_input(terminal, application, asked)
    with ExitStack() as stack:
        flag = stack.enter_context(stop_requests())
        stack.enter_context(Watch(world, asked.patience, lambda: flag.requested))
        search = dict(asked.search)
        search["threads"] = search["threads"] or share_of_cores(world)
        if search["threshold"].isdigit():
            search["threshold"] = int(search["threshold"])
        options = RunOptions(**search, stop=lambda: flag.requested)
        with flag.within(AT_ONCE):
            graph = open_graph(terminal, stack, asked.graph, asked, options.threads)
        sources, pairs = starts_of(graph, world, application, asked)
        with flag.within(AT_ONCE):
            searcher = make_searcher(terminal, graph, asked, options)
        task = Task(
            searcher,
            sources,
            pairs,
            ids=graph.ids,
            progress=terminal.progress,
            say=terminal.say,
            label=asked.app,
            seed=asked.seed,
        )
        attributes = {
            "app": application.name,
            "n": graph.source.n,
            "directed": graph.source.directed,
        }
        attributes |= {k: v for k, v in own.items() if v is not None}
        if output is not None and world.rank == 0:
            identity = [graph.facts, application.name, own]
            task = with_output(
                task, application, output, attributes, identity, force=asked.force
            )
        began = clock()  # which stops while kernels are compiled
        results = run_or_stop(application, task, own)
        if results is None:
            return
        facts, arrays = results.facts, results.values
        if application.takes == "sources":
            arrays = {"sources": sources, **arrays}
        if output is None and "reachable" in arrays:
            facts["answers"] = arrays["reachable"].tolist()
        elif output is not None and world.rank == 0 and results.values:
            write_arrays(output, arrays, attributes, graph.ids, force=asked.force)
        seconds = clock() - began
        if task.unfinished is not None:
            task.unfinished.remove()
    values = {
        "store": str(asked.graph),
        "app": asked.app,
        "vertices": graph.source.n,
        "directed": graph.source.directed,
        "engine": searcher.describe(),
        "sources": facts.get("samples", len(sources)),
        "found": facts,
        "seconds": seconds,
        **({"tails": searcher.tails} if searcher.tails else {}),
    }
    terminal.result(values, lambda: print_facts(values, application), output)
    world.barrier()


def starts_of(
    graph: SearchedGraph, world: Ranks, app: Application, asked: MultisearchOptions
) -> tuple[Ids, Ids]:
    """Return sources and pairs, equal on all ranks (collective)."""
    named = NamedVertices(world, graph.source.n, graph.ids)
    sources, pairs = np.zeros(0, dtype=np.int64), list[list[int]]()
    if asked.pairs is not None:
        if world.rank == 0:
            pairs = read_pairs(asked.pairs, named)
        pairs = world.broadcast(pairs)
    elif app.takes == "sources":
        sources = pick_sources(named, asked)
    return sources, np.array(pairs, dtype=np.int64).reshape(-1, 2)


def with_output(
    task: Task,
    app: Application,
    output: Path,
    attributes: Mapping[str, Any],
    identity: Any,
    *,
    force: bool,
) -> Task:
    """Return a task that writes rows of levels to the output.

    If the application can resume, finished searches are kept beside the file; identity:
    JSON values that identify the run.
    """
    unfinished = None
    if app.resumes and output != DASH:
        unfinished = Unfinished(partial_name(output), identity, force)

    def rows(dtype: str) -> AbstractContextManager[Take]:
        layout = (task.sources, task.searcher.n, dtype, attributes, task.ids)
        return level_rows(output, *layout, force=force)

    return replace(task, rows=rows, unfinished=unfinished)


def run_or_stop(app: Application, task: Task, asked: dict[str, Any]) -> Results | None:
    """Run an application; return None if it was stopped (collective)."""
    world, lost = task.searcher.world, "" if task.unfinished else LOST
    try:
        return app.run(task, **asked)
    except SearchStopped as error:  # on all ranks
        LOG.warning("%s%s", error, lost)
        world.barrier()
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(f"{error}{lost}") from error
    return None


def check_input(
    terminal: Terminal, app: Application, asked: MultisearchOptions
) -> None:
    """Check, before the graph is loaded, that options fit an application."""
    output, pairs = asked.output, asked.pairs
    if (app.takes == "pairs") != (pairs is not None):
        raise UsageError(
            f"{app.name} needs --pairs"
            if pairs is None
            else f"{app.name} takes no --pairs"
        )
    terminal.stdout_place(output)
    if output is not None:
        if not app.writes:
            raise UsageError(f"{app.name} prints what it finds; leave out --output")
        check_ending(output, FILES, app.name, force=asked.force)


def host_share(world: World, engine: str, options: RunOptions) -> int | None:
    """Return the bytes of host memory that this rank may use for a graph of its own.

    Return None if no limit is known.
    """
    have = options.host_memory
    if have is None and engine == "xbfs":
        from distbfs.build.cuda.room import Room  # noqa: PLC0415 - of CUDA

        have = Room(None, None, nothing_beside).host_limit()
    hosts = world.hosts
    return None if have is None else have // hosts.count(hosts[world.rank])


def beside_searches(share: ShareCounts) -> int:
    """Return the bytes that searches of one traversal take on a device; see ``Beside``.

    The module that knows needs CUDA, and is imported only if devices search.
    """
    return cuda_bits.bytes_beside(share)


def make_searcher(
    terminal: Terminal,
    graph: SearchedGraph,
    asked: MultisearchOptions,
    options: RunOptions,
) -> Searcher:
    """Load a graph and return its searcher (collective); logs the choice."""
    world, source, domain = terminal.world, graph.source, asked.domain
    way, why = choose_sharing(world, source, asked.divide)
    if world.size > 1:
        terminal.say(f"ranks share {way}: {why}")
    if way == "parts":
        if options.method:
            raise UsageError(f"method '{options.method}' does not search parts")
        wanted = SearchOptions(
            engine=asked.engine,
            parents=False,
            threads=options.threads,
            device_memory=options.device_memory,
            host_memory=options.host_memory,
        )
        request = Request(domain=domain, divided=True, beside=beside_searches)
        opening = terminal.prepare(source, wanted, request)
        if domain is not None and opening.choice.place == "host":
            raise UsageError("--domain is for parts on devices, not in host memory")
        session = opening.open()
        terminal.say_engine(session)
        return PartsSearcher(session, options, directed=source.directed)
    if domain is not None:
        raise UsageError("--domain is for parts on devices; add --divide parts")
    try:
        part = source.whole_part()
        kind, reason = choose_searcher(asked.engine, world)
        options = replace(options, host_memory=host_share(world, kind.engine, options))
        searcher: WholeSearcher = kind(world, part, options)
    except DistbfsError:
        raise
    except MemoryError as error:
        need = readable(whole_bytes(source))
        raise OutOfMemory(
            f"{asked.graph}: a rank needs about {need} for the whole graph; there is "
            "not enough memory"
        ) from error
    text = "; ".join(x for x in (f"engine {searcher.engine}", searcher.where) if x)
    tells = reason and terminal.tells(reason)
    terminal.say(f"{text}; auto: {reason}" if tells else text)
    return searcher
