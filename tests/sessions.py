"""Sessions over parts that a test has built."""

from distbfs.search.holding import Source, held_parts
from distbfs.search.open import Request, open_source, silent


def open_parts(world, parts, options, permutation=None, say=silent):
    """The session of parts in host memory (collective)."""
    held = held_parts(world, parts, permutation)
    first = parts[0]
    source = Source(first.layout.n, first.layout.parts, first.directed)
    return open_source(world, source, options, Request(), say=say, held=[held])
