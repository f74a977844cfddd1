"""``distbfs serve``: a graph that stays loaded and answers queries."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from msgspec import to_builtins

from distbfs.cli.options.serve import LIMITS
from distbfs.errors import UsageError
from distbfs.formats.ids import IdMap, first_of
from distbfs.ranks.signals import StopFlag
from distbfs.ranks.watch import Watch
from distbfs.service.doors import (
    Door,
    Front,
    HttpDoor,
    SocketDoor,
    StreamDoor,
    clear_place,
    listen,
    listen_http,
    standard_streams,
)
from distbfs.service.http import load_libraries
from distbfs.service.limits import Limits
from distbfs.service.rank_calls import ServiceRank
from distbfs.service.results import ResultFolder
from distbfs.service.service import Service
from distbfs.service.tokens import Guard, check_host, read_token, renewed
from distbfs.store.hdf5 import Store, open_store
from distbfs.terminal.options import Speech
from distbfs.terminal.shared import (
    AT_ONCE,
    Terminal,
    make_request,
    make_search_options,
    open_terminal,
    prepare_stored,
    stop_requests,
)
from distbfs.terminal.trace_file import check_trace, finish_trace, start_trace

WAYS = ("socket", "port", "host", "token_file", "remote")


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


@dataclass(frozen=True)
class Ways:
    """Where clients come in; neither socket nor port: stdin and stdout."""

    socket: Path | None
    port: int | None
    host: str
    token_file: Path | None
    remote: bool

    def check(self) -> None:
        """Refuse, before the graph is loaded, what cannot be opened after it."""
        if self.socket is not None:
            clear_place(self.socket)
        if self.port is None:
            return
        load_libraries()
        check_host(self.host, remote=self.remote)
        if self.token_file is None:
            raise UsageError("--http needs --token-file")
        read_token(self.token_file)


def open_doors(
    terminal: Terminal,
    service: Service,
    stack: ExitStack,
    ways: Ways,
    ready: threading.Event,
) -> list[Door]:
    """Return the ways in, which listen already; stdin is read once ``ready`` is set."""
    doors: list[Door] = []
    if ways.socket is not None:
        doors.append(SocketDoor(service, listen(ways.socket)))
        stack.callback(ways.socket.unlink, missing_ok=True)
    if ways.port is not None and ways.token_file is not None:
        listening = listen_http(ways.host, ways.port)
        guard = Guard(read_token(ways.token_file))
        stack.enter_context(renewed(guard, ways.token_file))
        doors.append(HttpDoor(service, listening, guard))
        terminal.say(f"http://{ways.host}:{listening.getsockname()[1]}")
    if not doors:
        doors.append(StreamDoor(service, standard_streams(ready)))
    return doors


def run(
    store: Path,
    results: Path | None,
    trace_file: Path | None,
    first_id: int | None,
    patience: float | None,
    speech: Speech,
    **choices: Any,
) -> None:
    """Run the command; see ``cli/options/serve.py``."""
    terminal = open_terminal(speech)
    world = terminal.world
    limits = Limits(**{name: choices.pop(name) for name in LIMITS})
    ways = Ways(**{name: choices.pop(name) for name in WAYS})
    if speech.as_json and ways.socket is None and ways.port is None:
        raise UsageError("--json needs --socket or --http: stdout carries the answers")
    check_trace(trace_file)
    if world.rank == 0:
        ways.check()
    opened = open_store(store)
    manifest = opened.manifest
    ids = opened.load_ids(first_id) if world.rank == 0 else None
    request = make_request(devices=choices.pop("devices"), domain=choices.pop("domain"))
    options = make_search_options(world, **choices)
    if not options.levels:
        raise UsageError("a service answers with levels; leave --no-levels out")
    if options.internal_ids:
        raise UsageError("a service answers in input ids; leave --internal-ids out")
    opening = prepare_stored(terminal, opened, options, request)
    with ExitStack() as stack:
        flag = stack.enter_context(stop_requests())
        watch = stack.enter_context(Watch(world, patience, lambda: flag.requested))
        folder = None
        if results is not None and world.rank == 0:
            folder = ResultFolder(
                results, limits.files, manifest.digests[0]["vertices"], ids
            )
        with flag.within(AT_ONCE):
            session = opening.open()
        # requests are answered or late by then, unless a search hears nothing
        stack.enter_context(flag.within(limits.deadline + limits.patience))
        trace = start_trace(trace_file, session)
        ranks = ServiceRank(session, flag, trace)
        if world.rank:
            ranks.follow()
        else:
            facts = about(opened, store, ids, session.describe(), world.size)
            service = Service(
                ranks, limits, facts, folder, ids=ids, trouble=watch.trouble
            )
            terminal.say_engine(session)
            answer(terminal, service, ways, flag)
            ranks.end()
        finish_trace(terminal, trace_file, trace, ids)
        session.close()


def answer(terminal: Terminal, service: Service, ways: Ways, flag: StopFlag) -> None:
    """Answer requests until the end (rank 0)."""
    ready = threading.Event()
    with ExitStack() as stack:
        doors = open_doors(terminal, service, stack, ways, ready)
        stack.enter_context(Front(service, doors))
        click.echo("ready")  # before any answer, which may go to stdout, too
        ready.set()
        service.run(flag)
    terminal.say("the service ends")
    if terminal.as_json:
        terminal.result(to_builtins(service.stats()), lambda: None)
