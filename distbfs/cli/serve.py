"""``distbfs serve``: a graph that stays loaded and answers queries."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
from msgspec import to_builtins

from distbfs.cli.measures import check_trace, traced
from distbfs.cli.options.serve import ServeOptions
from distbfs.cli.shared import (
    AT_ONCE,
    Terminal,
    make_request,
    open_terminal,
    stop_requests,
)
from distbfs.errors import LibraryMissing, UsageError
from distbfs.formats.ids import IdMap, first_of
from distbfs.ranks.signals import StopFlag
from distbfs.ranks.watch import Watch
from distbfs.service.doors import (
    Door,
    Front,
    StreamDoor,
    clear_place,
    listen,
    listen_http,
    standard_streams,
)
from distbfs.service.limits import Limits
from distbfs.service.rank_calls import ServiceRank
from distbfs.service.service import Service
from distbfs.service.tokens import Guard, check_host, read_token, renewed
from distbfs.store.hdf5 import Store, open_store


def about(
    store: Store,
    path: Path,
    ids: IdMap | None,
    engine: dict[str, Any],
    ranks: int,
) -> dict[str, Any]:
    """Return the facts about the graph for ``stats`` (JSON values).

    ids: the vertices' ids of their file
    """
    manifest = store.manifest
    return {
        "store": str(path),
        "vertices": manifest.n,
        "edges": manifest.m if manifest.directed else manifest.m // 2,
        "directed": manifest.directed,
        "tuples": manifest.tuples,
        "ids": None if manifest.ids is None else manifest.ids.kind,
        "first_id": None if manifest.ids is not None else first_of(ids),
        "parts": manifest.parts,
        "ranks": ranks,
        "engine": engine,
    }


def http_door() -> Callable[[Service, socket.socket, Guard], Door]:
    """Return what makes a door of HTTP; LibraryMissing without the extra."""
    try:
        from distbfs.service.http import http_door  # noqa: PLC0415 - needs h11
    except ImportError as error:
        text = "HTTP needs the extra 'serve'; pip install '.[serve]'"
        raise LibraryMissing(text) from error
    return http_door


def check_ways(asked: ServeOptions) -> None:
    """Check, before the graph is loaded, that the doors can be opened."""
    if asked.socket is not None:
        clear_place(asked.socket)
    if asked.http is None:
        return
    http_door()
    check_host(asked.http_host, remote=asked.allow_remote)
    if asked.token_file is None:
        raise UsageError("--http needs --token-file")
    read_token(asked.token_file)


def open_doors(
    terminal: Terminal,
    service: Service,
    stack: ExitStack,
    asked: ServeOptions,
    ready: threading.Event,
) -> list[Door]:
    """Return the doors, which already listen; stdin is read once ``ready`` is set."""
    doors: list[Door] = []
    if asked.socket is not None:
        doors.append(Door(service, listen(asked.socket)))
        stack.callback(asked.socket.unlink, missing_ok=True)
    if asked.http is not None and asked.token_file is not None:
        listening = listen_http(asked.http_host, asked.http)
        guard = Guard(read_token(asked.token_file))
        stack.enter_context(renewed(guard, asked.token_file))
        doors.append(http_door()(service, listening, guard))
        terminal.say(f"http://{asked.http_host}:{listening.getsockname()[1]}")
    if not doors:
        doors.append(StreamDoor(service, standard_streams(ready)))
    return doors


def run(asked: ServeOptions) -> None:
    """Run the command."""
    terminal, store = open_terminal(asked), asked.store
    world, limits = terminal.world, Limits(**asked.limits)
    if asked.as_json and asked.socket is None and asked.http is None:
        raise UsageError("--json needs --socket or --http: stdout carries the answers")
    check_trace(asked.trace)
    if world.rank == 0:
        check_ways(asked)
    opened = open_store(store)
    ids = opened.load_ids(asked.first_id) if world.rank == 0 else None
    request, options = make_request(asked), terminal.search_options(asked)
    if not options.levels:
        raise UsageError("a service answers with levels; leave out --no-levels")
    if options.internal_ids:
        raise UsageError("a service answers in input ids; leave out --internal-ids")
    opening = terminal.prepare(opened, options, request)
    with ExitStack() as stack:
        flag = stack.enter_context(stop_requests())
        watch = Watch(world, asked.patience, lambda: flag.requested)
        stack.enter_context(watch)
        with flag.within(AT_ONCE):
            session = opening.open()
        # requests are answered or late by then, unless a search hears nothing
        stack.enter_context(flag.within(limits.deadline + limits.patience))
        with traced(terminal, asked.trace, session, ids) as trace:
            ranks = ServiceRank(session, flag, trace)
            if world.rank:
                ranks.follow()
            else:
                facts = about(opened, store, ids, session.describe(), world.size)
                service = Service(ranks, limits, facts, ids=ids, trouble=watch.trouble)
                terminal.say_engine(session)
                answer(terminal, service, asked, flag)
                ranks.end()
        session.close()


def answer(
    terminal: Terminal, service: Service, asked: ServeOptions, flag: StopFlag
) -> None:
    """Answer requests until the end (rank 0)."""
    ready = threading.Event()
    with ExitStack() as stack:
        doors = open_doors(terminal, service, stack, asked, ready)
        stack.enter_context(Front(service, doors))
        click.echo("ready")  # before any answer, which may go to stdout, too
        ready.set()
        service.run(flag)
    terminal.say("the service ends")
    if terminal.as_json:
        terminal.result(to_builtins(service.stats()), lambda: None)
