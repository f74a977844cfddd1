"""The searches of a benchmark run: one root after another, each validated.

Source: Graph500 specification 2.0, Sections 5 to 8.
"""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import h5py
import numpy as np

from distbfs import __version__
from distbfs.generate.cuda import DeviceTuples, device_tuples
from distbfs.graph500.device_validate import validate_on_device
from distbfs.graph500.report import SKIPPED, SearchFigures
from distbfs.graph500.validate import Validation, validate
from distbfs.search.alone import AloneSession
from distbfs.search.device_parts import DevicePartsSession
from distbfs.search.device_session import DeviceSession
from distbfs.search.session import AnySession, Outcome
from distbfs.types import Ids, TupleSource

Check: TypeAlias = Callable[[Sequence[Outcome]], list[Validation]]

RESULT_BYTES = 1 << 30  # of one rank, kept until they are validated


@dataclass
class ParentShare:
    """What completing parents cost in stepwise searches, over a run."""

    shares: list[float] = field(default_factory=list)
    bytes_sent: list[int] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        """Count one search."""
        if "parents" in outcome.phases:
            self.shares.append(outcome.phases["parents"] / outcome.seconds)
            self.bytes_sent.append(outcome.parent_cost.bytes_sent)

    def note(self) -> dict[str, str]:
        """Return what a report says, if there is anything to say."""
        if not self.shares:
            return {}
        share = statistics.median(self.shares)
        sent = statistics.median(self.bytes_sent)
        text = (
            f"{100 * share:.1f} % of the search time, {sent:.0f} bytes sent a search "
            "(medians, rank 0)"
        )
        return {"parents": text}


def run_searches(
    session: AnySession,
    source: TupleSource,
    roots: Ids,
    *,
    exact: bool,
    check: int,
    stop: Callable[[], bool],
    report: Callable[[Outcome, SearchFigures], None],
    hurry: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> list[SearchFigures]:
    """Search from every root and validate the results (collective).

    source: tuples to validate by; exact: they are the input's, so that nedge counted
    from them must be that counted from degrees; check: how many searches to validate,
    the first ones; stop: asked between searches, the same answer on every rank; report:
    told each search; hurry: makes what every validation runs in.

    Searches run in batches whose results fit RESULT_BYTES, and every result of a batch
    is validated before the next.  One search before the first is not counted.
    """
    figures: list[SearchFigures] = []
    validation = validation_of(session, source) if check else None
    if len(roots):
        size = result_bytes(session.search(int(roots[0])))
        size = int(session.world.allreduce(np.array([max(size, 1)]), "max")[0])
        batch = max(1, min(session.room(RESULT_BYTES) // size, len(roots)))
    waiting = roots.tolist()
    stopped = False
    while waiting and not stopped:
        kept: list[Outcome] = []
        left = check - len(figures)
        most = max(min(batch, left), 1)
        while waiting and len(kept) < most and not stopped:
            found = session.search(waiting.pop(0))
            kept.append(session.keep(found) if most > 1 else found)
            stopped = stop()
        looked = validation if left > 0 else None
        for outcome, judged in zip(
            kept, judge(session, kept, looked, hurry, exact=exact), strict=True
        ):
            figures.append(judged)
            report(outcome, judged)
    return figures


def result_bytes(outcome: Outcome) -> int:
    """Return the bytes of the result arrays of a search on this rank."""
    every = (*outcome.level, *outcome.parent)
    return sum(int(x.nbytes) for x in every if x is not None)


def validation_of(session: AnySession, source: TupleSource) -> Check:
    """Return what validates searches where their results are (collective calls)."""
    if isinstance(session, DeviceSession):
        tuples = device_tuples(source)

        def on_device(outcomes: Sequence[Outcome]) -> list[Validation]:
            return [
                validate_on_device(tuples, outcome.root, *session.in_ids(outcome))
                for outcome in outcomes
            ]

        return on_device
    if isinstance(session, AloneSession):
        return on_first(session, source)
    if isinstance(session, DevicePartsSession) and session.permutation is None:
        return on_devices(session, device_tuples(source))

    def on_host(outcomes: Sequence[Outcome]) -> list[Validation]:
        return [
            validate(session.world, source, outcome.root, *session.block(outcome))
            for outcome in outcomes
        ]

    return on_host


def on_first(session: AloneSession, source: TupleSource) -> Check:
    """Return what validates on the device of the rank that searches (collective)."""
    inner = None if session.first is None else validation_of(session.first, source)

    def check(outcomes: Sequence[Outcome]) -> list[Validation]:
        told = [] if inner is None else [vars(one) for one in inner(outcomes)]
        return [Validation(**one) for one in session.world.broadcast(told)]

    return check


def on_devices(session: DevicePartsSession, tuples: DeviceTuples) -> Check:
    """Return what validates as many searches at a time as there are ranks.

    Each rank has one of them whole on its device.
    """
    world = session.world

    def check(outcomes: Sequence[Outcome]) -> list[Validation]:
        found: list[Validation] = []
        for first in range(0, len(outcomes), world.size):
            group = outcomes[first : first + world.size]
            mine = session.gathered(group)
            told: dict[str, Any] = {}
            if mine is not None:
                root = group[world.rank].root
                told = vars(validate_on_device(tuples, root, *mine))
            del mine
            every = [world.broadcast(told, rank) for rank in range(len(group))]
            found += [Validation(**one) for one in every]
        return found

    return check


def judge(
    session: AnySession,
    outcomes: Sequence[Outcome],
    validation: Check | None,
    hurry: Callable[[], AbstractContextManager[None]],
    *,
    exact: bool,
) -> Iterator[SearchFigures]:
    """Count the edges of searches and validate them (collective)."""
    results: Sequence[Validation | None] = [None] * len(outcomes)
    if validation is not None:
        with hurry():
            results = validation(outcomes)
    for outcome, result in zip(outcomes, results, strict=True):
        nedge = session.traversed(outcome)
        seconds, errors = SKIPPED, list[str]()
        if result is not None:
            seconds, errors = result.seconds, list(result.errors)
            if exact and result.valid and result.nedge != nedge:
                errors.append(f"{nedge} tuples by degrees, {result.nedge} by tuples")
        yield SearchFigures(
            outcome.root,
            outcome.seconds,
            nedge,
            seconds,
            valid=not errors,
            error="; ".join(errors),
            wall_seconds=outcome.wall,
        )


def versions() -> dict[str, str]:
    """Return the versions that a report names."""
    return {
        "distbfs": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "h5py": h5py.__version__,
        "hdf5": h5py.version.hdf5_version,
    }


def machine() -> dict[str, Any]:
    """Return what a report says of this host (JSON values)."""
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            names = [x.partition(":")[2].strip() for x in lines if "model name" in x]
        model = names[0] if names else model
    except OSError:
        pass
    return {
        "processor": model,
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.release()}",
    }
