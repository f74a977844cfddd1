"""Inputs that are archives, folders of parts, or compressed under any name."""

import io
import json
import os
import re
import tarfile
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse

from distbfs.errors import DistbfsError, InputError, ResourceError, UsageError
from distbfs.formats import inputs
from distbfs.formats.base import ReaderOptions
from distbfs.formats.tuples import open_tuples
from distbfs.ranks.world import SoloWorld
from formats.packing import PACK
from formats.test_relabel import named

MATRIX = b"%%MatrixMarket matrix coordinate pattern general\n4 4 2\n1 2\n4 3\n"
ENDINGS = ["", *sorted(PACK)]


def opened(path, keep=(), name="", **options):
    options = ReaderOptions(**options)
    return open_tuples(SoloWorld(), path, name=name, options=options, keep=keep)


def edges(path, **options):
    with opened(path, **options) as source:
        return source.pairs.tolist()


def refusal(path, kind=InputError, **options):
    """Return what is said of an input, one line that begins with its path."""
    with pytest.raises(kind) as error:
        opened(path, **options)
    said = str(error.value)
    assert "\n" not in said
    assert error.value.exit_code == (3 if kind is ResourceError else 2)
    return said.removeprefix(str(path))


def zipped(path, members, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, body in members.items():
            archive.writestr(name, body)
    return path


def tarred(path, members, ending=""):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, body in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(body)
            if name.endswith("/"):
                info.type = tarfile.DIRTYPE
            archive.addfile(info, io.BytesIO(body))
    path.write_bytes(PACK[ending](out.getvalue()) if ending else out.getvalue())
    return path


def archives(folder, members):
    """Yield the same members in every kind of archive."""
    for method in inputs.PACKED:
        yield zipped(folder / f"{method}.zip", members, method)
    for ending in ENDINGS:
        yield tarred(folder / f"a.tar{ending}", members, ending)
    yield tarred(folder / "a.tgz", members, ".gz")
    yield tarred(folder / "a", members, ".gz")


@pytest.mark.parametrize("ending", sorted(PACK))
@pytest.mark.parametrize("name", ["a.txt", "a", "a.txt.gz", "a.mtx"])
def test_compression_is_seen_by_content(tmp_path, ending, name):
    path = tmp_path / name
    path.write_bytes(PACK[ending](b"0 1\n1 2\n" if name != "a.mtx" else MATRIX))
    assert edges(path) == ([[0, 1], [3, 2]] if name == "a.mtx" else [[0, 1], [1, 2]])


def test_a_name_that_promises_compression_is_believed(tmp_path):
    path = tmp_path / "a.txt.gz"
    path.write_bytes(b"0 1\n")
    assert "the gzip data is corrupt" in refusal(path)


def test_an_archive_of_one_file(tmp_path):
    noise = {"graph/": b"", "graph/README.txt": b"read me", "graph/._x.mtx": b"x"}
    noise |= {"__MACOSX/x.mtx": b"y", "license": b"z", "graph/about.html": b"<p>"}
    for path in archives(tmp_path, {**noise, "graph/x.mtx": MATRIX}):
        with opened(path) as source:
            assert source.pairs.tolist() == [[0, 1], [3, 2]]
            assert (source.n, source.ids.first) == (4, 1)
            facts = source.describe()
            assert (facts["name"], facts["format"]) == (path.name, "matrix-market")
        assert edges(path, first_id=0) == [[0, 1], [3, 2]]
    for path in archives(tmp_path, {"x.txt": b"1 2\n2 3\n"}):
        assert edges(path) == [[1, 2], [2, 3]]
        assert edges(path, one_based=True) == [[0, 1], [1, 2]]
    for path in archives(tmp_path, {"x.csv": b"a,b\nb,c\n"}):
        with opened(path, relabel="numbers") as source:
            assert named(source) == [("a", "b"), ("b", "c")]


def test_other_files_in_archives(tmp_path):
    out = io.BytesIO()
    scipy.sparse.save_npz(out, scipy.sparse.csr_matrix(np.eye(3, k=1)))
    for body in (out.getvalue(), PACK[".gz"](out.getvalue())):
        for path in archives(tmp_path, {"m.npz": body}):
            assert edges(path) == [[0, 1], [1, 2]]
    (tmp_path / "m.npz").write_bytes(out.getvalue())
    assert edges(tmp_path / "m.npz") == [[0, 1], [1, 2]]


def test_archives_of_several_files_or_none(tmp_path):
    for path in archives(tmp_path, {"a.txt": b"0 1\n", "b/c.txt": b"1 2\n"}):
        said = refusal(path)
        assert said == ": the archive holds files 'a.txt', 'b/c.txt'; allowed: one"
    for path in archives(tmp_path, {f"{k}.txt": b"0 1\n" for k in range(9)}):
        assert refusal(path).endswith("'3.txt', '4.txt', …; allowed: one")
    for members in ({}, {"README": b"0 1\n"}, {".a": b"0 1\n", "d/": b""}):
        for path in archives(tmp_path, members):
            if members or "a" not in path.stem:  # a tar without members has no mark
                assert "the archive holds no data file" in refusal(path)


def test_what_is_wrong_inside_is_said_of_the_member(tmp_path):
    for path in archives(tmp_path, {"d/x.txt": b"0 1\n1 -2\n"}):
        assert refusal(path) == "/x.txt:2: a negative id '-2'"
    for path in archives(tmp_path, {"../../x\n:y.txt": b"0 1\n1\n"}):
        said = "/x__y.txt:2: one column, where two ids are expected"
        assert refusal(path) == said
    assert not (tmp_path.parent / "x\n:y.txt").exists()


def test_broken_archives(tmp_path):
    random = np.random.default_rng(1)
    body = "".join(f"{u} {v}\n" for u, v in random.integers(0, 999, (3000, 2)))
    for path in archives(tmp_path, {"x.txt": body.encode()}):
        whole, right = path.read_bytes(), edges(path)
        for keep in range(600, len(whole) - 12000, 4001):
            path.write_bytes(whole[:keep])
            refusal(path)
        refused = []
        for at in range(0, len(whole) - 1500, 1009):
            changed = bytes([whole[at] ^ 0x15])
            path.write_bytes(whole[:at] + changed + whole[at + 1 :])
            try:
                assert edges(path) == right or ".tar" in path.name
            except DistbfsError as error:
                refused.append(str(error))
        assert not any("\n" in x for x in refused)
        assert len(refused) > 5 or path.suffix == ".tar"


def test_archives_that_are_not_read(tmp_path):
    path = zipped(tmp_path / "a.zip", {"x.txt": b"0 1\n"}, zipfile.ZIP_LZMA)
    assert refusal(path) == ": the file cannot be read: compressed by method 14"
    path = zipped(tmp_path / "b.zip", {"x.txt": b"0 1\n"})
    body = bytearray(path.read_bytes())
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        body[body.index(mark) + at] |= 1  # says that it is encrypted
    path.write_bytes(body)
    assert "encrypted" in refusal(path)


def test_archives_of_too_much(tmp_path, monkeypatch):
    monkeypatch.setattr(inputs.shutil, "disk_usage", lambda _: SimpleNamespace(free=3))
    for path in archives(tmp_path, {"x.txt": b"0 1\n"}):
        with pytest.raises(ResourceError, match="no room for 4 bytes"):
            opened(path)
    monkeypatch.setattr(inputs, "MOST_MEMBERS", 3)
    path = tarred(tmp_path / "a.tar", {f"d{k}/": b"" for k in range(4)})
    assert refusal(path) == ": the file cannot be read: more than 3 members"


def test_sparse_members_and_links_are_no_data(tmp_path):
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as archive:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE):
            info = tarfile.TarInfo("x.txt")
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
    assert refusal(path) == ": the archive holds no data file; allowed: one"


