"""Arrays of graphs on devices have the sizes that their tables predict."""

import pytest
from device_parts import device_parts
from graphs import kronecker, random_tuples
from resident_parts import resident_parts
from test_split_between import shares_of

from distbfs.build.cuda.domain import GRANULE, member_table
from distbfs.build.cuda.graph import build
from distbfs.build.cuda.inner_part import apart_table, inner_table
from distbfs.device.array_table import total_bytes
from distbfs.graph.device_graph import graph_table

GRAPHS = [kronecker(9), random_tuples(3000, 4100, seed=4), random_tuples(90, 0, seed=1)]


def check(table, arrays):
    """Each array has the dtype and the bytes of its plan."""
    for name, plan in table.items():
        array = arrays[name]
        assert (array.dtype, array.nbytes) == (plan.dtype, plan.nbytes), name


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("source", GRAPHS)
def test_a_graph_of_one_device(device, source, directed):
    graph = build(source, directed=directed)
    table = graph_table(graph.n, graph.active, graph.m, directed=directed)
    check(table, vars(graph))
    assert graph.nbytes == total_bytes(table)


@pytest.mark.parametrize("parts", [2, 3])
@pytest.mark.parametrize("source", GRAPHS[:2])
def test_a_device_of_a_domain(device, source, parts):
    """Besides vertices with loops alone, of which there are none."""
    for rows in resident_parts(source, parts)[0]:
        graph = rows.graph
        positions = rows.granules * parts * GRANULE
        table = member_table(graph.n, graph.active, graph.m, positions)
        check(table, vars(graph) | {"names": rows.names})
        assert len(rows.rows) == graph.active


@pytest.mark.parametrize("sizes", [(1, 1), (2, 1), (2, 2), (1,)])
@pytest.mark.parametrize("threshold", [0, 5, 10_000])
@pytest.mark.parametrize("source", GRAPHS[:2])
def test_a_share_between_domains(device, id_bits, source, threshold, sizes):
    placed = device_parts(source, sum(sizes), threshold=threshold)
    for one in shares_of(placed, sizes):
        graph, outer, domain = one.graph, one.outer, one.domain
        positions = graph.active
        if domain.devices > 1:
            positions = domain.granules * GRANULE * domain.devices
        table = apart_table(
            *(source.n, positions),
            normals=graph.active - one.normals,
            owned=len(one.owned),
            edges=len(outer.columns),
            targets=len(outer.targets),
        )
        names = ("offsets", "columns", "targets")
        arrays = {f"outer_{name}": getattr(outer, name) for name in names}
        check(table, arrays | {"ids": one.ids})
        table = inner_table(graph.n, graph.active, graph.m)
        # an element more is there, behind the last
        assert table.pop("numbers").nbytes == graph.numbers.nbytes + 4
        check(table, vars(graph))
