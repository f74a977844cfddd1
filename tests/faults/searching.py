"""A user's program that imports distbfs and searches on; it guards nothing itself.

``searching.py SCALE``
"""

import sys

from sessions import open_parts

from distbfs.exchange.world import start
from distbfs.generate.kronecker import Kronecker
from distbfs.options import BuildOptions, SearchOptions
from distbfs.partition.construct import construct

world = start(grace=1)
source = Kronecker(int(sys.argv[1]), threads=1)
parts = []
construct(source, world, world.size, BuildOptions(), parts.append)
session = open_parts(world, parts, SearchOptions(threads=1))
for _ in range(100_000):
    session.search(3)
print("done")
