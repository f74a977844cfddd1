"""Ids that are sparse or text: vertices are numbered anew and keep their names."""

import gzip
import re
import tempfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from distbfs.errors import InputError, UsageError
from distbfs.formats import new_ids, text, tuples
from distbfs.formats.base import ReaderOptions
from distbfs.formats.ids import IntegerIds, TextIds, id_map
from distbfs.formats.tuples import open_tuples
from distbfs.ranks.world import SoloWorld
from formats.reading import compiling, spooling

FUZZ = settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
LARGEST = 2**63 - 1
NUMBERS = st.integers(0, LARGEST) | st.integers(0, 9)
WORDS = st.text(
    st.characters(exclude_categories=("Cs", "Cc"), exclude_characters=' ,"'),
    min_size=1,
    max_size=8,
).filter(lambda x: x[0] not in "#%")


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("relabel")


def opened(path, name="", **options):
    options = ReaderOptions(relabel="numbers", **options)
    with spooling(path.parent):
        return open_tuples(SoloWorld(), path, name=name, options=options)


def named(source):
    """Return the edges of a source by the ids of the file."""
    pieces = [np.stack(x, axis=1) for x in source.chunks(0, source.tuples)]
    pairs = np.concatenate(pieces)
    assert pairs.min() >= 0
    assert len(np.unique(pairs)) == source.n == source.ids.count
    names = source.ids.names(pairs.ravel())
    return list(zip(names[::2], names[1::2], strict=True))


@FUZZ
@given(
    st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=30),
    st.sampled_from([1, 4, 1 << 20]),
)
def test_sparse_numbers(scratch, pairs, piece):
    path = scratch / "a.csv"
    path.write_text("".join(f"{u},{v}\n" for u, v in pairs))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(new_ids, "NUMBERS", piece)
        with opened(path, header=False) as source:
            assert named(source) == pairs
            assert source.ids.kind == "integer"
            assert source.notes == []
            for id_ in {x for pair in pairs for x in pair}:
                vertex = source.ids.find(str(id_))
                assert source.ids.names(np.array([vertex])) == [id_]
            absent = next(x for x in range(100) if (x not in np.ravel(pairs)))
            assert source.ids.find(str(absent)) == -1
    assert [x.name for x in scratch.iterdir()] == ["a.csv"]


@FUZZ
@given(
    st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=30),
    st.sampled_from([" ", ",", "\t", " , "]),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([16, 1 << 20]),
)
def test_any_text(scratch, pairs, gap, end, block):
    pairs = [*pairs, ("é~not a number~", "x")]
    pairs = [tuple(x.replace(" ", "") for x in pair) for pair in pairs]
    path = scratch / "a.txt"
    rows = ["# c d", "", *(gap.join((*pair, "0.5")) for pair in pairs)]
    path.write_bytes((end.join(rows) + end).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text.TextFile.__init__, "__defaults__", (block,))
        with opened(path) as source:
            assert named(source) == pairs
            assert source.ids.kind == "text"
            assert source.notes[0].startswith("ids are taken as text (")
            words = sorted({x for pair in pairs for x in pair}, key=str.encode)
            assert source.ids.names(np.arange(source.n)) == words
            assert [source.ids.find(x) for x in words] == list(range(source.n))
            assert source.ids.find("") == source.ids.find("é~not a number") == -1
            assert source.ids.fault() == ""
    assert [x.name for x in scratch.iterdir() if x.name != "a.csv"] == ["a.txt"]


def test_numbers_that_are_too_large_or_negative_are_text(tmp_path):
    path = tmp_path / "a.el"
    path.write_text(f"{2**64} -7\n007 7\n1.5 nan\n")
    with opened(path) as source:
        assert named(source) == [(str(2**64), "-7"), ("007", "7"), ("1.5", "nan")]


PADDED = ["00501,1", "0501,2", "501,3"]


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("a.csv", PADDED),
        ("a.csv", [f'"{row}'.replace(",", '",') for row in PADDED]),
        ("a.csv.gz", PADDED),
        ("a.el", [row.replace(",", " ") for row in PADDED]),
        ("a.csv", ["501,1", "501,2", "501,0003"]),
    ],
)
def test_an_id_of_text_is_its_text(tmp_path, name, rows):
    body = "\n".join(rows).encode() + b"\n"
    path = tmp_path / name
    path.write_bytes(gzip.compress(body) if name.endswith("gz") else body)
    for compiled in (True, False):
        with compiling(compiled), opened(path) as source:
            words = [re.split("[ ,]", row.replace('"', "")) for row in rows]
            assert named(source) == [tuple(pair) for pair in words]
            assert source.ids.kind == "text"
            assert "has a leading zero)" in source.notes[0]


