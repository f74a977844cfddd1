"""Paths of all commands where they cannot be used, output that cannot be written.

Commands and their paths are found by walking what click knows, so that a new one is
tested by being registered.
"""

import errno
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager, nullcontext
from pathlib import Path

import click
import h5py
import pytest
from commands import DISTBFS, alone, here
from launching import clean_environment

from distbfs.cli import main
from distbfs.cli.main import COMMANDS
from distbfs.cli.streams import CLOSED_PIPE, NamedFile
from distbfs.errors import DiskFull, FileError, StoreError, system_error

NOBODY = 65534
FULL = Path("/dev/full")
KINDS = {
    "below a file": lambda root: root / "file" / "child",
    "name too long": lambda root: root / ("x" * 300),
    "below a loop of links": lambda root: root / "loop" / "child",
    "below an unreadable folder": lambda root: root / "locked" / "child",
    "two below an unreadable folder": lambda root: root / "locked" / "one" / "child",
}
ENDINGS = {"export": ".el", "multisearch": ".h5", "plot": ".png"}
# what leads a command to a path: words, and other values of what it needs
WORDS = {
    "bfs": ("--source", "0"),
    "generate": ("--scale", "4"),
    "graph500": ("--scale", "4", "--roots", "1"),
    "graph500 --graph": (),
    "info --plot": ("--degrees",),
    "partition": ("--parts", "1"),
    "serve --token-file": ("--http", "0"),
}
VALUES = {
    "address": "http://127.0.0.1:9",
    "app": "closeness",
    "multisearch --pairs": "reachability",
    "op": "health",
}


def paths_of(command, words=()):
    """Yield (words, command, parameter) of all parameters that are paths."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from paths_of(command.get_command(context, name), (*words, name))
        return
    for parameter in command.params:
        if isinstance(parameter.type, click.Path):
            yield words, command, parameter


PATHS = {
    " ".join((*words, parameter.opts[-1])): (words, command, parameter)
    for words, command, parameter in paths_of(main.commands)
}


@pytest.fixture(scope="module")
def root():
    """A folder that all may read, with a store, and with what cannot be used."""
    made = Path(tempfile.mkdtemp())
    made.chmod(0o755)
    assert here("generate", "kronecker", "--scale", 5, "-o", made / "store").code == 0
    (made / "file").write_text("0 1\n")
    (made / "loop").symlink_to(made / "loop")
    (made / "locked").mkdir()
    (made / "locked").chmod(0)
    yield made
    (made / "locked").chmod(0o755)
    shutil.rmtree(made)


@contextmanager
def not_root():
    """Take root's right to read everything away."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(before)


def words_for(name, root, bad):
    """Return a command line with one bad path and what else the command needs."""
    words, command, tried = PATHS[name]
    line = [*words]
    for parameter in command.params:
        if parameter is not tried and not parameter.required:
            continue
        value = VALUES.get(f"{words[0]} {tried.opts[-1]}") or VALUES.get(parameter.name)
        if parameter is tried:
            value = bad
        elif isinstance(parameter.type, click.Path):
            is_store = parameter.name in ("store", "stores")
            value = root / ("store" if is_store else "file")
            if parameter.name == "output":
                value = root / f"new{ENDINGS.get(words[0], '')}"
        elif isinstance(parameter.type, click.Choice) and value is None:
            value = parameter.type.choices[0]
        option = isinstance(parameter, click.Option)
        line += [parameter.opts[-1], value] if option else [value]
    for parameter in command.params:
        if parameter.name in ("store", "stores") and not parameter.required:
            line += [root / "store"] * (parameter is not tried)
    return [*line, *WORDS.get(name, WORDS.get(words[0], ()))]


@pytest.mark.parametrize("name", PATHS)
def test_a_path_that_cannot_be_used(name, root, monkeypatch):
    for kind in KINDS:
        refuses(name, kind, root, monkeypatch)


