"""Kernels that are compiled while a graph is read are those that its search takes."""

import pytest
from sessions import open_tuples

from distbfs.generate.kronecker import Kronecker
from distbfs.generate.uniform import Uniform
from distbfs.search.choose import Request


@pytest.mark.parametrize("internal_ids", [False, True])
@pytest.mark.parametrize(
    "source",
    [Kronecker(8, 16, 1), Uniform.of_degree(1 << 10, 16)],
    ids=["hubs", "even"],
)
def test_a_search_on_one_device(device, source, internal_ids):
    with open_tuples(
        source, engine="xbfs", request=Request(devices=1), internal_ids=internal_ids
    ) as session:
        result = session.search(0)
        result.to_numpy()
        assert result.reached
    used, ahead = (
        {(path.name, frozenset(definitions.items())) for path, definitions in some}
        for some in (device.asked, device.ahead)
    )
    assert {name for name, _ in used - ahead} == {source.kernel.name}
    assert {name for name, _ in ahead - used} <= {"take.cu"}  # as results are asked for
