import numpy as np
import pytest
from graphs import Tuples
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import on_ranks

from distbfs.benchmark import roots
from distbfs.benchmark.roots import candidates, choose_roots, connected_from_tuples
from distbfs.errors import UsageError
from distbfs.generate.hashing import GOLDEN, mix64


def splitmix(z):
    """One step of the published splitmix64 finaliser, in plain integers."""
    keep = (1 << 64) - 1
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & keep
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & keep
    return z ^ (z >> 31)


def test_candidates_are_the_documented_hash():
    n, seed = 1000, 12345
    expected = [
        splitmix((splitmix(seed) + (i + 1) * 0x9E3779B97F4A7C15) % 2**64) % n
        for i in range(50)
    ]
    assert candidates(n, seed, 0, 50).tolist() == expected
    assert candidates(n, seed, 20, 50).tolist() == expected[20:]
    assert (candidates(n, -1, 0, 9) == candidates(n, 2**64 - 1, 0, 9)).all()


def test_mix_gives_the_published_sequence():
    """The first outputs of splitmix64 with state 0."""
    state = np.array([1, 2], dtype=np.uint64) * np.uint64(GOLDEN)
    assert mix64(state).tolist() == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4]


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 300).flatmap(
        lambda n: st.tuples(
            st.just(n),
            st.lists(st.tuples(*[st.integers(0, n - 1)] * 2), max_size=60),
        )
    ),
    st.integers(0, 70),
    st.integers(0, 2**63),
)
def test_roots_are_unique_connected_and_the_same_for_all_ranks(graph, count, seed):
    n, edges = graph
    source = Tuples(n, [a for a, _ in edges], [b for _, b in edges])
    ends = {x for a, b in edges if a != b for x in (a, b)}

    def work(world):
        return choose_roots(n, count, seed, connected_from_tuples(world, source))

    chosen = [x.tolist() for size in (1, 3) for x in on_ranks(size, work)]
    assert all(x == chosen[0] for x in chosen)
    assert len(chosen[0]) == len(set(chosen[0])) == min(count, len(ends))
    assert set(chosen[0]) <= ends
    degrees = np.isin(np.arange(n), list(ends))
    assert choose_roots(n, count, seed, lambda ids: degrees[ids]).tolist() == chosen[0]


def test_mostly_isolated_graph_is_searched_exhaustively(monkeypatch):
    monkeypatch.setattr(roots, "MOST_DRAWS", 512)
    monkeypatch.setattr(roots, "LARGEST_BATCH", 4096)
    n = 100_000
    wanted = np.array([17, 70_000, 99_999])
    chosen = choose_roots(n, 64, 3, lambda ids: np.isin(ids, wanted))
    assert sorted(chosen.tolist()) == wanted.tolist()


def test_prefix_of_roots_does_not_depend_on_their_number():
    n = 1 << 40

    def odd(ids):
        return ids % 2 == 1

    many = choose_roots(n, 64, 7, odd)
    assert len(np.unique(many)) == 64
    assert many.dtype == np.int64
    assert choose_roots(n, 10, 7, odd).tolist() == many[:10].tolist()
    assert choose_roots(n, 64, 8, odd).tolist() != many.tolist()


def test_nothing_to_choose():
    assert choose_roots(5, 0, 1, lambda ids: ids >= 0).tolist() == []
    assert choose_roots(0, 4, 1, lambda ids: ids >= 0).tolist() == []
    assert choose_roots(5, 4, 1, lambda ids: ids < 0).tolist() == []
    with pytest.raises(UsageError):
        choose_roots(5, -1, 1, lambda ids: ids < 0)
