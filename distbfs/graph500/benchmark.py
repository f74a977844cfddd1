"""The searches of a benchmark run: one root after another, each validated.

Source: Graph500 specification 2.0, Sections 5 to 8.
"""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import h5py
import numpy as np

from distbfs import __version__
from distbfs.graph500.report import SKIPPED, SearchFigures
from distbfs.graph500.validate import validate
from distbfs.search.session import Outcome, Session
from distbfs.types import Ids, TupleSource


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

    def text(self) -> str:
        """Return what a report says, empty where there is nothing to say."""
        if not self.shares:
            return ""
        share = statistics.median(self.shares)
        sent = statistics.median(self.bytes_sent)
        return (
            f"{100 * share:.1f} % of the search time, {sent:.0f} bytes sent a search "
            "(medians, rank 0)"
        )


def run_searches(
    session: Session,
    source: TupleSource,
    roots: Ids,
    *,
    exact: bool,
    check: bool,
    stop: Callable[[], bool],
    report: Callable[[Outcome, SearchFigures], None],
) -> list[SearchFigures]:
    """Search from every root and validate the results (collective).

    source: tuples to validate by; exact: they are the input's, so that nedge counted
    from them must be that counted from degrees; check: validate at all; stop: asked
    between searches, the same answer on every rank; report: told each search.

    One search before the first warms up caches and threads and is not counted.
    """
    figures: list[SearchFigures] = []
    if len(roots):
        session.search(int(roots[0]))
    for root in roots.tolist():
        if stop():
            break
        outcome = session.search(root, records=False)
        nedge = session.traversed(outcome)
        seconds, errors = SKIPPED, []
        if check:
            level, parent = session.block(outcome)
            result = validate(session.world, source, root, level, parent)
            seconds, errors = result.seconds, list(result.errors)
            if exact and result.valid and result.nedge != nedge:
                errors.append(f"{nedge} tuples by degrees, {result.nedge} by tuples")
        found = SearchFigures(
            root,
            outcome.seconds,
            nedge,
            seconds,
            valid=not errors,
            error="; ".join(errors),
        )
        figures.append(found)
        report(outcome, found)
    return figures


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
