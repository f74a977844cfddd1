"""Results get safe names in one folder, and are complete or not there."""

import os

import h5py
import numpy as np
import pytest

from distbfs.errors import InputError, ServiceError
from distbfs.service import results
from distbfs.service.results import ResultFolder

N = 6
LEVEL = np.arange(N, dtype=np.int32)
PARENT = np.arange(N, dtype=np.int64) * 7


def folder_in(path, limit=100):
    return ResultFolder(path / "out", limit, "graph")


def write(folder, form="hdf5", name=None, sources=(1, 4), parents=True):
    ids = np.array(sources, dtype=np.int64)
    with folder.new(form, ids, N, name=name, stem="bfs-1", parents=parents) as made:
        file, paths = made
        for row in range(len(ids)):
            file.write(row, LEVEL + row, PARENT + row if parents else None)
    return paths


def names(folder):
    return sorted(os.listdir(folder.path))


@pytest.mark.parametrize("parents", [True, False])
def test_hdf5(tmp_path, parents):
    folder = folder_in(tmp_path)
    [path] = write(folder, parents=parents)
    assert path == str(tmp_path / "out" / "bfs-1-1.h5")
    with h5py.File(path) as file:
        assert file["sources"][:].tolist() == [1, 4]
        np.testing.assert_array_equal(file["level"][1], LEVEL + 1)
        assert ("parent" in file) == parents
    assert names(folder) == ["bfs-1-1.h5"]


@pytest.mark.parametrize("sources", [(1,), (1, 4)])
def test_arrays(tmp_path, sources):
    folder = folder_in(tmp_path)
    level, parent = write(folder, "npy", "mine", sources)
    assert names(folder) == ["mine.level.npy", "mine.parent.npy"]
    rows = np.load(level), np.load(parent)
    assert [(a.dtype, a.shape) for a in rows] == [
        (np.int32, (N,) if len(sources) == 1 else (2, N)),
        (np.int64, (N,) if len(sources) == 1 else (2, N)),
    ]
    np.testing.assert_array_equal(rows[1].reshape(-1, N)[0], PARENT)


def test_names_go_on_and_nothing_is_replaced(tmp_path):
    folder = folder_in(tmp_path)
    (folder.path / "bfs-1-2.h5").write_text("here")
    assert [write(folder)[0][-10:] for _ in range(2)] == ["bfs-1-1.h5", "bfs-1-3.h5"]
    (folder.path / "mine.h5").write_text("here")
    (folder.path / "link.h5").symlink_to(tmp_path / "elsewhere")
    for name in ("mine", "link"):
        with pytest.raises(ServiceError, match=f"{name}.h5 already") as caught:
            write(folder, name=name)
        assert caught.value.code == "exists"
    assert (folder.path / "mine.h5").read_text() == "here"
    assert not (tmp_path / "elsewhere").exists()


def half_written(folder, form, act):
    """Write one row of two, then do something."""
    made = folder.new(form, np.array([1, 2]), N, name="a", stem="", parents=True)
    with made as (file, _):
        file.write(0, LEVEL, PARENT)
        act()


def test_a_name_that_is_taken_meanwhile(tmp_path):
    folder = folder_in(tmp_path)
    taken = folder.path / "a.parent.npy"
    with pytest.raises(ServiceError, match="of that name already"):
        half_written(folder, "npy", lambda: taken.write_text("mine"))
    assert names(folder) == ["a.parent.npy"]
    assert taken.read_text() == "mine"


@pytest.mark.parametrize("form", ["hdf5", "npy"])
def test_what_fails_leaves_nothing(tmp_path, form):
    folder = folder_in(tmp_path)
    with pytest.raises(ZeroDivisionError):
        half_written(folder, form, lambda: 1 // 0)
    assert names(folder) == []


@pytest.mark.parametrize("form", ["hdf5", "npy"])
def test_a_full_disk(tmp_path, form, monkeypatch):
    folder = folder_in(tmp_path)
    usage = type("Usage", (), {"free": 10})
    monkeypatch.setattr(results.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(ServiceError) as caught:
        write(folder, form)
    assert caught.value.code == "no_room"
    assert caught.value.exit_code == 3
    assert names(folder) == []


def test_the_number_of_files_is_limited(tmp_path):
    folder = folder_in(tmp_path, limit=2)
    write(folder)
    write(folder)
    with pytest.raises(ServiceError, match="holds 2 of 2 files; 1 more are needed"):
        write(folder)


def test_what_a_killed_service_left_is_removed_and_never_counts(tmp_path):
    dead = tmp_path / "out" / ".partial-0123456789abcdef"
    dead.mkdir(parents=True)
    (dead / ".h5.partial").write_text("half")
    folder = folder_in(tmp_path, limit=1)
    assert names(folder) == []
    dead.mkdir()  # of another service that is killed later
    write(folder, name="a")
    assert names(folder) == [dead.name, "a.h5"]


def test_links_to_the_folder_are_resolved_once(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    folder = ResultFolder(tmp_path / "link", 9, "graph")
    assert folder.path == tmp_path / "real"
    (tmp_path / "link").unlink()
    write(folder, name="a")
    assert (tmp_path / "real" / "a.h5").exists()
    (tmp_path / "real").rename(tmp_path / "moved")
    (tmp_path / "other").mkdir()
    (tmp_path / "real").symlink_to(tmp_path / "other")
    with pytest.raises(ServiceError, match="was replaced"):
        write(folder, name="b")
    assert not list((tmp_path / "other").iterdir())


def test_what_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "no" / "where"):
        with pytest.raises(InputError, match="no folder for results"):
            ResultFolder(path, 9, "graph")
