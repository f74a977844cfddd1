"""Parquet and Arrow tables: read as written by pyarrow, or refused with one line."""

import io
import sys

import numpy as np
import pytest
import xxhash
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from distbfs.errors import InputError, ResourceError, UsageError
from distbfs.formats import columns
from distbfs.formats.base import ReaderOptions, make_reader, sniff
from formats.packing import PACK
from formats.test_relabel import WORDS, named, opened

pa = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")
parquet = pytest.importorskip("pyarrow.parquet")

FUZZ = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
ID = st.integers(0, 120)
PAIRS = st.lists(st.tuples(ID, ID), min_size=1, max_size=40)
TYPES = ["int8", "uint8", "int32", "uint32", "int64", "uint64"]


def write_parquet(table, path, rows):
    parquet.write_table(table, path, row_group_size=rows, compression="zstd")


def write_dense_parquet(table, path, rows):
    how = {"use_dictionary": False, "compression": "none", "data_page_size": 64}
    parquet.write_table(table, path, row_group_size=rows, **how)


def write_feather(table, path, rows):
    feather.write_feather(table, path, chunksize=rows, compression="lz4")


def write_stream(table, path, rows):
    with pa.ipc.new_stream(path, table.schema) as out:
        out.write_table(table, max_chunksize=rows)


WRITERS = {
    "parquet": write_parquet,
    "dense-parquet": write_dense_parquet,
    "feather": write_feather,
    "stream": write_stream,
}


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")


def read(path, **options):
    edges = []
    reader = make_reader(path, "", ReaderOptions(**options))

    def take(pairs):
        assert pairs.dtype == np.int64
        edges.extend(pairs.tolist())

    edge_file = reader.read(path, take)
    assert edge_file.tuples == len(edges)
    assert edge_file.digest == xxhash.xxh3_128(path.read_bytes()).hexdigest()
    return edge_file, edges


@pytest.mark.thorough
@pytest.mark.parametrize("kind", sorted(WRITERS))
@FUZZ
@given(
    PAIRS,
    st.sampled_from(TYPES),
    st.sampled_from(TYPES),
    st.booleans(),
    st.integers(1, 50),
    st.sampled_from([1, 3, 1 << 16]),
)
def test_integer_columns(scratch, kind, pairs, first, second, one_based, rows, batch):
    path = scratch / "table"
    src, dst = (np.array(x) + one_based for x in zip(*pairs, strict=True))
    table = pa.table(
        {
            "weight": pa.array(np.arange(len(pairs)) / 3),
            "dst": pa.array(dst, second),
            "src": pa.array(src, first),
        }
    )
    WRITERS[kind](table, path, rows)
    assert sniff(path) == ("parquet" if "parquet" in kind else "arrow")
    with pytest.MonkeyPatch.context() as patch:
        for module in list(sys.modules.values()):
            if getattr(module, "ROWS", None) == columns.ROWS:
                patch.setattr(module, "ROWS", batch)
        edge_file, edges = read(path, one_based=one_based)
    assert edges == [list(x) for x in pairs]
    assert edge_file.n == max(map(max, pairs)) + 1
    assert edge_file.unread == "columns beside the two ids"


@pytest.mark.thorough
@pytest.mark.parametrize("kind", sorted(WRITERS))
@FUZZ
@given(
    st.lists(st.tuples(WORDS | st.just("a b, c"), WORDS), min_size=1, max_size=30),
    st.sampled_from(["string", "large_string", "dictionary", "integer"]),
    st.integers(1, 40),
)
def test_text_columns(scratch, kind, pairs, form, rows):
    path = scratch / "table"
    src, dst = (list(x) for x in zip(*pairs, strict=True))
    if form == "integer":
        dst = [17 + len(x) for x in dst]
    arrays = [pa.array(src), pa.array(dst)]
    if form == "large_string":
        arrays = [x.cast(pa.large_string()) for x in arrays]
    if form == "dictionary":
        arrays = [x.dictionary_encode() for x in arrays]
    WRITERS[kind](pa.table(arrays, ["source", "target"]), path, rows)
    with opened(path) as source:
        assert named(source) == [(u, str(v)) for u, v in zip(src, dst, strict=True)]
        assert source.ids.kind == "text"
    with pytest.raises(InputError, match="source: ids are text; --relabel allows them"):
        read(path)


