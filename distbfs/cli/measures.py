"""Measurements besides the times of searches: energy and traces.

Energy is measured in a separate pass.  NVML's counter advances only every few tens of
milliseconds, and many searches take less than one. So the same searches are repeated,
without validation and output, for SECONDS.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from distbfs.cli.shared import Terminal
from distbfs.device import cuda
from distbfs.device.energy import measured
from distbfs.formats.ids import IdMap, name_of
from distbfs.ranks.agreement import gather_texts
from distbfs.report.energy import energy_figures, joined
from distbfs.report.trace import gather_trace, write_trace
from distbfs.search.session import Session
from distbfs.timing import Trace
from distbfs.types import Root

SECONDS = 2.0


def searches_energy(
    session: Session, roots: Sequence[Root], edges: Sequence[int]
) -> dict[str, Any] | None:
    """Return the energy of searches repeated for SECONDS, None without (collective).

    The CPUs of each host are measured by one of its ranks.
    edges: number of edges that each search traversed, as TEPS counts them
    roots: roots of these searches and of others
    """
    made, world = roots[: len(edges)], session.world
    if not made:
        return None

    def run() -> None:
        for root in made:
            session.search(root)

    hosts = world.hosts
    first = hosts.index(hosts[world.rank]) == world.rank
    began = time.perf_counter()
    run()
    world.barrier()
    taken = time.perf_counter() - began
    repeats = world.broadcast(max(1, int(-(-SECONDS // max(taken, 1e-6)))))
    with measured(gpus_of(session), cpus=first) as energy:
        for _ in range(repeats):
            run()
        world.barrier()
    every = gather_texts(world, json.dumps(asdict(energy)))
    values = joined([json.loads(text) for text in every])
    return energy_figures(values, repeats * len(made), repeats * sum(edges))


def gpus_of(session: Session) -> list[str]:
    """Return this rank's GPUs of a session, with the ids that nvidia-smi shows."""
    devices = sorted(set(session.held.devices))
    return cuda.uuids(devices) if devices else []


@contextmanager
def traced(
    terminal: Terminal, path: Path | None, session: Session, ids: IdMap | None
) -> Iterator[Trace | None]:
    """Yield the trace of a session, if requested, and write it at the end.

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
