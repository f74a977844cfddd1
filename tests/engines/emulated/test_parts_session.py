"""The session of parts on devices, with the kernels run on the CPU."""

import gc
import subprocess
import sys

import numpy as np
import pytest
from device_parts import checked_searches, device_parts, joined
from distbfs.cli.loading import parts_of_store
from distbfs.search.device_parts import DevicePartsSession
from graphs import Tuples, check_search, kronecker, some_roots

from distbfs.engines.cuda import part
from distbfs.engines.cuda.pan import PanEngine
from distbfs.engines.cuda.part_memory import part_bytes
from distbfs.errors import SearchStopped, UsageError
from distbfs.exchange.world import SoloWorld
from distbfs.generate.hashing import Permutation
from distbfs.options import SearchOptions
from distbfs.partition import device_part
from distbfs.partition.device_part import part_to_device
from distbfs.partition.memory import PartShape
from distbfs.store import schema
from distbfs.store.hdf5 import open_store
from distbfs.types import SUBGRAPHS

SOURCE = kronecker(7)


@pytest.fixture(autouse=True)
def small(device, monkeypatch):
    monkeypatch.setattr(part, "BLOCKS", dict.fromkeys(part.BLOCKS, 1))


def session_of(source, parts=2, permutation=None, **options):
    options = SearchOptions(engine="pan", **options)
    lent = device_parts(source, parts, threshold=4)
    engine = PanEngine(options)
    return DevicePartsSession(SoloWorld(), engine, lent, options, permutation)


@pytest.mark.parametrize("parts", [1, 3])
def test_results(parts):
    session = session_of(SOURCE, parts)
    assert len(list(checked_searches(session, SOURCE))) == 3
    session.close()


def test_ids_inside_are_turned_back():
    permutation = Permutation(SOURCE.n, 5)
    inside = Tuples(SOURCE.n, *(permutation.forward(x) for x in (SOURCE.u, SOURCE.v)))
    session = session_of(inside, 2, permutation)
    for root in some_roots(SOURCE, 2):
        found = session.search(root)
        check_search(SOURCE, root, *session.block(found))
        assert joined(found.level, SOURCE.n)[permutation.forward(np.array([root]))] == 0


def test_records_and_levels_only():
    session = session_of(SOURCE, 2, parents=False)
    found = session.search(1, records=True)
    assert session.block(found)[1] is None
    assert session.gathered([found])[1] is None
    assert [record["level"] for record in found.records] == [
        *range(1, found.levels + 1)
    ]
    assert sum(sum(x["checks"].values()) for x in found.records) > 0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"internal_ids": True}, "internal_ids is no option of engine pan"),
        ({"method": "fast"}, "method is 'fast'; allowed: parts"),
        ({"balance": "even"}, "balance is 'even'; allowed: auto, static"),
        ({"frontier": "no-queue"}, "frontier is no option of engine pan"),
        ({"exchange": "none"}, "unknown exchange 'none'"),
    ],
)
def test_what_parts_do_not_have(options, text):
    with pytest.raises(UsageError, match=text):
        session_of(SOURCE, 2, **options)


def test_what_is_no_vertex():
    with pytest.raises(UsageError, match="source 128 is not a vertex"):
        session_of(SOURCE).search(128)


@pytest.mark.parametrize("parents", [False, True])
@pytest.mark.parametrize(("parts", "threshold"), [(1, 6), (3, 0), (3, 12), (2, 10_000)])
def test_the_plan_knows_what_is_allocated(device, parts, threshold, parents):
    """At least what there is, and little more."""
    source = kronecker(12)
    lent = device_parts(source, parts, threshold=threshold)
    options = SearchOptions(engine="pan", parents=parents)

    def held():
        device.check("allocation")
        return sum(
            size for alive, _, size in device.arrays.values() if alive() is not None
        )

    before = held()
    session = DevicePartsSession(SoloWorld(), PanEngine(options), lent, options)
    gc.collect()
    taken = held() - before
    planned = 0
    for one in lent:
        owned = int((one.layout.part_of(one.delegates) == one.index).sum())
        edges = {name: getattr(one, name).edges for name in SUBGRAPHS}
        shape = PartShape(
            *(source.n, parts, one.delegate_count, one.local_count, one.active),
            *(owned, edges, 0),
        )
        told = part_bytes(shape, parents=parents)
        assert told["graph"] == one.graph_bytes
        planned += told["search"] + told["messages"]
    assert taken - 8192 * parts <= planned <= 1.05 * taken + 16_384
    session.close()


def test_parts_go_to_the_device_while_they_are_read(device, tmp_path, monkeypatch):
    words = ["generate", "kronecker", "--scale", "10", "--parts", "3"]
    command = [sys.executable, "-m", "distbfs", *words, "-o", str(tmp_path / "graph")]
    subprocess.run([*command, "--threshold", "6"], check=True, capture_output=True)
    monkeypatch.setattr(schema, "SLICE_BYTES", 1000)
    monkeypatch.setattr(device_part, "UPLOAD_BYTES", 300)
    store = open_store(tmp_path / "graph")
    lent = parts_of_store(store, [0, 1, 2], [0, 0, 0])
    for index, one in enumerate(lent):
        again = part_to_device(store.load_part(index))
        for name in SUBGRAPHS:
            rows, wanted = getattr(one, name), getattr(again, name)
            np.testing.assert_array_equal(rows.offsets, wanted.offsets)
            np.testing.assert_array_equal(rows.columns, wanted.columns)
        for name in ("vertices", "numbers", "tuple_degrees"):
            np.testing.assert_array_equal(getattr(one, name), getattr(again, name))


def test_a_few_values_and_a_stop():
    session = session_of(SOURCE, 3)
    with pytest.raises(SearchStopped):
        session.search(1, stop=lambda: True)
    found = session.search(1)
    level, parent = session.block(found)
    ids = np.array([5, 0, 77, 5])
    some, above = session.at(found, ids)
    np.testing.assert_array_equal(some, level[ids])
    np.testing.assert_array_equal(above, parent[ids])
    np.testing.assert_array_equal(
        session.level_counts(found), np.bincount(level[level >= 0])
    )
    assert session.at(session.search(1, parents=False), ids)[1] is None
