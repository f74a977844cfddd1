"""Predicted boxes of a level that is launched ahead, from similar earlier levels.

All ranks learn the same values, because they learn from sums over all ranks.
"""

from __future__ import annotations

from math import log2
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from distbfs.types import DirectionName

LEARNT = 512  # most kinds of levels with known boxes
STEPS = 4  # of a logarithm an octave; the constants below are in such steps
ALIKE = 8  # largest distance of sizes plus that of unvisited counts
SURE = 4  # the same; where all such levels went one way, the next does too
CLOSE = 2  # the same; the largest of such levels counts
MOST_GROWTH = 4.0  # most growth of a box beyond a known one
FORGET = 1.6  # decay of a remembered box at each smaller one
ROOT, UNCOUNTED = -400, 400  # no logarithms of counts
SPAN = 1 << 12  # more than any difference of unvisited counts
# differences of keys, the nearest first: (distance, of codes, of sizes, of unvisited
# counts)
NEAR = sorted(
    (abs(size) + abs(left), SPAN * size + left, size, left)
    for size in range(-ALIKE, ALIKE + 1)
    for left in range(abs(size) - ALIKE, ALIKE - abs(size) + 1)
)


def steps(count: int) -> int:
    """Return the logarithm of a count, rounded to steps."""
    return round(STEPS * log2(1 + count))


class LevelKey(NamedTuple):
    """Logarithms of counts, by which similar levels are recognised."""

    size: int
    left: int

    @classmethod
    def of(cls, edges: int, vertices: int, left: int) -> LevelKey:
        """Return the key of a level by its frontier's edges, or else vertices.

        left: number of unvisited vertices. A level with counted edges is never similar
        to one without.
        """
        return cls(steps(edges) if edges else UNCOUNTED + steps(vertices), steps(left))

    @classmethod
    def of_root(cls, delegate: int | None) -> LevelKey:
        """Return the key that precedes the first level.

        delegate: number of the root among delegates, which are sorted by descending
        degree; None if the root is normal
        """
        if delegate is None:
            return cls(ROOT, ROOT)
        return cls(2 * ROOT - steps(delegate), ROOT)

    @classmethod
    def of_set(cls, roots: int) -> LevelKey:
        """Return the key that precedes the first level of a search from a set."""
        return cls(3 * ROOT - steps(roots), ROOT)

    def after_root(self) -> LevelKey:
        """Return the key that precedes the second level, or this key."""
        return self._replace(left=2 * ROOT) if self.left == ROOT else self


def rounded(words: int) -> int:
    """Round ``words`` up to one of two numbers per octave."""
    unit = 1 << max((words - 1).bit_length() - 2, 0)
    return -(-words // unit) * unit


class Expected:
    """Predicts the words of a box and the direction, from boxes of earlier levels.

    A level is launched before the counts of the previous one are known. Its boxes are
    assumed to be like those of levels, in this search or an earlier one, that followed
    the most similar counts. Boxes of pushes grow with the number of edges, those of
    pulls with the number of unvisited vertices.

    first: least number of words to send first, and the default; most: the largest;
    room: words of the largest box
    """

    def __init__(self, first: int, most: int, room: int) -> None:
        self._first, self._most, self._room = first, most, rounded(room)
        self._boxes: dict[int, tuple[float, bool]] = {}  # need, pulls

    def learn(self, key: LevelKey, words: int, way: DirectionName) -> None:
        """Record the fullest box two levels after counts, and its direction."""
        code = SPAN * key.size + key.left
        need, box = STEPS * log2(1 + words), self._boxes.get(code)
        if box is not None:
            need = max(need, box[0] - FORGET)  # growth may recur
        elif len(self._boxes) == LEARNT:
            return
        self._boxes[code] = need, way == "pull"

    def sizes(self, most: int) -> list[int]:
        """Return the values up to ``most`` that ``level`` may return, ascending."""
        sizes, largest = [self._first], min(most, self._most, self._room)
        while (larger := rounded(sizes[-1] + 1)) <= largest:
            sizes.append(larger)
        return sizes

    def level(self, key: LevelKey | None) -> tuple[int, DirectionName | None]:
        """Return the number of words to send first, and the direction or None."""
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
        # mutant: len(ways) == 1 -> ways : test_expected_levels
        return self._words(most), way if len(ways) == 1 else None

    def _words(self, need: float) -> int:
        """Round a need up to one of a few numbers of words."""
        # mutant: * 9 / 8 -> / 4 : test_expected_levels
        words = min(rounded(int(2 ** (need / STEPS) * 9 / 8)), self._room)
        return words if self._first < words <= self._most else self._first
