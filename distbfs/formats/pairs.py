"""Pairs of ids from a text, parsed in C, or in Python if there is no compiler.

The kernel (parse.c) stops at the first unusual record; Python reads the text from there
on, or refuses it.
"""

from __future__ import annotations

import ctypes
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from distbfs.device import cc
from distbfs.device.structures import structure
from distbfs.formats.ids import LARGEST_ID
from distbfs.formats.lines import BLANKS, LineFault, LineRules, Records, column, read_id
from distbfs.formats.new_ids import check_word

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from distbfs.formats.new_ids import Words
    from distbfs.formats.text import TextFile
    from distbfs.types import Ids

# pairs, piece by piece; returns the blocks that are left
Reading: TypeAlias = "Generator[Ids, None, Iterable[bytes]]"

SOURCE = Path(__file__).with_name("parse.c")
SHORTEST_LINE = 4
PAIRS = 1 << 16
SAME = ("base", "most_u", "most_v", "loops", "canonical", "fields", "quotes")


def read_pairs(
    file: TextFile,
    rules: LineRules,
    declared: int | None = None,
    words: Words | None = None,
) -> Iterator[Ids]:
    """Yield the pairs in the rest of a file, zero-based int64 [k, 2], in order.

    declared: the number of pairs that the header declares
    words: table that numbers text ids, None if ids are numbers

    Raises InputError ``FILE:LINE: what is wrong`` at the first bad record, with the
    number of its first line, and if there are more or fewer pairs than declared.
    """
    library = cc.load_or_none(SOURCE)
    blocks: Iterable[bytes] = file.blocks()
    if library is not None:
        blocks = yield from _compiled(library, file, blocks, rules, declared, words)
    if blocks:
        yield from _records(file, blocks, rules, declared, words)
    if declared is not None and file.entries < declared:
        what = f"{declared} entries declared, {file.entries} found"
        raise file.refuse_last(what)


def _compiled(
    library: ctypes.CDLL,
    file: TextFile,
    blocks: Iterable[bytes],
    rules: LineRules,
    declared: int | None,
    words: Words | None,
) -> Reading:
    """Read pairs with the kernel."""
    state = structure(SOURCE, "rules")(
        separator=ord(rules.separator),
        lead=ord(rules.lead or "\0"),
        comments=(ctypes.c_uint8 * 8)(*rules.comments.encode()),
        u=rules.places[0],
        v=rules.places[1],
        **{name: getattr(rules, name) for name in SAME},
    )
    library.parse.restype = ctypes.c_int64
    blocks = iter(blocks)
    for block in blocks:
        text = np.frombuffer(block, dtype=np.uint8)
        left = LARGEST_ID if declared is None else declared - file.entries
        capacity = min(len(text) // SHORTEST_LINE + 1, left)
        pairs = np.empty((capacity, 2), dtype=np.int64)
        sizes = None if words is None else np.empty_like(pairs)
        state.set(capacity=capacity, sizes=sizes)
        arguments = cc.arguments(ctypes.byref(state), len(text), text, pairs)
        pairs = pairs[: library.parse(*arguments)]
        if words is not None and sizes is not None:
            flat = sizes.ravel()[: pairs.size]
            try:
                pairs = words.numbers(text, pairs.ravel(), flat).reshape(-1, 2)
            except LineFault:
                return chain([block], blocks)  # Python tells the line
        file.entries += len(pairs)
        file.line += state.lines
        file.extra += state.extra
        if len(pairs):
            yield pairs
        if state.at < len(block):
            return chain([block[state.at :]], blocks)
    return []


def _records(
    file: TextFile,
    blocks: Iterable[bytes],
    rules: LineRules,
    declared: int | None,
    words: Words | None,
) -> Iterator[Ids]:
    """Yield the pairs of blocks of whole lines, parsed in Python."""
    records = Records(file, blocks, rules)
    pairs: list[Any] = []

    def taken() -> Ids:
        if words is None:
            return np.array(pairs, dtype=np.int64)
        return words.numbers_of([*chain.from_iterable(pairs)]).reshape(-1, 2)

    for row in records:
        try:
            if rules.lead and (row[0] != rules.lead or len(row) != rules.fields):
                raise LineFault(rules.unled(row))
            if file.entries == declared:
                raise LineFault(f"more entries than the {declared} declared")
            pairs.append(_pair(row, rules, text=words is not None))
        except LineFault as fault:
            raise file.refuse(str(fault), records.begin) from fault
        file.extra += sum(bool(x.strip(BLANKS)) for x in row) > 2 + bool(rules.lead)
        file.entries += 1
        if len(pairs) >= PAIRS:
            yield taken()
            pairs.clear()
    if pairs:
        yield taken()


def _pair(row: list[str], rules: LineRules, *, text: bool) -> list[Any]:
    """Return both ids of a record, numbers or text; LineFault if one is bad."""
    pair: list[Any] = []
    for place, most in zip(rules.places, (rules.most_u, rules.most_v), strict=True):
        word = column(row, place)
        if text:
            check_word(word)
            pair.append(word)
        else:
            pair.append(read_id(word, rules.base, most, rules.canonical))
    if rules.fields and len(row) != rules.fields:
        raise LineFault(f"{len(row)} columns, where {rules.fields} are expected")
    if pair[0] == pair[1] and not rules.loops:
        raise LineFault("an entry on the diagonal, which must be empty")
    return pair
