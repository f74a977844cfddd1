"""One part of a degree-separated graph on a CPU: the arrays and calls of part.c."""

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
from distbfs.engines.base import CHOSEN, COUNTS, Offer, Targets, Work
from distbfs.exchange.bins import Bins
from distbfs.graph.csr import CSR, index_dtype
from distbfs.partition.part import Part, mask_of, mask_words
from distbfs.plan.memory import PartShape
from distbfs.types import SUBGRAPHS, Array, Choice, Ids, Root, Words

SOURCE = Path(__file__).with_name("part.c")
REMOTE = -2
ROWS = (*SUBGRAPHS, "dd_pulled")
OWNED = ("owned", "owned_local", "orphans")
BITMAPS = ("visited", "fresh", "frontier")
VISITS = {"nn": 1, "nd": 2, "dn": 4, "dd": 8, "all": 15}  # as VISIT_… in part.c
PULLS = [(name, VISITS[name]) for name in ("dd", "dn", "nd")]
NN_WORK = Work._fields.index("nn")
SMALL = 16384  # edges of dd, dn and nd
LONG = 1 << 20  # edges of a level during which Ctrl-C is heard
NO_CHECKS = [0] * len(SUBGRAPHS)
POINTER, NUMBER = ctypes.c_void_p, ctypes.c_int64
FUNCTIONS = {  # of part.c: result type, and argument types after the state
    "start": (None, (NUMBER, NUMBER)),
    "add_roots": (None, (POINTER, NUMBER, POINTER, NUMBER)),
    "work": (NUMBER, ()),
    "visit": (NUMBER, (ctypes.c_int, ctypes.c_int)),
    "take_normals": (None, (NUMBER, POINTER, NUMBER)),
    "end_level": (None, (POINTER,)),
    "finish": (None, ()),
    "list_orphans": (NUMBER, ()),
}


def vertex_type(n: int) -> type[np.signedinteger[Any]]:
    """Return the type of ids of n vertices that also holds -1 and less."""
    return np.int32 if n < 1 << 31 else np.int64


def first_columns(graph: CSR, words: int) -> Array:
    """Return the first column of each row, uint32 [words * 64]; 0 for an empty row."""
    rows = graph.occupied()
    first = cc.aligned_empty(words * 64, np.uint32)
    first[:] = 0
    first[rows] = graph.columns[graph.first_edges(rows)]
    return first


def array_table(shape: PartShape, *, parents: bool = True) -> ArrayTable:
    """Return the arrays of an ``OpenMPPart``, without the bins of a level.

    Results are by local id; if one of the offsets is wide, all others are copied.
    """
    d, words = shape.delegates, mask_words(shape.active)
    delegate_words = mask_words(d)
    vertex = vertex_type(shape.n)
    rows = {"nn": shape.local, "nd": shape.local, "dn": d, "dd": d}
    narrow = [k for k, e in shape.edges.items() if index_dtype(e)(0).itemsize == 4]
    table: ArrayTable = {
        "level": ArrayPlan(np.int32, shape.local),
        "vertices": ArrayPlan(np.uint32, max(shape.local, 64 * words)),
        "delegate_ids": ArrayPlan(vertex, d),
        "delegate_level": ArrayPlan(np.int32, d),
        "delegate_parent": ArrayPlan(vertex, d),
        "delivered": ArrayPlan(np.uint32, shape.active),
        "bounds": ArrayPlan(np.int64, shape.parts + 1),
        "work": ArrayPlan(np.int64, COUNTS),
        "checks": ArrayPlan(np.int64, len(SUBGRAPHS)),
        **dict.fromkeys(OWNED, ArrayPlan(np.uint32, shape.owned)),
        **dict.fromkeys(BITMAPS, ArrayPlan(np.uint64, words)),
        **{f"delegate_{x}": ArrayPlan(np.uint64, delegate_words) for x in BITMAPS},
        **dict.fromkeys(("dirty", "frontier_dirty"), ArrayPlan(np.uint32, words)),
        # of what is seen
        **dict.fromkeys(("nn_mask", "nd_mask"), ArrayPlan(np.uint64, words, True)),
        "nd_first": ArrayPlan(np.uint32, 64 * words, later=True),
        **dict.fromkeys(
            ("dn_first", "dd_pulled_first"),
            ArrayPlan(np.uint32, 64 * delegate_words, later=True),
        ),
        "wide": [
            ArrayPlan(np.uint64, rows[name] + 1, later=True)
            for name in (narrow if len(narrow) < len(rows) else [])
        ],
    }
    return table | ({"parent": ArrayPlan(vertex, shape.local)} if parents else {})


