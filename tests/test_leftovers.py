"""What a killed process left is removed by a later one, and nothing else is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from distbfs import leftovers
from distbfs.formats.writing import placed

WRITER = """
import sys
from pathlib import Path
from pathlib import Path
from distbfs import leftovers

with leftovers.hidden_folder(Path(sys.argv[1])) as folder:
    (folder / "half").write_text("x")
    print(folder, flush=True)
    sys.stdin.read()
"""


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_only_what_dead_processes_left_is_removed(tmp_path):
    (tmp_path / ".partial-mine").mkdir()
    (tmp_path / ".partial-0123456789abcdef").write_text("a file")
    (tmp_path / "else").mkdir()
    (tmp_path / ".partial-1123456789abcdef").symlink_to(tmp_path / "else")
    before = names(tmp_path)
    words = [sys.executable, "-c", WRITER, str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as writer:
        made = writer.stdout.readline().strip()
        leftovers.sweep(tmp_path)
        assert names(tmp_path) == sorted([*before, made.rpartition("/")[2]])
        writer.kill()
    leftovers.sweep(tmp_path)
    assert names(tmp_path) == before
    leftovers.sweep(tmp_path / "none")


def test_a_folder_is_removed_with_what_is_left_in_it(tmp_path):
    with leftovers.hidden_folder(tmp_path) as folder:
        (folder / "half").write_text("x")
        assert leftovers.HIDDEN.fullmatch(folder.name)
        assert folder in leftovers._paths
    assert names(tmp_path) == []
    assert folder not in leftovers._paths
    with pytest.raises(FileNotFoundError), leftovers.hidden_folder(tmp_path / "none"):
        pass
    assert not leftovers._paths


def test_a_folder_that_a_sweep_takes_is_made_again(tmp_path, monkeypatch):
    """A sweep may come between its creation and its lock."""
    held, made = leftovers._held, []

    def late(folder):
        made.append(folder)
        if len(made) == 1:
            leftovers.sweep(tmp_path)
        return held(folder)

    monkeypatch.setattr(leftovers, "_held", late)
    with leftovers.hidden_folder(tmp_path) as folder:
        assert made[1:] == [folder]
        assert names(tmp_path) == [folder.name]


def test_writing_a_file_removes_what_is_left(tmp_path):
    dead = tmp_path / ".partial-0123456789abcdef"
    dead.mkdir()
    long = "x" * 250 + ".csv"  # as long as a name may be
    with placed(tmp_path / long, force=False) as at:
        at.write_text("whole")
    assert names(tmp_path) == [long]
    assert (tmp_path / long).read_text() == "whole"
    with pytest.raises(ZeroDivisionError), placed(tmp_path / "b", force=False) as at:
        at.write_text(f"{1 / 0}")
    assert names(tmp_path) == [long]


def test_a_folder_that_is_swept_meanwhile(tmp_path, monkeypatch):
    """Ranks make one folder; a sweep of one of them may see it without its lock."""
    mkdir, calls, token = Path.mkdir, [], 16 * "0"

    def late(path, *args, **named):
        calls.append(path)
        if len(calls) == 2:
            mkdir(path)
        if len(calls) < 3:
            raise FileExistsError
        mkdir(path, *args, **named)

    monkeypatch.setattr(Path, "mkdir", late)
    made, handle = leftovers.held_folder(tmp_path, token)
    assert names(tmp_path) == [made.name]
    leftovers.sweep(tmp_path)
    assert made.is_dir()
    os.close(handle)
    leftovers.sweep(tmp_path)
    made.write_text("a file")
    with pytest.raises(FileExistsError):
        leftovers.held_folder(tmp_path, token)
