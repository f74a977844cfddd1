"""Rows of every part, for any number of ranks, against the tuples themselves."""

import numpy as np
import pytest
from graphs import NAMED, Tuples, random_tuples, sources
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import on_ranks

from distbfs.build.host import rows as build
from distbfs.build.host.rows import collect, joined
from distbfs.device import cc
from distbfs.errors import InputError
from distbfs.generate.hashing import Permutation
from distbfs.ranks.world import SoloWorld
from distbfs.timing import Stopwatch


def rows_on_ranks(source, ranks, parts, width, translate=None):
    """Collect groups of ``width`` devices on each rank; rows by part."""

    def work(world):
        rows, devices = {}, range(parts // ranks)
        for k in range(0, len(devices), width):
            group = devices[k : k + width]
            collected = collect(source, world, parts, group, translate, Stopwatch())
            assert set(collected) == {d * ranks + world.rank for d in group}
            rows.update(collected)
        return rows

    return {k: v for rows in on_ranks(ranks, work) for k, v in rows.items()}


def check(source, parts, rows):
    assert set(rows) == set(range(parts))
    for part, part_rows in rows.items():
        mine = range(part, source.n, parts)
        wanted = [source.matrix[v].indices for v in mine]
        lengths = [len(row) for row in wanted]
        np.testing.assert_array_equal(part_rows.degrees, lengths)
        np.testing.assert_array_equal(part_rows.offsets, np.cumsum([0, *lengths]))
        np.testing.assert_array_equal(part_rows.columns, np.concatenate([[], *wanted]))
        np.testing.assert_array_equal(part_rows.tuple_degrees, source.ends[part::parts])
        loops = (source.u == source.v) & (source.u % parts == part)
        assert part_rows.loops == loops.sum()
        assert part_rows.columns.dtype == np.uint32
        for array in (part_rows.offsets, part_rows.tuple_degrees):
            assert array.dtype == np.int64


@pytest.fixture(params=["compiled", "by NumPy"])
def either_way(request, monkeypatch):
    """With the kernels, and as where there is no compiler."""
    if request.param == "by NumPy":
        monkeypatch.setattr(cc, "load_or_none", lambda *_: None)


@pytest.fixture
def short_rounds(monkeypatch):
    """Many rounds, and ranks whose last ones are empty."""
    monkeypatch.setattr(build, "ROUND", 5)


@pytest.mark.parametrize("name", [n for n in NAMED if n != "kronecker"])
@pytest.mark.parametrize(("ranks", "parts"), [(1, 1), (1, 4), (2, 4), (3, 3)])
def test_named_graphs(name, ranks, parts, short_rounds, either_way):
    check(NAMED[name], parts, rows_on_ranks(NAMED[name], ranks, parts, 2))


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("per_rank", [1, 2, 5])
@pytest.mark.parametrize("width", [1, 2, 5])
def test_ranks_parts_and_passes(ranks, per_rank, width, either_way):
    source = random_tuples(97, 700, seed=ranks)
    check(
        source, ranks * per_rank, rows_on_ranks(source, ranks, ranks * per_rank, width)
    )


@settings(max_examples=40, deadline=None)
@given(sources(), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3))
def test_any_graph(source, ranks, per_rank, width):
    check(
        source, ranks * per_rank, rows_on_ranks(source, ranks, ranks * per_rank, width)
    )


def test_tuples_are_translated_first():
    source = NAMED["kronecker"]
    permutation = Permutation(source.n, 9)
    inside = Tuples(source.n, *map(permutation.forward, (source.u, source.v)))
    check(inside, 6, rows_on_ranks(source, 2, 6, 2, permutation.forward))


class Reused(Tuples):
    """Gives the same arrays again and again, as generators do."""

    def chunks(self, start, stop):
        u, v = np.empty(self.size, np.int64), np.empty(self.size, np.int64)
        for one, other in super().chunks(start, stop):
            u[: len(one)], v[: len(one)] = one, other
            yield u[: len(one)], v[: len(one)]


def test_a_source_may_reuse_its_arrays():
    plain = random_tuples(50, 100, seed=3)
    source = Reused(50, plain.u, plain.v)
    u, v = joined(source, 3, 90)
    np.testing.assert_array_equal(u, plain.u[3:90])
    np.testing.assert_array_equal(v, plain.v[3:90])
    assert joined(source, 4, 4)[0].shape == (0,)
    check(source, 4, rows_on_ranks(source, 2, 4, 1))


@pytest.mark.parametrize(("u", "v"), [(0, 5), (5, 0), (-1, 2), (2, -1), (2**40, 0)])
def test_ends_outside_are_refused(u, v, either_way):
    source = Tuples(5, [1, u], [2, v])
    with pytest.raises(InputError, match="outside 0 … 4"):
        collect(source, SoloWorld(), 1, [0], None, Stopwatch())
