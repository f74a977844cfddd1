"""A user's program that imports distbfs and searches on; it guards nothing itself.

``searching.py SCALE``
"""

import sys

from distbfs.generate.kronecker import Kronecker
from distbfs.options import SearchOptions
from distbfs.ranks.world import start
from distbfs.search.holding import Source
from distbfs.search.open import open_source

world = start(grace=1)
source = Kronecker(int(sys.argv[1]), threads=1)
graph = Source(source.n, world.size, tuples=source)
session = open_source(world, graph, SearchOptions(threads=1))
for _ in range(100_000):
    session.search(3)
print("done")
