"""``distbfs serve``: a graph that stays loaded and answers queries."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import Any

import click
from msgspec import to_builtins

from distbfs.cli.graphs import SearchedGraph, open_graph
from distbfs.cli.measures import traced
from distbfs.cli.options.serve import ServeOptions
from distbfs.cli.shared import (
    AT_ONCE,
    Terminal,
    make_request,
    open_terminal,
    stop_requests,
)
from distbfs.errors import UsageError
from distbfs.formats.ids import first_of
from distbfs.formats.text import STDIN
from distbfs.leftovers import DASH
from distbfs.ranks.signals import StopFlag
from distbfs.ranks.watch import Watch
from distbfs.registry import optional
from distbfs.search.session import Session
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


def about(session: Session, graph: SearchedGraph) -> dict[str, Any]:
    """Return the facts about the graph for ``stats``, JSON values (collective)."""
    edges, ids, first = session.edges, graph.ids, first_of(graph.ids)
    return {
        "store": str(graph.path),
        "vertices": graph.source.n,
        "edges": edges if graph.source.directed else edges // 2,
        "directed": graph.source.directed,
        "tuples": graph.source.input_tuples,
        "ids": None if ids is None or first is not None else ids.kind,
        "first_id": first,
        "parts": graph.source.parts,
        "ranks": session.world.size,
        "engine": session.describe(),
    }


def http() -> Any:
    """Return the module of the service over HTTP; LibraryMissing without the extra."""
    missing = "HTTP needs the extra 'serve'; pip install '.[serve]'"
    return optional("distbfs.service.http", missing)


def check_ways(asked: ServeOptions) -> None:
    """Check, before the graph is loaded, that the doors can be opened."""
    if asked.socket is not None:
        clear_place(asked.socket)
    if asked.http is None:
        return
    http()
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
        doors.append(http().http_door(service, listening, guard))
        terminal.say(f"http://{asked.http_host}:{listening.getsockname()[1]}")
    if not doors:
        doors.append(StreamDoor(service, standard_streams(ready)))
    return doors


def run(asked: ServeOptions) -> None:
    """Run the command."""
    terminal, path = open_terminal(asked), asked.graph
    world, limits = terminal.world, Limits(**asked.limits)
    streams = asked.socket is None and asked.http is None
    if streams and (asked.as_json or asked.trace == DASH):
        more = "--json" if asked.as_json else "--trace -"
        raise UsageError(f"{more} needs --socket or --http: stdout carries the answers")
    if path == STDIN and streams:
        raise UsageError("GRAPH - needs --socket or --http: stdin carries the requests")
    terminal.stdout_place(asked.trace)
    if world.rank == 0:
        check_ways(asked)
    request, options = make_request(asked), terminal.search_options(asked)
    if not options.levels:
        raise UsageError("a service answers with levels; leave out --no-levels")
    if options.internal_ids:
        raise UsageError("a service answers in input ids; leave out --internal-ids")
    with ExitStack() as stack:
        with stop_requests(AT_ONCE):
            graph = open_graph(terminal, stack, path, asked, options.threads)
        opening = terminal.prepare(graph.source, options, request)
        flag = stack.enter_context(stop_requests())
        watch = Watch(world, asked.patience, lambda: flag.requested)
        stack.enter_context(watch)
        with flag.within(AT_ONCE):
            session = opening.open()
        # requests are answered or late by then, unless a search hears nothing
        stack.enter_context(flag.within(limits.deadline + limits.patience))
        with traced(terminal, asked.trace, session, graph.ids) as trace:
            facts = about(session, graph)
            ranks = ServiceRank(session, flag, trace)
            if world.rank:
                ranks.follow()
            else:
                service = Service(
                    ranks, limits, facts, ids=graph.ids, trouble=watch.trouble
                )
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
    if asked.as_json:
        terminal.result(to_builtins(service.stats()), lambda: None)
