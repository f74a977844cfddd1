"""Kernels that are compiled while a graph is read are those that its search takes."""

import numpy as np
import pytest
from emulated_device import ArrayModule, DeviceArray
from graphs import kronecker, random_tuples

import distbfs
from distbfs.engines.cuda.xbfs.engine import common_kernels
from distbfs.generate.kronecker import Kronecker
from distbfs.generate.uniform import Uniform
from distbfs.options import BuildOptions
from distbfs.ranks.world import SoloWorld
from distbfs.store.write import write_graph


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("internal_ids", [False, True])
@pytest.mark.parametrize(
    "source",
    [Kronecker(8, 16, 1), Uniform.of_size(1 << 10, degree=16)],
    ids=["hubs", "even"],
)
def test_a_search_on_one_device(device, source, internal_ids, directed):
    form = {"internal_ids": internal_ids, "directed": directed}
    with distbfs.open(source, engine="xbfs", devices=1, **form) as session:
        result = session.search(0)
        result.to_numpy()
        assert result.reached
    used, ahead = (
        {(path.name, frozenset(definitions.items())) for path, definitions in some}
        for some in (device.asked, device.ahead)
    )
    assert {name for name, _ in used - ahead} == {source.source.with_suffix(".cu").name}
    # as results are asked for; as anything but all levels from one root is
    late = {"take.cu", "search.cu"}
    assert {name for name, _ in ahead - used} <= late


def test_wheels_bring_what_a_search_on_one_device_takes(device, tmp_path):
    """Of a store, or of a graph of a program."""
    source = random_tuples(300, 900, 1)
    write_graph(SoloWorld(), source, tmp_path / "graph", 1, BuildOptions())
    graph = distbfs.Graph.from_edges(source.u, source.v, 300)
    for held in (tmp_path / "graph", graph):
        with distbfs.open(held, engine="xbfs", devices=1) as session:
            result = session.search(1)
            result.to_numpy()
            assert result.nedge
    common = {(path, frozenset(words.items())) for path, words in common_kernels()}
    assert len(common) == len(common_kernels())
    assert {(path, frozenset(words.items())) for path, words in device.asked} <= common


MADE = {"zeros", "empty", "full", "asarray", "ndarray"}  # without a kernel
READY = {"maximum.reduce"}  # CuPy brings it compiled


@pytest.fixture
def expressions(device, monkeypatch):
    """What programs ask of arrays of the device that CuPy compiles a kernel for."""
    asked = set()

    def by_ufunc(self, ufunc, method, *inputs, out=(), **options):
        asked.add(f"{ufunc.__name__}.{method}".removesuffix(".__call__"))
        host = [x.view(np.ndarray) if isinstance(x, DeviceArray) else x for x in inputs]
        result = getattr(ufunc, method)(*host, **options)
        if out:
            out[0].view(np.ndarray)[...] = result
            return out[0]
        return result.view(DeviceArray) if isinstance(result, np.ndarray) else result

    def item(self, places):
        if isinstance(places, np.ndarray):
            asked.add("take")
        return np.ndarray.__getitem__(self, places)

    def cast(self, dtype, **options):
        asked.add("astype")
        return np.ndarray.astype(self, dtype, **options)

    attribute = ArrayModule.__getattr__

    def function(self, name):
        found = attribute(self, name)
        if callable(found) and not isinstance(found, type) and name not in MADE:
            asked.add(name)
        return found

    ways = {"__array_ufunc__": by_ufunc, "__getitem__": item, "astype": cast}
    for name, way in ways.items():
        monkeypatch.setattr(DeviceArray, name, way, raising=False)
    monkeypatch.setattr(ArrayModule, "__getattr__", function)
    return asked


@pytest.mark.parametrize("stored", [True, False])
def test_a_first_search_waits_for_no_kernel_of_cupy(expressions, tmp_path, stored):
    """Each would take 0.1 s, or 3 s where it sums or counts."""
    source = kronecker(11)  # with trees
    held = source
    if stored:
        held = tmp_path / "graph"
        write_graph(SoloWorld(), source, held, 1, BuildOptions())
    expressions.clear()
    with distbfs.open(held, engine="xbfs", devices=1) as session:
        result = session.search(1)
        assert result.level_counts().sum() == result.reached
        result.to_numpy()
    assert expressions <= READY
