"""A kill, a full disk or a failing call at any moment leaves nothing that opens.

Every call that changes the file system is an event; the writer is stopped at each of
them in turn, in a process of its own that is killed (SIGKILL, with half of a write
done), or by an error that the call raises.
"""

from __future__ import annotations

import errno
import fcntl
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from store_graphs import make_parts, random_tuples, same_part, write_store

from distbfs.errors import ResourceError, StoreError
from distbfs.store.hdf5 import StoreWriter, open_store
from distbfs.store.verify import verify_store

EVENTS = ("pwrite", "ftruncate", "fsync", "mkdir", "rename", "unlink", "rmdir")
HERE = Path(__file__).parent
# paths of Python 3.10 keep their calls in an object of their own
HOMES = [os, *([pathlib._normal_accessor] if sys.version_info < (3, 11) else [])]


class Interrupter:
    """Counts events of ``os``; calls ``stop(call, args)`` at one of them."""

    def __init__(self, at, stop):
        self.at, self.stop, self.count = at, stop, 0
        self.calls = [
            (home, name, getattr(home, name))
            for home in HOMES
            for name in EVENTS
            if hasattr(home, name)
        ]

    def __enter__(self):
        for home, name, call in self.calls:
            setattr(home, name, self.wrap(call))
        return self

    def __exit__(self, *_):
        for home, name, call in self.calls:
            setattr(home, name, call)

    def wrap(self, call):
        def event(*args, **options):
            self.count += 1
            if self.count == self.at:
                self.stop(call, args)
            return call(*args, **options)

        return event


