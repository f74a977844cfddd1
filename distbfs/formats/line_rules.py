"""The rules for a line of a text file of edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from distbfs.types import Ids

LARGEST_ID = (1 << 63) - 1


@dataclass(frozen=True)
class LineRules:
    """The allowed content of a line.

    comments: one or two bytes that begin a comment line
    separator: a comma, tab or semicolon, with or without blanks around it, or b" ":
    blanks
    fields: columns of each line; 0: two, and any number of ignored ones, which may be
    quoted
    base: the lowest id as written, 0 or 1
    most_u, most_v: the largest id as written, in the first and second column
    loops: whether both ids may be the same
    canonical: whether a leading zero makes an id text, as in 007
    """

    comments: bytes = b"#%"
    separator: bytes = b" "
    fields: int = 0
    base: int = 0
    most_u: int = LARGEST_ID
    most_v: int = LARGEST_ID
    loops: bool = True
    canonical: bool = False

    def packed(self) -> Ids:
        """Encode the rules for the kernel, int64 [9]."""
        bytes_of = (*self.separator, self.comments[0], self.comments[-1])
        limits = (self.base, self.most_u, self.most_v, self.fields)
        flags = (self.loops, self.canonical)
        return np.array([*limits, *bytes_of, *flags], dtype=np.int64)