def folder(path, parts):
    path.mkdir()
    for name, body in parts.items():
        (path / name).write_bytes(body)
    return path


HIDDEN = {"_SUCCESS": b"", ".part-0.crc": b"\0\1", "_committed": b"{}"}


@pytest.mark.parametrize("ending", ENDINGS)
def test_parts_are_one_graph(tmp_path, ending):
    pack = PACK.get(ending, bytes)
    parts = {"part-1": b"1,2\n", "part-0": b"0,1\n", "part-2": b"", "part-3": b"7,0"}
    packed = {f"{k}.csv{ending}": pack(v) if v else v for k, v in parts.items()}
    path = folder(tmp_path / "a", {**HIDDEN, **packed})
    with opened(path) as source:
        assert source.pairs.tolist() == [[0, 1], [1, 2], [7, 0]]
        assert (source.n, source.describe()["name"]) == (8, "a")
    assert edges(path, n=9) == [[0, 1], [1, 2], [7, 0]]
    assert ":1: id 0 is out of range" in refusal(path, one_based=True)
    with opened(path, relabel="numbers") as source:
        assert named(source) == [(0, 1), (1, 2), (7, 0)]


def test_parts_that_name_their_columns(tmp_path):
    head = b"w,source,target\n"
    parts = {"part-0": head + b"5,a,b\n", "part-1": head, "part-2": head + b'6,b,"c,d"'}
    path = folder(tmp_path / "a", parts)
    with opened(path, relabel="numbers", keep=["w"]) as source:
        assert named(source) == [("a", "b"), ("b", "c,d")]
        assert source.attributes["w"].array.tolist() == [5, 6]
    path = folder(tmp_path / "b", {"0": head + b"5,1,2\n", "1": b"0.5,2,3\n"})
    with opened(path, keep=["w"]) as source:
        assert source.pairs.tolist() == [[1, 2], [2, 3]]
        assert source.attributes["w"].array.tolist() == [5, 0.5]


