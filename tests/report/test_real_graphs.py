"""Real graphs: what is fetched becomes a file of edges, and runs are tables."""

import gzip
import importlib
import io
import json
import lzma
import subprocess
import sys
import tarfile
from pathlib import Path

import h5py
import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
RIVER = "./usr/share/gmt-gshhg/binned_river_f.nc"
RUN = ROOT / "scripts" / "real" / "run.py"


@pytest.fixture
def graphs(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module("real.graphs")


def tar_of(member: str, content: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:xz") as tar:
        about = tarfile.TarInfo(member)
        about.size = len(content)
        tar.addfile(about, io.BytesIO(content))
    return out.getvalue()


def package(path: Path, member: str, content: bytes) -> Path:
    """Write a Debian package, whose first member has an odd size."""
    parts = [
        ("debian-binary", b"2.0"),
        ("data.tar.xz", tar_of(member, content)),
    ]
    with path.open("wb") as file:
        file.write(b"!<arch>\n")
        for name, data in parts:
            file.write(
                f"{name:<16}{0:<12}{0:<6}{0:<6}{644:<8}{len(data):<10}`\n".encode()
            )
            file.write(data + b"\n" * (len(data) % 2))
    return path


def test_a_package_is_unpacked(graphs, tmp_path):
    path = package(tmp_path / "some.deb", "./a", b"content")
    with tarfile.open(fileobj=io.BytesIO(graphs.packaged(path))) as tar:
        assert tar.extractfile("./a").read() == b"content"


def test_dependencies(graphs, tmp_path):
    listed = tmp_path / "Packages.xz"
    text = "Package: a\nDepends: b (>= 1), c:any | d\n\nPackage: b\nSize: 3\n"
    listed.write_bytes(lzma.compress(text.encode()))
    graphs.dependencies(listed, tmp_path / "edges")
    assert (tmp_path / "edges").read_text() == "a b\na c\na d\n"


def test_nouns_that_nouns_point_to(graphs):
    line = "00001740 03 n 01 entity 0 003 ~ 00001930 n 0000 "
    line += "+ 00692329 v 0101 @ 00000007 n 0000 | that"
    assert list(graphs.noun_pointers(line)) == [(1740, 1930), (1740, 7)]
    assert not list(graphs.noun_pointers("  1 This software"))


def test_rivers_that_meet_at_a_border(graphs, tmp_path):
    """A line of two bins: its point on their border is one vertex."""
    source = tmp_path / "source.nc"
    with h5py.File(source, "w") as file:
        file["N_bins_in_360_longitude_range"] = np.array([360])
        file["N_segments_in_a_bin"] = np.array([1, 1], np.int16)
        file["N_points_for_a_segment"] = np.array([3, 2], np.int16)
        east = np.array([0, 1, 65535, 0, 7], np.uint16)
        file["Relative_longitude_from_SW_corner_of_bin"] = east.astype(np.int16)
        file["Relative_latitude_from_SW_corner_of_bin"] = np.full(5, 9, np.int16)
    fetched = package(tmp_path / "gshhg.deb", RIVER, source.read_bytes())
    graphs.rivers(fetched, tmp_path / "edges")
    pairs = np.loadtxt(tmp_path / "edges", dtype=np.int64)
    assert pairs.shape == (3, 2)
    assert len(np.unique(pairs)) == 4
    assert pairs[1, 1] == pairs[2, 0]


@pytest.mark.thorough
def test_a_run(graphs, tmp_path):
    """A file that lies in the folder is converted, checked and measured."""
    name = graphs.GRAPHS["wiki-vote"].address.rpartition("/")[2].removesuffix(".gz")
    votes = b"# votes\n7 9\n9 30\n30 7\n30 8\n"
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(votes))
    command = [sys.executable, RUN, "wiki-vote"]
    command += ["--folder", tmp_path, "--out", tmp_path, "--small", "--peers", "scipy"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    [row] = json.loads((tmp_path / "real.json").read_text())["rows"]
    assert (row["n"], row["m"], row["directed"]) == (4, 4, True)
    assert set(row["median_seconds"]) == {"openmp", "scipy", "openmp, scipy in turns"}
    assert set(row["over"]) == {"scipy"}
    assert "wiki-vote, directed" in done.stdout
    assert "geometric mean" in done.stdout


@pytest.mark.thorough
@pytest.mark.parametrize("graph", ["nothing", "rivers"])
def test_what_cannot_be_measured_is_said(graphs, tmp_path, graph):
    """A name that is none of the graphs; a file that is not a package."""
    (tmp_path / graphs.GRAPHS["rivers"].address.rpartition("/")[2]).write_bytes(
        b"!<arch>\n"
    )
    command = [sys.executable, RUN, graph]
    done = subprocess.run(
        [*command, "--folder", tmp_path, "--out", tmp_path],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == (2 if graph == "nothing" else 1)
    assert len(done.stderr.strip().splitlines()) == 1
    assert not list(tmp_path.glob("*.partial"))
