"""Two runs with one result file: one is refused, and no result is lost."""

import shutil
from threading import Thread

import h5py
import numpy as np
import pytest

from distbfs.errors import DistbfsError, UsageError
from distbfs.search.result_file import ResultFile

N = 5


def result(path, source):
    return ResultFile(path, np.array([source]), N, f"run {source}", parents=False)


def search(path, source):
    """Write a whole result, as a run does."""
    with result(path, source) as file:
        file.open(force=False)
        file.write(0, np.full(N, source), None)
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
        file.write(0, np.ones(N), None)
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
        file.write(0, np.ones(N), None)
        file.finish()
    assert [error.exit_code for error in refusals] == [2]
    assert "out.h5.partial" in str(refusals[0])
    assert source_in(path) == 1
    assert list(tmp_path.iterdir()) == [path]
