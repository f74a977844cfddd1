"""The ``--trace`` of commands that search."""

from __future__ import annotations

from pathlib import Path

from distbfs.device import cuda
from distbfs.formats.ids import IdMap, name_of
from distbfs.formats.writing import check_place
from distbfs.report.trace import gather_trace, write_trace
from distbfs.search.session import Session
from distbfs.terminal.shared import Terminal
from distbfs.timing import Trace


def check_trace(path: Path | None) -> None:
    """Refuse, before a long run, a file that cannot be written after it."""
    if path is not None:
        check_place(path)


def start_trace(path: Path | None, session: Session) -> Trace | None:
    """Return the trace of a session where one is asked for; NVTX ranges on devices."""
    if path is None:
        return None
    push, pop = cuda.ranges() if session.held.devices else (None, None)
    trace = Trace(push=push, pop=pop)
    session.watch(trace)
    return trace


def finish_trace(
    terminal: Terminal, path: Path | None, trace: Trace | None, ids: IdMap | None
) -> None:
    """Write the trace of all ranks (collective); ids: of the file, on rank 0."""
    if path is None or trace is None:
        return
    values = gather_trace(terminal.world, terminal.world.hosts, trace)
    if values is not None:
        for event in values["traceEvents"]:
            if "root" in event["args"]:
                event["args"]["root"] = name_of(event["args"]["root"], ids)
        write_trace(path, values)
