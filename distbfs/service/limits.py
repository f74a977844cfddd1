"""Limits of a service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from distbfs.options import REQUEST_LIMITS, check_declared, option

MAX_ID_TEXT = 128  # characters of a request's id
SECONDS = 70.0  # that clients wait: more than the longest answer takes by default
COUNT: dict[str, Any] = {"low": 1, "high": 1 << 31}
TIME: dict[str, Any] = {"low": 1e-3, "high": 1e6}


@dataclass(frozen=True)
class Limits:
    """Sizes, counts and times of a service.

    queue: Requests that may wait; further ones get the error busy.
    clients: Connections of the socket, and as many of HTTP.
    pipeline: Unanswered requests of one client; more are not read.
    line: Bytes of a request.
    ids: Sources or targets of a request.
    inline: Values in an answer: levels, parents or ids of a path.
    binary: Values in an answer as arrays of NumPy.
    deadline: Seconds that a request may take, from its arrival; a request may set a
    shorter time.
    patience: Seconds until a client is dropped that does not read its answers, sends
        nothing at first, or does not end the line, or the head or body, of a request.
    """

    queue: int = option(REQUEST_LIMITS, default=64, **COUNT)
    clients: int = option(REQUEST_LIMITS, default=64, **COUNT)
    pipeline: int = option(REQUEST_LIMITS, default=16, **COUNT)
    line: int = option(
        REQUEST_LIMITS, "--max-line", default=1 << 20, low=256, high=1 << 30
    )
    ids: int = option(REQUEST_LIMITS, "--max-ids", default=10_000, **COUNT)
    inline: int = option(REQUEST_LIMITS, "--max-inline", default=1 << 16, **COUNT)
    binary: int = option(REQUEST_LIMITS, "--max-binary", default=1 << 27, **COUNT)
    deadline: float = option(REQUEST_LIMITS, default=60.0, **TIME)
    patience: float = option(REQUEST_LIMITS, default=10.0, **TIME)

    def __post_init__(self) -> None:
        check_declared(self)
