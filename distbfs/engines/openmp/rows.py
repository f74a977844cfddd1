"""Parts in host memory whose rows are with the owners of their vertices.

All vertices with edges are delegates there, known to every part (see ``owned_rows``).
So the levels are those of a whole graph, of which each part runs a share.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.device import cc
from distbfs.device.calls import LongCall
from distbfs.device.structures import structure
from distbfs.engines.base import COUNTS, PRICED, Offer, Targets, Work
from distbfs.engines.openmp.whole import first_of
from distbfs.exchange.bins import Bins
from distbfs.partition.part import Part, mask_of, mask_words
from distbfs.types import SUBGRAPHS, Array, Choice, Ids, Root, Words

SOURCE = Path(__file__).with_name("rows.c")
LONG = 1 << 20  # edges of a part from which on Ctrl-C is heard during levels
POINTER = ctypes.c_void_p
FUNCTIONS = {  # of rows.c: result type, and argument types after the share
    "start": (None, (ctypes.c_int,)),
    "work": (None, (POINTER, POINTER)),
    "advance": (ctypes.c_int64, (ctypes.c_int, ctypes.c_int)),
    "accept": (None, (POINTER,)),
    "finish": (None, ()),
}
NOBODY = np.zeros(0, dtype=np.int64)
NO_ITEMS = np.zeros(0, dtype=np.uint32)


class OpenMPRows:
    """Searches a part level by level (a ``DomainSearch``), up to 2^31 vertices."""

    finds_parents = True
    carries_parents = streamed = in_rounds = False
    leaves = None
    directions = PRICED
    visits, extras = SUBGRAPHS, ()

    def __init__(
        self, part: Part, threads: int, *, parents: bool, direction: str
    ) -> None:
        n, d = part.local_count, part.delegate_count
        words = mask_words(d)
        owned, local = part.owned_delegates()
        self._local, self._threads, self._marks = n, threads, direction == "auto"
        # results of a part's own vertices by local id, then those of all others
        places = cc.aligned_full(64 * words, 0, np.uint32)
        others = np.ones(d, np.bool_)
        others[owned] = False
        places[owned] = local
        places[:d][others] = n + np.arange(d - len(owned), dtype=np.uint32)
        results = n + d - len(owned)
        self._level = cc.aligned_full(results, -1, np.int32)
        self._parent = cc.aligned_full(results, -1, np.int32) if parents else None
        self._fresh = cc.aligned_full(words, 0, np.uint64)
        self._prices, self._counts = np.zeros(2), np.zeros(2, np.int64)
        self._work = np.zeros(COUNTS, np.int64)
        self._isolated = NOBODY  # local ids of roots without edges
        self._first, self._lost = True, 0
        self._marked = cc.aligned_full(64 * words, 0, np.uint8)
        out, into = (np.diff(x.offsets) for x in (part.dd, part.dd_pulled))
        mean = float((out.astype(np.float64) * into).sum() / max(part.dd.edges, 1))
        graph: dict[str, Any] = {
            "active": d,
            "edges": part.dd.edges,
            "words": words,
            "mean_next": mean,
            "depth": 0,
            "offsets": part.dd.offsets,
            "columns": part.dd.columns,
            "in_offsets": part.dd_pulled.offsets,
            "in_columns": part.dd_pulled.columns,
            "vertices": places,
            "names": cc.aligned_copy(part.delegates.astype(np.uint32), 64 * words),
            "level": self._level,
            "parent": self._parent,
            "visited": cc.aligned_empty(words, np.uint64),
            "next": cc.aligned_empty(words, np.uint64),
            "marks": self._marked,
            "found_by": cc.aligned_empty(64 * words, np.uint32),
            "queue": [cc.aligned_empty(d + 1, np.uint32), None],
            "expandable": mask_of(owned, d),
        }
        wide = part.dd.offsets.itemsize == 8
        self._offset = "uint64_t" if wide else "uint32_t"
        self._share = structure(SOURCE, "row_share")(graph=graph, fresh=self._fresh)
        self._self = ctypes.addressof(self._share)
        self.see(part)

    def see(self, part: Part) -> None:
        """Restrict searches to the edges in the part's rows; see ``ViewingSearch``."""
        self.part, d = part, part.delegate_count
        masked = int(part.dd.bits is not None)
        self._library = cc.load(SOURCE, OFFSET=self._offset, MASKED=masked)
        for name, (result, arguments) in FUNCTIONS.items():
            function = getattr(self._library, f"rows_{name}")
            function.restype, function.argtypes = result, (POINTER, *arguments)
        filled = part.dd_pulled.occupied()
        first = cc.aligned_copy(first_of(part.dd_pulled, d), 64 * mask_words(d))
        self._share.set(
            graph={
                "first": first,
                "enterable": mask_of(filled, d),
                "closed": d - len(filled),
                "seen": part.dd.bits,
                "in_seen": part.dd_pulled.bits,
            }
        )

    def start(
        self,
        local: Root | None,
        delegate: Root | None,
        *,
        counting: bool = False,  # noqa: ARG002
        targets: Targets | None = None,
    ) -> None:
        """Reset the search; set the roots, of which others have numbers as well."""
        self._write(self._isolated, -1, -1)
        # mutant: = 0 -> = self._fresh : test_a_level_that_was_not_ended
        self._fresh[:] = 0  # perhaps the last level was not ended
        # no normal vertex has an edge
        self._isolated = NOBODY if local is None else np.atleast_1d(local)
        roots = NO_ITEMS if delegate is None else np.atleast_1d(delegate)
        roots, wanted, self._lost = roots.astype(np.uint32), NOBODY, 0
        if targets is not None:
            wanted = targets.delegates
            alone = self.part.numbers_of(self._isolated)
            self._lost = int((~np.isin(targets.numbers, alone)).sum())
        self._share.set(
            graph={"roots": roots, "root_count": len(roots)},
            targets=wanted.copy(),
            target_count=len(wanted),
        )
        self._library.rows_start(self._self, self._threads)
        self._first = True

    def work(self) -> Ids:
        """Measure the next level in both directions: ``Work``, int64 [COUNTS]."""
        prices, counts = self._prices, self._counts
        self._library.rows_work(self._self, prices.ctypes.data, counts.ctypes.data)
        frontier, left = counts.tolist()
        self._work[:] = Work(
            normals=len(self._isolated) * self._first,
            delegates=0 if self.part.index else frontier,
            dd_forward=int(prices[0]),
            dd_u=int(prices[1]),
            targets=left + self._lost,
        )
        return self._work

    def advance(self, choice: Choice, offer: Offer) -> list[int]:
        """Run a level; return edge checks."""
        self._first = False
        advance: Any = self._library.rows_advance
        if self.part.dd.edges >= LONG:
            advance = partial(LongCall(self._library), advance)
        pull = choice[PRICED[0]] == "pull"
        try:
            checks: int = advance(self._self, int(pull), int(self._marks))
        except BaseException:
            self._marked[:] = 0
            raise
        offer.normals(Bins(NO_ITEMS, None))
        offer.bits(self._fresh)
        return [0, 0, 0, checks]

    def accept(self, bits: Words | None, normals: Sequence[tuple[int, Array]]) -> None:  # noqa: ARG002
        """Merge the finds of all parts into the next frontier; see ``DomainSearch``."""
        self._library.rows_accept(
            self._self, None if bits is None else bits.ctypes.data
        )

    def finish(self) -> tuple[Array, Array | None]:
        """Return (level int32, parent or None), [local count], by local id."""
        self._library.rows_finish(self._self)
        roots = self.part.layout.global_of(self.part.index, self._isolated)
        self._write(self._isolated, 0, roots)
        parent = None if self._parent is None else self._parent[: self._local]
        return self._level[: self._local], parent

    def _write(self, local: Ids, level: int, parent: Root) -> None:
        self._level[local] = level
        if self._parent is not None:
            self._parent[local] = parent