@pytest.mark.parametrize("kind", sorted(WRITERS))
def test_the_type_of_a_column_says_whether_ids_are_text(tmp_path, kind):
    words = ["00501", "0501", "501"]
    path = tmp_path / "table"
    for texts in (words, words[2:]):
        table = pa.table({"src": texts, "dst": ["7"] * len(texts)})
        WRITERS[kind](table, path, 9)
        with opened(path) as source:
            assert named(source) == [(x, "7") for x in texts]


def test_sparse_integers(tmp_path):
    path = tmp_path / "a.parquet"
    pairs = [(2**62, 5), (5, 10**12)]
    src, dst = zip(*pairs, strict=True)
    write_parquet(pa.table({"src": src, "dst": dst}), path, 9)
    with opened(path) as source:
        assert named(source) == pairs
    write_parquet(pa.table({"src": np.array([2**64 - 1]), "dst": [-7]}), path, 9)
    with opened(path) as source:
        assert named(source) == [(str(2**64 - 1), "-7")]


@pytest.mark.parametrize("kind", ["int32", "uint32", "int64"])
def test_row_groups(tmp_path, kind):
    pairs = np.random.default_rng(2).integers(1, 500, (4000, 2))
    path = tmp_path / "a.parquet"

    def write():
        table = pa.table({"src": pairs[:, 0], "dst": pairs[:, 1]})
        form = pa.schema([("src", kind), ("dst", kind)])
        write_dense_parquet(table.cast(form), path, 300)

    write()
    for base in (False, True):
        edge_file, edges = read(path, one_based=base)
        assert edges == (pairs - base).tolist()
        assert edge_file.n == pairs.max() + 1 - base
    pairs[2345, 1] = 0
    write()
    fault = r"dst\[2345\]: id 0 is out of range; allowed: 1"
    with pytest.raises(InputError, match=fault):
        read(path, one_based=True)


def put(tmp_path, table, name="a.parquet"):
    path = tmp_path / name
    writer = write_parquet if name.endswith("parquet") else write_feather
    writer(table, path, 2)
    return path


def test_which_columns(tmp_path):
    for names in (("src", "dst"), ("from", "to"), ("u", "v"), ("a", "b")):
        path = put(tmp_path, pa.table([[1, 2], [3, 4]], names))
        edge_file, edges = read(path)
        assert edges == [[1, 3], [2, 4]]
        assert edge_file.unread == ""
    table = pa.table([[1], [2], [3], [0]], ["src", "dst", "x", "y"])
    for name in ("a.parquet", "a.feather"):
        path = put(tmp_path, table, name)
        assert read(path)[1] == [[1, 2]]
        assert read(path, columns=("y", "x"))[1] == [[0, 3]]
        assert read(path, columns=("x", "x"))[1] == [[3, 3]]
        with pytest.raises(InputError, match="columns src, dst, x, y; not one each of"):
            read(path, columns=("y", "z"))
    path = put(tmp_path, pa.table([[1], [2], [3]], ["p", "q", "r"]))
    with pytest.raises(InputError, match="columns p, q, r; neither src and dst"):
        read(path)
    path = put(tmp_path, pa.table([[1]] * 12, [f"c{k}" for k in range(12)]))
    with pytest.raises(InputError, match="c7, …; neither"):
        read(path)
    path = tmp_path / "a.el"
    path.write_text("0 1\n")
    with pytest.raises(InputError, match=r"a\.el:1: columns 0, 1; not one each of u"):
        read(path, columns=("u", "v"))
    path = tmp_path / "a.mtx"
    path.write_text("%%MatrixMarket")
    with pytest.raises(UsageError, match="matrix-market has no named columns"):
        read(path, columns=("u", "v"))


def test_a_table_may_state_its_vertices(tmp_path):
    table = pa.table({"src": [0, 1], "dst": [1, 2]})
    for name in ("a.parquet", "a.arrow"):
        stated = table.replace_schema_metadata({"distbfs.vertices": "9"})
        path = put(tmp_path, stated, name)
        assert read(path)[0].n == 9
        assert read(path, n=3)[0].n == 3
        path = put(tmp_path, stated.slice(0, 0), name)
        assert read(path)[0].n == 9
        short = table.replace_schema_metadata({"distbfs.vertices": "2"})
        with pytest.raises(
            InputError, match=r"dst\[1\]: id 2 is out of range; allowed"
        ):
            read(put(tmp_path, short, name))
        for wrong in ("0", "x", "-3", "9" * 30):
            bad = table.replace_schema_metadata({"distbfs.vertices": wrong})
            with pytest.raises(InputError, match="vertices by its metadata"):
                read(put(tmp_path, bad, name))


