"""Two runs with one result file: one is refused, and no result is lost."""

import shutil
from threading import Thread

import h5py
import numpy as np
import pytest
from worlds import on_ranks

from distbfs.errors import DistbfsError, UsageError
from distbfs.ranks.world import SoloWorld
from distbfs.search import result_file
from distbfs.search.result_file import ResultFile, write_blocks
from distbfs.types import slice_bounds

N = 5


def result(path, source):
    return ResultFile(path, np.array([source]), N, f"run {source}", parents=False)


def write(file, level):
    """Write the levels of the only search, on one rank."""
    write_blocks(SoloWorld(), file, 0, N, level=level, parent=None)


def search(path, source):
    """Write a whole result, as a run does."""
    with result(path, source) as file:
        file.open(force=False)
        write(file, np.full(N, source))
        file.finish()


def source_in(path):
    with h5py.File(path) as file:
        levels = file["level"][:]
        assert (levels == file["sources"][0]).all()
        return int(file["sources"][0])


@pytest.mark.parametrize("force", [False, True])
def test_a_result_that_came_meanwhile(tmp_path, force):
    path, partial = tmp_path / "out.h5", tmp_path / "out.h5.partial"
    with result(path, 1) as file:
        file.open(force=force)
        write(file, np.ones(N))
        away = partial.rename(tmp_path / "away")
        search(path, 2)
        away.rename(partial)
        if force:
            file.finish()
            assert source_in(path) == 1
            assert not partial.exists()
            return
        with pytest.raises(UsageError, match=r"out.h5 exists; give --force"):
            file.finish()
    assert source_in(path) == 2
    assert source_in(partial) == 1, "what was found is not lost"


def test_runs_that_begin_together(tmp_path, monkeypatch):
    """Both find no partial file; the later one waits for it and is refused."""
    path, usage = tmp_path / "out.h5", shutil.disk_usage
    refusals = []

    def search_too():
        try:
            search(path, 2)
        except DistbfsError as error:
            refusals.append(error)

    other = Thread(target=search_too)

    def late(folder):
        monkeypatch.undo()
        other.start()
        other.join(0.2)
        return usage(folder)

    monkeypatch.setattr(shutil, "disk_usage", late)
    with result(path, 1) as file:
        file.open(force=False)
        other.join()
        write(file, np.ones(N))
        file.finish()
    assert [error.exit_code for error in refusals] == [2]
    assert "out.h5.partial" in str(refusals[0])
    assert source_in(path) == 1
    assert list(tmp_path.iterdir()) == [path]


def written_by_ranks(path, ranks, columns, rows, *, levels, parents):
    """Each rank writes its block of each row; returns the whole of them."""
    random = np.random.default_rng(columns)
    level = random.integers(-1, 1 << 31, (rows, columns))
    parent = random.integers(-1, 1 << 40, (rows, columns))

    def work(world):
        result = None
        if world.rank == 0:
            wanted = {"levels": levels, "parents": parents}
            result = ResultFile(path, np.arange(rows), columns, "", **wanted)
            result.open(force=False)
        start, stop = slice_bounds(columns, world.size, world.rank)
        for row in range(rows):
            own = {"level": level[row, start:stop] if levels else None}
            own["parent"] = parent[row, start:stop] if parents else None
            write_blocks(world, result, row, columns, **own)
        if result is not None:
            result.finish()

    on_ranks(ranks, work)
    return level, parent


@pytest.mark.parametrize("wanted", [("level", "parent"), ("level",), ("parent",)])
@pytest.mark.parametrize(
    ("ranks", "columns", "at_once"),
    [(1, 9, 100), (1, 9, 4), (3, 1, 9), (3, 2, 3), (4, 1001, 1 << 20), (4, 1001, 400)],
)
def test_blocks_of_all_ranks(tmp_path, monkeypatch, ranks, columns, at_once, wanted):
    monkeypatch.setattr(result_file, "AT_ONCE", at_once)
    path = tmp_path / "out.h5"
    has = {"levels": "level" in wanted, "parents": "parent" in wanted}
    level, parent = written_by_ranks(path, ranks, columns, 3, **has)
    with h5py.File(path) as file:
        assert file["done"][:].all()
        assert {"level", "parent"} & set(file) == set(wanted)
        for name, values in (("level", level), ("parent", parent)):
            if name in wanted:
                np.testing.assert_array_equal(file[name][:], values)
