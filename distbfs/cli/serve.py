"""``distbfs serve``: a graph that stays loaded and answers queries."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from distbfs.cli.common import (
    STORE,
    Terminal,
    make_search_options,
    open_terminal,
    output_options,
    search_options,
    stop_requests,
    trace_option,
    with_options,
)
from distbfs.cli.loading import choose, engine_line, load_session
from distbfs.cli.tracing import check_trace, finish_trace, start_trace
from distbfs.errors import UsageError
from distbfs.service.front import Door, Front, clear_place, listen, standard_streams
from distbfs.service.limits import Limits
from distbfs.service.lines import SocketDoor, StreamDoor
from distbfs.service.ranks import Ranks
from distbfs.service.results import ResultFolder
from distbfs.service.service import Service
from distbfs.store.hdf5 import Store, open_store

LIMITS = {
    "queue": ("queue", "Requests that may wait; more are told busy."),
    "clients": ("clients", "Connections of the socket."),
    "deadline": ("deadline", "Seconds that a request may take; it may say less."),
    "line": ("max-line", "Bytes of a request."),
    "ids": ("max-ids", "Sources or targets of a request."),
    "inline": ("max-inline", "Values in an answer; more go to --results."),
    "files": ("max-files", "Files in the folder of results."),
}


def limit_option(name: str) -> Callable[[Any], Any]:
    """Return the option of one limit."""
    option, text = LIMITS[name]
    usual = getattr(Limits(), name)
    return click.option(
        f"--{option}",
        name,
        type=type(usual),
        default=usual,
        help=f"{text}  [{usual}]",
    )


limit_options = with_options(*map(limit_option, LIMITS))


def about(store: Store, path: Path, told: dict[str, Any], ranks: int) -> dict[str, Any]:
    """Return what ``stats`` tells of the graph (JSON values)."""
    manifest = store.manifest
    return {
        "store": str(path),
        "n": manifest.n,
        "m": manifest.m,
        "tuples": manifest.tuples,
        "parts": manifest.parts,
        "ranks": ranks,
        "engine": told,
    }


def open_doors(
    service: Service, stack: ExitStack, socket_path: Path | None
) -> list[Door]:
    """Return the ways in: the socket, or stdin and stdout without any."""
    doors: list[Door] = []
    if socket_path is not None:
        doors.append(SocketDoor(service, listen(socket_path)))
        stack.callback(socket_path.unlink, missing_ok=True)
    if not doors:
        doors.append(StreamDoor(service, standard_streams()))
    return doors


@click.command("serve")
@click.argument("store", type=STORE)
@click.option(
    "--socket",
    "socket_path",
    type=click.Path(path_type=Path),
    help="Unix socket for JSON Lines, mode 0600; without one: stdin and stdout.",
)
@click.option(
    "--results",
    type=click.Path(path_type=Path),
    help="Folder for bulk results.",
)
@limit_options
@trace_option
@search_options
@output_options
def command(
    store: Path,
    socket_path: Path | None,
    results: Path | None,
    trace_file: Path | None,
    json_output: bool,
    log_format: str,
    **choices: Any,
) -> None:
    """Load the graph of STORE and answer queries until the end is asked for.

    One JSON object a line: {"id": 7, "op": "distances", "source": 0, "targets": [3]}.
    Operations: bfs, distances, path, reachable, multi_bfs, stats, health, shutdown.
    Prints "ready" when it answers, and with --json its counts at the end.  SIGTERM and
    SIGUSR1: answer what waits, exit 0.
    """
    terminal = open_terminal(json_output=json_output, log_format=log_format)
    world = terminal.world
    limits = Limits(**{name: choices.pop(name) for name in LIMITS})
    if json_output and socket_path is None:
        raise UsageError("--json needs --socket: stdout carries the answers")
    check_trace(trace_file)
    if world.rank == 0 and socket_path is not None:
        clear_place(socket_path)
    opened = open_store(store)
    manifest = opened.manifest
    options = make_search_options(world, **choices)
    if options.internal_ids:
        raise UsageError("a service answers in input ids; leave --internal-ids out")
    choice = choose(world, options, manifest.n)
    with ExitStack() as stack:
        flag = stack.enter_context(stop_requests())
        folder = None
        if results is not None and world.rank == 0:
            folder = ResultFolder(
                results, limits.files, manifest.digests[0]["vertices"]
            )
        session = load_session(terminal, opened, choice)
        trace = start_trace(trace_file, session, choice)
        ranks = Ranks(session, flag, trace)
        if world.rank:
            ranks.follow()
        else:
            told = about(opened, store, session.describe(), world.size)
            service = Service(ranks, limits, told, folder)
            terminal.say(engine_line(session, choice.why))
            answer(terminal, service, socket_path, flag)
            ranks.end()
        finish_trace(terminal, trace_file, trace)
        session.close()


def answer(
    terminal: Terminal, service: Service, socket_path: Path | None, flag: Any
) -> None:
    """Answer requests until the end (rank 0)."""
    with ExitStack() as stack:
        doors = open_doors(service, stack, socket_path)
        stack.enter_context(Front(service, doors))
        click.echo("ready")
        service.run(flag)
    terminal.say("the service ends")
    if terminal.as_json:
        terminal.result(service.stats(), lambda: None)
