"""The ids that vertices have in their file: kept, loaded, and refused where altered."""

import os

import h5py
import numpy as np
import pytest
from store_graphs import forge_manifest, make_manifest, make_parts, random_tuples

from distbfs.errors import StoreError
from distbfs.formats.ids import IntegerIds, TextIds
from distbfs.store import schema
from distbfs.store.hdf5 import StoreWriter, open_store
from distbfs.store.verify import verify_store

N = 30
LIBVER = ("v110", "v110")
MAPS = {
    "integer": IntegerIds(np.arange(N) ** 3 + 5),
    "text": TextIds.of(sorted(f"é{k}".encode() for k in range(N))),
}


def write(folder, ids, overwrite=False):
    tuples = random_tuples(N, 90, seed=4)
    parts = make_parts(N, 2, 9, tuples)
    with StoreWriter(folder, overwrite) as writer:
        records = [writer.write_part(part) for part in parts]
        kept = writer.write_ids(ids)
        writer.finish(make_manifest(parts, records, tuples, {"ids": kept}.items()))
    return open_store(folder)


@pytest.fixture(params=sorted(MAPS))
def store(request, tmp_path):
    return write(tmp_path / "graph", MAPS[request.param])


def test_round_trip(store):
    ids = store.load_ids()
    wanted = MAPS[ids.kind]
    assert store.manifest.ids.kind == ids.kind
    every = np.arange(N)
    assert ids.names(every) == wanted.names(every)
    assert [ids.find(str(x)) for x in ids.names(every)] == every.tolist()
    assert verify_store(store).ok
    again = write(store.folder, wanted, overwrite=True)
    assert again.manifest == store.manifest


def test_a_store_without_ids_has_none(tmp_path, store):
    assert "ids" in store.manifest.summary()
    tuples = random_tuples(N, 90, seed=4)
    parts = make_parts(N, 1, 9, tuples)
    with StoreWriter(tmp_path / "plain") as writer:
        records = [writer.write_part(part) for part in parts]
        writer.finish(make_manifest(parts, records, tuples))
    plain = open_store(tmp_path / "plain")
    assert plain.load_ids() is None
    assert "ids" not in plain.manifest.summary()
    (plain.folder / "ids.h5").write_bytes(b"")
    with pytest.raises(StoreError, match="does not belong to the manifest"):
        open_store(plain.folder)


def refused(store, match):
    with pytest.raises(StoreError, match=match) as caught:
        open_store(store.folder).load_ids()
    assert "\n" not in str(caught.value)
    assert str(store.folder) in str(caught.value)


def test_missing_truncated_and_other_files(store):
    path = store.folder / "ids.h5"
    body = path.read_bytes()
    path.write_bytes(body[:-1])
    refused(store, "truncated or altered")
    path.write_bytes(bytes(len(body)))
    refused(store, "is not an HDF5 file")
    path.unlink()
    refused(store, "No such file")
    os.symlink("/etc/passwd", path)
    refused(store, "a symbolic link")


@pytest.mark.thorough
def test_every_flipped_byte_is_seen_or_harmless(store):
    path = store.folder / "ids.h5"
    body, wanted = path.read_bytes(), store.load_ids().names(np.arange(N))
    seen = 0
    for at in range(0, len(body), 7):
        path.write_bytes(body[:at] + bytes([body[at] ^ 4]) + body[at + 1 :])
        try:
            assert open_store(store.folder).load_ids().names(np.arange(N)) == wanted
        except StoreError:
            seen += 1
    assert seen > 20


def forge(store, change):
    """Change the file of ids and let the manifest follow."""
    path = store.folder / "ids.h5"
    with h5py.File(path, "r+", libver=LIBVER) as file:
        change(file)
    size = path.stat().st_size

    def follow(values):
        values["ids"]["file_bytes"] = size

    forge_manifest(store, follow)


def another_link(file):
    name = next(iter(file))
    del file[name]
    file[name] = h5py.SoftLink("/other")


def more(file):
    file["more"] = 1


def wrong_count(file):
    file.attrs.modify("n", np.int64(N + 1))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (another_link, "is a soft link"),
        (more, "objects; allowed: exactly"),
        (wrong_count, f"attribute n is {N + 1}"),
    ],
)
def test_forged_files(store, change, match):
    forge(store, change)
    refused(store, match)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"kind": "float"}, r"regex .*\.ids\.kind`"),
        ({"kind": ["x"]}, r"got `array` - at `\$\.ids\.kind`"),
        ({"count": N - 1}, f"{N - 1} ids for {N} vertices"),
        ({"count": -1}, r">= 0 - at `\$\.ids\.count`"),
        ({"digests": {}}, "lacks the key"),
        ({"more": 1}, r"unknown field `more` - at `\$\.ids`"),
        ({"array_bytes": 1}, "bytes, not 1"),
    ],
)
def test_forged_manifests(store, change, match):
    forge_manifest(store, lambda values: values["ids"].update(change))
    refused(store, match)


def test_ids_that_do_not_rise(tmp_path):
    store = write(tmp_path / "graph", MAPS["integer"])
    wrong = IntegerIds(np.arange(N))
    wrong.ids = wrong.ids[::-1].copy()
    store = write(tmp_path / "graph", wrong, overwrite=True)
    refused(store, "ids are not in ascending order")
    assert "ids are not in ascending order" in verify_store(store).findings[0]
    wrong = TextIds.of([f"{k:02}".encode() for k in range(N)][::-1])
    store = write(tmp_path / "graph", wrong, overwrite=True)
    assert verify_store(store).findings == [
        "ids: id 1 does not follow the one before it"
    ]


def test_other_kinds_of_files_are_still_not_replaced(store):
    (store.folder / "ids.txt").write_text("mine")
    with pytest.raises(StoreError, match="not a part of a graph store"):
        write(store.folder, MAPS["text"], overwrite=True)
    assert schema.IDS_NAME == "ids.h5"


def test_a_store_keeps_where_its_file_counts_from(tmp_path):
    tuples = random_tuples(N, 90, seed=4)
    parts = make_parts(N, 1, 9, tuples)
    for first in (0, 1):
        with StoreWriter(tmp_path / f"from-{first}") as writer:
            records = [writer.write_part(part) for part in parts]
            facts = {"first_id": first}.items()
            writer.finish(make_manifest(parts, records, tuples, facts))
    plain, counted = (open_store(tmp_path / f"from-{k}") for k in (0, 1))
    assert "first_id" not in plain.manifest.summary()  # as in older stores
    assert plain.load_ids() is None
    assert counted.manifest.summary()["first_id"] == 1
    assert counted.load_ids().names(np.array([0, N - 1])) == [1, N]
    assert [counted.load_ids().find(x) for x in ("0", "1", str(N + 1))] == [-1, 0, -1]
    assert counted.load_ids(first_id=0) is None
    assert plain.load_ids(first_id=1).find("1") == 0
    assert verify_store(counted).ok
    for wrong in (2, -1, 0.5, None, "1"):
        forge_manifest(counted, lambda x, wrong=wrong: x.update(first_id=wrong))
        with pytest.raises(StoreError, match="first_id`"):
            open_store(counted.folder)
