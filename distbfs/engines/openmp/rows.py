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
from distbfs.device.array_table import ArrayPlan, ArrayTable, allocate
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


def array_table(
    local: int, delegates: int, owned: int, *, parents: bool = True
) -> ArrayTable:
    """Return the arrays of an ``OpenMPRows``.

    local, owned: vertices of the part, and delegates among them. Results of these are
    by local id, and behind them are those of all other delegates.
    """
    words, results = mask_words(delegates), local + delegates - owned
    by_number = ("vertices", "names", "first", "found_by")
    kept = ("level", "parent") if parents else ("level",)
    masks = ("visited", "next", "fresh", "expandable", "enterable")
    return {
        **dict.fromkeys(kept, ArrayPlan(np.int32, results)),
        **dict.fromkeys(by_number, ArrayPlan(np.uint32, 64 * words)),
        **dict.fromkeys(masks, ArrayPlan(np.uint64, words)),
        "marks": ArrayPlan(np.uint8, 64 * words),
        "queue": [ArrayPlan(np.uint32, delegates + 1)] * 2,
        "prices": ArrayPlan(np.float64, 2),
        "counts": ArrayPlan(np.int64, 2),
        "work": ArrayPlan(np.int64, COUNTS),
    }


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
        owned, local = part.owned_delegates()
        self._local, self._threads, self._marks = n, threads, direction == "auto"
        table = array_table(n, d, len(owned), parents=parents)
        arrays: dict[str, Any] = allocate(table, cc.aligned_empty)
        for name in ("vertices", "names", "first", "marks", "fresh"):
            arrays[name][:] = 0
        others = np.ones(d, np.bool_)
        others[owned] = False
        arrays["vertices"][owned] = local
        arrays["vertices"][:d][others] = n + np.arange(d - len(owned), dtype=np.uint32)
        arrays["names"][:d] = part.delegates
        self._level: Array = arrays["level"]
        self._parent: Array | None = arrays.get("parent")
        for results in (self._level, self._parent):
            if results is not None:
                results[:] = -1
        self._first_columns: Array = arrays["first"]
        self._marked: Array = arrays["marks"]
        self._fresh: Array = arrays.pop("fresh")
        self._prices: Array = arrays.pop("prices")
        self._counts: Array = arrays.pop("counts")
        self._work: Array = arrays.pop("work")
        arrays["expandable"][:] = mask_of(owned, d)
        self._enterable: Words = arrays["enterable"]
        self._isolated = NOBODY  # local ids of roots without edges
        self._first, self._lost = True, 0
        out, into = (np.diff(x.offsets) for x in (part.dd, part.dd_pulled))
        mean = float((out.astype(np.float64) * into).sum() / max(part.dd.edges, 1))
        offsets, in_offsets = part.dd.offsets, part.dd_pulled.offsets
        wide = 8 in (offsets.itemsize, in_offsets.itemsize)
        if wide:
            offsets, in_offsets = (
                x.astype(np.uint64, copy=False) for x in (offsets, in_offsets)
            )
        graph = {
            **arrays,
            "active": d,
            "edges": part.dd.edges,
            "words": mask_words(d),
            "mean_next": mean,
            "offsets": offsets,
            "columns": part.dd.columns,
            "in_offsets": in_offsets,
            "in_columns": part.dd_pulled.columns,
        }
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
        self._first_columns[:d] = first_of(part.dd_pulled, d)
        self._enterable[:] = mask_of(filled, d)
        self._share.set(
            graph={
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
        """Reset the search; set the roots, which also have numbers on other parts."""
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
