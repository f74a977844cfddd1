"""Graphs that a host has no room to build, refused before anything is taken."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

import distbfs
from distbfs.cli.plan import device_bytes
from distbfs.cli.plan_input import of_kronecker
from distbfs.errors import InputError, OutOfMemory, UsageError
from distbfs.generate.kronecker import Kronecker
from distbfs.plan import host_memory
from distbfs.plan.host_memory import BuildMemory
from distbfs.ranks.world import SoloWorld

HAVE = int(23.5 * 2**30)


@pytest.fixture(autouse=True)
def _machine(monkeypatch):
    monkeypatch.setattr(host_memory, "machine_memory", lambda: (HAVE, "physical"))


def ranks(*hosts):
    return SimpleNamespace(rank=0, size=len(hosts), hosts=list(hosts))


def advice(source, world, parts, **ways):
    """Return what a refusal says: the number that is allowed, and of what."""
    with pytest.raises(OutOfMemory) as caught:
        BuildMemory(source, **ways).check(world, parts)
    number, what = re.search(
        r"allowed: (\d+) or more (parts|hosts)", f"{caught.value}"
    ).groups()
    return int(number), what


@pytest.mark.parametrize("parts", [1, 6, 60])
def test_all_parts_of_a_process_count_and_plan_says_the_same(parts):
    count, what = advice(Kronecker(28), SoloWorld(), parts, kept=True)
    assert what == "hosts"
    fits = [device_bytes(of_kronecker(28, 16, p, None), 0) for p in (count - 1, count)]
    for name in ("building", "searching"):
        assert fits[1][name] <= HAVE
    assert max(fits[0].values()) > HAVE


def test_ranks_of_a_host_share_its_memory():
    graph = Kronecker(27)
    BuildMemory(graph, kept=True).check(ranks(*"abcd"), 4)
    assert advice(graph, ranks(*"aaaa"), 4, kept=True) == (4, "hosts")
    count, what = advice(graph, ranks("a", "a"), 4)
    assert what == "parts"
    BuildMemory(graph).check(ranks("a", "a"), count)
    assert advice(graph, ranks("a", "a"), count - 2) == (count, what)


def test_parts_that_are_written_are_there_one_by_one():
    count, what = advice(Kronecker(28), SoloWorld(), 1)
    assert what == "parts"
    BuildMemory(Kronecker(28)).check(SoloWorld(), count)
    advice(Kronecker(28), SoloWorld(), count, kept=True)
    many = SimpleNamespace(n=9, tuples=1 << 50, describe=lambda: {"family": "some"})
    assert advice(many, SoloWorld(), 1)[0] == -(-32 * many.tuples // HAVE)


def test_vertices_without_edges_take_memory():
    largest = 3_000_000_000
    for directed in (False, True):
        with pytest.raises(OutOfMemory, match="allowed: fewer vertices"):
            distbfs.Graph.from_edges([largest], [1], largest + 1, directed=directed)
    for edges in ([largest], np.array([largest])):
        with pytest.raises(InputError, match=r"3000000001 vertices for 1 edges; allow"):
            distbfs.Graph.from_edges(edges, [1])
    matrix = sp.coo_array(([1], ([largest], [0])), shape=(largest + 1, largest + 1))
    with pytest.raises(OutOfMemory, match="3000000001 vertices"):
        distbfs.Graph.from_scipy(matrix)
    graph = distbfs.Graph.from_edges([(largest, 1), (1, 7)], relabel=True)
    assert distbfs.bfs(graph, largest).to_dict() == {1: 1, 7: 2, largest: 0}
    with pytest.raises(UsageError, match="leave out n"):
        distbfs.Graph.from_edges([0], [1], 2, relabel=True)
