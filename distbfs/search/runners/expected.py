"""What a level that is launched ahead will have, from what levels like it had.

All ranks learn the same, from sums over all of them.
"""

from __future__ import annotations

from math import log2
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from distbfs.types import DirectionName

LEARNT = 256  # kinds of levels whose boxes are known
ALIKE = 4.0  # octaves, of what was found and of what was left
SURE = 1.0  # the same, where a wrong direction would not be much dearer
ROOT = -100.0  # no logarithm of a count


class LevelKey(NamedTuple):
    """By what a level is like another: logarithms of counts."""

    reached: float
    left: float

    @classmethod
    def of(cls, reached: int, left: int) -> LevelKey:
        """Return that of counts: vertices that were reached, and that are left."""
        return cls(round(4 * log2(1 + reached)) / 4, round(4 * log2(1 + left)) / 4)

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

    A level is launched when the counts of the one before are
    not known; it is taken to be like the one, of this search or an earlier one, that
    followed most similar counts.

    first: words that are sent in any case, and where nothing is known; most: at most
    """

    def __init__(self, first: int, most: int) -> None:
        self._first, self._most = first, most
        self._reached, self._left = np.full((2, LEARNT), np.inf)
        self._distance, self._beside = np.empty((2, LEARNT))
        self._needs = [0] * LEARNT
        self._ways: list[DirectionName] = ["push"] * LEARNT
        self._place: dict[LevelKey, int] = {}

    def learn(self, key: LevelKey, words: int, way: DirectionName) -> None:
        """Keep what the fullest box had two levels after counts, and the direction."""
        place = self._place.get(key)
        if place is None:
            if len(self._place) == LEARNT:
                return
            place = self._place[key] = len(self._place)
            self._reached[place], self._left[place] = key
        # what grew once may again
        self._needs[place] = max(words, self._needs[place] * 3 // 4)
        self._ways[place] = way

    def level(self, key: LevelKey | None) -> tuple[int, DirectionName | None]:
        """Return how many words to send at first, and the direction, None: either."""
        if key is None:
            return self._first, None
        distance, beside = self._distance, self._beside
        np.abs(np.subtract(self._reached, key.reached, out=distance), out=distance)
        np.abs(np.subtract(self._left, key.left, out=beside), out=beside)
        nearest = int(np.add(distance, beside, out=distance).argmin())
        if distance[nearest] > ALIKE:
            return self._first, None
        wanted = rounded(self._needs[nearest] * 9 // 8)
        fits = self._first < wanted <= self._most
        sure = distance[nearest] <= SURE
        return wanted if fits else self._first, self._ways[nearest] if sure else None
