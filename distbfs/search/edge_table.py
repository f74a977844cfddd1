"""Edges of the neighbourhood of a source, as a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from distbfs.search.frames import (
    arrow_table,
    html_table,
    pandas_frame,
    polars_frame,
    whole_names,
)
from distbfs.types import Array, Levels


class EdgeTable:
    """Edges and how far their ends are from the source.

    u, v: what the ends are called, [k]: int64 ids, or objects that are names
    level_u, level_v: int32 [k], hops from the source

    Rows rise by level_u, then by u and v.
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
        """The ends of each edge, [k, 2]."""
        return np.stack([self.u, self.v], axis=1)

    def columns(self) -> dict[str, Array]:
        """Return u, v, level_u and level_v, [k] each."""
        ends = {"u": whole_names(self.u), "v": whole_names(self.v)}
        return {**ends, "level_u": self.level_u, "level_v": self.level_v}

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame of u, v, level_u and level_v, a row for each edge.

        Raises LibraryMissing where pandas is.
        """
        return pandas_frame(self.columns())

    def to_polars(self) -> Any:
        """Return a polars DataFrame; see ``to_pandas``.

        Raises WrongTypeError where names are of types that make no column.
        """
        return polars_frame(self.columns())

    def to_arrow(self) -> Any:
        """Return an Arrow table; see ``to_polars``."""
        return arrow_table(self.columns())
