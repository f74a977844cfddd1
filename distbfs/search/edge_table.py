"""Edges of the neighbourhood of a source, as a table."""

from __future__ import annotations

import numpy as np

from distbfs.search.frames import Tabular, html_table, whole_names
from distbfs.types import Array, Levels


class EdgeTable(Tabular):
    """Edges, and the distances of their ends from the source.

    Made by ``k_hop_subgraph`` and ``Result.edges_within``.  Rows are sorted by
    ``level_u``, then by ``u`` and ``v``.  ``len(table)`` is the number of edges.

    Attributes
    ----------
    u, v : ndarray, shape (k,)
        Ends of each edge: int64 ids, or names as objects.
    level_u, level_v : ndarray of int32, shape (k,)
        Hops from the source to each end.

    Examples
    --------
    >>> import distbfs
    >>> graph = distbfs.Graph.from_edges([(0, 1), (1, 2), (0, 2), (2, 3)])
    >>> table = distbfs.k_hop_subgraph(graph, 0, 1)
    >>> table
    <distbfs.EdgeTable, 3 edges>
    >>> table.level_u, table.level_v
    (array([0, 0, 1], dtype=int32), array([1, 1, 1], dtype=int32))
    """

    def __init__(self, u: Array, v: Array, level_u: Levels, level_v: Levels) -> None:
        self.u, self.v, self.level_u, self.level_v = u, v, level_u, level_v

    def __len__(self) -> int:
        return len(self.u)

    def __repr__(self) -> str:
        return f"<distbfs.EdgeTable, {len(self)} edges>"

    def _repr_html_(self) -> str:
        return html_table("edges", [("edges", len(self))])

    @property
    def edges(self) -> Array:
        """The ends of each edge, shape (k, 2)."""
        return np.stack([self.u, self.v], axis=1)

    def columns(self) -> dict[str, Array]:
        """Return the four columns as arrays by name.

        Returns
        -------
        dict of str to ndarray
            ``u``, ``v``, ``level_u`` and ``level_v``, shape (k,) each.  Names that are
            all integers are int64.

        Examples
        --------
        >>> import distbfs
        >>> graph = distbfs.Graph.from_edges([(0, 1), (1, 2)])
        >>> list(distbfs.k_hop_subgraph(graph, 0).columns())
        ['u', 'v', 'level_u', 'level_v']
        """
        ends = {"u": whole_names(self.u), "v": whole_names(self.v)}
        return {**ends, "level_u": self.level_u, "level_v": self.level_v}

    _columns = columns
