"""Everything that is not exactly a store is refused with one line.

Two kinds of damage: plain (somebody changed a file) and forged (``reconcile``: size,
digests and edge counts of the manifest follow the change), so that each check is seen
to work without the ones before it.
"""

from __future__ import annotations

import os
import shutil

import h5py
import msgspec
import numpy as np
import pytest
from store_graphs import (
    forge_manifest,
    make_parts,
    random_tuples,
    reconcile,
    replace_manifest,
    same_part,
    write_store,
    write_text,
)

from distbfs.errors import ResourceError, StoreError
from distbfs.store import schema
from distbfs.store.hdf5 import open_store

LIBVER = ("v110", "v110")


def refused(folder, match):
    """Open and load every part; the error is one line that names a path."""
    with pytest.raises(StoreError, match=match) as caught:
        load_all(folder)
    message = str(caught.value)
    assert "\n" not in message
    assert str(folder) in message
    assert caught.value.exit_code == 2
    return message


def load_all(folder):
    store = open_store(folder)
    return [store.load_part(index) for index in range(store.manifest.parts)]


def again(file, name, data, **how):
    """Replace a dataset by other data, stored as the schema wants it unless told."""
    del file[name]
    if not how and len(data):
        chunk = schema.chunk_elements(len(data), data.dtype.itemsize)
        how = {"chunks": (chunk,), "fletcher32": True}
    file.create_dataset(name, data=data, **how)


# The folder and its files


def test_missing_folder(tmp_path):
    refused(tmp_path / "none", "there is no such file or folder")


def test_folder_is_a_file(tmp_path):
    (tmp_path / "file").write_text("x")
    refused(tmp_path / "file", "is a file, not the folder of a store")


def test_missing_manifest(store):
    (store.folder / "manifest.h5").unlink()
    refused(store.folder, r"has no manifest\.h5")


def test_missing_part(store):
    (store.folder / "part-00001.h5").unlink()
    refused(store.folder, r"part-00001\.h5: No such file")


@pytest.mark.parametrize("name", ["part-00002.h5", "part-00000.h5.tmp", "part-x"])
def test_extra_part(store, name):
    (store.folder / name).write_bytes(b"")
    refused(store.folder, f"{name}: does not belong to the 2 parts")


def test_other_files_are_nobodys_business(store):
    (store.folder / "notes.txt").write_text("mine")
    assert open_store(store.folder).manifest == store.manifest


def test_parts_swapped(store):
    one, two = (store.folder / schema.part_name(index) for index in (0, 1))
    one.rename(store.folder / "other")
    two.rename(one)
    (store.folder / "other").rename(two)
    refused(store.folder, r"truncated or altered|attribute index is 1")


def test_part_of_another_store(tmp_path, store):
    tuples = random_tuples(90, 400, seed=2)
    folder = write_store(tmp_path / "second", make_parts(90, 2, 12, tuples), tuples)
    shutil.copy(folder / "part-00001.h5", store.folder)
    refused(store.folder, r"part-00001\.h5: ")


@pytest.mark.parametrize("name", ["part-00001.h5", "manifest.h5"])
def test_symbolic_link(store, name):
    path = store.folder / name
    path.rename(store.folder / "elsewhere")
    path.symlink_to(store.folder / "elsewhere")
    refused(store.folder, f"{name}: is a symbolic link")


