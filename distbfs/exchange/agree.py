"""What ranks tell each other before they choose: short texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from distbfs.types import World


def gather_texts(world: World, text: str) -> list[str]:
    """Return the text of each rank; collective."""
    mine = np.frombuffer(text.encode(), dtype=np.uint8)
    return [array.tobytes().decode() for array in world.allgather(mine)]


def first_reason(world: World, reason: str) -> str:
    """Return the first reason that is not empty, with its rank; collective."""
    for rank, text in enumerate(gather_texts(world, reason)):
        if text:
            return text if world.size == 1 else f"rank {rank}: {text}"
    return ""
