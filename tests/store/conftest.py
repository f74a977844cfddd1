"""Small stores for the tests of this room."""

from __future__ import annotations

import shutil

import pytest
from store_graphs import make_parts, random_tuples, write_store

from distbfs.store.hdf5 import open_store


@pytest.fixture(scope="session")
def tuples():
    return random_tuples(90, 400, seed=1)


@pytest.fixture(scope="session")
def parts_of(tuples):
    made = {p: make_parts(90, p, 12, tuples) for p in (1, 2, 4)}
    return made.__getitem__


@pytest.fixture(scope="session")
def written(tmp_path_factory, tuples, parts_of):
    folder = tmp_path_factory.mktemp("written") / "graph"
    return write_store(folder, parts_of(2), tuples)


@pytest.fixture
def store(tmp_path, written):
    """A store of two parts with edges in every subgraph."""
    return open_store(shutil.copytree(written, tmp_path / "graph"))
