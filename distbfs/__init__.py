"""Breadth-first search for graphs that outgrow one GPU.

``Graph`` holds a graph in the memory of this process, and ``bfs`` searches it;
``shortest_path``, ``distances`` and ``connected_components`` answer the most common
questions. ``open`` returns a ``Session`` over a store, a graph or generated edges, also
on all ranks of an MPI communicator.  ``path_lengths``, ``reachable``, ``betweenness``,
``closeness``, ``harmonic``, ``eccentricity``, ``diameter`` and ``within_hops`` make
many searches at once; ``search_many`` runs a ``Problem`` of your own.  ``connect`` asks
a service that ``distbfs serve`` has started.

Every error is a ``DistbfsError``, and also a ValueError, TypeError, OSError,
MemoryError or ImportError if one of these fits.  Names are imported on first use, so
that ``import distbfs`` takes almost no time.

Examples
--------
>>> import distbfs
>>> graph = distbfs.Graph.from_edges([0, 1, 2, 5], [1, 2, 3, 6])
>>> distbfs.bfs(graph, 0).level
array([ 0,  1,  2,  3, -1, -1, -1], dtype=int32)
>>> distbfs.path_lengths(graph, [0, 5])
array([[ 0,  1,  2,  3, -1, -1, -1],
       [-1, -1, -1, -1, -1,  0,  1]], dtype=int8)
"""

from importlib import import_module

__version__ = "0.1.0"

with open(f"{__file__}i", encoding="utf-8") as _stub:  # name -> module
    _HOMES = {
        words[3]: words[1] for words in map(str.split, _stub) if words[:1] == ["from"]
    }
__all__ = sorted(_HOMES)  # noqa: PLE0605


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'distbfs' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