def refuses(name, kind, root, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    ending = ".png" if "--plot" in name else ENDINGS.get(name.split()[0], "")
    bad = KINDS[kind](root)
    line = words_for(name, root, bad.with_name(bad.name + ending))
    here(*words_for(name, root, root / "nowhere" / f"child{ending}"))  # imports
    with not_root() if "unreadable" in kind else nullcontext():
        answer = here(*line)
    assert (answer.code, answer.out) == (2, ""), (line, answer)
    assert answer.err.startswith("distbfs: "), (line, answer.err)
    assert answer.err.count("\n") == 1, (line, answer.err)


def test_a_store_that_is_unreadable(root, monkeypatch):
    # asks for the user that began the process, not for the one that it runs as
    monkeypatch.setattr("os.access", lambda *_, **__: False)
    with not_root():
        answer = here("info", root / "locked")
    assert answer.refusal == f"distbfs: {root / 'locked'}: Permission denied"


def test_every_command_is_walked():
    assert {name.split()[0] for name in PATHS} == set(COMMANDS) - {"doctor"}
    assert len(PATHS) > 30


NUMBERS = [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.EIO]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_full_disk_is_code_3(number):
    error = system_error(OSError(number, "a library's words", "somewhere"), "here")
    reason = os.strerror(number)
    if number in NUMBERS[:3]:
        assert (type(error), error.exit_code) == (DiskFull, 3)
        assert str(error) == f"here: the disk is full ({reason})"
    else:
        assert (type(error), error.exit_code) == (FileError, 2)
        assert str(error) == f"here: {reason}"


def test_errors_without_a_file_or_number():
    error = system_error(FileNotFoundError(2, "No folder in ['/tmp']"))
    assert str(error) == "system: No folder in ['/tmp']"
    error = system_error(OSError("file signature not found"), "x", StoreError)
    assert (type(error), str(error)) == (StoreError, "x: cannot be read or written")


def full_disk(*words):
    done = alone(*words)
    assert (done.code, "Traceback" in done.err) == (3, False), done
    assert done.err.splitlines()[-1].endswith(
        "the disk is full (No space left on device)"
    )
    return done.err.splitlines()[-1]


@pytest.mark.parametrize(
    "words",
    [
        ("bfs", "store", "--source", "0", "--records"),
        ("bfs", "store", "--source", "0", "--trace"),
        ("graph500", "--scale", "4", "--roots", "1", "--records"),
        ("graph500", "--scale", "4", "--roots", "1", "--trace"),
    ],
)
def test_files_on_a_full_disk(words, root, tmp_path):
    link = tmp_path / "full"  # so that no fault can replace the device
    link.symlink_to(FULL)
    words = [root / "store" if word == "store" else word for word in words]
    assert full_disk(*words, link).startswith(f"distbfs: {link}: ")


def test_a_plot_on_a_full_disk(root, tmp_path):
    link = tmp_path / "plot.png"
    link.symlink_to(FULL)
    line = ("info", root / "store", "--degrees", "--plot", link)
    assert full_disk(*line).startswith(f"distbfs: {link}: ")


@pytest.mark.parametrize(
    "words",
    [
        ("bfs", "store", *["--source", "0"] * 20, "--trace"),
        ("bfs", "store", "--source", "0", "--output"),
        ("multisearch", "closeness", "store", "--output"),
        ("export", "store", "--format", "gap-sg", "--output"),
    ],
    ids=("trace", "levels", "resumed", "mapped"),
)
def test_a_file_that_is_too_large_leaves_nothing(root, tmp_path, words):
    words = [str(root / "store") if word == "store" else word for word in words]
    line = [*DISTBFS, *words, str(tmp_path / "t.h5")]
    limited = ["bash", "-c", 'ulimit -f 1; exec "$@"', "-", *line]
    env = clean_environment({"PYTHONDONTWRITEBYTECODE": "1"})  # which would be cut off
    done = subprocess.run(limited, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 3, done.stderr
    *notes, last = done.stderr.splitlines()
    assert re.fullmatch(
        r"distbfs: .*t\.h5(\.partial)?: the disk is full \(File too large\)", last
    )
    assert all(note.startswith("distbfs: engine ") for note in notes)
    assert list(tmp_path.iterdir()) == []


def begin(words, root, **streams):
    words = [str(root / "store") if word == "store" else word for word in words]
    return subprocess.Popen(
        [*DISTBFS, *words], env=clean_environment(), text=True, **streams
    )


SPEAKING = [
    *((name, "--help") for name in COMMANDS),
    ("--help",),
    ("--version",),
    ("info", "store"),
    ("verify", "store"),
    ("bfs", "store", "--source", "0"),
    ("multisearch", "closeness", "store"),
    ("graph500", "--scale", "4", "--roots", "1"),
]


@pytest.mark.thorough
@pytest.mark.parametrize("words", SPEAKING, ids=" ".join)
def test_standard_output_on_a_full_disk(words, root):
    with FULL.open("w") as full:
        process = begin(words, root, stdout=full, stderr=subprocess.PIPE)
        _, said = process.communicate(timeout=120)
    *notes, last = said.splitlines()
    assert process.returncode == 3, said
    assert last == (
        "distbfs: standard output: the disk is full (No space left on device)"
    )
    assert all(note.startswith("distbfs: engine ") for note in notes)


@pytest.mark.parametrize("words", SPEAKING[-3:], ids=" ".join)
def test_a_closed_pipe_is_quiet(words, root):
    process = begin(words, root, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    said = process.stderr.read()
    assert process.wait(timeout=120) == CLOSED_PIPE == 141
    assert all(note.startswith("distbfs: engine ") for note in said.splitlines())


def test_a_script_whose_pipe_is_closed_is_quiet():
    script = Path(__file__).parents[2] / "scripts" / "papers" / "run.py"
    process = subprocess.Popen(
        [sys.executable, script, "--list"],
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(timeout=120) == CLOSED_PIPE


@pytest.mark.parametrize(
    ("words", "code"), [(SPEAKING[-1], 0), (("bfs", "nowhere", "--source", "0"), 2)]
)
def test_messages_that_cannot_be_said_change_nothing(words, code, root):
    with FULL.open("w") as full:
        process = begin(words, root, stdout=subprocess.PIPE, stderr=full)
        out, _ = process.communicate(timeout=120)
    assert process.returncode == code
    assert ("NBFS" in out) == (code == 0)


def test_a_named_file_fails_once(tmp_path):
    with io.TextIOWrapper(io.BufferedWriter(NamedFile(str(FULL), "w"))) as file:
        file.write("text")
        with pytest.raises(OSError, match="No space left") as caught:
            file.flush()
        assert caught.value.filename == str(FULL)
    path = tmp_path / "file"
    for mode in "wa":
        with io.TextIOWrapper(io.BufferedWriter(NamedFile(str(path), mode))) as file:
            file.write("text\n")
    assert path.read_text() == "text\n" * 2


@pytest.mark.parametrize("content", [b"mine", h5py.h5f.__name__.encode() * 999])
def test_a_partial_result_that_is_none(root, tmp_path, content):
    output = tmp_path / "out.h5"
    partial = tmp_path / "out.h5.partial"
    partial.write_bytes(content)
    line = ("bfs", root / "store", "--source", "0", "-o", output)
    assert here(*line).refusal == (
        f"distbfs: {partial}: is not an HDF5 file, or is damaged; allowed: the file of "
        "an "
        "interrupted run; give --force to begin anew"
    )
    assert partial.read_bytes() == content
    assert here(*line, "--force").code == 0


def test_a_store_file_that_is_no_sound_hdf5(root, tmp_path):
    store = tmp_path / "store"
    shutil.copytree(root / "store", store)
    path = store / "manifest.h5"
    path.write_bytes(path.read_bytes()[:8].ljust(path.stat().st_size, b"\7"))
    assert here("info", store).refusal == (
        f"distbfs: {path}: is truncated or altered; allowed: a file as distbfs wrote it"
    )
