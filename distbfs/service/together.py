"""Small queries from many sources, answered by one bit-parallel traversal."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from distbfs.errors import CompilerMissing
from distbfs.multisearch.bits import LANE, BitSearch
from distbfs.multisearch.whole import in_input_ids
from distbfs.search.session import AnySession, Session
from distbfs.types import Stop

FEWEST = 8  # sources from which one traversal costs less than a search for each
MOST = LANE  # sources of a traversal


class Together:
    """Searches from several sources at once beside a session of the host."""

    def __init__(self, search: BitSearch) -> None:
        self._search = search

    def levels(
        self, sources: Sequence[int], asked: Sequence[Sequence[Any]], stop: Stop
    ) -> tuple[float, list[list[int]]]:
        """Return (seconds, for each (source, targets) of ``asked`` the levels).

        sources: up to MOST, distinct.  SearchStopped where ``stop`` said so.
        """
        began = time.perf_counter()
        row = {source: k for k, source in enumerate(sources)}
        self._search.run(np.array(sources, dtype=np.int64), stop=stop)
        lengths = [len(targets) for _, targets in asked]
        rows = np.repeat([row[source] for source, _ in asked], lengths)
        flat = np.array([v for _, targets in asked for v in targets], dtype=np.int64)
        found = self._search.levels_at(rows, flat)
        parts = np.split(found, np.cumsum(lengths)[:-1])
        return time.perf_counter() - began, [part.tolist() for part in parts]


def together(session: AnySession) -> Together | None:
    """Return what searches together, None where the session cannot.

    It can where one rank searches a whole graph by engine openmp.
    """
    if not isinstance(session, Session) or session.world.size > 1:
        return None
    told = session.describe()
    if session.mode != "resident" or told["engine"] != "openmp":
        return None
    part = in_input_ids(session.parts[0], session.permutation)
    try:
        return Together(BitSearch(part, MOST // LANE, told["threads"]))
    except CompilerMissing:
        return None
