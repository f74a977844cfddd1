"""Masked searches of parts on all ranks."""

from masked import search_parts

from distbfs.ranks.world import Ranks


def test_parts_of_all_ranks(world: Ranks) -> None:
    for seed in range(1, 9):
        search_parts(seed, getattr(world, "comm", None))
