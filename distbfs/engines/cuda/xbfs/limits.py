"""Limits of searches by method ``fast``: of pushes and levels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distbfs.errors import UsageError

if TYPE_CHECKING:
    from distbfs.device.structures import Record

TAIL_SHARE = 240  # of all edges; see ``pull_tails``
MARK_SHARE = 16  # of all edges; see ``push_limits``
NARROW = 126  # the largest level of one byte, as in search.cuh
NO_LIMIT = 0xFFFFFFFF  # levels of a launch, and of a search


def push_limits(m: int, mean_next: float, pull_share: int) -> tuple[int, int]:
    """Return (mark_edges, pull_edges), between push and pull, of m stored edges.

    mark_edges: a frontier of this many edges is expected to reach 1/16 of all edges in
    the next level (its edges times the mean degree of a neighbour, Σd²/Σd), so a pull
    follows its push
    pull_edges: a frontier with this many edges, 1/``pull_share`` of all edges, is
    pulled at once. One device pushes a frontier that has not doubled, whatever these
    limits are (``take`` in search.cu).
    """
    mark = max(1, int(m / (MARK_SHARE * max(mean_next, 1.0))))
    return mark, max(1, m // pull_share)


def pull_tails(m: int, kept: int) -> int:
    """Return the number of tail columns from which a frontier is pulled.

    A pull that follows finds a visited neighbour among about as many columns as the
    graph has edges for one edge of the frontier; if ``kept`` were less than that, it
    would read tails.
    """
    return max(1, m // TAIL_SHARE, 2 * m // kept)


def too_deep(params: Record, depth: int) -> bool:
    """Return whether wanted levels may not fit a byte; see trees.cuh."""
    return bool(params.level_out and depth + 2 * params.chain > NARROW)


def one_way(direction: str, m: int = 0) -> dict[str, int]:
    """Return the arguments of searches in one direction at all levels, or in both.

    Raises UsageError if queues cannot count m edges.
    """
    if direction == "push" and m >= 1 << 32:
        raise UsageError("direction 'push' allows fewer than 2^32 edges a device")
    return {f"{way}_only": direction == way for way in ("push", "pull")}
