"""Keys become rows: the kernels against NumPy, for any number of threads."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distbfs.device import cc
from distbfs.errors import InputError, UsageError
from distbfs.graph import keys as packing
from distbfs.graph import sorted_rows as rows
from distbfs.graph.csr import CSR
from distbfs.graph.keys import BACK, BOTH, FORTH, Deal, Items, KeyFormat
from distbfs.graph.sorted_rows import (
    LARGE_PAGE,
    KeyBuffer,
    KeyRuns,
    fresh,
    inverse,
    keys_by_rank,
    make_pages,
    ranked_rows,
    stable_order,
    taken,
)

THREADS = st.sampled_from([1, 2, 5])
SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.sampled_from([0, 1, 2, 24, 25, 300, 4095, 5000])
FAST = settings(max_examples=60, deadline=None)
LARGE = 150_000  # more than CACHED of rows.c
SHAPES = {
    "no key": lambda _: np.zeros(0, np.uint64),
    "one key": lambda _: np.array([5 << 32 | 7], np.uint64),
    "all equal": lambda _: np.full(LARGE, 3 << 32 | 9, np.uint64),
    "sorted": lambda _: np.arange(LARGE, dtype=np.uint64) * np.uint64(3 << 30),
    "falling": lambda _: np.arange(LARGE, 0, -1).astype(np.uint64) << np.uint64(16),
    "few bits": lambda rng: rng.integers(0, 8, LARGE, np.uint64) << np.uint64(40),
    "63 bits": lambda rng: rng.integers(0, 1 << 63, LARGE, np.uint64),
    "64 bits": lambda rng: rng.integers(0, (1 << 64) - 1, LARGE, np.uint64),
    "one bucket": lambda rng: rng.integers(0, 1 << 17, LARGE, np.uint64) ** 2,
    "a hub": lambda rng: np.append(
        rng.integers(0, 1 << 20, LARGE, np.uint64),
        rng.integers(0, 1 << 52, 99, np.uint64),
    ),
}


def without_compiler(work):
    """Call a function as where there is no compiler."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cc, "load_or_none", lambda *_: None)
        return work()


def same(one, other):
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == b.dtype


@pytest.fixture
def short_runs(monkeypatch):
    """Many runs of few keys, and many calls."""
    monkeypatch.setattr(packing, "RUN", 14)
    monkeypatch.setattr(rows, "PIECE", 3)
    monkeypatch.setattr(rows, "CALL", 20)
    monkeypatch.setattr(rows, "BUCKET_KEYS", 2)
    monkeypatch.setattr(rows, "BLOCK", 4)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("name", SHAPES)
def test_keys_are_sorted(name, threads):
    keys = SHAPES[name](np.random.default_rng(4))
    runs = KeyRuns(52, 1 << 12, len(keys), threads)
    for piece in np.array_split(keys, 3):
        runs.add(Items(FORTH, piece))
    cut, form = runs.cut(np.uint64), KeyFormat(52)
    lengths = np.bincount(form.row(keys), minlength=1 << 12)
    wanted = form.column(np.sort(keys)).astype(np.uint64)
    same([cut.columns, cut.lengths], [wanted, lengths])


