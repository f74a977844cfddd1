"""``distbfs verify``: silent about good stores, exact about bad ones."""

import os
import pty
import shutil
import subprocess
import sys

import numpy as np
import pytest
from commands import DISTBFS, here, on
from graphs import NAMED, build, kronecker
from launching import clean_environment, needs_mpi
from worlds import on_ranks

from distbfs.options import BuildOptions
from distbfs.ranks.world import SoloWorld
from distbfs.store.hdf5 import StoreWriter, open_store
from distbfs.store.schema import Manifest
from distbfs.store.verify import verify_store
from distbfs.store.write import write_graph

TUPLES = kronecker(7)
PARTS = 4


def forged(folder, change):
    """Write a store whose parts were changed first; all digests fit."""
    parts, summary = build(TUPLES, PARTS)
    for part in parts:
        change(part)
    with StoreWriter(folder) as writer:
        records = tuple(writer.write_part(part) for part in parts)
        names = ("n", "tuples", "threshold", "delegates", "loops", "repeats")
        writer.finish(
            Manifest(
                source={"family": "test"},
                relabel={"method": "none"},
                order_block=1 << 15,
                records=records,
                **{name: getattr(summary, name) for name in names},
            )
        )
    return folder


def more_ends(part):
    part.tuple_degrees[0] += 1


def other_neighbour(part):
    """Turn an nd edge to another delegate; dn still has the old one."""
    row = int(np.argmax(np.diff(part.nd.offsets) == 1))
    at = part.nd.offsets[row]
    part.nd.columns[at] = (part.nd.columns[at] + 1) % part.delegate_count


def flip(file, share):
    """Change two bytes in the stored data of the largest dataset."""
    data = bytearray(file.read_bytes())
    at = int(len(data) * share)
    data[at] ^= 0xFF
    data[at + 1] ^= 0x55
    file.write_bytes(data)


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    folder = tmp_path_factory.mktemp("good") / "store"
    write_graph(SoloWorld(), TUPLES, folder, PARTS, BuildOptions())
    return folder


@pytest.fixture
def bad(good, tmp_path):
    """A store with two files that were altered."""
    folder = tmp_path / "bad"
    shutil.copytree(good, folder)
    flip(folder / "part-00001.h5", 0.5)
    flip(folder / "part-00003.h5", 0.5)
    return folder


def test_good_store(good):
    done = here("verify", good)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"{good}: all is well; 4 parts, ")
    assert done.out.count("\n") == 1
    values = here("verify", good, "--json").values
    assert values["ok"]
    assert values["findings"] == []
    assert sum(values["edges"].values()) == TUPLES.matrix.nnz
    assert values["tuple_ends"] == 2 * TUPLES.tuples


@pytest.mark.parametrize("name", ["one-vertex", "no-edges", "loops", "two-hubs"])
@pytest.mark.parametrize("parts", [1, 3])
def test_small_graphs_are_well(tmp_path, name, parts):
    write_graph(SoloWorld(), NAMED[name], tmp_path / "s", parts, BuildOptions())
    assert here("verify", tmp_path / "s").code == 0


def test_altered_files(bad):
    done = here("verify", bad)
    assert done.code == 2
    lines = done.out.splitlines()
    assert [line.partition(": ")[0] for line in lines] == [
        str(bad / "part-00001.h5"),
        str(bad / "part-00003.h5"),
    ]
    assert done.err.count("\n") == 1
    assert done.err.startswith(f"distbfs: {bad}: 2 findings, the first: part-00001.h5:")


def test_findings_as_json(bad):
    done = here("verify", bad, "--json")
    assert done.code == 2
    assert '"ok": false' in done.out
    assert done.out.count("part-0000") == 2


@pytest.mark.parametrize(
    ("change", "text"),
    [(more_ends, "tuples have"), (other_neighbour, "dn is not the transpose of nd")],
)
def test_broken_rules(tmp_path, change, text):
    folder = forged(tmp_path / "forged", change)
    done = here("verify", folder)
    assert done.code == 2
    assert text in done.out
    *progress, said = done.err.splitlines()
    assert said.startswith(f"distbfs: {folder}: ")
    assert all(line.startswith("distbfs: verifying: ") for line in progress)


@pytest.mark.parametrize("change", [lambda part: None, more_ends, other_neighbour])
@pytest.mark.parametrize("ranks", [1, 3, 6])
def test_ranks_find_what_one_process_finds(tmp_path, change, ranks):
    folder = forged(tmp_path / "forged", change)
    expected = verify_store(open_store(folder)).as_dict()

    def work(world):
        return verify_store(open_store(folder), world=world).as_dict()

    for result in on_ranks(ranks, work):
        assert result == expected


@needs_mpi
@pytest.mark.parametrize("ranks", [2, 3])
def test_real_ranks(good, ranks):
    done = on(ranks, "verify", good)
    assert (done.code, done.err) == (0, "")
    assert done.out.count("\n") == 1
    assert "all is well; 4 parts" in done.out


@needs_mpi
def test_real_ranks_end_together(bad):
    done = on(2, "verify", bad)
    assert done.code == 2
    assert done.out.count("part-0000") == 2
    assert done.err.count("\n") == 1
    assert "2 findings, the first: part-00001.h5" in done.err


def test_refused(tmp_path):
    assert "there is no such file or folder" in here("verify", tmp_path / "x").refusal
    assert "'STORE' (see" in here("verify").refusal
    assert "No such option '--fast'" in here("verify", tmp_path, "--fast").refusal


def test_a_terminal_sees_a_bar(good):
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*DISTBFS, "verify", str(good)],
        env=clean_environment({"TERM": "xterm", "COLUMNS": "80"}),
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    )
    os.close(theirs)
    out, _ = process.communicate(timeout=120)
    seen = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert process.returncode == 0
    assert "all is well" in out
    assert "verifying" in seen


def test_no_bar_in_a_pipe(good):
    done = subprocess.run(
        [sys.executable, "-m", "distbfs", "verify", str(good)],
        env=clean_environment(),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
