"""The ``--trace`` of commands that search."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def traced(
    terminal: Terminal, path: Path | None, session: Session, ids: IdMap | None
) -> Iterator[Trace | None]:
    """Yield the trace of a session where one is asked for, and write it at the end.

    Collective; NVTX ranges on devices.  ids: of the file, on rank 0
    """
    if path is None:
        yield None
        return
    push, pop = cuda.ranges() if session.held.devices else (None, None)
    trace = Trace(push=push, pop=pop)
    session.watch(trace)
    yield trace
    values = gather_trace(terminal.world, terminal.world.hosts, trace)
    if values is not None:
        for event in values["traceEvents"]:
            if "root" in event["args"]:
                event["args"]["root"] = name_of(event["args"]["root"], ids)
        write_trace(path, values)
