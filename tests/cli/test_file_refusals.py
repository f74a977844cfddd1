"""Files that ``distbfs convert`` refuses: exit code 2, one line that names the place.

The rows are the refusals that are promised; each holds for the file as it is and
packed, and leaves neither a store nor a spool behind.
"""

import gzip
import io
import os
import struct
import tempfile

import numpy as np
import pytest
import scipy.sparse
from commands import files_in, here
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")
parquet = pytest.importorskip("pyarrow.parquet")

LARGE = 2**63
MM = "%%MatrixMarket matrix coordinate pattern general\n"
SP = "p sp 3 2\n"


def table(kind=parquet.write_table, **columns):
    out = io.BytesIO()
    kind(pa.table(columns), out)
    return out.getvalue()


def npy(values):
    out = io.BytesIO()
    np.save(out, np.array(values))
    return out.getvalue()


def npz(**arrays):
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def sparse():
    out = io.BytesIO()
    scipy.sparse.save_npz(out, scipy.sparse.csr_matrix(np.eye(3, k=1)))
    return out.getvalue()


def pairs(*ids):
    return struct.pack(f"<{len(ids)}q", *ids)


def sg(near=(1, 0), offsets=(0, 1, 2), entries=2, nodes=2):
    head = struct.pack("<?qq", False, entries, nodes)
    return head + np.array(offsets, "<i8").tobytes() + np.array(near, "<i4").tobytes()


def galois(near=(1, 0), ends=(1, 2), edges=2, version=1):
    head = struct.pack("<QQQQ", version, 0, len(ends), edges)
    return head + np.array(ends, "<u8").tobytes() + np.array(near, "<u4").tobytes()


