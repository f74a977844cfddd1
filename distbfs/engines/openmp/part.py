"""One part of a degree-separated graph on a CPU: the arrays and calls of part.c."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np

from distbfs.device import cc
from distbfs.engines.base import Work
from distbfs.graph.csr import CSR
from distbfs.partition.part import Part, mask_of, mask_words
from distbfs.types import Array, DirectionName, Ids, Words

REMOTE = -2
NAMES = (
    ["local", "active", "delegates", "words", "delegate_words"],
    ["index", "parts", "threads"],
    ["nn_offsets", "nn_columns", "nd_offsets", "nd_columns"],
    ["dn_offsets", "dn_columns", "dd_offsets", "dd_columns"],
    ["nn_mask", "nd_mask", "dn_mask", "dd_mask", "nd_first", "dn_first", "dd_first"],
    ["vertices", "delegate_ids"],
    ["visited", "fresh", "frontier"],
    ["delegate_visited", "delegate_fresh", "delegate_frontier"],
    ["dirty", "frontier_dirty", "level", "delegate_level"],
    ["parent", "delegate_parent", "delivered"],
    ["dirty_count", "frontier_count", "delivered_count", "unvisited_nd", "depth"],
)
COUNTS = {*NAMES[0], *NAMES[1], *NAMES[-1]}


class PartState(ctypes.Structure):
    """The C view (``part_state`` in part.c)."""

    _fields_ = tuple(
        (name, ctypes.c_int64 if name in COUNTS else ctypes.c_void_p)
        for group in NAMES
        for name in group
    )


def first_columns(graph: CSR, words: int) -> Array:
    """Return the first column of each row, uint32 [words * 64]; 0 for an empty row."""
    rows = np.flatnonzero(np.diff(graph.offsets))
    first = cc.aligned_empty(words * 64, np.uint32)
    first[:] = 0
    first[rows] = graph.columns[graph.offsets[rows]]
    return first


class OpenMPPart:
    """Searches one part level by level (a ``PartSearch``)."""

    def __init__(self, part: Part, threads: int, parents: bool) -> None:
        self.part = part
        n, d = part.local_count, part.delegate_count
        words = mask_words(part.active)
        graphs = (part.nn, part.nd, part.dn, part.dd)
        wide = any(g.offsets.itemsize == 8 for g in graphs)
        vertex = np.int32 if part.layout.n < 1 << 31 else np.int64
        self._library = cc.load(
            Path(__file__).with_name("part.c"),
            OFFSET="uint64_t" if wide else "uint32_t",
            VERTEX=f"{vertex.__name__}_t",
            NN_COLUMN="uint64_t" if part.nn.columns.itemsize == 8 else "uint32_t",
        )
        for name in (
            "push_nn",
            "push_nd",
            "push_delegates",
            "pull_delegates",
            "pull_dn",
            "adopt",
        ):
            getattr(self._library, f"part_{name}").restype = ctypes.c_int64
        self._arrays: dict[str, Array] = {
            "nn_mask": mask_of(np.flatnonzero(np.diff(part.nn.offsets)), words * 64),
            "nd_mask": mask_of(part.nd_sources, words * 64),
            "dn_mask": part.dn_sources,
            "dd_mask": part.dd_sources,
            "vertices": cc.aligned_copy(part.vertices, words * 64),
            "delegate_ids": part.delegates.astype(vertex),
            "delegate_level": cc.aligned_empty(d, np.int32),
            "delegate_parent": cc.aligned_empty(d, vertex),
            "delivered": np.empty(part.active, dtype=np.uint32),
            "nd_first": first_columns(part.nd, words),
            "dn_first": first_columns(part.dn, mask_words(d)),
            "dd_first": first_columns(part.dd, mask_words(d)),
        }
        self._level = self._arrays["level"] = cc.aligned_full(n, -1, np.int32)
        self._parent = cc.aligned_full(n, -1, vertex) if parents else None
        if self._parent is not None:
            self._arrays["parent"] = self._parent
        for name in ("visited", "fresh", "frontier"):
            self._arrays[name] = cc.aligned_empty(words, np.uint64)
            self._arrays[f"delegate_{name}"] = np.empty(mask_words(d), np.uint64)
        for name in ("dirty", "frontier_dirty"):
            self._arrays[name] = np.empty(words, dtype=np.uint32)
        for name, graph in zip(("nn", "nd", "dn", "dd"), graphs, strict=True):
            offsets = graph.offsets.astype(np.uint64) if wide else graph.offsets
            self._arrays[f"{name}_offsets"] = offsets
            self._arrays[f"{name}_columns"] = graph.columns
        self._state = PartState(
            local=n,
            active=part.active,
            delegates=d,
            words=words,
            delegate_words=mask_words(d),
            index=part.index,
            parts=part.layout.parts,
            threads=threads,
            **{name: cc.pointer(array) for name, array in self._arrays.items()},
        )
        self._self = ctypes.byref(self._state)
        self._owned, self._owned_local = part.owned_delegates()
        self._work = Work()
        self._mask = np.zeros(mask_words(d), dtype=np.uint64)
        self._bins: list[Array] = []
        self._outbox = np.empty(0, dtype=np.uint64)
        self._sorted = np.empty(0, dtype=np.uint32)
        self._isolated: int | None = None

    def start(
        self,
        number: int | None,
        delegate: int | None,
        *,
        counting: bool = False,  # noqa: ARG002
    ) -> None:
        """Forget the last search; set the root where this part knows it."""
        if self._isolated is not None:
            self._write(self._isolated, -1, -1)
            self._isolated = None
        if number is not None and number >= self.part.active:
            self._isolated, number = int(self.part.vertices[number]), None
        self._bins = []
        self._library.part_start(
            self._self,
            ctypes.c_int64(-1 if number is None else number),
            ctypes.c_int64(-1 if delegate is None else delegate),
        )

    def previsit(self) -> Work:
        """Form the queues of the next level and size its work in both directions."""
        out = np.empty(Work.SIZE, dtype=np.int64)
        self._library.part_previsit(self._self, cc.pointer(out))
        if self._isolated is not None and not self._state.depth:
            out[0] += 1  # the root is in no row that the kernels look at
        self._work = Work.from_array(out)
        return self._work

    def launch(self, directions: dict[str, DirectionName]) -> None:
        """Do nothing: visits run when they are called."""

    def visit_nn(self) -> int:
        """Push the frontier's nn edges."""
        self._bins = []
        if not self._work.nn:
            return 0
        counts = np.zeros(self.part.layout.parts, dtype=np.int64)
        if len(self._outbox) < self._work.nn:
            room = self._work.nn * 5 // 4
            self._outbox = cc.aligned_empty(room, np.uint64)
            self._sorted = cc.aligned_empty(room, np.uint32)
        noted = self._library.part_push_nn(
            self._self, cc.pointer(self._outbox), cc.pointer(counts)
        )
        ends = np.cumsum(counts) - counts
        self._library.part_fill_bins(
            cc.pointer(self._outbox),
            ctypes.c_int64(noted),
            cc.pointer(self._sorted),
            cc.pointer(ends),
        )
        self._bins = np.split(self._sorted[:noted], ends[:-1])
        return self._work.nn

    def visit_nd(self, direction: DirectionName) -> int:
        """Find delegates from normal vertices."""
        if direction == "pull":
            return self._call("pull_delegates", 0)
        return self._call("push_nd", self._work.nd[0]) if self._work.nd[0] else 0

    def visit_dd(self, direction: DirectionName) -> int:
        """Find delegates from delegates."""
        if direction == "pull":
            return self._call("pull_delegates", 1)
        return (
            self._call("push_delegates", 1, self._work.dd[0]) if self._work.dd[0] else 0
        )

    def visit_dn(self, direction: DirectionName) -> int:
        """Find normal vertices from delegates."""
        if direction == "pull":
            return self._call("pull_dn")
        return (
            self._call("push_delegates", 0, self._work.dn[0]) if self._work.dn[0] else 0
        )

    def _call(self, name: str, *values: int) -> int:
        function = getattr(self._library, f"part_{name}")
        return int(function(self._self, *(ctypes.c_int64(v) for v in values)))

    def new_mask(self) -> Words:
        """Return the delegates that this part found."""
        return self._arrays["delegate_fresh"]

    def bins(self) -> list[Array]:
        """Return the numbers found by nn on each other part."""
        if self._bins:
            return self._bins
        return [np.zeros(0, dtype=np.uint32)] * self.part.layout.parts

    def take_mask(self, mask: Words) -> None:
        """Accept the delegates found by all parts."""
        self._mask = mask

    def take_normals(self, rank: int, numbers: Array) -> None:
        """Accept vertices of this part that parts of a rank found."""
        self._library.part_take_normals(
            self._self,
            ctypes.c_int64(rank),
            cc.pointer(numbers),
            ctypes.c_int64(len(numbers)),
        )

    def end_level(self) -> None:
        """Make what was found the frontier of the next level."""
        self._library.part_end_level(self._self, cc.pointer(self._mask))

    def adopt_delegates(self) -> None:
        """Give delivered vertices a delegate parent where a neighbour can be one."""
        self._call("adopt")

    def unresolved(self) -> tuple[Array, Array]:
        """Return (numbers, ranks) of vertices without a parent."""
        if self._parent is None:
            return np.zeros(0, dtype=np.uint32), np.zeros(0, dtype=np.int32)
        numbers = self._arrays["delivered"][: self._state.delivered_count]
        known = self._parent[self.part.vertices[numbers]]
        return numbers, (REMOTE - known).astype(np.int32)

    def level_of(self, numbers: Array) -> Array:
        """Return the level of vertices by number."""
        bit = (numbers & 63).astype(np.uint64)
        visited = self._arrays["visited"][numbers >> 6] >> bit & np.uint64(1)
        level = self._level[self.part.vertices[numbers]]
        return np.where(visited, level, np.int32(-1))

    def set_parents(self, numbers: Array, parents: Ids) -> None:
        """Set the parents (vertex ids) of vertices by number."""
        if self._parent is not None:
            self._parent[self.part.vertices[numbers]] = parents

    def parents_wanted(self) -> Ids:
        """Return the reached delegates of this part that it found no parent of."""
        reached = self._arrays["delegate_level"][self._owned] >= 0
        orphan = self._arrays["delegate_parent"][self._owned] < 0
        return self._owned[reached & orphan]

    def parents_of(self, delegates: Ids) -> Ids:
        """Return the parents of delegates that this part found."""
        return self._arrays["delegate_parent"][delegates].astype(np.int64)

    def set_delegate_parents(self, delegates: Ids, parents: Ids) -> None:
        """Set the parents (vertex ids) of delegates that this part owns."""
        self._arrays["delegate_parent"][delegates] = parents

    def result(self) -> tuple[Array, Array | None]:
        """Return levels and parents by local id."""
        self._library.part_finish(self._self)
        self._level[self._owned_local] = self._arrays["delegate_level"][self._owned]
        if self._parent is not None:
            owned = self._arrays["delegate_parent"][self._owned]
            self._parent[self._owned_local] = owned
        if self._isolated is not None:
            root = self.part.layout.global_of(self.part.index, self._isolated)
            self._write(self._isolated, 0, root)
        return self._level, self._parent

    def _write(self, local: int, level: int, parent: int) -> None:
        self._level[local] = level
        if self._parent is not None:
            self._parent[local] = parent
