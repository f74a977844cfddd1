"""Rows for resident searches, built with the kernels run on the CPU."""

import numpy as np
import pytest
from graphs import NAMED, NO_VERTEX, Tuples, kronecker, random_tuples, uniform
from resident_parts import check_resident, resident_parts
from worlds import on_ranks

from distbfs.build.cuda import chunks
from distbfs.build.cuda import keys as device_keys
from distbfs.build.cuda.domain import least_degrees
from distbfs.errors import InputError
from distbfs.graph.device_graph import degree_class

GRAPHS = {
    "kronecker": kronecker(9),
    "hub": uniform(1000, 500, hub=900),
    "random": random_tuples(301, 900, 5),
    "granules": uniform(5000, 9000, hub=1500),
}


@pytest.mark.parametrize("parts", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("name", GRAPHS)
def test_rows(device, id_bits, name, parts):
    made, summary = resident_parts(GRAPHS[name], parts)
    check_resident(GRAPHS[name], made, summary)


@pytest.mark.parametrize("name", NAMED)
def test_shapes_on_more_parts_than_some_have_vertices(device, name):
    made, summary = resident_parts(NAMED[name], 3)
    check_resident(NAMED[name], made, summary)


@pytest.mark.parametrize("buffer_bytes", [1, 5000, 60_000])
def test_passes(device, monkeypatch, buffer_bytes):
    monkeypatch.setattr(device_keys, "SLACK", 100)
    monkeypatch.setattr(chunks, "CHUNK", 1777)
    source = kronecker(8, 8)
    made, summary = resident_parts(source, 2, buffer_bytes=buffer_bytes)
    check_resident(source, made, summary)
    assert summary.passes > 4 or buffer_bytes > 5000


def test_ranks_have_the_parts_of_one_process(device):
    source = GRAPHS["random"]

    def rank(world):
        return resident_parts(source, 4, world)

    for made, summary in on_ranks(2, rank):
        check_resident(source, made, summary)


def test_no_vertex(device):
    made, summary = resident_parts(NO_VERTEX, 2)
    assert summary.m == made[0].active == 0


@pytest.mark.parametrize("buffer_bytes", [1, 1 << 30])
def test_tuples_that_change(device, monkeypatch, buffer_bytes):
    monkeypatch.setattr(device_keys, "HOLD_SHARE", 1 << 40)  # nothing is kept

    class Changing(Tuples):
        asked = 0

        def chunks(self, start, stop):
            self.asked += 1
            for u, v in super().chunks(start, stop):
                yield u, (v if self.asked <= 2 else u)

    source = Changing(50, np.arange(49), np.arange(1, 50))
    with pytest.raises(InputError, match="changed while"):
        resident_parts(source, 2, buffer_bytes=buffer_bytes)


def test_least_degrees():
    degrees = np.concatenate([np.arange(1, 70_000), 2 ** np.arange(16, 32)])
    classes = degree_class(degrees)
    least = least_degrees()[classes]
    assert (least <= degrees).all()
    np.testing.assert_array_equal(degree_class(least), classes)
