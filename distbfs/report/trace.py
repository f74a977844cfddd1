"""Traces of all ranks on one clock, in Chrome's trace format.

Open the file at ``chrome://tracing`` or https://ui.perfetto.dev.  A rank is a process
of the trace; a span is a complete event ("X") in microseconds since the first one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.errors import InputError
from distbfs.exchange.router import gather
from distbfs.formats.text import read_text
from distbfs.formats.writing import placed
from distbfs.timing import Trace
from distbfs.types import World

ROUNDS = 16


def clock_offset(world: World, hosts: Sequence[str]) -> float:
    """Return the seconds by which this rank's clock is ahead of rank 0's (collective).

    Ranks of one host share a clock, which counts from the start of the host.  Ranks of
    other hosts read their clocks right after barriers; the median difference is exact
    to about the time of a barrier.
    """
    readings = []
    for _ in range(ROUNDS):
        world.barrier()
        readings.append(
            np.concatenate(world.allgather(np.array([time.perf_counter()])))
        )
    if hosts[world.rank] == hosts[0]:
        return 0.0
    apart = [every[world.rank] - every[0] for every in readings]
    return float(np.median(apart))


def gather_trace(
    world: World, hosts: Sequence[str], trace: Trace
) -> dict[str, Any] | None:
    """Return the trace of all ranks in Chrome's format, on rank 0 (collective).

    hosts: the host of each rank
    """
    offset = clock_offset(world, hosts)
    own_spans = [
        [span.name, span.begin - offset, span.end - offset, span.values]
        for span in trace.spans
    ]
    data = np.frombuffer(json.dumps(own_spans).encode(), dtype=np.uint8)
    arrived = gather(world, data)
    if world.rank:
        return None
    spans = [json.loads(part.tobytes()) for part in arrived]
    first = min((span[1] for rank in spans for span in rank), default=0.0)
    events: list[dict[str, Any]] = []
    for rank, spans_of_rank in enumerate(spans):
        events.append(
            {
                "name": "process_name",
                "ph": "M",
                "pid": rank,
                "args": {"name": f"rank {rank} on {hosts[rank]}"},
            }
        )
        events += [
            {
                "name": name,
                "ph": "X",
                "pid": rank,
                "tid": 0,
                "ts": (begin - first) * 1e6,
                "dur": (end - begin) * 1e6,
                "args": values,
            }
            for name, begin, end, values in spans_of_rank
        ]
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def write_trace(path: Path, values: Mapping[str, Any]) -> None:
    """Write a trace; the file is complete or absent."""
    with placed(path, force=True) as partial:
        partial.write_text(json.dumps(values), encoding="utf-8")


def read_trace(path: Path) -> list[dict[str, Any]]:
    """Return the complete events of a trace file; InputError for another file."""
    text = read_text(path)
    try:
        values = json.loads(text)
        events = [event for event in values["traceEvents"] if event["ph"] == "X"]
        for event in events:
            event["ts"], event["dur"] = float(event["ts"]), float(event["dur"])
            event["pid"], event["name"] = int(event["pid"]), str(event["name"])
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: not a trace that distbfs wrote: {error}") from error
    return events
