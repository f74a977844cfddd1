"""Counts and limits of levels that run on streams, ahead of the host."""

from __future__ import annotations

from typing import NamedTuple

from distbfs.engines.base import Work

MOST_STREAMED = 64  # parts: each level sends first words to all, even if empty
FIRST = 1 << 14  # words for all others together that are sent before sizes are known
LEAST_FIRST = 64  # and for one


def streams_serve(parts: int) -> bool:
    """Return whether levels of ``parts`` parts may run on streams."""
    return 1 < parts <= MOST_STREAMED


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
