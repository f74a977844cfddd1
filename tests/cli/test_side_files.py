"""Files beside a graph: sources, sets, pairs, vertices; pipes in place of files."""

import gzip
import os
from contextlib import contextmanager

import h5py
import numpy as np
import pytest
from commands import alone, here

from distbfs import Graph
from distbfs.store.schema import MANIFEST_NAME

EDGES = "0 1\n1 2\n3 4\n"
NAMES = '"Doe, Jo",eve\neve,"C #1"\n"x ""y""",eve\na#b,eve\n'


@contextmanager
def pipe(content):
    """Yield the path of a pipe that holds some bytes."""
    read, write = os.pipe()
    try:
        os.write(write, content)
        os.close(write)
        yield f"/dev/fd/{read}"
    finally:
        os.close(read)


@contextmanager
def standard_input(content):
    """Let standard input be a pipe that holds some bytes."""
    before = os.dup(0)
    try:
        with pipe(content) as path:
            os.dup2(int(path.rpartition("/")[2]), 0)
        yield
    finally:
        os.dup2(before, 0)
        os.close(before)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with edges.txt, names.csv, and the stores of both."""
    folder = tmp_path_factory.mktemp("side")
    for name, text in (("edges.txt", EDGES), ("names.csv", NAMES)):
        (folder / name).write_text(text)
        words = ["--relabel", "--no-header"] if name == "names.csv" else []
        path = folder / name
        assert here("convert", path, "-o", path.with_suffix(""), *words).code == 0
    return folder


def reached(done):
    return [x["reached"] for x in done.values["searches"]]


def test_graphs_from_pipes(folder, tmp_path):
    table = tmp_path / "names.parquet"
    assert here("export", folder / "names", "-o", table).code == 0
    names = ["--relabel", "-s", "eve"]
    for content, words, count in (
        (EDGES.encode(), ["-s", 0], 3),
        (NAMES.encode(), ["--no-header", *names], 5),  # read as numbers, then as text
        (table.read_bytes(), names, 5),
    ):
        with pipe(content) as path:
            assert reached(here("bfs", path, *words, "--json")) == [count]
    with pipe(EDGES.encode()) as path:
        assert Graph.from_file(path).n == 5
    with standard_input(EDGES.encode()):
        assert here("convert", "-", "-o", tmp_path / "store").code == 0
    assert reached(here("bfs", tmp_path / "store", "-s", 3, "--json")) == [2]


def test_standard_input_that_is_a_file(folder):
    with (folder / "edges.txt").open("rb") as file:
        before = os.dup(0)
        os.dup2(file.fileno(), 0)
        try:
            assert reached(here("bfs", "-", "-s", 0, "--json")) == [3]
        finally:
            os.dup2(before, 0)
            os.close(before)


def test_side_files_from_pipes_and_compressed(folder, tmp_path):
    store, packed = folder / "edges", tmp_path / "ids.gz"
    packed.write_bytes(gzip.compress(b"0\n1\n"))
    np.save(tmp_path / "seen.npy", np.array([1, 1, 0, 1, 1], bool))
    seen = tmp_path / "seen.npy.gz"
    seen.write_bytes(gzip.compress((tmp_path / "seen.npy").read_bytes()))
    for words, counts in (
        (["--sources", "FILE"], [3, 3]),
        (["--source-set", "@FILE"], [3]),
        (["--vertices", "FILE", "-s", 0], [2]),
    ):

        def command(file, words=words):
            filled = [str(x).replace("FILE", str(file)) for x in words]
            return here("bfs", store, *filled, "--json")

        assert reached(command(packed)) == counts
        with pipe(b"0\n1\n") as path:
            assert reached(command(path)) == counts
        with standard_input(b"0\n1\n"):
            assert reached(command("-")) == counts
    assert reached(here("bfs", store, "--vertices", seen, "-s", 0, "--json")) == [2]
    with standard_input(b"0 2\n0 3\n"):
        done = here("multisearch", "reachability", store, "--pairs", "-", "--json")
        assert done.values["found"]["answers"] == [True, False]
    with standard_input(b"3\n"):
        done = here("multisearch", "closeness", store, "--sources", "-", "--json")
        assert done.values["sources"] == 1


def test_standard_input_is_one_file(folder):
    said = "standard input holds one file; two arguments read it"
    for words in (
        ["-", "--sources", "-"],
        [folder / "edges", "--sources", "-", "--source-set", "@-"],
        [folder / "edges", "--sources", "-", "--vertices", "/dev/stdin"],
    ):
        with standard_input(b"0\n"):
            assert said in here("bfs", *words).refusal


def test_ids_in_quotes_and_comments(folder, tmp_path):
    file, out = tmp_path / "ids", tmp_path / "out.csv"
    ids = ["Doe, Jo", "C #1", 'x "y"', "a#b", "eve"]
    file.write_text('"Doe, Jo"\n"C #1" # c\n"x ""y"""\na#b\n# eve\neve\t# "\n')
    done = here("bfs", folder / "names", "--sources", file, "--json")
    assert [x["source"] for x in done.values["searches"]] == ids
    file.write_text('"Doe, Jo",eve\n"C #1"\t a#b # c\n"x ""y""" eve\na#b, eve\n')
    words = ("reachability", folder / "names", "--pairs", file)
    assert here("multisearch", *words, "-o", out).code == 0
    _, first, second, *_ = out.read_text().splitlines()
    assert (first, second) == ('"Doe, Jo",eve,1', "C #1,a#b,1")
    for text, said in (
        ('eve\n"Doe, Jo\n', "ids:2: a quote that does not end"),
        ('"eve" x\n', "ids:1: a quoted column continues after its closing quote"),
        ("C #1\n", "ids:1: source 'C' is not an id of the graph"),
    ):
        file.write_text(text)
        assert said in here("bfs", folder / "names", "--sources", file).refusal


def test_a_store_that_another_process_writes(folder):
    with h5py.File(folder / "edges" / MANIFEST_NAME, "r+"):
        done = alone("bfs", folder / "edges", "-s", 0)
    said = f"{MANIFEST_NAME}: another process is writing the store; try again when"
    assert said in done.refusal
