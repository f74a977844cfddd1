"""Arrays of graphs on devices have the sizes that their tables predict."""

import sys
from pathlib import Path

import numpy as np
import pytest
from device_parts import device_parts
from graphs import kronecker, random_tuples
from resident_parts import resident_parts
from test_split_between import shares_of

from distbfs.build.cuda.domain import member_table
from distbfs.build.cuda.graph import build
from distbfs.build.cuda.inner_part import apart_table, inner_table
from distbfs.build.cuda.room import Room
from distbfs.device.array_table import total_bytes
from distbfs.engines.cuda.xbfs.memory import FIXED, MULTIPROCESSORS, split_rows
from distbfs.engines.cuda.xbfs.search import FastSearch
from distbfs.engines.cuda.xbfs.search_table import expected_shape
from distbfs.generate.kronecker import Kronecker
from distbfs.graph.degrees import DegreeHistogram
from distbfs.graph.device_graph import graph_table
from distbfs.options import BuildOptions
from distbfs.partition.share import GRANULE
from distbfs.ranks.world import SoloWorld
from distbfs.store.cuda_graph import graph_of_store
from distbfs.store.hdf5 import open_store
from distbfs.store.write import write_graph

sys.path.append(str(Path(__file__).parents[2] / "cli"))

from commands import here

GRAPHS = [kronecker(9), random_tuples(3000, 4100, seed=4), random_tuples(90, 0, seed=1)]


def check(table, arrays):
    """Each array has the dtype and the bytes of its plan."""
    for name, plan in table.items():
        array = arrays[name]
        assert (array.dtype, array.nbytes) == (plan.dtype, plan.nbytes), name


def arrays_of(share):
    """The arrays of a share by their names in tables."""
    into = {f"in_{name}": array for name, array in vars(share.into).items()}
    return vars(share) | vars(share.out) | into


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("source", GRAPHS)
def test_a_graph_of_one_device(device, source, directed):
    graph = build(source, directed=directed)
    table = graph_table(graph.n, graph.active, graph.m, directed=directed)
    check(table, arrays_of(graph))
    assert graph.nbytes == total_bytes(table)


@pytest.mark.parametrize("directed", [False, True])
def test_a_store_is_planned_for_one_device_as_it_is_loaded(device, tmp_path, directed):
    options = BuildOptions(directed=directed)
    write_graph(SoloWorld(), Kronecker(9), tmp_path / "g", 1, options)
    graph = graph_of_store(open_store(tmp_path / "g"))
    sizes = here("plan", tmp_path / "g", "--json").values["gpu_search"]
    assert sizes["graph"] == graph.nbytes
    search = FastSearch(graph, in_ids=True)
    shape = search.arrays.shape
    assert ("bare" in shape.table) == directed
    form = {"wide": graph.m <= 4 * graph.active, "bare": directed}
    most = expected_shape(graph.n, graph.active, graph.m, MULTIPROCESSORS, **form)
    assert sizes["search"] == total_bytes(most.table) + FIXED
    assert sizes["search"] - FIXED >= total_bytes(shape.table)


def test_tails_of_a_directed_graph_are_about_those_that_are_planned(device):
    source = kronecker(9)
    whole = build(source, directed=True)
    sides = [side.lengths(0, whole.active) for side in whole.sides]
    lengths = DegreeHistogram(*np.unique(np.concatenate(sides), return_counts=True))
    for columns in (whole.m, whole.m // 2, whole.m // 4):
        room = Room(whole.nbytes - 4 * columns, None, lambda *_: 0)
        graph = build(source, directed=True, room=room)
        planned = split_rows(lengths, whole.nbytes, graph.nbytes, ends=whole.active)
        assert planned["device"] == pytest.approx(graph.nbytes, rel=0.02)
        assert planned["kept"] == pytest.approx(graph.out.tails.kept, rel=0.15, abs=1)
        assert planned["host"] == pytest.approx(4 * graph.held_back, rel=0.1)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("parts", [2, 3])
@pytest.mark.parametrize("source", GRAPHS[:2])
def test_a_device_of_a_domain(device, source, parts, directed):
    """Besides vertices with loops alone, of which there are none."""
    for rows in resident_parts(source, parts, directed=directed)[0]:
        positions = rows.domain.granules * parts * GRANULE
        counts = rows.n, rows.active, rows.m, positions
        table = member_table(*counts, directed=directed)
        if directed:  # of all devices together as many as edges out
            table.pop("in_columns")
        check(table, arrays_of(rows) | {"names": rows.ids})
        assert len(rows.ended) == rows.active


@pytest.mark.thorough
@pytest.mark.parametrize("sizes", [(1, 1), (2, 1), (2, 2), (1,)])
@pytest.mark.parametrize("threshold", [0, 5, 10_000])
@pytest.mark.parametrize("source", GRAPHS[:2])
def test_a_share_between_domains(device, id_bits, source, threshold, sizes):
    placed = device_parts(source, sum(sizes), threshold=threshold)
    for one in shares_of(placed, sizes):
        outer, domain = one.out.outer, one.domain
        positions = one.active
        if domain.devices > 1:
            positions = domain.granules * GRANULE * domain.devices
        table = apart_table(
            *(source.n, positions),
            normals=one.active - one.normals,
            owned=len(one.owned),
            edges=len(outer.columns),
            targets=len(outer.targets),
        )
        names = ("offsets", "columns", "targets")
        arrays = {f"outer_{name}": getattr(outer, name) for name in names}
        check(table, arrays | {"ids": one.ids})
        table = inner_table(one.n, one.active, one.m)
        # an element more is there, behind the last
        assert table.pop("numbers").nbytes == one.numbers.nbytes + 4
        check(table, arrays_of(one))
