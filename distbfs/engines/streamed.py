"""Counts and limits of levels that run on streams, ahead of the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from distbfs.engines.base import Work

if TYPE_CHECKING:
    from distbfs.partition.layout import Placement

MOST_STREAMED = 64  # parts: each level sends first words to all, even if empty
FIRST = 1 << 14  # words for all others together that are sent before sizes are known
LEAST_FIRST = 64  # and for one


def streams_serve(parts: int) -> bool:
    """Return whether levels of ``parts`` parts may run on streams."""
    return 1 < parts <= MOST_STREAMED


def has_streams(placement: Placement) -> bool:
    """Return whether each part has its own device, and parts are not too many."""
    own = placement.per_rank == 1 or bool(placement.owners)
    return own and streams_serve(placement.parts)


def launch_problem(placement: Placement, *, streamed: bool, stepwise: bool) -> str:
    """Return why a search between domains cannot be one launch, "" if it can be.

    streamed: whether the engine's levels may run on streams; stepwise: whether levels
    led by the host were requested
    """
    if stepwise:
        return "levels led by the host were requested"
    if not (streamed and has_streams(placement)):
        return "not for this engine, or so many parts"
    if placement.per_rank != 1:
        return "a launch is for ranks of one device each"
    return ""


def first_words(boxes: int) -> int:
    """Return the number of words of a box that are sent before its size is known."""
    return max(FIRST // max(boxes, 1), LEAST_FIRST)


class LevelCounts(NamedTuple):
    """Counts of all parts at the end of a level.

    over: whether any box had more than its first words
    unknown: items in the fullest box of ``BetweenSearch.ask``
    """

    work: Work
    over: int
    unknown: int
