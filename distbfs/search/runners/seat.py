"""One device of a rank during levels on streams."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cuda
from distbfs.device.array_table import ArrayPlan, ArrayTable
from distbfs.engines.streamed import first_words, streams_serve
from distbfs.partition.part import mask_words

if TYPE_CHECKING:
    from distbfs.engines.cuda.xbfs.between import BetweenSearch
    from distbfs.partition.layout import Domains
    from distbfs.search.direction import DirectionPolicy

    Boxes = list[tuple[int, int]]  # part, words of its box with the one before it

LEAST_UNKNOWN = 1 << 13  # least questions for parents in a launch


def space_plan(others: int, room: int) -> ArrayPlan:
    """Return the buffers for boxes and replies of other parts, ``room`` words each."""
    return ArrayPlan(np.uint64, (2, others * (1 + room)))


def streams_table(parts: int, owned: int, delegates: int) -> ArrayTable:
    """Return the arrays of a seat at their largest; buffers come in doubling sizes.

    parts: number of parts, each of one device; delegates: number of delegates, d
    owned: most delegates of a part, whose parents it may ask for
    """
    if not streams_serve(parts):
        return {}
    others = parts - 1
    words = max(owned, LEAST_UNKNOWN, first_words(others))
    rooms = [1 << k for k in range((words - 1).bit_length() + 1)]
    return {
        "spaces": [space_plan(others, room) for room in rooms],
        "masks": ArrayPlan(np.uint64, (others, mask_words(delegates))),
    }


class Seat:
    """The part of one device of this rank; its methods need the device current.

    place: index of the device on this rank; stream: the exchange's stream on it
    others: the parts to which boxes are sent
    masks: received masks, one row per other domain
    mask_pieces: for each other part (part, words of the own mask to send, words of
    ``masks`` to receive)
    reports: counts of levels in pinned memory, used in turn, uint64, see
    ``BetweenSearch.follow``; reads: the events recorded after their copies
    done: the event recorded after all launches
    """

    def __init__(
        self,
        place: int,
        search: BetweenSearch,
        stream: Any,
        domains: Domains,
        policy: DirectionPolicy,
    ) -> None:
        cp = cuda.cupy()
        self.place, self.search, self.stream = place, search, stream
        self.others = search.others
        self._spaces: dict[int, Any] = {}  # of boxes of so many words
        counts, sizes = search.counts.size, search.sizes.size
        with cuda.memory_of("boxes of other parts"):
            self.gathered = cp.empty((domains.shares, counts), np.uint64)
        self.masks: Any = None
        self.mask_pieces: list[tuple[int, Any, Any]] = []
        if search.mask is not None:
            self._cut_masks(domains)
        self.mask_bytes = sum(piece.nbytes for _, piece, _ in self.mask_pieces)
        size = 2 * counts + sizes
        self.reports = cuda.pinned_empty(2 * size, np.uint64).reshape(2, size)
        self.reports[...] = 0
        search.follow(self.gathered, self.reports, policy.forced, policy.share)
        *self.reads, self.done = (cp.cuda.Event(disable_timing=True) for _ in range(3))
        self.volumes = cache(self._volumes)

    def _cut_masks(self, domains: Domains) -> None:
        """Allocate masks of other domains, and cut them by part."""
        mask, others = self.search.mask, np.array(self.others, dtype=np.int64)
        apart, at = np.unique(domains.domain_of(others), return_inverse=True)
        with cuda.memory_of("masks of other domains"):
            self.masks = cuda.cupy().empty((len(apart), mask.size), np.uint64)
        for row, part in zip(at.tolist(), self.others, strict=True):
            for words in self.search.pieces(part):
                self.mask_pieces.append((part, mask[words], self.masks[row][words]))

    def space(self, words: int, replies: int) -> tuple[Any, Any]:
        """Return buffers for other parts' boxes and replies, [others, 1 + words].

        words, replies: words of a box, and of a reply, which is no longer than a box
        """
        rows, room = len(self.others), 1 << (words - 1).bit_length()
        space = self._spaces.get(room)
        if space is None:
            plan = space_plan(rows, room)
            with cuda.memory_of("boxes of other parts"):
                space = cuda.cupy().empty(plan.shape, plan.dtype)
            self._spaces[room] = space
        both = zip(space, (1 + words, 1 + replies), strict=True)
        boxes, answers = (one[: rows * each].reshape(rows, each) for one, each in both)
        return boxes, answers

    def sent(self, part: int, words: int) -> int:
        """Return the number of words in the first message to or from a part."""
        return 1 + min(words, self.search.room(part))

    def answered(self, part: int, words: int) -> int:
        """Return the number of words that answer a part's first questions."""
        return 1 + self.search.answer_words(self.sent(part, words) - 1)

    def _volumes(self, words: int) -> tuple[int, int]:
        """Return the bytes of the first messages, and of the answers to them."""
        boxes = sum(self.sent(part, words) for part in self.others)
        return 8 * boxes, 8 * sum(self.answered(part, words) for part in self.others)

    def over(self, slot: int, first: int, *, pull: bool) -> tuple[Boxes, Boxes]:
        """Return the boxes of more words than the first, to send and to receive."""
        sizes = self.reports[slot, 2 * self.search.counts.size :].astype(np.int64)
        rows = (-(-sizes // 2) if pull else sizes).reshape(2, -1).tolist()
        own, came = ([(p, 1 + x[p]) for p in self.others if x[p] > first] for x in rows)
        return own, came
