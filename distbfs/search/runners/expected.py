"""What a level that is launched ahead will have, from what levels like it had.

All ranks learn the same, from sums over all of them.
"""

from __future__ import annotations

from math import log2
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from distbfs.types import DirectionName

LEARNT = 512  # kinds of levels whose boxes are known
ALIKE = 4.0  # octaves, of edges and of what was left, together
CLOSE = 0.5  # the same; the one of such levels that had most counts
SURE = 1.0  # the same; where all such levels went one way, the next does, too
MOST_GROWTH = 1.0  # octaves that a box may be larger than one that is known
FORGET = 0.4  # octaves that the memory of a box loses with each that had less
ROOT, UNCOUNTED = -100.0, 100.0  # no logarithms of counts


class LevelKey(NamedTuple):
    """By what a level is like another: logarithms of counts."""

    size: float
    left: float

    @classmethod
    def of(cls, edges: int, found: int, left: int) -> LevelKey:
        """Return that of counts: edges, or else vertices, of the frontier; those left.

        Levels whose edges are counted are never like the others.
        """
        size = log2(1 + edges) if edges else UNCOUNTED + log2(1 + found)
        return cls(round(4 * size) / 4, round(4 * log2(1 + left)) / 4)

    @classmethod
    def of_root(cls, delegate: int | None) -> LevelKey:
        """Return what stands for counts before the first level.

        delegate: number of the root, which rises as degrees fall; None: it is normal
        """
        if delegate is None:
            return cls(ROOT, ROOT)
        return cls(2 * ROOT - round(4 * log2(1 + delegate)) / 4, ROOT)

    def after_root(self) -> LevelKey:
        """Return what stands for counts before the second level, or these counts."""
        return self._replace(left=2 * ROOT) if self.left == ROOT else self


def rounded(words: int) -> int:
    """Return ``words``, or the next number of which there are four an octave.

    So levels that are a little different are launched alike.
    """
    unit = 1 << max(words.bit_length() - 3, 0)
    return -(-words // unit) * unit


class Expected:
    """How many words a box will have, and which, from what boxes had in levels before.

    A level is launched when the counts of the one before are not known; it is taken to
    be like those, of this search or an earlier one, that followed most similar counts:
    the boxes of pushes grow as edges do, those of pulls as what is left.

    first: words that are sent in any case, and where nothing is known; most: at most
    """

    def __init__(self, first: int, most: int) -> None:
        self._first, self._most = first, most
        self._keys = np.zeros((2, LEARNT))
        self._needs = np.zeros(LEARNT)  # logarithms
        self._pulls = np.zeros(LEARNT, bool)
        self._place: dict[LevelKey, int] = {}

    def learn(self, key: LevelKey, words: int, way: DirectionName) -> None:
        """Keep what the fullest box had two levels after counts, and the direction."""
        place = self._place.get(key)
        if place is None:
            if len(self._place) == LEARNT:
                return
            place = self._place[key] = len(self._place)
            self._keys[:, place] = key
        # what grew once may again
        self._needs[place] = max(log2(1 + words), self._needs[place] - FORGET)
        self._pulls[place] = way == "pull"

    def level(self, key: LevelKey | None) -> tuple[int, DirectionName | None]:
        """Return how many words to send at first, and the direction, None: either."""
        count = len(self._place)
        if key is None or not count:
            return self._first, None
        keys, pulls = self._keys[:, :count], self._pulls[:count]
        size, left = key.size - keys[0], key.left - keys[1]
        distance = np.abs(size) + np.abs(left)
        least = float(distance.min())
        if least > ALIKE:
            return self._first, None
        growth = np.minimum(np.where(pulls, left, size), MOST_GROWTH)
        needs = self._needs[:count] + growth
        most = float(needs[distance <= max(least, CLOSE)].max())
        words = rounded(int(2 ** min(most, 62.0) * 9 / 8))
        fits = self._first < words <= self._most
        ways = pulls[distance <= SURE]
        sure = len(ways) > 0 and ways.all() == ways.any()
        way: DirectionName = "pull" if sure and ways[0] else "push"
        return words if fits else self._first, way if sure else None