@pytest.mark.parametrize("name", ["part-00001.h5", "manifest.h5"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_no_regular_file(store, name, make):
    (store.folder / name).unlink()
    make(store.folder / name)
    refused(store.folder, f"{name}: is not a regular file")


@pytest.mark.parametrize("name", ["part-00001.h5", "manifest.h5"])
def test_not_hdf5(store, name):
    path = store.folder / name
    path.write_bytes(b"x" * path.stat().st_size)
    refused(store.folder, f"{name}: is not an HDF5 file")


@pytest.mark.parametrize("keep", [0, 4, 8, 60, 0.3, 0.9, 0.9999])
@pytest.mark.parametrize("name", ["part-00001.h5", "manifest.h5"])
def test_truncated(store, name, keep):
    path = store.folder / name
    size = path.stat().st_size
    os.truncate(path, int(keep * size) if isinstance(keep, float) else keep)
    refused(store.folder, "truncated or altered|is not an HDF5 file")


@pytest.mark.parametrize("keep", [0, 8, 60, 0.3, 0.9, 0.9999])
def test_truncated_and_forged(store, keep):
    path = store.folder / "part-00001.h5"
    size = int(keep * path.stat().st_size) if isinstance(keep, float) else keep
    os.truncate(path, size)
    first, second = store.manifest.records
    records = (first, msgspec.structs.replace(second, file_bytes=size))
    replace_manifest(store, records=records)
    refused(store.folder, "truncated or altered|is not an HDF5 file")


def test_longer(store):
    with (store.folder / "part-00000.h5").open("ab") as file:
        file.write(b"more")
    refused(store.folder, "it is truncated or altered")


def test_user_block(store):
    path = store.folder / "part-00000.h5"
    data = path.read_bytes()
    with h5py.File(path, "w", userblock_size=512, libver=LIBVER) as file:
        file.attrs["format_version"] = np.int64(1)
    path.write_bytes(path.read_bytes()[:512] + data)
    refused(store.folder, "not an HDF5 file|truncated or altered")


# One flipped byte


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["part-00000.h5", "manifest.h5"])
def test_flipped_bytes(store, name):
    """Anywhere in the file: refused, or it makes no difference at all."""
    path, good = store.folder / name, store.load_part(0)
    data = path.read_bytes()
    rng, refusals = np.random.default_rng(3), 0
    places = rng.choice(len(data), 150, replace=False)
    for place in [*range(0, 48, 5), *sorted(places)]:
        flipped = bytearray(data)
        flipped[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(flipped)
        try:
            reopened = open_store(store.folder)
            assert reopened.manifest == store.manifest
            assert same_part(reopened.load_part(0), good)
        except StoreError:
            refusals += 1
    assert refusals > 50


@pytest.mark.parametrize("name", schema.DATASETS)
def test_flipped_byte_in_each_dataset(store, name):
    path = store.folder / "part-00000.h5"
    with h5py.File(path) as file:
        chunk = file[name].id.get_chunk_info(0)
    data = bytearray(path.read_bytes())
    data[chunk.byte_offset + chunk.size // 2] ^= 4
    path.write_bytes(data)
    refused(store.folder, f"/{name} is altered: its digest is not the manifest's")


@pytest.mark.parametrize("name", schema.DATASETS)
def test_altered_with_a_right_checksum(store, name):
    path = store.folder / "part-00000.h5"
    with h5py.File(path, "r+", libver=LIBVER) as file:
        file[name][0] = file[name][0] ^ 1
    refused(store.folder, f"/{name} is altered: its digest is not the manifest's")


# What the file of a part may hold


def other_version(file):
    file.attrs.modify("format_version", np.int64(2))


def soft_link(file):
    file["copy"] = file["degrees"][:]
    del file["degrees"]
    file["degrees"] = h5py.SoftLink("/copy")


def soft_link_only(file):
    del file["degrees"]
    file["degrees"] = h5py.SoftLink("/tuple_degrees")


def soft_group(file):
    del file["dd"]
    file["dd"] = h5py.SoftLink("/dn")


def external_link(file):
    del file["degrees"]
    file["degrees"] = h5py.ExternalLink("part-00001.h5", "/degrees")


def external_group(file):
    del file["dd"]
    file["dd"] = h5py.ExternalLink("/etc/passwd", "/dd")


def hard_link(file):
    del file["degrees"]
    file["degrees"] = file["tuple_degrees"]


def hard_link_group(file):
    del file["dd"]
    file["dd"] = file["dn"]


def hard_link_cycle(file):
    del file["dd"]
    file["dd"] = file["/"]


def unknown_dataset(file):
    file["extra"] = np.zeros(3)


def unknown_in_group(file):
    file["nn/extra"] = np.zeros(3)


def unknown_attribute(file):
    file.attrs["more"] = np.int64(3)


def attribute_of_dataset(file):
    file["vertices"].attrs["more"] = 1


def attribute_of_group(file):
    file["nn"].attrs["more"] = 1


def missing_dataset(file):
    del file["vertices"]


def missing_attribute(file):
    del file.attrs["threshold"]


def no_version(file):
    del file.attrs["format_version"]


def text_attribute(file):
    file.attrs["threshold"] = "12"


def narrow_attribute(file):
    file.attrs.create("threshold", 12, dtype="<i4")


def array_attribute(file):
    file.attrs.create("threshold", [12, 12], dtype="<i8")


def reference_attribute(file):
    file.attrs["threshold"] = file["vertices"].ref


def group_for_dataset(file):
    del file["vertices"]
    file.create_group("vertices")


def dataset_for_group(file):
    del file["dd"]
    file["dd"] = np.zeros(3, np.uint32)


def named_type(file):
    del file["vertices"]
    file["vertices"] = np.dtype("<u4")


def virtual(file):
    layout = h5py.VirtualLayout(shape=(45,), dtype="<u4")
    layout[:] = h5py.VirtualSource("part-00001.h5", "vertices", shape=(45,))
    del file["vertices"]
    file.create_virtual_dataset("vertices", layout)


def external_storage(file):
    del file["vertices"]
    where = [("/etc/passwd", 0, 180)]
    file.create_dataset("vertices", shape=(45,), dtype="<u4", external=where)


def strings(file):
    again(
        file, "vertices", np.array(["a"] * 45, dtype=h5py.string_dtype()), chunks=(45,)
    )


def objects(file):
    del file["vertices"]
    kind = h5py.vlen_dtype(np.int32)
    file.create_dataset("vertices", (45,), dtype=kind, chunks=(45,), fletcher32=False)


def references(file):
    del file["vertices"]
    file.create_dataset("vertices", (45,), dtype=h5py.ref_dtype)


def opaque(file):
    del file["vertices"]
    kind = h5py.opaque_dtype(np.dtype("V4"))
    file.create_dataset("vertices", (45,), dtype=kind, chunks=(45,), fletcher32=True)


def compound(file):
    again(file, "vertices", np.zeros(45, dtype=[("pickle", "<u4")]))


def big_endian(file):
    again(file, "vertices", file["vertices"][:].astype(">u4"))


def signed(file):
    again(file, "vertices", file["vertices"][:].astype("<i4"))


def wide_columns(file):
    again(file, "dd/columns", file["dd/columns"][:].astype("<u8"))


def narrow_nn(file):
    again(file, "nn/columns", file["nn/columns"][:].astype("<u4"))


def two_dimensions(file):
    again(file, "vertices", file["vertices"][:].reshape(45, 1), chunks=(45, 1))


def scalar(file):
    again(file, "vertices", np.uint32(4), chunks=None)


def null_space(file):
    del file["vertices"]
    file["vertices"] = h5py.Empty("<u4")


def too_short(file):
    again(file, "vertices", file["vertices"][:-1])


def resizable(file):
    data = file["vertices"][:]
    how = {"chunks": (45,), "fletcher32": True, "maxshape": (None,)}
    again(file, "vertices", data, **how)


def compressed(file):
    data = file["vertices"][:]
    how = {"chunks": (45,), "fletcher32": True, "compression": "gzip"}
    again(file, "vertices", data, **how)


def shuffled(file):
    data = file["vertices"][:]
    again(file, "vertices", data, chunks=(45,), shuffle=True, fletcher32=True)


def only_gzip(file):
    again(file, "vertices", file["vertices"][:], chunks=(45,), compression="gzip")


def no_checksum(file):
    again(file, "vertices", file["vertices"][:], chunks=(45,))


def contiguous(file):
    again(file, "vertices", file["vertices"][:], chunks=None)


def other_chunks(file):
    again(file, "vertices", file["vertices"][:], chunks=(7,), fletcher32=True)


def claim_of_a_known_shape(file):
    del file["vertices"]
    how = {"chunks": (1 << 18,), "fletcher32": True}
    file.create_dataset("vertices", (1 << 40,), dtype="<u4", **how)


def claim_of_edges(file):
    del file["nn/columns"]
    how = {"chunks": (1 << 17,), "fletcher32": True}
    file.create_dataset("nn/columns", (1 << 58,), dtype="<u8", **how)


def claim_without_chunks(file):
    del file["vertices"]
    file.create_dataset("vertices", (45,), dtype="<u4", chunks=(45,), fletcher32=True)


def empty_in_chunks(file):
    again(file, "nn/columns", np.zeros(0, np.uint64), chunks=(4,), maxshape=(None,))


FORGED = {
    other_version: "format version is 2; this distbfs reads version 1",
    no_version: "has no format version",
    soft_link: "/degrees|holds 13 objects",
    soft_link_only: "/degrees: is a soft link; allowed",
    soft_group: "/dd: is a soft link",
    external_link: "/degrees: is an external link; allowed",
    external_group: "/dd: is an external link",
    hard_link: "/degrees: is not a dataset with one name",
    hard_link_group: "/dd: is not a group with one name|/dn: is not a group with one",
    hard_link_cycle: "/dd: is not a group with one name",
    unknown_dataset: "holds 13 objects; allowed: exactly",
    unknown_in_group: "/nn: holds 3 objects; allowed: exactly columns, offsets",
    unknown_attribute: "has 7 attributes instead of 6",
    attribute_of_dataset: "/vertices: has attributes",
    attribute_of_group: "/nn: has attributes",
    missing_dataset: "holds 11 objects; allowed: exactly",
    missing_attribute: "lacks the attribute threshold",
    text_attribute: "attribute threshold has a wrong type; allowed: one int64",
    narrow_attribute: "attribute threshold has a wrong type",
    array_attribute: "attribute threshold has a wrong type",
    reference_attribute: "attribute threshold has a wrong type",
    group_for_dataset: "/vertices: is not a dataset",
    dataset_for_group: "/dd: is not a group",
    named_type: "/vertices: is not a dataset",
    virtual: "/vertices: is virtual or stored in other files",
    external_storage: "/vertices: is virtual or stored in other files",
    strings: "/vertices: has a wrong dtype; allowed: <u4",
    objects: "/vertices: has a wrong dtype",
    references: "/vertices: has a wrong dtype",
    opaque: "/vertices: has a wrong dtype",
    compound: "/vertices: has a wrong dtype",
    big_endian: "/vertices: has a wrong dtype",
    signed: "/vertices: has a wrong dtype",
    wide_columns: "/dd/columns: has a wrong dtype; allowed: <u4",
    narrow_nn: "/nn/columns: has a wrong dtype; allowed: <u8",
    two_dimensions: r"/vertices: has shape \(45, 1\); allowed: \(45,\)",
    scalar: "/vertices: is not an array",
    null_space: "/vertices: is not an array",
    too_short: r"/vertices: has shape \(44,\); allowed: \(45,\)",
    resizable: "/vertices: has no fixed shape",
    compressed: "/vertices: has other filters; allowed: fletcher32 alone",
    shuffled: "/vertices: has other filters",
    only_gzip: "/vertices: has other filters",
    no_checksum: "/vertices: has other filters",
    contiguous: "/vertices: has another storage layout; allowed: chunks of 45",
    other_chunks: "/vertices: has another storage layout",
    claim_of_a_known_shape: "/vertices: has shape",
    claim_of_edges: r"/nn/columns: claims \d{19} bytes in a file of \d+ bytes",
    claim_without_chunks: "/vertices: stores 0 bytes instead of 184",
    empty_in_chunks: "/nn/columns: has no fixed shape|is empty and has chunks",
}


@pytest.mark.thorough
@pytest.mark.parametrize("forge", FORGED, ids=lambda forge: forge.__name__)
def test_forged_part(store, forge):
    reconcile(store, forge)
    message = refused(store.folder, FORGED[forge])
    assert "part-00001.h5" in message


@pytest.mark.parametrize("name", ["index", "parts", "n", "threshold", "active"])
def test_altered_attribute(store, name):
    path = store.folder / "part-00001.h5"
    with h5py.File(path, "r+", libver=LIBVER) as file:
        wrong = file.attrs[name] + 1
        file.attrs.modify(name, np.int64(wrong))
    refused(store.folder, f"attribute {name} is {wrong}, but the manifest says")


# What the arrays may hold


def change_values(name, change):
    def forge(file):
        values = file[name][:]
        change(values)
        file[name][:] = values

    return forge


def fall(values):
    inside = np.flatnonzero(np.diff(values.astype(np.int64)))[:1] + 1
    values[inside] = values[-1] + 1


CONTENTS = {
    "first offset": ("nn/offsets", "do not start at 0", (0, 1)),
    "offsets fall": ("nd/offsets", "row offsets do not rise", fall),
    "last offset": ("dd/offsets", "last row offset is not", (-1, 1 << 20)),
    "nn owner": ("nn/columns", "is not below", (3, 2 << 32)),
    "nn number": ("nn/columns", "beyond the vertices of its owner", (3, 45)),
    "nn number there": ("nn/columns", "beyond the vertices", (3, (1 << 32) | 45)),
    "nd column": ("nd/columns", "a column is not below", (0, 1 << 30)),
    "dn column": ("dn/columns", "a column is not below 45", (0, 45)),
    "dd column": ("dd/columns", "a column is not below", (0, (1 << 32) - 1)),
    "vertices twice": ("vertices", "not a permutation", (0, 44)),
    "vertices huge": ("vertices", "not a permutation", (0, (1 << 32) - 1)),
    "delegate": ("delegates", "a delegate is not a vertex", (0, 90)),
    "delegate below": ("delegates", "a delegate is not a vertex", (0, -1)),
    "nd sources": ("nd_sources", "/nd_sources does not fit", (0, 44)),
    "dn sources": ("dn_sources", "/dn_sources does not fit", (0, 1 << 40)),
    "dd sources": ("dd_sources", "/dd_sources does not fit", (0, 1 << 40)),
}


@pytest.mark.parametrize("case", CONTENTS)
def test_forged_contents(store, case):
    name, match, change = CONTENTS[case]
    if not callable(change):
        place, value = change

        def change(values):
            values[place] = value

    indexes = (0, 1) if name == "delegates" else (1,)
    reconcile(store, change_values(name, change), indexes)
    refused(store.folder, match)


def test_rows_that_are_not_active(store):
    reconcile(store, lambda file: file.attrs.modify("active", np.int64(3)))
    refused(store.folder, "has edges at rows that are not active")


def test_sources_of_another_length(store):
    def forge(file):
        again(file, "nd_sources", file["nd_sources"][:-1])

    reconcile(store, forge)
    refused(store.folder, "/nd_sources does not fit the row offsets")


# The manifest


def set_value(*path):
    *where, name, value = path

    def forge(values):
        for step in where:
            values = values[step]
        values[name] = value

    return forge


MANIFESTS = {
    "total m": (set_value("m", 5), "m is 5, but the records of the parts give"),
    "total nn": (set_value("nn", 5), "nn is 5, but the records"),
    "parts": (set_value("parts", 3), "parts is 3, but the records of the parts give 2"),
    "edges": (set_value("records", 1, "edges", "dd", 5), "edges do not fit 400 tuples"),
    "loops": (set_value("loops", 1 << 60), f"tuples, {1 << 60} loops and"),
    "fewer loops": (set_value("loops", 0), "tuples, 0 loops and"),
    "repeats": (set_value("repeats", 0), "loops and 0 repeats"),
    "frame": (
        set_value("records", 0, "frame", "x"),
        r"regex .*\]\.frame`",
    ),
    "negative": (set_value("n", -1), r"`int` >= 0 - at `\$\.n`"),
    "huge": (set_value("n", 1 << 63), r"`int` <= 9223372036854775807 - at `\$\.n`"),
    "too many vertices": (set_value("n", 1 << 62), "vertices need at least"),
    "other n": (set_value("n", 92), "attribute n is 90, but the manifest says 92"),
    "float": (set_value("n", 90.0), r"got `float` - at `\$\.n`"),
    "bool": (set_value("delegates", True), r"got `bool` - at `\$\.delegates`"),
    "text": (set_value("tuples", "400"), r"got `str` - at `\$\.tuples`"),
    "null": (set_value("threshold", None), r"got `null` - at `\$\.threshold`"),
    "other d": (set_value("delegates", 5), "/dn/offsets: has shape"),
    "source": (set_value("source", []), r"got `array` - at `\$\.source`"),
    "family": (set_value("source", {"family": 3}), "source does not name"),
    "relabel": (set_value("relabel", {"method": ["none"]}), "allowed: none, hash"),
    "seed": (set_value("relabel", "seed", 1.5), "relabel seed is 1.5"),
    "statistics": (set_value("statistics", "x"), r"got `str` - at `\$\.statistics`"),
    "unknown": (set_value("more", 1), "unknown key 'more'"),
    "records": (set_value("records", {}), r"got `object` - at `\$\.records`"),
    "no records": (set_value("records", []), "of length >= 1"),
    "record": (set_value("records", 1, 7), r"got `int` - at `\$\.records\[.*\]`"),
    "order": (set_value("records", 1, "index", 0), "record 1 is of part 0"),
    "digest": (set_value("records", 0, "digests", "dd/columns", "0" * 32), "dd/col"),
    "no digest": (set_value("records", 0, "digests", {}), "lacks the key"),
    "not hex": (
        set_value("records", 0, "digests", "vertices", "x"),
        r"\[0-9a-f\]\{32\}",
    ),
    "delegates": (set_value("records", 0, "digests", "delegates", "0" * 32), "differ"),
    "file size": (set_value("records", 0, "file_bytes", 99), "instead of 99"),
    "memory": (set_value("records", 0, "array_bytes", 99), "bytes, not 99"),
    "active": (set_value("records", 0, "active", 3), "attribute active is"),
    "too active": (set_value("records", 0, "active", 46), "more active vertices"),
    "version": (set_value("format_version", 2), "reads version 1"),
    "order_block": (set_value("order_block", 0), r"`int` >= 1 - at `\$\.order_block`"),
}


@pytest.mark.parametrize("case", MANIFESTS)
def test_forged_manifest(store, case):
    change, match = MANIFESTS[case]
    forge_manifest(store, change)
    refused(store.folder, match)


@pytest.mark.parametrize("name", ["n", "records", "source", "m", "created_by"])
def test_manifest_lacks_a_key(store, name):
    forge_manifest(store, lambda values: values.pop(name))
    refused(store.folder, f"lacks the key '{name}'")


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (b"{", "is not valid JSON"),
        (b"\xff\xfe\x00", "is not valid JSON"),
        (b"[]", "`object`, got `array`"),
        (b'{"n": NaN}', "is not valid JSON"),
        (b'{"n":' + b"[" * 200_000, "is not valid JSON"),
        (b"9" * 5000, "out of range"),
        (b"cos\nsystem\n(S'true'\ntR.", "is not valid JSON"),
    ],
    ids=["open", "bytes", "list", "nan", "deep", "long", "pickle"],
)
def test_manifest_is_not_json(store, text, match):
    write_text(store.folder / "manifest.h5", text)
    refused(store.folder, match)


def manifest_version(file):
    file.attrs.modify("format_version", np.int64(9))


def manifest_link(file):
    del file["manifest"]
    file["manifest"] = h5py.ExternalLink("/etc/passwd", "/x")


def manifest_string(file):
    data = file["manifest"][:].tobytes().decode()
    del file["manifest"]
    file["manifest"] = data


def manifest_claim(file):
    del file["manifest"]
    how = {"chunks": (1 << 20,), "fletcher32": True}
    file.create_dataset("manifest", (1 << 40,), dtype="u1", **how)


def manifest_claim_below_limit(file):
    del file["manifest"]
    how = {"chunks": (1 << 20,), "fletcher32": True}
    file.create_dataset("manifest", (60 << 20,), dtype="u1", **how)


def manifest_empty(file):
    del file["manifest"]
    file.create_dataset("manifest", (0,), dtype="u1")


def manifest_extra(file):
    file["other"] = 1


@pytest.mark.parametrize(
    ("forge", "match"),
    [
        (manifest_version, "format version is 9; this distbfs reads version 1"),
        (manifest_link, "/manifest: is an external link"),
        (manifest_string, "/manifest: has a wrong dtype; allowed: <u1"),
        (manifest_claim, "/manifest: has shape"),
        (manifest_claim_below_limit, r"/manifest: claims \d+ bytes in a file"),
        (manifest_empty, r"/manifest: has shape \(0,\)"),
        (manifest_extra, "holds 2 objects; allowed: exactly manifest"),
    ],
)
def test_forged_manifest_file(store, forge, match):
    with h5py.File(store.folder / "manifest.h5", "r+", libver=LIBVER) as file:
        forge(file)
    refused(store.folder, match)


def test_remains_of_a_write_are_no_store(store):
    folder = store.folder.with_name(".partial-0123456789abcdef") / "graph"
    shutil.copytree(store.folder, folder)
    refused(folder, "is a remnant of an unfinished write")


def test_memory_error_is_exit_code_3(store, monkeypatch):
    def refuse(*_):
        raise MemoryError

    monkeypatch.setattr("distbfs.store.hdf5.read_array", refuse)
    with pytest.raises(ResourceError, match="not enough memory"):
        store.load_part(0)
