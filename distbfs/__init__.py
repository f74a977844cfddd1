"""Breadth-first search for graphs that outgrow one GPU.

    >>> import distbfs
    >>> graph = distbfs.Graph.from_edges([0, 1, 2, 5], [1, 2, 3, 6])
    >>> distbfs.bfs(graph, 0).level
    array([ 0,  1,  2,  3, -1, -1, -1], dtype=int32)

``Graph``, ``bfs`` and ``Result`` are imported when they are asked for.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "Graph": "distbfs.search.library",
    "Result": "distbfs.search.result",
    "bfs": "distbfs.search.library",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'distbfs' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]


def connect(address: Any, *, token: str | None = None, timeout: float = 70.0) -> Any:
    """Return a client of the service at a socket's path or at an http address.

    See ``distbfs.service.client.Client``; the module is imported at the first call.
    """
    client = import_module("distbfs.service.client")
    return client.connect(address, token=token, timeout=timeout)