WEIRD = b"\x7fELF\x02\x01\x01\x00\x00 \x00\n\xff\xfe"
FAULTS = [
    # negative ids
    ("a.el", "0 1\n-1 2\n", ":2: a negative id '-1'"),
    ("a.csv", "src,dst\n0,1\n2,-1\n", ":3: a negative id '-1'"),
    ("a.mtx", f"{MM}3 3 1\n-1 2\n", ":3: a negative id"),
    ("a.gr", f"{SP}a 1 -2 1\na 1 2 1\n", ":2: a negative id"),
    ("a.graph", "2 1\n-2\n1\n", ":2: a negative id"),
    ("a.sg", sg(near=(1, -1)), ": byte 45: a negative id -1"),
    ("a.npy", npy([[0, -1]]), ": [0]: a negative id -1"),
    ("a.npz", npz(src=[0], dst=[-1]), ": dst[0]: a negative id -1"),
    ("a.parquet", table(src=[0], dst=[-1]), ": dst[0]: a negative id -1"),
    (
        "a.arrow",
        table(feather.write_feather, src=[0], dst=[-1]),
        ": dst[0]: a negative",
    ),
    ("a.graph500-int64", pairs(0, -1), ": byte 0: a negative id -1"),
    # ids that are no vertices
    ("a.mtx", f"{MM}3 3 1\n4 2\n", ":3: id 4 is out of range; allowed: 1 to 3"),
    ("a.mtx", f"{MM}3 3 1\n0 2\n", ":3: id 0 is out of range; allowed: 1 to 3"),
    ("a.gr", f"{SP}a 1 4 1\na 1 2 1\n", ":2: id 4 is out of range"),
    ("a.graph", "2 1\n3\n1\n", ":2: id 3 is out of range"),
    ("a.sg", sg(near=(1, 2)), ": byte 45: id 2 is out of range"),
    ("a.gr", galois(near=(1, 2)), ": byte 52: id 2 is out of range"),
    # above 2^63
    ("a.el", f"0 {LARGE}\n", f":1: id '{LARGE}' is above 2^63-1"),
    ("a.mtx", f"{MM}{LARGE} 3 1\n1 2\n", ":2: a size is above 2^63-1"),
    ("a.npy", npy(np.array([[0, LARGE]], "u8")), f": [0]: id {LARGE} is above 2^63-1"),
    ("a.parquet", table(src=np.array([LARGE], "u8"), dst=[0]), "is above 2^63-1"),
    ("a.el", f"0 {LARGE - 1}\n", "vertices for 1 edges; allowed: 1048576"),
    ("a.mtx", f"{MM}{LARGE - 1} {LARGE - 1} 0\n", "vertices for 0 edges; allowed"),
    # floats and NaN
    ("a.el", "0 1\n1.5 2\n", ":2: '1.5' is not an integer id"),
    ("a.el", "0 1\n1e3 2\n", ":2: '1e3' is not an integer id"),
    ("a.el", "0 1\nnan 2\n", ":2: 'nan' is not an id"),
    ("a.mtx", f"{MM}3 3 1\n1.0 2\n", ":3: '1.0' is not an integer id"),
    ("a.gr", f"{SP}a 1 NaN 1\na 1 2 1\n", ":2: 'NaN' is not an id"),
    ("a.graph", "2 1\n2.0\n1\n", ":2: '2.0' is not an integer id"),
    ("a.npy", npy([[0.0, np.nan]]), ": float64 values, where integers are expected"),
    ("a.npz", npz(src=[0.5], dst=[1]), ": src: float64 values"),
    ("a.parquet", table(src=[0.5], dst=[1]), ": src: double values"),
    ("a.parquet", table(src=[0, None], dst=[1, 1]), ": src[1]: a null"),
    ("a.edges", b"%9 sym\n% 2 3 3\n1 \x80 1\n", ": '\\udc80' stands between the ids"),
    # wrong counts
    ("a.mtx", f"{MM}3 3 2\n1 2\n", ":3: 2 entries declared, 1 found"),
    ("a.gr", f"{SP}a 1 2 1\n", ":2: 2 entries declared, 1 found"),
    ("a.graph", "2 1\n2\n", ":2: 2 vertices declared, 1 found"),
    ("a.graph", "2 2\n2\n1\n", ":3: 2 edges declared, 2 neighbours found"),
    ("a.sg", sg(entries=3), ": byte 49: the file ends, where 2 nodes and 3 entries"),
    ("a.sg", sg(offsets=(0, 1, 1)), ": byte 33: the last offset is 1, not 2"),
    ("a.gr", galois(ends=(1, 1)), ": byte 40: the last offset is 1, not 2"),
    ("a.npz", npz(src=[0, 1], dst=[1]), ": dst: 1 values, where 2 are expected"),
    # truncated lines and files
    ("a.el", "0 1\n2", ":2: one column, where two ids are expected"),
    ("a.mtx", f"{MM}3 3 2\n1 2\n3", ":4: one column"),
    ("a.gr", f"{SP}a 1 2 1\na 1 2", ":3: 'a 1 2' is neither an edge"),
    ("a.npy", npy([[0, 1]])[:-1], ": the file cannot be read: the file ends before"),
    ("a.npz", sparse()[:-1], ": the file cannot be read"),
    ("a.parquet", table(src=[0], dst=[1])[:-1], ": the file cannot be read"),
    (
        "a.graph500-int64",
        pairs(0, 1)[:-1],
        ": byte 0: 15 bytes, where an edge",
    ),
    ("a.graph500-packed", bytes(13), ": byte 12: 1 bytes, where an edge takes 12"),
    # bad headers
    ("a.mtx", "%%MatrixMarket matrix array real general\n", ":1: format 'array'"),
    ("a.mtx", f"{MM}3 3\n", ":2: the size line needs rows, columns and entries"),
    ("a.gr", "p cnf 3 2\n", ":1: problem 'cnf'; allowed: sp, max"),
    ("a.graph", "2 1 7\n", ":1: fmt '7'; allowed"),
    ("a.gr", galois(version=2), ": byte 56: the file ends"),
    ("a.csv", "name,friend\n0,x\n", ":1: 'name' is not an id"),
    ("a.npy", npy([[0, 1]]).replace(b"descr", b"desc0"), ": the file cannot be read"),
    # entries after the end
    ("a.mtx", f"{MM}3 3 1\n1 2\n2 3\n", ":4: more entries than the 1 declared"),
    ("a.gr", f"{SP}a 1 2 1\na 1 2 1\na 2 3 1\n", ":4: more entries than the 2"),
    ("a.graph", "2 1\n2\n1\n1\n", ":4: more lines than the 2 vertices declared"),
    ("a.sg", sg() + b"\0", ": byte 50: the file ends, where"),
    ("a.gr", galois() + b"\0", ": byte 57: the file ends, where"),
    (
        "a.npy",
        npy([[0, 1]]) + b"\0",
        ": the file cannot be read: bytes after the last value",
    ),
    # an empty file, one without edges
    *((f"a.{x}", b"", "") for x in ("el", "mtx", "gr", "graph", "sg", "npy", "npz")),
    *((f"a.{x}", b"", "") for x in ("parquet", "arrow", "graph500-int64")),
    ("a.el", "# nothing\n", ": no edges"),
    ("a.npy", npy(np.zeros((0, 2), int)), ": no edges"),
    # a binary file
    *((f"a.{x}", WEIRD, "") for x in ("el", "mtx", "gr", "graph", "sg", "npy", "npz")),
    *((f"a.{x}", WEIRD, "") for x in ("parquet", "arrow", "graph500-int64")),
]


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Where files lie, and where spools go."""
    spools = tmp_path / "spools"
    spools.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spools))
    return tmp_path, spools


def words_for(path):
    ending = path.name.removesuffix(".gz").rpartition(".")[2]
    return ("--format", ending) if ending.startswith("graph500") else ()


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
@pytest.mark.parametrize(("name", "body", "message"), FAULTS)
def test_refused(folders, name, body, message, packed):
    folder, spools = folders
    body = body.encode() if isinstance(body, str) else body
    path = folder / (f"{name}.gz" if packed else name)
    path.write_bytes(gzip.compress(body) if packed else body)
    store = folder / "store"
    text = here("convert", path, "-o", store, *words_for(path)).refusal
    assert text.startswith(f"distbfs: {path}:")
    assert message in text
    assert files_in(folder) == sorted([path.name, spools.name])


@pytest.mark.parametrize(
    "name", ["a.el", "a.mtx", "a.sg", "a.parquet", "a.npz", "a.el.gz"]
)
def test_what_is_no_file(folders, name):
    folder, _ = folders
    path = folder / name
    text = here("convert", path, "-o", folder / "store").refusal
    assert text == f"distbfs: {path}: No such file or directory"
    path.mkdir()
    text = here("convert", path, "-o", folder / "store").refusal
    assert text == f"distbfs: {path}: a directory, not a file"
    path.rmdir()
    path.symlink_to("/dev/zero")
    text = here("convert", path, "-o", folder / "store").refusal
    assert text == f"distbfs: {path}: neither a regular file nor a pipe"
    assert files_in(folder) == [name, "spools"]


def test_a_name_of_bytes_that_are_no_text(folders):
    folder, _ = folders
    path, store = folder / os.fsdecode(b"a\x80.el"), folder / os.fsdecode(b"s\x80")
    path.write_bytes(b"1 2\n")
    assert here("convert", path, "-o", store).code == 0
    assert '"a\\\\x80.el"' in here("info", store, "--json").out
    path.write_bytes(b"1 x\n")
    text = here("convert", path, "-o", store, "--force").refusal
    assert "a\\udc80.el:1: 'x' is not an id" in text


def test_packed_files_that_are_cut(folders):
    folder, _ = folders
    path = folder / "a.el.gz"
    body = gzip.compress(b"".join(b"%d %d\n" % (k, k * k % 977) for k in range(999)))
    path.write_bytes(body[: len(body) // 2])
    text = here("convert", path, "-o", folder / "store").refusal
    assert f"{path}: byte {len(body) // 2}: the gzip data is truncated" in text
    assert files_in(folder) == ["a.el.gz", "spools"]


GOOD = [
    ("a.el", b"0 1\n1 2 5\n# c\n"),
    ("a.csv", b'src,dst\n0,1\n"2",1,"x\n"\n'),
    ("a.edges", b"% sym positive\n% 2 3 3\n1 2\n3 1\n"),
    ("friends", b'Alice Smith;Bob\nBob;"C;D"\n'),
    ("a.mtx", f"{MM}3 3 2\n1 2\n2 3\n".encode()),
    ("a.gr", f"{SP}a 1 2 1\na 2 3 1\n".encode()),
    ("a.graph", b"2 1\n2\n1\n"),
    ("a.sg", sg()),
    ("a.gr", galois()),
    ("a.npy", npy([[0, 1], [2, 1]])),
    ("a.npz", sparse()),
    ("a.parquet", table(src=[0, 1], dst=[1, 2])),
    ("a.arrow", table(feather.write_feather, src=[0, 1], dst=[1, 2])),
    ("a.graph500-int64", pairs(0, 1, 1, 2)),
    ("a.graph500-packed", bytes(24)),
    ("a.el.gz", gzip.compress(b"0 1\n1 2\n", mtime=0)),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "body"), GOOD)
@pytest.mark.parametrize("relabel", [False, True])
@settings(
    max_examples=25,
    deadline=5000,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_whatever_a_file_holds_it_is_stored_or_refused(
    folders, name, body, relabel, data
):
    """A changed file gives a sound store, or one line and nothing else."""
    folder, spools = folders
    changed = bytearray(body)
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(changed)))
        end = data.draw(st.integers(at, min(at + 4, len(changed))))
        changed[at:end] = data.draw(st.binary(max_size=4) | st.just(b"9" * 5))
    path = folder / name
    path.write_bytes(changed)
    store = folder / "store"
    words = [*words_for(path), *(["--relabel"] if relabel else [])]
    done = here("convert", path, "-o", store, "--force", *words)
    assert done.code in (0, 2), done.err
    if done.code == 2:
        assert done.refusal
        assert files_in(folder) in ([name, "spools"], sorted([name, "spools"]))
        return
    assert here("verify", store).code == 0
    assert files_in(spools) == []
    for file in store.iterdir():
        file.unlink()
    store.rmdir()
