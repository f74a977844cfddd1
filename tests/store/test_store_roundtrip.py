"""What is written comes back, whatever the shapes."""

from __future__ import annotations

import json

import h5py
import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_graphs import (
    make_manifest,
    make_parts,
    random_tuples,
    same_part,
    write_store,
)

from distbfs.errors import StoreError, UsageError
from distbfs.graph.csr import CSR
from distbfs.store import schema
from distbfs.store.atomic_folder import new_token
from distbfs.store.hdf5 import StoreWriter, open_store
from distbfs.store.schema import PartRecord
from distbfs.store.verify import verify_store


@pytest.mark.parametrize("p", [1, 2, 4])
@pytest.mark.parametrize("threshold", [0, 12, 1000])
def test_roundtrip(tmp_path, tuples, p, threshold):
    parts = make_parts(90, p, threshold, tuples)
    store = open_store(write_store(tmp_path / "graph", parts, tuples))
    assert all(same_part(store.load_part(k), parts[k]) for k in range(p))
    manifest = store.manifest
    assert manifest.m == sum(part.edges for part in parts)
    assert manifest.edges["dd"] == sum(part.dd.edges for part in parts)
    assert (manifest.n, manifest.parts, manifest.tuples) == (90, p, 400)
    assert manifest.relabel == {"method": "hash", "seed": 7}
    assert len(manifest.records) == p
    arrays = schema.part_arrays(parts[0]).values()
    assert store.part_bytes(0) == sum(array.nbytes for array in arrays)
    verification = verify_store(store)
    assert verification.ok, verification.findings


@pytest.mark.thorough
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    n=st.integers(0, 40),
    count=st.integers(0, 120),
    p=st.sampled_from([1, 2, 3, 4]),
    threshold=st.integers(0, 9),
    seed=st.integers(0, 99),
)
def test_roundtrip_of_any_graph(tmp_path_factory, n, count, p, threshold, seed):
    tuples = random_tuples(n, count, seed)
    parts = make_parts(n, p, threshold, tuples)
    folder = tmp_path_factory.mktemp("any") / "graph"
    store = open_store(write_store(folder, parts, tuples))
    assert all(same_part(store.load_part(k), parts[k]) for k in range(p))
    verification = verify_store(store)
    assert verification.ok, verification.findings


def test_slices_and_chunks_that_do_not_divide(tmp_path, monkeypatch, tuples):
    monkeypatch.setattr(schema, "CHUNK_BYTES", 64)
    monkeypatch.setattr(schema, "SLICE_BYTES", 192)
    monkeypatch.setattr("distbfs.graph.csr.SLICE", 5)
    parts = make_parts(90, 2, 12, tuples)
    store = open_store(write_store(tmp_path / "graph", parts, tuples))
    assert all(same_part(store.load_part(k), parts[k]) for k in range(2))
    assert verify_store(store).ok


def test_wide_offsets_and_big_chunks(tmp_path, parts_of, tuples):
    part = parts_of(1)[0]
    wide = CSR(part.nn.offsets.astype(np.uint64), part.nn.columns)
    object.__setattr__(part, "nn", wide)
    store = open_store(write_store(tmp_path / "graph", [part], tuples))
    assert store.load_part(0).nn.offsets.dtype == np.uint64
    count = 700_001  # more than two chunks of 1 MiB in one array
    ring = Ring(count)
    tuples = np.arange(count), (np.arange(count) + 1) % count
    folder = write_store(tmp_path / "ring", [ring.part()], tuples)
    loaded = open_store(folder).load_part(0)
    assert same_part(loaded, ring.part())
    with h5py.File(folder / "part-00000.h5") as file:
        columns = file["nn/columns"]
        assert columns.chunks == (1 << 18,)
        assert columns.fletcher32
        assert columns.compression is None


class Ring:
    """A ring of n vertices on one part, made without loops over edges."""

    def __init__(self, n):
        self.n = n

    def part(self):
        base = make_parts(0, 1, 4, random_tuples(0, 0, 0))[0]
        ids = np.arange(self.n)
        both = np.stack(((ids - 1) % self.n, (ids + 1) % self.n), axis=1)
        twos = np.full(self.n, 2, np.int64)
        return type(base)(
            layout=type(base.layout)(self.n, 1),
            index=0,
            threshold=4,
            delegates=base.delegates,
            delegate_degrees=base.delegate_degrees,
            nn=CSR(
                np.arange(0, 2 * self.n + 1, 2, dtype=np.uint32),
                np.sort(both, axis=1).ravel().astype(np.uint32),
            ),
            nd=CSR.empty(self.n),
            dn=CSR.empty(0),
            dd=CSR.empty(0),
            vertices=ids.astype(np.uint32),
            degrees=twos,
            tuple_degrees=twos,
            active=self.n,
        )