def test_numbers_are_named_as_they_are_written(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("501,0\n10,0\n")
    with opened(path) as source:
        assert named(source) == [(501, 0), (10, 0)]
        assert [source.ids.find(x) for x in ("501", "0501", "00", "-0")] == [
            2,
            -1,
            -1,
            -1,
        ]


def test_numpy_and_graph500_ids(tmp_path):
    pairs = [(LARGEST, 5), (5, 17), (10**12, 5)]
    np.save(tmp_path / "a.npy", np.array(pairs))
    np.array(pairs, "<i8").tofile(tmp_path / "a.bin")
    for path, name in (
        (tmp_path / "a.npy", ""),
        (tmp_path / "a.bin", "graph500-int64"),
    ):
        with opened(path, name) as source:
            assert named(source) == pairs


FAULTS = [
    ("a b\nc\n", ":2: one column, where two ids are expected"),
    ("a b\nc,\n", ":2: one column, where two ids are expected"),
    ("a,b\nc,,d\n", ":2: an empty column"),
    ("a,b\n,d\n", ":2: an empty column"),
    ('a;b\n"";d\n', ":2: an empty column"),
    ('a,b\n"c\n"d,e\n', ":2: a quoted column continues after its closing quote"),
    ('a,b\n"c\nd",e\n', ":2: id 'c\\nd' has control characters"),
    ('a,b\nc,d,"e\n', ":2: a quote that does not end"),
    ('a,b\nc,\t"d"\n', ":2: a quote after a tab"),
    ("a b\rc d\n", ":1: a carriage return inside the line"),
    ("a b\n\0\n", ":2: binary data, not text"),
    ("a \x07b\n", ":1: id '\\x07b' has control characters"),
    (f"a {'b' * 1025}\n", f":1: id '{'b' * 40}' of 1025 bytes; allowed: 1024"),
    ("# only\n", ": no edges"),
]


@pytest.mark.parametrize(("body", "message"), FAULTS)
def test_refusals(tmp_path, body, message):
    path = tmp_path / "a.el"
    path.write_text(body)
    with pytest.raises(InputError) as error:
        opened(path, "edge-list")
    assert str(error.value) == f"{path}{message}"
    path.write_bytes(b"a \xff\n")
    with pytest.raises(InputError, match=r":1: id '\\\\xff' is not UTF-8"):
        opened(path)
    assert list(tmp_path.iterdir()) == [path]


def test_what_states_its_size_is_not_relabelled(tmp_path):
    (tmp_path / "a").write_bytes(b"x")
    for name in ("matrix-market", "dimacs", "metis", "gap-sg"):
        with pytest.raises(UsageError, match="they are not relabelled"):
            opened(tmp_path / "a", name)
    for options in ({"n": 4}, {"one_based": True}, {"one_based": False}):
        with pytest.raises(UsageError, match="neither a base nor a size"):
            ReaderOptions(relabel="numbers", **options)
    with pytest.raises(UsageError, match="relabel is 'all'"):
        ReaderOptions(relabel="all")


def test_names_of_columns_are_passed_over(tmp_path):
    for head, ending in (("Source,Target", "csv"), ('"from"\t"to"\tw', "tsv")):
        path = tmp_path / f"a.{ending}"
        gap = "," if ending == "csv" else "\t"
        path.write_text(f"{head}\n5{gap}7\n")
        with open_tuples(SoloWorld(), path) as source:
            assert (source.n, source.tuples) == (8, 1)
        path.write_text(f"{head}\n5{gap}7\n8{gap}x\n")
        with pytest.raises(InputError, match="3: 'x' is not an id"):
            open_tuples(SoloWorld(), path)
        path.write_text(f"{head}\na{gap}b\n")
        with opened(path) as source:
            assert named(source) == [("a", "b")]
    path.write_text("1,weight\n1,2\n")
    with pytest.raises(InputError, match="1: 'weight' is not an id"):
        open_tuples(SoloWorld(), path)


def test_a_small_file_makes_no_large_graph(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path = tmp_path / "a.el"
    path.write_text(f"0 1\n1 {LARGEST}\n")
    with pytest.raises(InputError, match="vertices for 2 edges; allowed: 1048576"):
        open_tuples(SoloWorld(), path)
    assert list(tmp_path.iterdir()) == [path]
    with opened(path) as source:
        assert source.n == 3
    monkeypatch.setattr(tuples, "FEW_VERTICES", 100)
    path.write_text("0 1\n1 600\n")
    with pytest.raises(InputError, match="601 vertices for 2 edges; allowed: 512"):
        open_tuples(SoloWorld(), path)
    with open_tuples(SoloWorld(), path, options=ReaderOptions(n=601)) as source:
        assert source.n == 601


def test_wrong_maps_are_refused():
    for ids in ([3, 3], [4, 2], [-1, 2]):
        with pytest.raises(InputError):
            IntegerIds(np.array(ids))
    text_of = np.frombuffer(b"ab", dtype=np.uint8)
    for offsets in ([], [0], [0, 1], [0, 0, 2], [1, 2], [0, 3], [0, 2, 1, 2]):
        with pytest.raises(InputError, match="offsets"):
            TextIds(np.array(offsets, dtype=np.int64), text_of)
    arrays = {"offsets": np.array([0, 1, 2]), "text": text_of}
    assert id_map("text", arrays).fault() == ""
    assert "follow" in TextIds.of([b"b", b"a"]).fault()
    assert "follow" in TextIds.of([b"a", b"a"]).fault()
    assert "UTF-8" in TextIds.of([b"a", b"\xff"]).fault()
    assert IntegerIds(np.array([2, 5])).fault() == ""
    for word in ("", "x", "-2", "2.0", "9" * 19, "9" * 30, "²"):
        assert IntegerIds(np.array([2, 5])).find(word) == -1


def test_what_is_no_unicode_text_names_no_vertex():
    ids = TextIds.of([b"?", b"??", b"a"])
    for word in ("\ud800", "\udcff", "\udcff\ud800"):
        assert ids.find(word) == -1
    assert ids.find("?") == 0
