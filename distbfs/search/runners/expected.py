"""What a level that is launched ahead will have, from what levels like it had.

All ranks learn the same, from sums over all of them.
"""

from __future__ import annotations

from math import log2
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from distbfs.types import DirectionName

LEARNT = 512  # kinds of levels whose boxes are known
STEPS = 4  # of a logarithm, an octave; what follows is in such steps
ALIKE = 8  # of sizes and of what was left, together
SURE = 4  # the same; where all such levels went one way, the next does, too
CLOSE = 2  # the same; the one of such levels that had most counts
MOST_GROWTH = 4.0  # that a box may be larger than one that is known
FORGET = 1.6  # that the memory of a box loses with each that had less
ROOT, UNCOUNTED = -400, 400  # no logarithms of counts
SPAN = 1 << 12  # more than what was left differs by
# differences of keys, the nearest first: (distance, of codes, of sizes, of what was
# left)
NEAR = sorted(
    (abs(size) + abs(left), SPAN * size + left, size, left)
    for size in range(-ALIKE, ALIKE + 1)
    for left in range(abs(size) - ALIKE, ALIKE - abs(size) + 1)
)


def steps(count: int) -> int:
    """Return the logarithm of a count."""
    return round(STEPS * log2(1 + count))


class LevelKey(NamedTuple):
    """By what a level is like another: logarithms of counts."""

    size: int
    left: int

    @classmethod
    def of(cls, edges: int, vertices: int, left: int) -> LevelKey:
        """Return that of counts: edges, or else vertices, of the frontier; those left.

        Levels whose edges are counted are never like the others.
        """
        return cls(steps(edges) if edges else UNCOUNTED + steps(vertices), steps(left))

    @classmethod
    def of_root(cls, delegate: int | None) -> LevelKey:
        """Return what stands for counts before the first level.

        delegate: number of the root, which rises as degrees fall; None: it is normal
        """
        if delegate is None:
            return cls(ROOT, ROOT)
        return cls(2 * ROOT - steps(delegate), ROOT)

    @classmethod
    def of_set(cls, roots: int) -> LevelKey:
        """Return the same for a search from so many roots."""
        return cls(3 * ROOT - steps(roots), ROOT)

    def after_root(self) -> LevelKey:
        """Return what stands for counts before the second level, or these counts."""
        return self._replace(left=2 * ROOT) if self.left == ROOT else self


def rounded(words: int) -> int:
    """Return ``words``, or the next number of which there are two an octave."""
    unit = 1 << max((words - 1).bit_length() - 2, 0)
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
        self._boxes: dict[int, tuple[float, bool]] = {}  # need, pulls
        self._largest = 0.0  # need

    def learn(self, key: LevelKey, words: int, way: DirectionName) -> None:
        """Keep what the fullest box had two levels after counts, and the direction."""
        code = SPAN * key.size + key.left
        need, box = STEPS * log2(1 + words), self._boxes.get(code)
        if box is not None:
            need = max(need, box[0] - FORGET)  # what grew once may again
        elif len(self._boxes) == LEARNT:
            return
        self._boxes[code] = need, way == "pull"
        self._largest = max(self._largest, need)

    def sizes(self) -> list[int]:
        """Return what ``level`` may give from what is known: words, rising."""
        sizes, largest = [self._first], self._words(self._largest)
        while sizes[-1] < largest:
            sizes.append(rounded(sizes[-1] + 1))
        return sizes

    def level(self, key: LevelKey | None) -> tuple[int, DirectionName | None]:
        """Return how many words to send at first, and the direction, None: either."""
        if key is None:
            return self._first, None
        at, boxes = SPAN * key.size + key.left, self._boxes
        most, reach, end, ways = -1.0, CLOSE, ALIKE, set()
        for distance, code, more, longer in NEAR:
            if distance > end:
                break
            box = boxes.get(at + code)
            if box is None:
                continue
            need, pulls = box
            if most < 0:
                reach = max(distance, CLOSE)
                end = max(reach, SURE)
            if distance <= reach:
                growth = -longer if pulls else -more
                most = max(most, need + min(growth, MOST_GROWTH), 0.0)
            if distance <= SURE:
                ways.add(pulls)
        way: DirectionName = "pull" if True in ways else "push"
        return self._words(most), way if len(ways) == 1 else None

    def _words(self, need: float) -> int:
        """Return how many words to send for a need; there are few such numbers."""
        words = rounded(int(2 ** (need / STEPS) * 9 / 8))
        return words if self._first < words <= self._most else self._first
