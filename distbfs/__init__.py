"""Breadth-first search for graphs that outgrow one GPU."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"


def connect(address: Any, *, token: str | None = None, timeout: float = 70.0) -> Any:
    """Return a client of the service at a socket's path or at an http address.

    See ``distbfs.service.client.Client``; the module is imported at the first call.
    """
    client = import_module("distbfs.service.client")
    return client.connect(address, token=token, timeout=timeout)