def test_blanks_at_the_end_of_a_line_are_no_column(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text('0 1 "" \n1 2 ""\n2 3 x\t\n')
    with opened(path, keep=["w=3"], name="edge-list") as source:
        words = source.attributes["w"]
        assert [words.words[k] for k in words.array] == ["", "", "x"]
    path.write_text("0 1 x\n1 2 \n")
    with pytest.raises(InputError, match=":2: 2 columns, where w is column 3"):
        opened(path, keep=["w=3"], name="edge-list")


def test_parts_are_separated_as_the_first_is(tmp_path):
    parts = {"0.txt": b"1,2\n3,4\n", "1.txt": b"5;6,7\n"}
    assert "1.txt:1: '5;6' is not an id" in refusal(folder(tmp_path / "a", parts))
    parts = {"0.txt": b"a,b\n", "1.txt": b"c;d,e\n"}
    with opened(folder(tmp_path / "b", parts), relabel="numbers") as source:
        assert named(source) == [("a", "b"), ("c;d", "e")]


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_parts_that_are_tables(tmp_path, kind):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = folder(tmp_path / "a", HIDDEN)
    for k, names in enumerate((["a", "b"], ["b", "c"])):
        part = pa.table({"src": names[:1], "dst": names[1:], "w": [k]})
        if kind == "parquet":
            parquet.write_table(part, path / f"part-{k}.snappy.parquet")
        else:
            with pa.ipc.new_file(path / f"part-{k}.arrow", part.schema) as out:
                out.write_table(part)
    with opened(path, relabel="numbers", keep=["w"]) as source:
        assert named(source) == [("a", "b"), ("b", "c")]
        assert source.attributes["w"].array.tolist() == [0, 1]
    (path / "part-2").write_bytes(b"0,1\n")
    refusal(path, relabel="numbers")


def test_folders_that_are_no_parts(tmp_path):
    path = folder(tmp_path / "a", {"0.mtx": MATRIX, "1.mtx": MATRIX})
    said = ": a Matrix Market file states its size, and 2 files are one; give one file"
    assert refusal(path, UsageError) == said
    os.remove(path / "1.mtx")
    assert edges(path) == [[0, 1], [3, 2]]
    (path / "deeper").mkdir()
    assert refusal(path) == ": a folder of parts holds the folder deeper"
    path = folder(tmp_path / "b", {"0": b""})
    assert refusal(path) == ": all files in the folder are empty"
    assert (
        refusal(folder(tmp_path / "c", {"0.txt": b"#\n", "1.el": b"#\n"}))
        == ": no edges"
    )
    for parts in ({}, HIDDEN, {"part-00000.h5": b"x"}):
        path = folder(tmp_path / f"d{len(parts)}", parts)
        assert refusal(path) == ": a directory, not a file"
    path = folder(tmp_path / "e", {"0.csv": b"0,1\n", "1.csv": b"1,x\n"})
    said = "'x' is not an id; --relabel takes ids of any text"
    assert refusal(path) == f"/1.csv:1: {said}"


def test_a_pipe_may_hold_an_archive(tmp_path):
    path = tarred(tmp_path / "a.tar", {"x.txt": b"0 1\n1 2\n"}, ".gz")
    with path.open("rb") as file:
        read, write = os.pipe()
        os.write(write, file.read())
        os.close(write)
        found = edges(inputs.Path(f"/dev/fd/{read}"))
        os.close(read)
    assert found == [[0, 1], [1, 2]]
    assert re.fullmatch("[0-9a-f]{32}", json.loads(json.dumps(digest(path))))


def digest(path):
    with opened(path) as source:
        return source.describe()["xxh3_128"]