FAULTS = [
    ({"src": [1, 2, 3, -4], "dst": [1, 1, 1, 1]}, r"src\[3\]: a negative id -4"),
    ({"src": [1, 2], "dst": [1, None]}, r"dst\[1\]: a null, where an id is expected"),
    ({"src": [1.0], "dst": [1.5]}, "src: double values, where integers are expected"),
    ({"src": [True], "dst": [1]}, "src: bool values, where integers are expected"),
    ({"src": [[1]], "dst": [1]}, r"src: list<.*> values, where integers are expected"),
    ({"src": [b"a"], "dst": [b"b"]}, "src: binary values, where integers"),
    (
        {"src": np.array([2**63], "u8"), "dst": [0]},
        r"src\[0\]: id 9\d+ is above 2\^63-1",
    ),
]


@pytest.mark.parametrize("name", ["a.parquet", "a.feather"])
@pytest.mark.parametrize(("content", "message"), FAULTS)
def test_refusals(tmp_path, name, content, message):
    path = put(tmp_path, pa.table(content), name)
    with pytest.raises(InputError, match=f"^{path}: {message}") as error:
        read(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["a.parquet", "a.feather"])
def test_a_table_without_rows(tmp_path, name):
    none = pa.array([], "int64")
    path = put(tmp_path, pa.table({"src": none, "dst": none}), name)
    with pytest.raises(InputError, match=f"^{path}: no edges"):
        opened(path)


@pytest.mark.parametrize("name", ["a.parquet", "a.feather"])
def test_text_that_can_be_no_id(tmp_path, name):
    for word, message in (("", "an empty id"), ("a\nb", "has control characters")):
        path = put(tmp_path, pa.table({"src": ["x", word], "dst": ["x", "y"]}), name)
        with pytest.raises(InputError, match=rf"src, rows from 0: .*{message}"):
            opened(path)
    assert [x.name for x in tmp_path.iterdir()] == [name]


def samples():
    table = pa.table({"src": [0, 1, 2], "dst": [1, 2, 7], "w": ["a", "b", "c"]})
    words = pa.table({"src": ["p", "q"], "dst": ["q", "é"]})
    made = {"parquet": [], "arrow": []}
    for kind, writer in WRITERS.items():
        for content in (table, words):
            out = io.BytesIO()
            if kind == "feather":
                feather.write_feather(content, out, compression="uncompressed")
            else:
                writer(content, out, 2)
            made["parquet" if "parquet" in kind else "arrow"].append(out.getvalue())
    return made


@st.composite
def mutated(draw, bodies):
    """Bytes near a valid file."""
    data = bytearray(draw(st.sampled_from(bodies)))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        end = draw(st.integers(at, min(at + 4, len(data))))
        data[at:end] = draw(st.binary(min_size=end - at, max_size=end - at + 1))
    return bytes(data)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["parquet", "arrow"])
@pytest.mark.parametrize("relabel", ["", "text"])
@settings(FUZZ, max_examples=150)
@given(data=st.data())
def test_whatever_a_table_holds_it_is_read_or_refused(scratch, name, relabel, data):
    path = scratch / "fuzzed"
    path.write_bytes(data.draw(mutated(samples()[name])))
    edges = []
    reader = make_reader(path, name, ReaderOptions(relabel=relabel))
    try:
        edge_file = reader.read(path, lambda pairs: edges.extend(pairs.tolist()))
    except InputError as error:
        message = str(error)
    else:
        message = f"{path}:"
        assert edge_file.tuples == len(edges)
        assert all(0 <= x < edge_file.n for pair in edges for x in pair)
    assert message.startswith(f"{path}:")
    assert "\n" not in message


def test_packed_tables(tmp_path):
    path = put(tmp_path, pa.table({"src": [0, 1], "dst": [1, 2]}))
    inside = tmp_path / "b.parquet.gz"
    inside.write_bytes(PACK[".gz"](path.read_bytes()))
    assert read(inside)[1] == [[0, 1], [1, 2]]


def test_without_pyarrow(tmp_path, monkeypatch):
    path = put(tmp_path, pa.table({"src": [0, 1], "dst": [1, 2]}))
    for name in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ResourceError, match=r"pip install '\.\[arrow\]'"):
        read(path)
