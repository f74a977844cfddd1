"""Searches that run on while the caller does something else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Started(Generic[T]):
    """Searches that were begun.

    finish: waits for them and returns (seconds, result); once
    ended: returns whether that would not wait for a device
    """

    finish: Callable[[], tuple[float, T]]
    ended: Callable[[], bool] = lambda: True
