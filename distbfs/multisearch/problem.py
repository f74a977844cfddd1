"""Problems of many searches at once: state, and up to six functions.

The runner traverses the graph, balances the load and forms batches; the problem
declares its state and functions.

Source: McLaughlin, Riedy, Bader 2015, Section III; ``end`` is an addition.
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

    Parameters
    ----------
    name : str
        A Python identifier, by which functions and results find it.
    dtype : str
        A NumPy dtype of numbers or bool.
    per : {"search", "vertex", "pair", "level"}
        Shape: "search" (k,), "vertex" (n,) shared by all searches, "pair" (k, n).
        "level" (k, levels) is for ``count``, which the traversal keeps.
    fill : float, default 0
        Value before a search begins or, for "vertex", before the first search.
    result : bool, default True
        Whether the array is among the results; if not, it exists only during a batch.

    Notes
    -----
    The traversal itself keeps these states; to get one as a result, declare a state of
    its name, without a function:

    =============  ======  =============================================================
    name           per     meaning
    =============  ======  =============================================================
    level          pair    hops from the source; -1 for unreached
    reachable      pair    whether a vertex was reached, bool or uint8
    reached        search  number of vertices reached, including the source
    depth          search  the largest level: the eccentricity of the source
    distance       search  sum of the levels of all reached vertices
    harmonic       search  sum of 1 / level of all reached vertices but the source
    count          level   number of vertices by level, shape (k, largest depth + 1)
    reached_from   vertex  number of searches that reached the vertex
    distance_from  vertex  sum of its levels in these searches
    harmonic_from  vertex  sum of 1 / level in those that did not begin there
    =============  ======  =============================================================

    Examples
    --------
    >>> import distbfs
    >>> distbfs.State("paths", "uint64", per="pair")
    State(name='paths', dtype='uint64', per='pair', fill=0, result=True)
    """

    name: str
    dtype: str
    per: Per
    fill: float = 0
    result: bool = True


@dataclass(frozen=True)
class Problem:
    """A computation by many searches of one graph, for ``search_many``.

    Parameters
    ----------
    name : str
        Name of the problem in messages.
    state : tuple of State, optional
        The arrays that the problem keeps.
    functions : dict of str to callable, optional
        NumPy functions by name; see Notes.  Engines "reference" and "openmp" call them.
    cuda : str, optional
        CUDA C++ device functions of the same names, for engine "xbfs".
    bits : bool, default False
        Whether the problem needs only states that the traversal itself keeps, and no
        functions. Then 64 to 512 searches run in one traversal, with a bit for each.

    Notes
    -----
    All functions are optional. ``s`` is the batch of searches that runs; ``i`` holds
    rows of it, int64 [b]; ``u`` and ``v`` are vertex ids, int64 [e]:

    - ``init(s, i)``: before a search, when state has its fill values.
    - ``prior(s, i)``: before each level.
    - ``visit_vertex(s, i, u, v)``: edges (u, v) out of the frontiers of searches i,
      each once; v has its level by then.
    - ``post(s, i)``: after each level, when all its edges were visited.
    - ``end(s, i)``: after the last level; ``s.backwards()`` yields (i, u, v) of all
      edges out of reached vertices, deepest level first.
    - ``finalize(s)``: after all searches, with state per vertex and the results.

    State is an attribute of ``s`` by its name: [b] per search, [n] per vertex, [b, n]
    per pair.  ``s.level`` is always there, int32 [b, n]; ``s.depth_now`` is the level
    of the frontier, ``s.sources`` the sources, ``s.first`` the number of the first
    search.  A pair (i, v) may occur many times in a call: ``np.add.at`` adds such
    repeats up.

    In CUDA, all threads of a block call ``init``, ``prior``, ``post`` and ``end`` with
    ``(Search &s)``, one thread calls ``visit_vertex(Search &s, u32 u, u32 v)`` for each
    edge, and all threads of a launch ``finalize(Whole &w)``.  This text is compiled and
    run on the device: take it only from people you trust.

    Source: McLaughlin, Riedy, Bader 2015, Section III; ``end`` is an addition.

    Examples
    --------
    The number of shortest paths from each source:

    >>> import distbfs
    >>> import numpy as np
    >>> def init(s, i):
    ...     s.paths[i, s.sources[i]] = 1
    >>> def visit_vertex(s, i, u, v):
    ...     down = s.level[i, v] == s.depth_now + 1
    ...     i, u, v = i[down], u[down], v[down]
    ...     np.add.at(s.paths, (i, v), s.paths[i, u])
    >>> problem = distbfs.Problem(
    ...     "paths",
    ...     (distbfs.State("paths", "uint64", per="pair"),),
    ...     {"init": init, "visit_vertex": visit_vertex},
    ... )
    >>> graph = distbfs.Graph.from_edges([0, 0, 1, 2, 3], [1, 2, 3, 3, 4])
    >>> distbfs.search_many(graph, problem, [0, 4], "reference")["paths"].tolist()
    [[1, 1, 1, 2, 2], [2, 1, 1, 1, 1]]
    """

    name: str
    state: tuple[State, ...] = ()
    functions: dict[str, Callable[..., Any]] = field(default_factory=dict)
    cuda: str = ""
    bits: bool = False
