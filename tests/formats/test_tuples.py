import errno
import json
import os
import tempfile

import numpy as np
import pytest
import xxhash
from worlds import on_ranks

from distbfs.errors import InputError, ResourceError, UsageError
from distbfs.formats import tuples
from distbfs.formats.base import ReaderOptions
from distbfs.formats.tuples import FileTuples, Spool, open_tuples
from distbfs.ranks.world import SoloWorld
from distbfs.types import slice_bounds


@pytest.fixture
def spools(tmp_path, monkeypatch):
    folder = tmp_path / "spools"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def edges(tmp_path):
    path = tmp_path / "g.el"
    pairs = np.random.default_rng(3).integers(0, 100, (2500, 2))
    pairs[17] = (100, 100)
    path.write_text("".join(f"{a} {b}\n" for a, b in pairs.tolist()))
    return path, pairs


def collect(source, start, stop):
    u, v = zip(*source.chunks(start, stop), strict=True)
    assert all(x.dtype == np.int64 and x.flags.c_contiguous for x in (*u, *v))
    return np.stack((np.concatenate(u), np.concatenate(v)), axis=1)


def test_slices_may_be_asked_for_again_and_again(edges, spools, monkeypatch):
    monkeypatch.setattr(tuples, "CHUNK", 64)
    path, pairs = edges
    with open_tuples(SoloWorld(), path) as source:
        assert (source.n, source.tuples) == (101, 2500)
        for pieces in (1, 3, 7):
            for index in range(pieces):
                start, stop = slice_bounds(source.tuples, pieces, index)
                assert np.array_equal(collect(source, start, stop), pairs[start:stop])
        assert max(len(u) for u, _ in source.chunks(0, 2500)) == 64
        assert list(source.chunks(5, 5)) == []
        assert list(spools.iterdir()) == []


def test_describe(edges, spools):
    path, _ = edges
    digest = xxhash.xxh3_128(path.read_bytes()).hexdigest()
    with open_tuples(SoloWorld(), path) as source:
        assert json.loads(json.dumps(source.describe())) == {
            "family": "file",
            "name": "g.el",
            "format": "edge-list",
            "n": 101,
            "tuples": 2500,
            "xxh3_128": digest,
        }
    path.write_text("1 1\n")
    options = ReaderOptions(one_based=True)
    with open_tuples(SoloWorld(), path, options=options) as source:
        assert source.describe()["one_based"] is True
        assert source.n == 1


def test_other_ranks_map_the_spool_while_it_has_a_name(edges, spools):
    path, pairs = edges
    first, second = on_ranks(2, lambda world: open_tuples(world, path))
    assert list(spools.iterdir()) == []
    assert second.describe() == first.describe()
    first.close()
    first.close()
    assert np.array_equal(collect(second, 0, 2500), pairs)


def test_file_systems_without_nameless_files(edges, spools, monkeypatch):
    opened = os.open

    def refusing(path, flags, *more):
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "injected")
        return opened(path, flags, *more)

    monkeypatch.setattr(tuples.os, "open", refusing)
    path, pairs = edges
    with open_tuples(SoloWorld(), path) as source:
        assert list(spools.iterdir()) == []
        assert np.array_equal(collect(source, 0, 2500), pairs)


def test_a_spool_that_another_rank_cannot_see(edges, spools, monkeypatch):
    nowhere = spools / "nowhere"
    monkeypatch.setattr(Spool, "name", lambda _: nowhere)
    problem = f"rank 1: {nowhere}: the spool of .* choose a folder that all ranks share"

    def work(world):
        with pytest.raises(InputError, match=problem):
            open_tuples(world, edges[0])

    on_ranks(2, work)
    assert list(spools.iterdir()) == []


def test_a_bad_file_leaves_no_spool_and_ends_all_ranks(tmp_path, spools):
    path = tmp_path / "a.el"
    path.write_text("1 2\n3 x\n")
    with pytest.raises(InputError, match=r"a\.el:2: 'x' is not an id"):
        open_tuples(SoloWorld(), path)
    assert list(spools.iterdir()) == []

    def work(world):
        with pytest.raises(InputError, match=r"rank 0: .*a\.el:2: 'x' is not an id"):
            open_tuples(world, path)

    on_ranks(2, work)
    assert list(spools.iterdir()) == []
    with pytest.raises(InputError, match="No such file"):
        open_tuples(SoloWorld(), tmp_path / "none")
    with pytest.raises(UsageError, match=r"allowed: arrow, dimacs, .*matrix-market"):
        open_tuples(SoloWorld(), path, name="other")
    with pytest.raises(UsageError, match="states its size"):
        open_tuples(SoloWorld(), path, name="matrix-market", options=ReaderOptions(n=3))


def test_no_place_for_the_spool(edges, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(ResourceError, match="cannot write the spool"):
        open_tuples(SoloWorld(), edges[0])


def test_a_spool_of_another_size_is_refused(tmp_path):
    spool = tmp_path / "s"
    spool.write_bytes(b"\0" * 24)
    with pytest.raises(InputError, match="spool"):
        FileTuples(tmp_path / "a.el", spool, 3, 2)


def test_a_matrix_without_entries(tmp_path):
    path = tmp_path / "a.mtx"
    path.write_text("%%MatrixMarket matrix coordinate pattern general\n3 3 0\n")
    with open_tuples(SoloWorld(), path) as source:
        assert (source.n, source.tuples) == (3, 0)
        assert list(source.chunks(0, 0)) == []
