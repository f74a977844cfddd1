"""Message sizes and counts of searches between domains (between.cuh)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distbfs.device.array_table import ArrayPlan, ArrayTable
from distbfs.engines.cuda.xbfs.block_memory import THREADS
from distbfs.engines.streamed import MOST_STREAMED, first_words
from distbfs.partition.layout import Domains, Index
from distbfs.partition.part import mask_words
from distbfs.types import Ids

GOES, PUSHES, ASKS = 1, 2, 4  # ``Does`` in between.cuh
QUESTIONS, ANSWERS = 2, 64  # in a word
MOST_BOXED = 1 << 25  # words of all boxes of a share where levels go in rounds
SIGNALS = 3  # kinds, ``Signal`` in between_loop.cu
LINE = 128  # bytes that pieces of memory are aligned to
COUNTED = (  # ``Count`` in between.cuh; what ``Work`` has is named as there
    "normals",
    "delegates",
    "nn",
    "open",
    "left",
    "dd_forward",
    "targets",
    "leaves",
    "failed",
    "checks",
    "over",
    "unknown",
)


def box_limit(shares: int, boxes: int) -> int | None:
    """Return the largest number of words of a box; None: as many as a level needs.

    boxes: the largest number of boxes of a share. Searches on streams do not use
    rounds.
    """
    if shares <= MOST_STREAMED:
        return None
    return max(MOST_BOXED // max(boxes, 1), first_words(boxes))


def box_bounds(domains: Domains, share: int, edges: Ids, owned: Ids) -> Ids:
    """Return the offsets of a share's boxes, int64 [shares + 1].

    edges: number of edges to each share, or from it if those are more; owned: number of
    delegates of each; both int64 [shares]

    A box holds at most as many items or questions as edges lead to the share, or as
    either share has delegates; its first word describes them. Between many shares,
    items that do not fit are sent in rounds, see ``box_limit``. Shares of this domain
    have no boxes.
    """
    others = domains.apart_from(share)
    needs = np.maximum(edges, np.maximum(owned, owned[share]))
    rooms = np.zeros_like(needs)
    rooms[others] = np.maximum(needs, first_words(domains.most_apart))[others]
    limit = box_limit(domains.shares, domains.most_apart)
    if limit is not None:
        rooms = np.minimum(rooms, limit)
    return np.concatenate([[0], np.cumsum(1 + rooms)])


def reply_words(boxes: Index, shares: Index) -> Index:
    """Return the words of answers to ``shares`` shares; boxes: words of their boxes.

    After a word that describes them, there is a bit for each question that fits a box.
    Answers to the words after the first ones of a box begin with a word of their own.
    """
    return boxes // (ANSWERS // QUESTIONS) + 3 * shares


def reply_slot(slot: int, owned: int) -> int:
    """Return the words of the longest answers, including the word before them.

    slot: words of the largest box; owned: the most delegates of a share, each of whose
    parents is a word
    """
    return 1 + max(-(-(slot - 1) * QUESTIONS // ANSWERS), owned)


def symmetric_table(
    domains: Domains, slot: int, owned: int, dwords: int
) -> dict[str, ArrayPlan]:
    """Return the arrays into which searches in one launch put, each on a new line.

    slot: words of the largest box of any share, including the word before it; owned:
    see ``reply_slot``; dwords: 32-bit words of a mask
    """
    shares, others, word = domains.shares, domains.most_apart, np.uint64
    apart, lanes = len(domains) - 1, domains.lanes
    return {
        "came": ArrayPlan(word, (others, slot)),
        "replied": ArrayPlan(word, (others, reply_slot(slot, owned))),
        "masks": ArrayPlan(np.uint32, (apart, dwords)),
        "dated": ArrayPlan(word, (apart, lanes * -(-dwords // (lanes * THREADS)))),
        "tallies": ArrayPlan(word, (2, shares, len(COUNTED))),
        "signals": ArrayPlan(word, (SIGNALS, shares)),
    }


@dataclass(frozen=True)
class BetweenShape:
    """Sizes that determine a device's arrays for searches between domains.

    words: words of a bitmap of numbers; parts: number of shares; targets: number of
    targets of outer edges
    normals: how many numbers delegates have; delegates: number of their positions;
    owned: number of those that this share owns; boxes: words of all boxes
    directed: whether vertices ask along other outer edges than those that are pushed
    """

    words: int
    parts: int
    targets: int
    normals: int
    delegates: int
    owned: int
    boxes: int
    directed: bool = False

    @property
    def in_rounds(self) -> bool:
        """Whether levels send messages in rounds."""
        return box_limit(self.parts, 1) is not None

    @property
    def sent_words(self) -> int:
        """Words of the bitmap of targets that were sent to; cleared in pairs."""
        return -(-self.targets // 64) * 2

    def messages(self) -> ArrayTable:
        """Return the arrays of messages by their names in between.cuh."""
        return {
            "outbox": ArrayPlan(np.uint64, self.boxes),
            "replies": ArrayPlan(np.uint64, int(reply_words(self.boxes, self.parts))),
            "sent": ArrayPlan(np.uint32, max(self.sent_words, 2)),
        }

    def table(self) -> ArrayTable:
        """Return all other arrays; the writers of those for later allocate them."""
        own = self.normals // 32
        later = {
            "starts": (np.uint32, self.parts + 1),
            "box": (np.uint64, self.parts + 1),
            "has_outer": (np.uint32, self.words),
            "owned": (np.uint32, self.owned),
            "is_owned": (np.uint32, own),
            "leaves": (np.uint32, self.normals),
            "has_leaves": (np.uint32, own),
        }
        if self.directed:
            later |= {f"in_{name}": later[name] for name in ("starts", "has_outer")}
        return {
            "counts": ArrayPlan(np.uint64, len(COUNTED) + 2 * self.parts),
            "front": ArrayPlan(np.uint32, self.words * self.in_rounds + 1),
            "found": ArrayPlan(np.uint64, mask_words(self.delegates)),
            "known": ArrayPlan(np.uint32, own),
            **{name: ArrayPlan(*each, later=True) for name, each in later.items()},
        }
