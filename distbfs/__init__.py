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

_ERRORS = (
    "CompilerMissing",
    "DeviceMissing",
    "DiskFull",
    "DistbfsError",
    "FileError",
    "InputError",
    "LaunchError",
    "LibraryMissing",
    "OutOfMemory",
    "RanksStuck",
    "ResourceError",
    "SearchStopped",
    "ServiceError",
    "StoreError",
    "UsageError",
    "ValidationError",
    "WrongTypeError",
)
_HOMES = {
    "Graph": "distbfs.search.graph",
    "Result": "distbfs.search.result",
    "EdgeTable": "distbfs.search.edge_table",
    "bfs": "distbfs.search.breadth_first",
    "connected_components": "distbfs.search.components",
    "distances": "distbfs.search.breadth_first",
    "k_hop_subgraph": "distbfs.search.breadth_first",
    "shortest_path": "distbfs.search.breadth_first",
    "Session": "distbfs.search.session",
    "open": "distbfs.search.open",
    "Problem": "distbfs.multisearch.problem",
    "State": "distbfs.multisearch.problem",
    "betweenness": "distbfs.multisearch.library",
    "closeness": "distbfs.multisearch.library",
    "diameter": "distbfs.multisearch.library",
    "eccentricity": "distbfs.multisearch.library",
    "harmonic": "distbfs.multisearch.library",
    "path_lengths": "distbfs.multisearch.library",
    "reachable": "distbfs.multisearch.library",
    "search_many": "distbfs.multisearch.library",
    "within_hops": "distbfs.multisearch.library",
    "connect": "distbfs.service.client",
    **dict.fromkeys(_ERRORS, "distbfs.errors"),
}
__all__ = sorted(_HOMES)  # noqa: PLE0605


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'distbfs' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
