"""A format or family is one new file and one line of the registry, in a copy."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import distbfs

READER = '''
from dataclasses import dataclass

import numpy as np

from distbfs.formats.base import EdgeFile, Reader
from distbfs.formats.text import TextFile


class DashesReader(Reader):
    """Lines U-V."""

    name = "dashes"
    suffixes = (".dashes",)

    def read(self, path, take):
        with TextFile(path) as file:
            lines = b"".join(file.blocks()).split()
            pairs = np.array([x.split(b"-") for x in lines], dtype=np.int64)
            take(pairs)
            return EdgeFile(self.name, int(pairs.max()) + 1, len(pairs), file.digest)


class DashesWriter:
    """The same."""

    name, suffixes = "dashes", (".dashes",)
    keeps_ids = packs = False
    first = 0

    def write(self, path, graph):
        with path.open("x") as out:
            for pairs in graph.chunks():
                out.writelines(f"{u}-{v}\\n" for u, v in pairs.tolist())
'''
FAMILY = '''
from dataclasses import dataclass
from distbfs.generate.positions import ByFormula, size
from distbfs.options import INPUT, option


@dataclass
class Wheel(ByFormula):
    """A ring whose vertex k has an edge to k + step.

    step: Vertices to go on.
    """

    family = "wheel"
    about = "a ring with steps"

    vertices: int = size(9, 1 << 30)
    step: int = option(INPUT, default=2, low=1, high=9)
    seed: int = 1

    def __post_init__(self):
        super().__post_init__()
        self.n = self.tuples = self.vertices

    def tuples_at(self, positions):
        return positions, (positions + self.step) % self.n
'''
CALLS = """
import json, sys
from distbfs.cli.main import run
for words in json.loads(sys.argv[1]):
    assert run(words) == 0
    print("done")
"""
ADDED = {
    "READERS = {": ("formats", "dashes", "DashesReader", READER),
    "WRITERS = {": ("formats", "dashes", "DashesWriter", READER),
    "FAMILIES = {": ("generate", "wheel", "Wheel", FAMILY),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Run commands of a copy that has one format and one family more."""
    root = tmp_path_factory.mktemp("copy")
    package = root / "distbfs"
    source = Path(distbfs.__file__).parent
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__"))
    registry = (package / "registry.py").read_text()
    for table, (room, name, kind, text) in ADDED.items():
        (package / room / f"{name}.py").write_text(text)
        line = f'{table}\n    "{name}": "distbfs.{room}.{name}:{kind}",'
        assert registry.count(f"\n{table}") == 1
        registry = registry.replace(table, line)
    (package / "registry.py").write_text(registry)
    here = {**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}

    def call(*commands):
        calls = json.dumps([[*map(str, words)] for words in commands])
        done = subprocess.run(
            [sys.executable, "-c", CALLS, calls],
            cwd=root,
            env=here,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


def test_a_format_of_one_file(run, tmp_path):
    text, store, again = (tmp_path / x for x in ("g.dashes", "store", "again.dashes"))
    text.write_text("0-1\n1-2\n2-3\n")
    said = run(
        ("convert", "--help"),
        ("export", "--help"),
        ("convert", text, "-o", store),
        ("export", store, "-o", again),
    )
    assert all("dashes" in x for x in said.split("done\n")[:2])
    assert sorted(again.read_text().split()) == ["0-1", "1-2", "2-3"]


def test_a_family_of_one_file(run, tmp_path):
    store, edges = tmp_path / "store", tmp_path / "edges.dashes"
    said = run(
        ("generate", "--help-all"),
        ("generate", "wheel", "-n", 12, "--step", 5, "--seed", 3, "-o", store),
        ("export", store, "-o", edges),
    )
    described = " ".join(said.partition("done\n")[0].split())
    assert "wheel a ring with steps" in described
    assert (
        "--step INTEGER RANGE Vertices to go on; wheel. [default: 2] [1<=x<=9]"
        in described
    )
    pairs = {tuple(map(int, line.split("-"))) for line in edges.read_text().split()}
    expected = {tuple(sorted((k, (k + 5) % 12))) for k in range(12)}
    assert pairs == expected