@FAST
@given(SEEDS, SIZES, st.integers(1, 64), THREADS)
def test_any_bits_are_sorted(seed, size, bits, threads):
    keys = np.random.default_rng(seed).integers(0, 2**bits - 1, size, np.uint64, True)
    low = max(bits // 2, bits - 12)
    runs = KeyRuns(low, 1 << bits - low, size // 3, threads)
    runs.add(Items(FORTH, keys))
    wanted = np.sort(keys) & np.uint64((1 << low) - 1)
    same([runs.cut(np.uint64).columns], [wanted])


def tuples_of(seed, n, size):
    """Tuples with loops, repeats and hubs."""
    rng = np.random.default_rng(seed)
    u, v = rng.integers(0, n, (2, size))
    hub, loop = rng.random(size) < 0.3, rng.random(size) < 0.1
    u[hub] %= min(3, n)
    v[loop] = u[loop]
    return u, v


@pytest.mark.usefixtures("short_runs")
@settings(FAST, suppress_health_check=[])
@given(
    SEEDS, SIZES, st.sampled_from([1, 7, 1000, 1 << 33]), st.integers(1, 4), THREADS,
    st.sampled_from([BOTH, FORTH, BACK]), st.data(),
)  # fmt: skip
def test_rows_of_tuples(seed, size, n, devices, threads, way, data):
    u, v = tuples_of(seed, min(n, 1 << 20) if devices > 2 else min(n, 4000), size)
    n = int(max(u.max(initial=0), v.max(initial=0))) + 1
    group = data.draw(st.permutations(range(devices)))[: data.draw(st.integers(1, 4))]
    deal = Deal(n, devices, 1, 0, tuple(group))
    dtype = data.draw(st.sampled_from([np.uint32, np.uint64]))

    def work():
        runs = KeyRuns(deal.form.bits, deal.rows, size // 2, threads)
        runs.add(Items(way, u, v, deal))
        cut = runs.cut(dtype, deal, 2 if way == BOTH else 1)
        return cut.columns, cut.lengths, cut.ends, cut.loops

    same(work(), without_compiler(work))


@pytest.mark.usefixtures("short_runs")
@FAST
@given(SEEDS, SIZES, st.integers(1, 3), st.integers(1, 3), THREADS)
def test_keys_for_ranks(seed, size, ranks, devices, threads):
    u, v = tuples_of(seed, 500, size)
    deal = Deal(500, ranks * devices, ranks, 0, (devices - 1,))

    def work():
        made = keys_by_rank(Items(BOTH, u, v, deal), ranks, threads)
        assert len(made) == ranks
        return [np.sort(keys) for keys in made]

    same(work(), without_compiler(work))


@pytest.mark.thorough
@pytest.mark.usefixtures("short_runs")
@FAST
@given(SEEDS, SIZES, st.integers(1, 300), THREADS, st.sampled_from([BOTH, FORTH, BACK]))
def test_rows_of_keys(seed, size, rows_there, threads, way):
    row, column = np.random.default_rng(seed).integers(0, rows_there, (2, size))
    keys = row.astype(np.uint64) << np.uint64(32) | column.astype(np.uint64)

    def work():
        graph = CSR.from_keys(rows_there, keys, way, threads)
        return graph.offsets, graph.columns

    same(work(), without_compiler(work))


@pytest.mark.usefixtures("short_runs")
@FAST
@given(
    SEEDS, SIZES, st.integers(1, 400), st.sampled_from([np.uint32, np.uint64]), THREADS
)
def test_rows_by_rank(seed, size, count, dtype, threads):
    rng = np.random.default_rng(seed)
    lengths = np.bincount(rng.integers(0, count, size) // 3, minlength=count)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    columns = rng.integers(0, count, size).astype(np.uint32)
    order, rank, name = (rng.permutation(count).astype(np.uint32) for _ in range(3))

    def work():
        return ranked_rows(offsets, lengths, columns, order, rank, name, dtype, threads)

    compiled = work()
    same(compiled, without_compiler(work))
    for k, row in enumerate(order):
        wanted = name[np.sort(rank[columns[offsets[row] : offsets[row + 1]]])]
        np.testing.assert_array_equal(
            compiled[1][slice(*compiled[0][k : k + 2])], wanted
        )


@pytest.mark.usefixtures("short_runs")
@FAST
@given(
    SEEDS, SIZES, st.sampled_from([1, 3, 1 << 20, 1 << 32, 1 << 45, 1 << 62]),
    st.booleans(), THREADS,
)  # fmt: skip
def test_order_is_stable(seed, size, most, falling, threads):
    values = np.random.default_rng(seed).integers(0, most, size)
    wanted = np.argsort(-values if falling else values, kind="stable")
    for one in [values, values.astype(np.uint32)][: 1 + (most <= 1 << 32)]:
        order = stable_order(one, threads, falling=falling)
        same([order], [wanted.astype(np.uint32)])


@pytest.mark.parametrize("count", [0, 3, LARGE_PAGE // 4, 3 * LARGE_PAGE // 8 + 5])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_new_memory_is_cleared_where_asked(count, threads):
    around = np.full(count + 2, 7, dtype=np.uint64)
    make_pages(around[1:-1], threads, zero=True)
    assert around[0] == around[-1] == 7
    assert not around[1:-1].any()
    around[:] = 7
    make_pages(around[1:-1], threads)
    assert around[0] == around[-1] == 7
    assert not fresh(count, np.int64, threads, zero=True).any()


@pytest.mark.parametrize("end", [5, -1, 2**40])
def test_an_end_outside_is_refused(end):
    u = np.zeros(rows.PIECE + 9, dtype=np.int64)
    v = u.copy()
    v[-1] = end
    runs = KeyRuns(3, 5, 10, 2)
    with pytest.raises(InputError, match="outside 0 … 4"):
        runs.add(Items(BOTH, u, v, Deal(5, 1, 1, 0, (0,))))


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 1 << 40), st.integers(1, 1 << 22), st.data())
def test_keys_there_and_back(n, rows_there, data):
    form = KeyFormat.for_graph(n, rows_there)
    ends = st.tuples(st.integers(0, rows_there - 1), st.integers(0, n - 1))
    pairs = np.array(data.draw(st.lists(ends, min_size=1, max_size=8)), np.int64)
    keys = form.pack(pairs[:, 0], pairs[:, 1])
    np.testing.assert_array_equal(form.row(keys), pairs[:, 0])
    np.testing.assert_array_equal(form.column(keys), pairs[:, 1])


def test_keys_of_64_bits_and_not_more():
    full = KeyFormat.for_graph(1 << 34, 1 << 30)
    top = full.pack(np.array([(1 << 30) - 1]), np.array([(1 << 34) - 1]))
    assert int(top[0]) == (1 << 64) - 1
    with pytest.raises(UsageError, match="do not fit 64-bit keys; use more parts"):
        KeyFormat.for_graph(1 << 34, (1 << 30) + 1)


@given(st.integers(0, 10), st.lists(st.integers(0, 30), max_size=12))
def test_buffer_grows(capacity, lengths):
    buffer, wanted = KeyBuffer(capacity, 2), []
    for k, length in enumerate(lengths):
        buffer.room(length)[:] = k
        wanted += [k] * length
    assert buffer.take().tolist() == wanted


@pytest.mark.parametrize("dtype", [np.uint32, np.int64])
@pytest.mark.parametrize("count", [0, 1, 40_000])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_values_in_another_order(dtype, count, threads):
    rng = np.random.default_rng(count)
    order = rng.permutation(count).astype(np.uint32)
    values = rng.integers(0, 1 << 31, count).astype(dtype)
    same([taken(values, order, threads)], [values[order]])
    back = inverse(order, threads)
    same([back], [without_compiler(lambda: inverse(order, threads))])
    same([order[back]], [np.arange(count, dtype=np.uint32)])