class OpenMPPart:
    """Searches one part level by level (an ``AskingSearch``)."""

    finds_parents = carries_parents = streamed = in_rounds = False
    leaves = None
    directions = CHOSEN
    visits, extras = SUBGRAPHS, ()

    def __init__(self, part: Part, threads: int, parents: bool) -> None:
        owned, owned_local = part.owned_delegates()
        graphs = {name: getattr(part, name) for name in ROWS}
        wide = any(g.offsets.itemsize == 8 for g in graphs.values())
        self._types = {
            "OFFSET": "uint64_t" if wide else "uint32_t",
            "VERTEX": f"{vertex_type(part.layout.n).__name__}_t",
            "NN_COLUMN": "uint64_t" if part.nn.columns.itemsize == 8 else "uint32_t",
        }
        edges = {name: graphs[name].edges for name in SUBGRAPHS}
        shape = PartShape(
            n=part.layout.n,
            parts=part.layout.parts,
            delegates=part.delegate_count,
            local=part.local_count,
            active=part.active,
            owned=len(owned),
            edges=edges,
            nd_sources=0,
        )
        table = array_table(shape, parents=parents)
        self._arrays: dict[str, Any] = allocate(table, cc.aligned_empty)
        self._bounds: Array = self._arrays.pop("bounds")
        self._bounds[:] = 0
        numbers: dict[str, Array] = {
            "vertices": part.vertices,
            "delegate_ids": part.delegates,
            "owned": owned,
            "owned_local": owned_local,
        }
        for name, values in numbers.items():
            self._arrays[name][: len(values)] = values
            self._arrays[name][len(values) :] = 0
        self._arrays["checks"][:] = 0
        self._arrays |= {
            "outbox": np.empty(0, dtype=np.uint64),
            "bins": np.empty(0, dtype=np.uint32),
            "ends": self._bounds[1:],
            "targets": np.empty(0, dtype=np.int64),
        }
        self._level: Array = self._arrays["level"]
        self._parent: Array | None = self._arrays.get("parent")
        for results in (self._level, self._parent):
            if results is not None:
                results[:] = -1
        self._state = structure(SOURCE, "part_state", self._types)(
            local=part.local_count,
            active=part.active,
            delegates=part.delegate_count,
            words=mask_words(part.active),
            delegate_words=mask_words(part.delegate_count),
            index=part.index,
            parts=part.layout.parts,
            threads=threads,
            owned_count=len(owned),
            **self._arrays,
        )
        for name, graph in graphs.items():
            offsets = graph.offsets
            if wide:
                offsets = offsets.astype(np.uint64, copy=False)
            self._state.set(**{name: {"offsets": offsets, "columns": graph.columns}})
        self._self = ctypes.addressof(self._state)
        self.see(part)
        self._work, self._checks = self._arrays["work"], self._arrays["checks"]
        self._counting = False
        self._room = self._edges = 0
        self._isolated: Ids | None = None  # local ids of roots without edges

    def see(self, part: Part) -> None:
        """Restrict searches to the edges in the part's rows; see ``ViewingSearch``."""
        self.part = part
        masked = int(part.nn.bits is not None)
        self._library = cc.load(SOURCE, **self._types, MASKED=masked)
        for name, (result, arguments) in FUNCTIONS.items():
            function = getattr(self._library, f"part_{name}")
            function.restype, function.argtypes = result, (POINTER, *arguments)
        words, delegate_words = mask_words(part.active), len(part.dn_sources)
        pulled_mask = part.dd_sources
        if part.directed:
            pulled_mask = mask_of(part.dd_pulled.occupied(), delegate_words * 64)
        self._state.set(
            nn_mask=mask_of(part.nn.occupied(), words * 64),
            nd_mask=mask_of(part.nd_sources, words * 64),
            dn_mask=part.dn_sources,
            dd_mask=part.dd_sources,
            dd_pulled_mask=pulled_mask,
            nd_first=first_columns(part.nd, words),
            dn_first=first_columns(part.dn, delegate_words),
            dd_pulled_first=first_columns(part.dd_pulled, delegate_words),
        )
        for name in ROWS:
            self._state.set(**{name: {"seen": getattr(part, name).bits}})

    def start(
        self,
        local: Root | None,
        delegate: Root | None,
        *,
        counting: bool = False,
        targets: Targets | None = None,
    ) -> None:
        """Reset the search; set the root if this part has it."""
        if self._isolated is not None:
            self._write(self._isolated, -1, -1)
            self._isolated = None
        self._counting = counting
        if isinstance(local, np.ndarray):
            self._start_set(local, np.asarray(delegate), targets)
            return
        number = None if local is None else self.part.number_of(local)
        lone = number is not None and number >= self.part.active
        if targets is not None:
            self._aim(targets, number if lone else None)
        else:
            self._state.target_count = self._state.lost_targets = 0
        self._state.alone = int(lone)
        if lone:
            self._isolated = np.array([local], dtype=np.int64)
            number = None
        self._library.part_start(
            self._self,
            -1 if number is None else number,
            -1 if delegate is None else delegate,
        )

    def _start_set(self, local: Ids, delegates: Ids, targets: Targets | None) -> None:
        """Start from the roots of a set; see ``start``."""
        numbers = self.part.numbers_of(local)
        edged = numbers < self.part.active
        if targets is not None:
            self._aim(targets, None)
        else:
            self._state.target_count = self._state.lost_targets = 0
        self._state.alone = int((~edged).sum())
        if not edged.all():
            self._isolated = self.part.vertices[numbers[~edged]].astype(np.int64)
        normals = numbers[edged].astype(np.uint32)
        others = delegates.astype(np.uint32)
        self._library.part_start(self._self, -1, -1)
        self._library.part_add_roots(
            self._self,
            normals.ctypes.data,
            len(normals),
            others.ctypes.data,
            len(others),
        )

    def _aim(self, targets: Targets, lone: int | None) -> None:
        """Count targets in ``work``; lone: the number of a root without edges."""
        active = targets.numbers < self.part.active
        kept = np.concatenate([targets.numbers[active], ~targets.delegates])
        self._arrays["targets"] = kept
        lost = int((targets.numbers[~active] != lone).sum())
        self._state.set(targets=kept, target_count=len(kept), lost_targets=lost)

    def work(self) -> Ids:
        """Measure the next level in both directions: ``Work``, int64 [COUNTS]."""
        self._edges = self._library.part_work(self._self)
        return self._work

    def advance(self, choice: Choice, offer: Offer) -> list[int]:
        """Run a level; a small one in one call, since sending early gains nothing."""
        pulls = 0
        for name, bit in PULLS:
            if choice[name] == "pull":
                pulls |= bit
        nn = self._work.item(NN_WORK)
        if nn > self._room:
            self._make_room(nn * 5 // 4)
        small = self._edges < SMALL and not (pulls or self._counting)
        noted = self.visit("all" if small else "nn", pulls)
        offer.normals(self._bins(noted))
        if not small:
            self.visit("dd", pulls)
            self.visit("nd", pulls)
        offer.bits(self._arrays["delegate_fresh"])
        if not small:
            self.visit("dn", pulls)
        return self._checks.tolist() if self._counting else NO_CHECKS

    def visit(self, name: str, pulls: int) -> int:
        """Run one visit, or all; return the number of other parts' vertices nn found.

        pulls: bits of the visits that pull
        """
        visit: Any = self._library.part_visit
        if self._edges + self._work.item(NN_WORK) >= LONG:
            visit = partial(LongCall(self._library), visit)
        noted: int = visit(self._self, VISITS[name], pulls)
        return noted

    def _make_room(self, count: int) -> None:
        """Allocate room for the vertices that nn finds on other parts."""
        self._room = count
        for name, dtype in (("outbox", np.uint64), ("bins", np.uint32)):
            self._arrays[name] = cc.aligned_empty(count, dtype)
            self._state.set(**{name: self._arrays[name]})

    def _bins(self, noted: int) -> Bins:
        """Return the vertices that nn found on other parts."""
        items, bounds = self._arrays["bins"], self._bounds
        return Bins(items, (lambda: (bounds[:-1], bounds[1:])) if noted else None)

    def accept(self, bits: Words | None, normals: Sequence[tuple[int, Array]]) -> None:
        """Merge the finds of all parts into the next frontier; see ``DomainSearch``."""
        for rank, numbers in normals:
            address = numbers.ctypes.data
            self._library.part_take_normals(self._self, rank, address, len(numbers))
        self._library.part_end_level(
            self._self, None if bits is None else bits.ctypes.data
        )

    def unresolved(self) -> tuple[Array, Array]:
        """Return (numbers uint32 [k], ranks int32 [k]) of vertices without parent."""
        if self._parent is None:
            return np.zeros(0, dtype=np.uint32), np.zeros(0, dtype=np.int32)
        numbers = self._arrays["delivered"][: self._state.delivered_count]
        known = self._parent[self.part.vertices[numbers]]
        return numbers, (REMOTE - known).astype(np.int32)

    def level_of(self, numbers: Array) -> Array:
        """Return the level of vertices by number, int32 [k], -1 = unreached."""
        bit = (numbers & 63).astype(np.uint64)
        visited = self._arrays["visited"][numbers >> 6] >> bit & np.uint64(1)
        level = self._level[self.part.vertices[numbers]]
        return np.where(visited, level, np.int32(-1))

    def set_parents(self, numbers: Array, parents: Ids) -> None:
        """Set the parents, ids int64 [k], of vertices by number."""
        if self._parent is not None:
            self._parent[self.part.vertices[numbers]] = parents

    def parents_wanted(self) -> Ids:
        """Return the reached delegates of this part without a parent, int64 [k]."""
        count = self._library.part_list_orphans(self._self)
        return self._arrays["orphans"][:count].astype(np.int64)

    def parents_of(self, delegates: Ids) -> Ids:
        """Return the parents of delegates, ids int64 [k], -1 = not found here."""
        return self._arrays["delegate_parent"][delegates].astype(np.int64)

    def set_delegate_parents(self, delegates: Ids, parents: Ids) -> None:
        """Set the parents, ids int64 [k], of delegates that this part owns."""
        self._arrays["delegate_parent"][delegates] = parents

    def finish(self) -> tuple[Array, Array | None]:
        """Return (level int32, parent or None), [local count], by local id."""
        self._library.part_finish(self._self)
        if self._isolated is not None:
            roots = self.part.layout.global_of(self.part.index, self._isolated)
            self._write(self._isolated, 0, roots)
        return self._level, self._parent

    def _write(self, local: Ids, level: int, parent: Root) -> None:
        self._level[local] = level
        if self._parent is not None:
            self._parent[local] = parent