def test_ranks_share_one_partial_folder(tmp_path, parts_of, tuples):
    token, parts = new_token(), parts_of(4)
    writers = [StoreWriter(tmp_path / "graph", token=token) for _ in range(2)]
    records = [None] * 4
    for index, part in enumerate(parts):
        with writers[index % 2] as writer:
            record = msgspec.json.encode(writer.write_part(part))
            records[index] = msgspec.json.decode(record, type=PartRecord)
    assert not (tmp_path / "graph").exists()
    writers[0].finish(make_manifest(parts, records, tuples))
    assert [entry.name for entry in tmp_path.iterdir()] == ["graph"]
    assert verify_store(open_store(tmp_path / "graph")).ok


def test_finish_wants_every_part(tmp_path, parts_of, tuples):
    parts, token = parts_of(2), new_token()
    writer = StoreWriter(tmp_path / "graph", token=token)
    other = StoreWriter(tmp_path / "elsewhere")
    records = [writer.write_part(parts[0]), other.write_part(parts[1])]
    with pytest.raises(StoreError, match=r"part-00001\.h5: No such file"):
        writer.finish(make_manifest(parts, records, tuples))
    other.discard()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "change",
    [
        {"vertices": np.zeros(45, np.int64)},
        {"degrees": np.zeros((45, 1), np.int64)},
        {"tuple_degrees": np.zeros(44, np.int64)},
        {"nn": CSR.empty(45)},
        {"vertices": np.full(45, 1 << 31, np.uint32)},
    ],
)
def test_a_wrong_part_is_not_written(tmp_path, tuples, change):
    part = make_parts(90, 2, 12, tuples)[0]
    for name, value in change.items():
        object.__setattr__(part, name, value)
    writer = StoreWriter(tmp_path / "graph")
    with pytest.raises(StoreError) as caught:
        writer.write_part(part)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": 91}, "attribute n is 90, but the manifest says 91"),
        ({"threshold": 11}, "attribute threshold is 12"),
        ({"n": -1}, "n must be at least 0"),
        ({"tuples": 30}, "edges do not fit 30 tuples"),
        ({"loops": 401}, "400 tuples, 401 loops"),
        ({"order_block": 0}, r"`int` >= 1 - at `\$\.order_block`"),
        ({"delegates": 91}, "91 delegates, but 90"),
        ({"source": {"scale": 3}}, "family"),
        ({"relabel": {"method": "sort"}}, "allowed: none, hash"),
        ({"relabel": {"method": "hash"}}, "relabel seed"),
        ({"statistics": {"mean": float("nan")}}, "not JSON compliant"),
        ({"statistics": {"mean": np.arange(2)}}, "only integer scalar arrays"),
        ({"format_version": 2}, "reads version 1"),
        ({"created_by": 5}, r"got `int` - at `\$\.created_by`"),
        ({"records": ()}, "parts at least 1"),
        ({"threshold": True}, r"got `bool` - at `\$\.threshold`"),
    ],
)
def test_a_wrong_manifest_is_not_made(tmp_path, parts_of, tuples, change, message):
    with pytest.raises(StoreError, match=message) as caught:
        write_store(tmp_path / "graph", parts_of(2), tuples, changes=change)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_manifest_takes_numpy_numbers(store):
    changes = {"threshold": np.int64(12), "n": np.uint32(90)}
    manifest = msgspec.structs.replace(store.manifest, **changes)
    assert manifest == store.manifest
    assert json.loads(manifest.to_json())["threshold"] == 12


@pytest.mark.parametrize("index", [-1, 2])
def test_unknown_part(store, index):
    with pytest.raises(UsageError, match="allowed: 0 to 1"):
        store.load_part(index)
    with pytest.raises(UsageError, match="allowed: 0 to 1"):
        store.part_bytes(index)
