"""Parts in host memory: their inner graphs and outer edges, and the calls of part.c.

The inner graph of a part has its delegates and normal vertices, and all edges except
those that lead to other parts; it is searched like a whole graph. In a directed graph
it has rows of edges out and rows of edges in. In a part that owns its rows, all
vertices with edges are delegates (see ``owned_rows``), and no edge is outer.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.device import cc
from distbfs.device.array_table import ArrayPlan, ArrayTable, allocate
from distbfs.device.calls import LongCall
from distbfs.device.structures import structure
from distbfs.engines.base import (
    COUNTS,
    INNER,
    LARGEST,
    OUTER,
    OWN,
    Targets,
    Work,
)
from distbfs.engines.openmp.whole import NOBODY, first_of, rows_for
from distbfs.errors import UsageError
from distbfs.exchange.bins import Bins
from distbfs.graph.csr import CSR, index_dtype
from distbfs.graph.seen_rows import SeenRows
from distbfs.partition.layout import Placement
from distbfs.partition.part import INTO, Part, edges_in, mask_of, mask_words
from distbfs.plan.memory import PartShape
from distbfs.types import Array, Choice, Ids, Root, Words

SOURCE = Path(__file__).with_name("part.c")
PIECES_EACH = 8  # as in part.c
LONG = 1 << 20  # edges of a part from which on Ctrl-C is heard during levels
LASTING = ("advance", "items", "send")  # what a level spends its time in
COUNTING = ("advance", "items", "placed")  # functions that return a number
MOST = 1 << 31  # numbers, and results, of a part
OF_STATE = ("fresh", "has_outer", "may_ask", "counts", "starts")  # not of the graph
NO_ITEMS = np.zeros(0, dtype=np.uint64)


def vertex_type(n: int) -> type[np.signedinteger[Any]]:
    """Return the dtype that holds the ids of n vertices, and -1."""
    return np.int32 if n < MOST else np.int64


def is_joined(shape: PartShape) -> bool:
    """Return whether inner rows join several subgraphs, rather than being dd alone."""
    return shape.stored_edges + edges_in(shape.edges, INTO["nn"]) > shape.edges["dd"]


def sends(shape: PartShape) -> bool:
    """Return whether a part may have edges to other parts."""
    edges = shape.edges["nn"] + edges_in(shape.edges, INTO["nn"])
    return shape.parts > 1 and edges > 0


def array_table(
    shape: PartShape, threads: int = 1, *, parents: bool = True
) -> ArrayTable:
    """Return the arrays of an ``OpenMPPart``, without the items of a level.

    Results of vertices of the part are by local id; those of all other delegates
    follow.
    """
    results = shape.local + shape.delegates - shape.owned
    active = 64 * mask_words(shape.delegates) + shape.active
    words, vertex = mask_words(active), vertex_type(shape.n)
    by_number = ("vertices", "first", "found_by")
    masks = ("visited", "next", "expandable", "enterable")
    table: ArrayTable = {
        "level": ArrayPlan(np.int32, results),
        "names": ArrayPlan(vertex, 64 * words),
        **dict.fromkeys(by_number, ArrayPlan(np.uint32, 64 * words)),
        **dict.fromkeys(masks, ArrayPlan(np.uint64, words)),
        "fresh": ArrayPlan(np.uint64, mask_words(shape.delegates)),
        "marks": ArrayPlan(np.uint8, 64 * words),
        "queue": [ArrayPlan(np.uint32, active + 1)] * 2,
        "work": ArrayPlan(np.int64, COUNTS),
    }
    if parents:
        table["parent"] = ArrayPlan(vertex, results)
    if is_joined(shape):
        stored = shape.stored_edges
        into = stored - shape.edges["nn"] + edges_in(shape.edges, INTO["nn"])
        offsets = ArrayPlan(index_dtype(max(stored, into)), active + 1)
        for side, edges in (("", stored), ("in_", into))[: 1 + shape.directed]:
            inside = edges - shape.outer
            table[f"{side}offsets"] = offsets
            table[f"{side}columns"] = ArrayPlan(np.uint32, inside, later=True)
    if sends(shape):
        if shape.directed:
            table["may_ask"] = ArrayPlan(np.uint64, words)
        pieces = threads * PIECES_EACH
        table["has_outer"] = ArrayPlan(np.uint64, words)
        table["counts"] = ArrayPlan(np.int64, pieces * shape.parts)
        table["starts"] = ArrayPlan(np.int64, shape.parts + 1)
    return table


def shape_of(part: Part) -> PartShape:
    """Return the counts on which a search of a part depends; outer edges roughly."""
    edges = {name: rows.edges for name, rows in part.out.items()}
    return PartShape(
        n=part.layout.n,
        parts=part.layout.parts,
        delegates=part.delegate_count,
        local=part.local_count,
        active=part.active,
        owned=len(part.owned_delegates()[0]),
        edges={**edges, INTO["nn"]: part.pulled.edges} if part.directed else edges,
        nd_sources=len(part.nd_sources),
        directed=part.directed,
    )


def _check_size(part: Part, placement: Placement, active: int) -> None:
    """Raise UsageError for sizes that vertex numbers or items cannot hold."""
    results = part.local_count + part.delegate_count
    if max(results, active) >= MOST:
        raise UsageError(
            f"part {part.index} has {results} vertices and delegates; engine openmp "
            f"searches up to 2^31 - 1 in a part; use more parts"
        )
    placement.check_items(part.local_count)


class OpenMPPart:
    """Searches a part level by level (a ``DomainSearch``).

    An item is uint64: the high half is the number of a vertex in the receiving part.
    In a push, the low half is the id of the parent div ranks (the remainder is the
    sending rank). In a question, it names the asking vertex: its number, times the
    parts per rank, plus the place of its part on the rank.
    """

    streamed = in_rounds = leaves = False
    directions = (OUTER, INNER)
    visits, extras = directions, ()

    def __init__(
        self,
        part: Part,
        placement: Placement,
        threads: int,
        *,
        parents: bool,
        direction: str,
    ) -> None:
        self.parents = OWN if part.owns_rows else LARGEST
        shape = shape_of(part)
        d, base = shape.delegates, 64 * mask_words(shape.delegates)
        active = base + part.active
        _check_size(part, placement, active)
        self._local, self._normals, self._active = shape.local, base, active
        self._is_long = part.edges >= LONG
        self._marks = direction == "auto"
        table = array_table(shape, threads, parents=parents)
        arrays: dict[str, Any] = allocate(table, cc.aligned_empty)
        self._fill(part, arrays)
        self._places: Array = arrays["vertices"][:d]
        self._level: Array = arrays["level"]
        self._parent: Any = arrays.get("parent")  # or None
        self._write(slice(None), -1, -1)
        self._first_columns: Array = arrays["first"]
        self._marked: Array = arrays["marks"]
        self._enterable: Words = arrays["enterable"]
        self._fresh: Array = arrays["fresh"]
        self._work: Array = arrays.pop("work")
        self._starts: Array = arrays.get("starts", NOBODY)
        offsets = [
            arrays.pop(f"{x}offsets") for x in ("", "in_") if f"{x}offsets" in arrays
        ]
        self._isolated = NOBODY  # local ids of roots without edges
        self._first, self._lost, self._room = True, 0, 0
        self._sent = 0
        self._checks: list[int] = []
        self._items: Array = NO_ITEMS
        own = {name: arrays.pop(name) for name in OF_STATE if name in arrays}
        if "has_outer" in own:
            own.setdefault("may_ask", own["has_outer"])
        self._definitions = {"VERTEX": f"{vertex_type(shape.n).__name__}_t"}
        self._state = structure(SOURCE, "part_state", self._definitions)(
            graph={**arrays, "active": active, "words": mask_words(active)},
            **own,
            delegates=d,
            delegate_words=mask_words(d),
            owns_rows=part.owns_rows,
            index=part.index,
            parts=part.layout.parts,
            ranks=placement.ranks,
            threads=threads,
        )
        self._joined = bool(offsets)
        self._rows, self._pulled = part.dd, part.into["dd"]
        if offsets:
            self._load(part, offsets[0])
            joined = [self._join(*x) for x in zip(part.sides, offsets, strict=True)]
            self._rows, self._pulled = joined[0], joined[-1]
        members = rows_for(self._rows, self._pulled, active)
        self._state.set(graph=members)
        self._offsets: Array = members["offsets"]
        self.see(part)

    def _fill(self, part: Part, arrays: dict[str, Any]) -> None:
        """Fill the arrays by number; normal vertices come last."""
        (owned, local), d = part.owned_delegates(), part.delegate_count
        base, active = self._normals, self._active
        for name in ("vertices", "names", "first", "marks", "fresh"):
            arrays[name][:] = 0
        others = np.ones(d, np.bool_)
        others[owned] = False
        places, names = arrays["vertices"], arrays["names"]
        places[owned] = local
        places[:d][others] = self._local + np.arange(d - len(owned), dtype=np.uint32)
        places[base:active] = part.vertices[: part.active]
        names[:d] = part.delegates
        names[base:active] = part.ids()[: part.active]
        kept = owned if part.owns_rows else np.arange(d)
        kept = np.concatenate([kept, np.arange(base, active)])
        arrays["expandable"][:] = mask_of(kept, active)

    def _join(self, side: Mapping[str, CSR], offsets: Array) -> CSR:
        """Return the inner rows; all arrays except the offsets are allocated here."""
        self._take(side)
        offsets[0] = 0
        self._state.set(graph={"offsets": offsets})
        self._call("count")
        np.cumsum(offsets, out=offsets)
        columns = cc.aligned_empty(int(offsets[-1]), np.uint32)
        self._state.set(graph={"columns": columns})
        self._call("join")
        return CSR(offsets, columns)

    def _load(self, part: Part, offsets: Array) -> None:
        """Load the library for the type of these offsets, and pass it the subgraphs."""
        masked, offset = int(part.dd.bits is not None), f"uint{8 * offsets.itemsize}_t"
        self._library = cc.load(
            SOURCE, **self._definitions, OFFSET=offset, MASKED=masked
        )
        for name in COUNTING:
            getattr(self._library, f"part_{name}").restype = ctypes.c_int64
        self._take({**part.out, "in_nn": part.pulled})

    def _take(self, side: Mapping[str, CSR]) -> None:
        """Pass subgraphs to the library."""
        for name, rows in side.items():
            values: dict[str, Any] = {"offsets": rows.offsets, "columns": rows.columns}
            values |= {"seen": rows.bits, "wide": rows.offsets.itemsize}
            self._state.set(**{name: values})

    def see(self, part: Part) -> None:
        """Restrict searches to the edges in the part's rows; see ``DomainSearch``."""
        self.part = part
        self._load(part, self._offsets)
        out, into = self._rows, self._pulled
        if not self._joined:
            out, into = part.dd, part.into["dd"]
        elif part.dd.bits is not None:
            out = into = self._seen(part.out, out)
            if part.directed:
                into = self._seen(part.into, self._pulled)
                self._take(part.out)
                self._state.set(graph={"offsets": out.offsets})
        filled = into.occupied()
        self._first_columns[: self._active] = first_of(into, self._active)
        self._enterable[:] = mask_of(filled, self._active)
        self._state.set(
            graph={
                "closed": self._active - len(filled),
                "seen": out.bits,
                "in_seen": into.bits,
            }
        )
        if len(self._starts):
            self._call("mark")

    def _seen(self, side: Mapping[str, CSR], rows: CSR) -> SeenRows:
        """Return inner rows with the bits of the edges in the rows of subgraphs."""
        bits = np.zeros(mask_words(rows.edges), np.uint64)
        self._take(side)
        self._state.set(graph={"seen": bits, "offsets": rows.offsets})
        self._call("join")
        return SeenRows(rows.offsets, rows.columns, bits)

    def start(
        self,
        local: Root | None,
        delegate: Root | None,
        *,
        counting: bool = False,  # noqa: ARG002
        targets: Targets | None = None,
    ) -> None:
        """Reset the search; set the roots that this part knows."""
        part, isolated = self.part, self._isolated
        self._write(isolated, -1, -1)
        # mutant: = 0 -> = self._fresh : test_a_level_that_was_not_ended
        self._fresh[:] = 0  # perhaps the last level was not ended
        places = NOBODY if local is None else np.atleast_1d(local)
        numbers = part.numbers_of(places)
        active = numbers < part.active
        self._isolated = places[~active]
        delegates = NOBODY if delegate is None else np.atleast_1d(delegate)
        roots = np.concatenate([delegates, self._normals + numbers[active]])
        roots, wanted, self._lost = roots.astype(np.uint32), NOBODY, 0
        if targets is not None:
            active = targets.numbers < part.active
            normals = self._normals + targets.numbers[active]
            wanted = np.concatenate([targets.delegates, normals])
            alone = part.numbers_of(self._isolated)
            self._lost = int((~np.isin(targets.numbers[~active], alone)).sum())
        self._state.set(
            graph={"roots": roots, "root_count": len(roots)},
            targets=wanted.copy(),
            target_count=len(wanted),
        )
        self._call("start")
        self._first = True

    def work(self) -> Ids:
        """Measure the next level in both directions: ``Work``, int64 [COUNTS]."""
        self._call("work")
        state = self._state
        self._work[:] = Work(
            normals=state.front_normals + len(self._isolated) * self._first,
            delegates=0 if self.part.index else state.front_delegates,
            nn=state.front_outer,
            dd_forward=math.ceil(state.state.push_price),
            dd_u=math.ceil(state.state.pull_price),
            targets=state.target_count + self._lost,
            open=state.open,
        )
        return self._work

    def advance(self, choice: Choice) -> Iterator[Bins | Words]:
        """Run a level; a pull adds the edge checks of its questions later."""
        self._first = False
        pushes = self._state.front_outer > 0 and choice[OUTER] == "push"
        yield self._bins(asks=False) if pushes else Bins(NO_ITEMS, None)
        self._checks = [self._sent if pushes else 0, 0]
        try:
            pull, marks = int(choice[INNER] == "pull"), int(self._marks)
            self._checks[1] = self._call("advance", pull, marks)
        except BaseException:
            self._marked[:] = 0
            raise
        yield self._fresh

    def checks(self) -> list[int]:
        """Return the edge checks of the last level, outer and inner."""
        return self._checks

    def _call(self, name: str, *values: Any) -> Any:
        """Call a function of part.c; return the number of one that returns one."""
        function: Any = getattr(self._library, f"part_{name}")
        if self._is_long and name in LASTING:
            function = partial(LongCall(self._library), function)
        return function(ctypes.byref(self._state), *cc.arguments(*values))

    def _bins(self, *, asks: bool) -> Bins:
        """Return the items that the frontier pushes, or that unvisited vertices ask."""
        self._make_room(self._call("items", int(asks)))
        self._call("send", int(asks))
        return self._filled()

    def _make_room(self, count: int) -> None:
        """Allocate room for items."""
        self._sent = count
        if count > self._room:
            self._room = count * 5 // 4
            self._items = cc.aligned_empty(self._room, np.uint64)
            self._state.set(items=self._items)

    def _filled(self) -> Bins:
        """Return the items for other parts."""
        starts = self._starts
        bounds = (lambda: (starts[:-1], starts[1:])) if self._sent else None
        return Bins(self._items, bounds)

    def questions(self) -> Bins:
        """Return the questions of this part's unvisited vertices, after ``advance``."""
        if not self._state.open:
            return Bins(NO_ITEMS, None)
        asked = self._bins(asks=True)
        self._checks[0] = self._sent
        return asked

    def answers(self, questions: Sequence[tuple[int, Array]]) -> Bins:
        """Return the answers to other parts, as items, before ``accept``."""
        if not questions:
            return Bins(NO_ITEMS, None)
        self._call("hear")
        for writes in (0, 1):
            if writes:
                self._make_room(self._call("placed"))
            for rank, items in questions:
                self._call("answer", rank, items, len(items), writes)
        return self._filled()

    def accept(self, bits: Words | None, items: Sequence[tuple[int, Array]]) -> None:
        """Merge what all parts found into the frontier; see ``DomainSearch``."""
        self._call("accept", bits)
        for rank, some in items:
            self._call("take", rank, some, len(some))

    def delegate_parents(self) -> Array:
        """Return the parents of delegates that this part found, [d], -1 for others."""
        self._call("finish")
        parents: Array = self._parent[self._places]
        return parents

    def take_delegate_parents(self, parents: Array) -> None:
        """Set the parents of the reached delegates of this part."""
        own = self._places < self._local
        self._parent[self._places[own]] = parents[own]

    def finish(self) -> tuple[Array, Array | None]:
        """Return (level int32, parent or None), [local count], by local id."""
        self._call("finish")
        roots = self.part.layout.global_of(self.part.index, self._isolated)
        self._write(self._isolated, 0, roots)
        parent = None if self._parent is None else self._parent[: self._local]
        return self._level[: self._local], parent

    def _write(self, local: Ids | slice, level: int, parent: Root) -> None:
        self._level[local] = level
        if self._parent is not None:
            self._parent[local] = parent
