"""Searches that run while the caller does something else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Started(Generic[T]):
    """Searches in progress.

    finish: waits for them and returns (seconds, result); ended: returns whether
    ``finish`` would return at once
    """

    finish: Callable[[], tuple[float, T]]
    ended: Callable[[], bool] = lambda: True