def kill(call, args):
    """Do half of a write and die."""
    if call.__name__ == "pwrite":
        view = memoryview(args[1])
        call(args[0], view[: len(view) // 2], args[2])
    os.kill(os.getpid(), signal.SIGKILL)


def graphs():
    """Return (tuples, parts) of an old graph of one part and a new one of two."""
    made = []
    for p in (1, 2):
        tuples = random_tuples(30, 80, seed=p)
        made.append((tuples, make_parts(30, p, 6, tuples)))
    return made


def holds(folder, parts):
    """Return whether a store that opens has exactly these parts."""
    store = open_store(folder)
    return all(same_part(store.load_part(part.index), part) for part in parts)


def nothing_else(parent):
    return sorted(entry.name for entry in parent.iterdir()) in ([], ["graph"])


def killed_at(at, folder, graph, overwrite):
    """Write in a fork that is killed at an event; return whether it was."""
    child = os.fork()
    if child == 0:
        try:
            with Interrupter(at, kill):
                write_store(folder, graph[1], graph[0], overwrite)
        finally:
            os._exit(7 if sys.exc_info()[0] else 0)
    _, status = os.waitpid(child, 0)
    assert status == 0 or os.WTERMSIG(status) == signal.SIGKILL, status
    return status != 0


def every_kill(parent):
    """Kill a fresh write at every event (runs in a process of its own)."""
    old, new = graphs()
    folder, at, refusals = parent / "graph", 1, 0
    while killed_at(at, folder, new, overwrite=False):
        at += 1
        try:
            assert holds(folder, new[1])
            shutil.rmtree(folder)
        except StoreError:
            refusals += 1
            assert not folder.exists()
        for entry in parent.iterdir():
            with pytest.raises(StoreError):
                open_store(entry)
        write_store(folder, old[1], old[0])
        assert holds(folder, old[1])
        assert nothing_else(parent)
        shutil.rmtree(folder)
    assert refusals > 30


def every_kill_of_a_replacement(parent):
    """Kill a replacing write at every event (runs in a process of its own)."""
    old, new = graphs()
    folder, at, outcomes = parent / "graph", 1, {"old": 0, "new": 0, "between": 0}
    write_store(folder, old[1], old[0])
    while killed_at(at, folder, new, overwrite=True):
        at += 1
        try:
            if holds_either(folder, old[1], new[1]):
                outcomes["new"] += 1
                shutil.rmtree(folder)  # by hand: what it replaced does not come back
                write_store(folder, old[1], old[0])
            else:
                outcomes["old"] += 1
        except StoreError:
            with pytest.raises(StoreError, match="interrupted replacement left the"):
                open_store(folder)
            outcomes["between"] += 1
            with pytest.raises(StoreError, match="exists; give --force"):
                StoreWriter(folder)  # the next write puts the old store back first
            assert holds(folder, old[1])
            assert nothing_else(parent)
        write_store(folder, old[1], old[0], overwrite=True)
        assert holds(folder, old[1])
        assert nothing_else(parent)
    assert holds(folder, new[1])
    assert outcomes["old"] > 30
    assert outcomes["new"] > 3
    assert outcomes["between"] == 1


def end_of_space(folder):
    """Write until the file size limit or the disk ends it; print what was raised."""
    _, new = graphs()
    try:
        write_store(folder / "graph", new[1], new[0], overwrite=True)
    except ResourceError as error:
        print(error.exit_code, error)
    print(*os.listdir(folder))


def file_size_limits(folder):
    """Write under limits of 0, 1, 3, and 4 KiB a file."""
    for kilobytes in (0, 1, 3, 4):
        limit = kilobytes << 10, resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        end_of_space(folder)


def full_disks(folder):
    """Write where 0, 1, 2, and 4 pages are free."""
    for pages in (0, 1, 2, 4):
        (folder / "filler").write_bytes(bytes((4 << 20) - pages * 4096))
        end_of_space(folder)


def run(name, *arguments, before=()):
    """Run a function of this file in a process of its own."""
    script = (
        "import sys, pathlib; sys.path.insert(0, sys.argv[1]); "
        "import test_store_crash as t; "
        "getattr(t, sys.argv[2])(*map(pathlib.Path, sys.argv[3:]))"
    )
    command = [*before, sys.executable, "-c", script, str(HERE), name]
    path = os.pathsep.join((str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")))
    return subprocess.run(
        [*command, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        # Python would keep what fits of its own bytecode, for later processes to read
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
    )


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["every_kill", "every_kill_of_a_replacement"])
def test_kill_at_every_event(tmp_path, name):
    done = run(name, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.thorough
def test_file_size_limit(tmp_path):
    done = run("file_size_limits", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    said = done.stdout.splitlines()
    assert [line[:2] for line in said[::2]] == ["3 "] * 4
    assert all("graph: the disk is full (File too large)" in x for x in said[::2])
    assert said[1::2] == [""] * 4
    assert list(tmp_path.iterdir()) == []


MOUNT = 'mount -t tmpfs -o size=4m none "$1" || exit 77; shift; exec "$@"'


def test_full_disk(tmp_path):
    if not shutil.which("unshare"):
        pytest.skip("no unshare, so no small file system")
    shell = ["unshare", "-rm", "bash", "-c", MOUNT, "-", str(tmp_path)]
    done = run("full_disks", tmp_path, before=shell)
    if done.returncode == 77 or "unshare:" in done.stderr:
        pytest.skip("no right to mount a small file system")
    assert (done.returncode, done.stderr) == (0, "")
    said = done.stdout.splitlines()
    assert [line[:2] for line in said[::2]] == ["3 "] * 4
    assert all("disk is full (No space left on device)" in x for x in said[::2])
    assert said[1::2] == ["filler"] * 4


@pytest.mark.thorough
def test_error_at_every_event(tmp_path):
    """ENOSPC and EIO in turn; what is there afterwards is whole, old or new."""
    new, old = graphs()
    folder, at, errors = tmp_path / "graph", 1, set()
    write_store(folder, old[1], old[0])
    number = None

    def fail(call, args):
        raise OSError(number, os.strerror(number))

    interrupter = Interrupter(at, fail)
    while interrupter.count >= interrupter.at - 1:
        number = (errno.ENOSPC, errno.EIO)[at % 2]
        interrupter = Interrupter(at, fail)
        try:
            with interrupter:
                write_store(folder, new[1], new[0], overwrite=True)
        except (StoreError, ResourceError) as error:
            errors.add((number, error.exit_code, str(folder) in str(error)))
        assert not [*tmp_path.glob(".partial-*/graph")]
        at += 1
        replaced = holds_either(folder, old[1], new[1])
        if replaced:
            write_store(folder, old[1], old[0], overwrite=True)
    assert at > 60
    assert errors == {(errno.ENOSPC, 3, True), (errno.EIO, 2, True)}
    write_store(folder, old[1], old[0], overwrite=True)
    assert nothing_else(tmp_path)


def holds_either(folder, old, new):
    """Return whether a store is the new one; it must be one of both."""
    replaced = open_store(folder).manifest.parts == len(new)
    assert holds(folder, new if replaced else old)
    return replaced


# What is there already


def test_existing_target(tmp_path):
    old, new = graphs()
    folder = tmp_path / "graph"
    write_store(folder, old[1], old[0])
    with pytest.raises(StoreError, match=r"graph exists; give --force to replace it"):
        StoreWriter(folder)
    assert holds(folder, old[1])
    with StoreWriter(folder, overwrite=True) as writer:
        writer.write_part(new[1][0])
    assert holds(folder, old[1])
    write_store(folder, new[1], new[0], overwrite=True)
    assert holds(folder, new[1])
    assert nothing_else(tmp_path)


@pytest.mark.parametrize("kind", ["empty", "folder", "file", "mixed", "dangling"])
def test_what_is_no_store_is_never_deleted(tmp_path, kind):
    old, _ = graphs()
    folder = tmp_path / "graph"
    if kind == "file":
        folder.write_text("mine")
    elif kind == "mixed":
        write_store(folder, old[1], old[0])
        (folder / "mine").write_text("mine")
    elif kind == "dangling":
        folder.symlink_to(tmp_path / "none" / "at all")
    else:
        folder.mkdir()
        if kind == "folder":
            (folder / "mine").write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    match = "is not a graph store|holds 'mine'|does not exist"
    with pytest.raises(StoreError, match=match):
        write_store(folder, old[1], old[0], overwrite=True)
    assert sorted(tmp_path.rglob("*")) == before


def test_target_that_became_something_else(tmp_path):
    old, _ = graphs()
    folder = tmp_path / "graph"
    writer = StoreWriter(folder, overwrite=True)
    for part in old[1]:
        writer.write_part(part)
    folder.mkdir()
    (folder / "mine").write_text("mine")
    with pytest.raises(StoreError, match="is not a graph store; it is not replaced"):
        writer._partial.place()
    assert (folder / "mine").read_text() == "mine"
    writer.discard()


def test_link_to_a_store_is_replaced_where_it_leads(tmp_path):
    old, new = graphs()
    (tmp_path / "disk").mkdir()
    write_store(tmp_path / "disk" / "graph", old[1], old[0])
    (tmp_path / "graph").symlink_to(tmp_path / "disk" / "graph")
    write_store(tmp_path / "graph", new[1], new[0], overwrite=True)
    assert (tmp_path / "graph").is_symlink()
    assert holds(tmp_path / "disk" / "graph", new[1])
    assert verify_store(open_store(tmp_path / "graph")).ok


def test_a_live_write_is_left_alone(tmp_path):
    old, new = graphs()
    folder = tmp_path / "graph"
    slow = StoreWriter(folder)
    slow.write_part(old[1][0])
    write_store(folder, new[1], new[0])
    assert slow.path.is_dir()
    with pytest.raises(StoreError, match="exists; give --force"):
        slow._partial.place()
    slow.discard()
    assert holds(folder, new[1])
    assert nothing_else(tmp_path)


def interleaved(parent, forced):
    """Let a whole write happen at every event of another; check what is there then.

    forced: which of the two replace what is there, the outer and the inner one
    """
    outer, inner = graphs()
    folder, at, won, replaced = parent / "graph", 1, set(), True
    interrupter = Interrupter(0, None)

    def write(graph, overwrite):
        try:
            write_store(folder, graph[1], graph[0], overwrite)
        except StoreError as error:
            return "exists; give --force" not in str(error) and str(error)
        return True

    def stop(*_):
        done.append(write(inner, forced[1]))

    while at <= interrupter.count + 1:
        done = []
        if any(forced) and replaced:
            write_store(folder, outer[1], outer[0], overwrite=True)
        interrupter = Interrupter(at, stop)
        with interrupter:
            done.append(write(outer, forced[0]))
        at += 1
        assert nothing_else(parent)
        replaced = holds_either(folder, outer[1], inner[1])
        won.add((tuple(done), replaced))
        if not any(forced):
            shutil.rmtree(folder)
    return won


@pytest.mark.thorough
@pytest.mark.thorough
def test_one_of_two_writers_is_refused(tmp_path):
    """(inner, outer) done, and whether the inner store is there."""
    won = interleaved(tmp_path, forced=(False, False))
    assert won == {((True, False), True), ((False, True), False), ((True,), False)}


@pytest.mark.thorough
def test_two_writers_replace_each_other(tmp_path):
    won = interleaved(tmp_path, forced=(True, True))
    assert {store for done, store in won if len(done) > 1} == {False, True}
    assert {done for done, _ in won} == {(True, True), (True,)}


@pytest.mark.thorough
def test_a_replacement_beside_a_write(tmp_path):
    won = interleaved(tmp_path, forced=(True, False))
    assert {(done[-1], store) for done, store in won} == {(True, False)}


def test_a_write_whose_lock_is_swept_takes_it_again(tmp_path, monkeypatch):
    folder, flock = tmp_path / "graph", fcntl.flock

    def late(handle, kind):
        monkeypatch.undo()
        StoreWriter(folder).discard()
        flock(handle, kind)

    monkeypatch.setattr(fcntl, "flock", late)
    slow = StoreWriter(folder)
    StoreWriter(folder).discard()
    assert slow.path.is_dir()
    slow.discard()
    assert nothing_else(tmp_path)


def test_other_targets_are_left_alone(tmp_path):
    old, _ = graphs()
    for name in (".graph.partial-0123456789abcdef", ".partial-xyz", ".graph.x"):
        (tmp_path / name).mkdir()
    write_store(tmp_path / "graph", old[1], old[0])
    assert len(list(tmp_path.iterdir())) == 4


def test_exception_in_the_block_discards(tmp_path):
    old, _ = graphs()
    with pytest.raises(KeyboardInterrupt):
        write_and_interrupt(tmp_path / "graph", old[1][0])
    assert list(tmp_path.iterdir()) == []


def write_and_interrupt(folder, part):
    with StoreWriter(folder) as writer:
        writer.write_part(part)
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    "token", ["", "../../etc", "ABCDEF0123456789", "0123456789abcde"]
)
def test_bad_token(tmp_path, token):
    with pytest.raises(Exception, match="allowed: 16 hex digits") as caught:
        StoreWriter(tmp_path / "graph", token=token)
    assert caught.value.exit_code == 2


def test_missing_parent(tmp_path):
    with pytest.raises(StoreError, match="does not exist"):
        StoreWriter(tmp_path / "none" / "graph")


def test_parent_without_rights(tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="Permission denied"):
        StoreWriter(tmp_path / "graph")
