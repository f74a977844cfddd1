"""What is wanted of many simultaneous searches: state, and up to six functions.

Traversal, balancing and batching belong to the ways that run a problem; the problem
says what is kept and what is done.  Each function may be left out:

- ``init``: before a search; its state has its fill values already.
- ``prior``: before each level of a search.
- ``visit_vertex(i, u, v)``: for each edge (u, v) out of search i's frontier, seen
  exactly once.  v has its level by then: it was found along this edge, by another edge
  of this level (level[v] == level[u] + 1 either way), or before.
- ``post``: after each level of a search, when all its edges were visited.
- ``end``: after a search's last level, with the order in which vertices were found.
- ``finalize``: after all searches.

Source: McLaughlin, Riedy, Bader 2015, Section III; ``end`` is ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

FUNCTIONS = ("init", "prior", "visit_vertex", "post", "end", "finalize")
Per = Literal["search", "vertex", "pair", "level"]


@dataclass(frozen=True)
class State:
    """An array that a problem keeps.

    per: "search" [k], "vertex" [n] (all searches share it), "pair" [k, n]; "level"
        [k, levels] is for what the traversal keeps (see ``base.KEPT``)
    dtype: of NumPy; fill: value before a search begins ("vertex": before the first)
    result: whether it is handed to the user at the end; else it lives in a batch only
    """

    name: str
    dtype: str
    per: Per
    fill: float = 0
    result: bool = True


@dataclass(frozen=True)
class Problem:
    """A problem over k simultaneous searches.

    functions: by name of FUNCTIONS, over arrays of NumPy (see ``numpy_runner``)
    cuda: CUDA C++ device functions of the same names as text (see ``cuda_program``)
    bits: that levels, counts of vertices by level or reachability are all it needs, so
    bit-parallel batches serve it
    """

    name: str
    state: tuple[State, ...] = ()
    functions: dict[str, Callable[..., Any]] = field(default_factory=dict)
    cuda: str = ""
    bits: bool = False
