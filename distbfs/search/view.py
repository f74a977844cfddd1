"""Views: some vertices and edges of a graph, without a copy of it.

>>> from distbfs import Graph, bfs
>>> graph = Graph.from_edges([0, 1, 2, 0], [1, 2, 3, 3])
>>> graph.edges().tolist()
[[0, 1], [0, 3], [1, 2], [2, 3]]
>>> view = graph.view(edges=[True, False, True, True])
>>> bfs(graph, 0, "openmp", view=view).level
array([0, 1, 2, 3], dtype=int32)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xxhash

from distbfs.errors import InputError, UsageError, WrongTypeError
from distbfs.formats.attributes import Values
from distbfs.graph.predicate import Predicate
from distbfs.graph.seen_rows import SeenRows
from distbfs.partition.edge_keys import EdgeIds, Listing, names_read
from distbfs.search.program_arrays import array_of

if TYPE_CHECKING:
    from distbfs.partition.part import Part
    from distbfs.types import Ids, Marks, World


class View:
    """The vertices and edges that searches see; a view does not change.

    Made by ``Graph.view`` and ``Session.view``.  An edge is seen if ``vertices``,
    ``edges`` and ``where`` all allow it; a vertex that is not seen is never reached.

    Attributes
    ----------
    n : int
        Number of vertices of the graph.
    vertices : ndarray of bool, shape (n,), or None
        Flags by vertex id, None for all.
    edges : ndarray of bool, shape (edges,), or None
        Flags in the order of ``Graph.edges()``, which lists an undirected edge once;
        None for all.  In a store, edges are sorted by (u, v) with u < v, in input ids;
        in a directed store by (source, target).
    where : Predicate or None
        A predicate over attributes of the edges, None for all edges.

    Examples
    --------
    >>> import distbfs
    >>> graph = distbfs.Graph.from_edges([0, 1], [1, 2])
    >>> graph.view(vertices=[True, True, False])
    <distbfs.View of 2 of 3 vertices>
    """

    def __init__(
        self, n: int, vertices: Any = None, edges: Any = None, where: str | None = None
    ) -> None:
        """Check and copy the restrictions, for a graph of n vertices.

        Raises WrongTypeError for arrays that do not hold flags, InputError for arrays
        of a wrong shape, UsageError for a predicate that does not parse.
        """
        self.n = n
        self.vertices = None if vertices is None else flags_of(vertices, "vertices")
        self.edges = None if edges is None else flags_of(edges, "edges")
        self.where = None if where is None else Predicate(where)
        if self.vertices is not None and len(self.vertices) != n:
            raise InputError(
                f"vertices has {len(self.vertices)} flags; allowed: one for each of "
                f"{n} vertices"
            )

    def __repr__(self) -> str:
        facts = []
        for name in ("vertices", "edges"):
            flags = getattr(self, name)
            if flags is not None:
                facts.append(f"{int(flags.sum())} of {len(flags)} {name}")
        if self.where is not None:
            facts.append(f"edges where {self.where.text}")
        return f"<distbfs.View of {', '.join(facts) or 'all'}>"

    @property
    def whole(self) -> bool:
        """Whether all vertices and edges are seen."""
        return self.vertices is None and self.edges is None and self.where is None

    def facts(self) -> list[str]:
        """Return the facts that identify the view, none if everything is seen."""
        if self.whole:
            return []
        digests = [
            "" if x is None else xxhash.xxh3_128_hexdigest(np.packbits(x).data)
            for x in (self.vertices, self.edges)
        ]
        return [*digests, "" if self.where is None else self.where.text]

    def check_sources(self, ids: Ids, names: Callable[[Ids], list[Any]]) -> None:
        """Raise UsageError if one of the sources, ids [k], is not seen.

        names: returns the names of ids, for the message
        """
        hidden = ids[~self.sees(ids)]
        if not len(hidden):
            return
        name = f"{names(hidden[:1])[0]!r:.60}"
        if len(ids) == 1:
            raise UsageError(f"source {name} is a vertex that is not seen")
        raise UsageError(
            f"{len(hidden)} of {len(ids)} sources are vertices that are not seen; the "
            f"first is {name}"
        )

    def sees(self, vertices: Ids) -> Marks:
        """Return which vertices, ids int64 [k], are visible, bool [k]."""
        if self.vertices is None:
            return np.ones(len(vertices), np.bool_)
        return self.vertices[vertices]


def flags_of(values: Any, name: str) -> Marks:
    """Return a copy of flags as a read-only bool array of one dimension."""
    flags = array_of(values, name)
    if flags.ndim != 1:
        raise InputError(f"{name} has shape {flags.shape}; allowed: one dimension")
    if flags.dtype != np.bool_ and flags.size:
        raise WrongTypeError(f"{name} has values of {flags.dtype}; allowed: bool")
    flags = flags.astype(np.bool_)  # a copy
    flags.flags.writeable = False
    return flags


def check_attributes(where: Predicate, attributes: dict[str, Values]) -> None:
    """Raise UsageError unless a predicate fits the attributes, possibly none."""
    for name in where.names:
        if name not in attributes:
            raise UsageError(
                f"attribute '{name:.60}' was not kept with the graph, which has: "
                f"{', '.join(attributes) or 'none'}"
            )
    where.of(attributes, 0)


class PartViews:
    """Makes the visible rows of this rank's parts; methods are collective.

    outside: returns the input ids of internal ids, int64
    """

    def __init__(
        self, world: World, parts: Sequence[Part], outside: Callable[[Ids], Ids]
    ) -> None:
        self._world, self._parts = world, parts
        self._ids = EdgeIds(world, parts, outside)
        self._listing: Listing | None = None

    def check(self, view: View) -> None:
        """Raise InputError if the flags are not one per edge of the graph.

        Raises UsageError for attributes that were not kept.
        """
        if view.where is not None:
            there = self._parts[0].attributes
            none = {k: Values(x.values["nn"][:0], x.words) for k, x in there.items()}
            check_attributes(view.where, none)  # on all ranks alike
        if view.edges is not None:
            self._check_edges(view.edges)

    def of(self, view: View) -> list[Part]:
        """Return the parts with rows of the visible edges; columns are shared.

        Raises the errors of ``check``.
        """
        self.check(view)
        made = []
        for part in self._parts:
            rows = {
                name: SeenRows.of(rows, self._flags(view, part, name))
                for name, rows in part.subgraphs.items()
            }
            made.append(part.with_rows(rows))
        return made

    def pairs(self, view: View) -> Iterator[tuple[Ids, Ids]]:
        """Yield the ends of visible edges, input ids int64 [k] each.

        An undirected edge is yielded once. Local; call ``check`` before.
        """
        for part in self._parts:
            for name in names_read(directed=part.directed):
                u, v = self._ids.ends(part, name)
                flags = self._flags(view, part, name)
                if not part.directed and name != "nd":  # both directions are there
                    flags &= u <= v
                yield u[flags], v[flags]

    def _check_edges(self, edges: Marks) -> None:
        if self._listing is None:
            self._listing = Listing(self._world, self._parts, self._ids)
        if len(edges) != self._listing.edges:
            raise InputError(
                f"edges has {len(edges)} flags; allowed: one for each of "
                f"{self._listing.edges} edges"
            )

    def _flags(self, view: View, part: Part, name: str) -> Marks:
        """Return which stored edges of a subgraph are visible, bool [edges]."""
        edges = part.subgraphs[name].edges
        flags = np.ones(edges, np.bool_)
        if view.where is not None:
            values = {
                k: Values(part.attributes[k].values[name], part.attributes[k].words)
                for k in view.where.names
            }
            flags &= view.where.of(values, edges)
        if view.edges is not None and self._listing is not None:
            flags &= view.edges[self._listing.places(part, name)]
        if view.vertices is not None:
            for side in self._ids.ends(part, name):
                flags &= view.vertices[side]
        return flags


def seen_ends(world: World, parts: Sequence[Part]) -> list[Ids]:
    """Count the ends of seen edges at each vertex, int64 [local] per part (collective).

    The counts are by number, like ``Part.tuple_degrees``. An undirected edge counts
    once at each of its ends, a directed edge twice at the vertex that it leaves. The
    part that owns a delegate has its count, at the number of its local id.
    """
    made = []
    of_delegates = np.zeros(parts[0].delegate_count, dtype=np.int64)
    for part in parts:
        each = 1 + part.directed
        made.append(each * (part.nn.degrees() + part.nd.degrees()))
        of_delegates += each * (part.dn.degrees() + part.dd.degrees())
    of_delegates = world.allreduce(of_delegates)
    for part, ends in zip(parts, made, strict=True):
        owned, local = part.owned_delegates()
        ends[part.numbers_of(local)] = of_delegates[owned]
    return made
