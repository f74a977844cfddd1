from pathlib import Path

import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from distbfs.errors import InputError, UsageError
from distbfs.formats import text
from distbfs.formats.base import ReaderOptions, sniff
from distbfs.formats.edge_list import EdgeListReader
from distbfs.formats.matrix_market import MatrixMarketReader
from distbfs.registry import READERS, lookup
from formats.reading import read, refusal

GAPS = [(" ", "\t", "  ", "\t "), (",", ", ", " ,\t"), (";", " ; "), ("\t", " \t")]


@st.composite
def styled(draw, between=None, mark="#%", more=True):
    """Edges, and a text that holds them in some style."""
    between = between or draw(st.sampled_from(GAPS))
    pair = st.tuples(st.integers(0, 2**40), st.integers(0, 50))
    pairs = draw(st.lists(pair, min_size=1, max_size=12))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    tails = st.sampled_from(["", " ", "\t "])
    if more:
        gap = between[0]
        if gap == " ":  # a tab beside blanks separates columns that hold blanks
            between = [x for x in between if "\t" not in x]
        words = ["0.5", "nan x", f"a{gap}b", "-1 # c", f"é{gap}"]
        words += ['"5"'] * (gap != " ")  # quotes want one kind of blank
        tails |= st.sampled_from([gap + x for x in words])
    noise = st.sampled_from(["", "", "", "  ", *(f"{x} 1 2, é" for x in mark)])
    rows = []
    for _ in pairs:
        extra = draw(noise)
        rows += [extra + end] if extra or draw(st.booleans()) else []
        lead = draw(st.sampled_from(["", "", " ", "\t"[between[0] == "\t" :]]))
        rows.append(f"{lead}{{}}{draw(st.sampled_from(between))}{{}}{draw(tails)}{end}")
    rows += [end] * draw(st.integers(0, 2))
    whole = draw(st.booleans())
    return pairs, rows, whole


def write(path, pairs, case, head="", shift=0):
    _, rows, whole = case
    left = iter(pairs)
    out = head
    for row in rows:
        out += row.format(*(x + shift for x in next(left))) if "{}" in row else row
    path.write_bytes((out if whole else out.rstrip("\r\n")).encode())


@settings(max_examples=60, deadline=None)
@given(styled(), st.booleans(), st.sampled_from([16, 64, 1 << 20]))
def test_edge_list_round_trip(scratch, case, one_based, block):
    pairs = case[0]
    write(scratch, pairs, case, shift=int(one_based))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text.TextFile.__init__, "__defaults__", (block,))
        edge_file, edges = read(EdgeListReader, scratch, one_based=one_based)
    assert edges == [list(x) for x in pairs]
    assert edge_file.n == max(max(x) for x in pairs) + 1
    assert edge_file.tuples == len(pairs)
    assert edge_file.format == "edge-list"
    digest = xxhash.xxh3_128(scratch.read_bytes()).hexdigest()
    assert edge_file.digest == digest


@settings(max_examples=60, deadline=None)
@given(
    styled(between=(" ", "\t", "  "), mark="%", more=False),
    st.sampled_from([("pattern", ""), ("real", " 1e-3"), ("complex", "\t1 nan")]),
    st.sampled_from(["general", "symmetric", "Skew-Symmetric", "hermitian"]),
    st.sampled_from([16, 1 << 20]),
)
def test_matrix_market_round_trip(scratch, case, field, symmetry, block):
    pairs, rows, whole = case
    rows = [x.replace("}{", "} {") if "{}" in x else x for x in rows]
    name, values = field
    if symmetry == "Skew-Symmetric":
        pairs = [(u, v + (u == v)) for u, v in pairs]
    rows = [
        x.rstrip() + values + ("\r\n" if x.endswith("\r\n") else "\n")
        if "{" in x
        else x
        for x in rows
    ]
    n = max(max(x) for x in pairs) + 1
    head = (
        f"%%MatrixMarket Matrix coordinate {name} {symmetry}\n% c\n\n%\n"
        f" {n} {n}  {len(pairs)}\n"
    )
    write(scratch, pairs, (pairs, rows, whole), head, shift=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text.TextFile.__init__, "__defaults__", (block,))
        edge_file, edges = read(MatrixMarketReader, scratch)
    assert edges == [list(x) for x in pairs]
    assert (edge_file.n, edge_file.tuples, edge_file.format) == (
        n,
        len(pairs),
        "matrix-market",
    )
    digest = xxhash.xxh3_128(scratch.read_bytes()).hexdigest()
    assert edge_file.digest == digest


@pytest.mark.parametrize("sizes", ["3 3 2", "3 2"])
def test_a_banner_of_one_percent_sign(tmp_path, sizes):
    """As in Network Repository, whose size lines may have two numbers."""
    path = tmp_path / "a.mtx"
    head = "%MatrixMarket matrix coordinate pattern symmetric\n"
    path.write_text(f"{head}{sizes}\n2 1\n3 2\n")
    assert sniff(path) == "matrix-market"
    edge_file, edges = read(MatrixMarketReader, path)
    assert (edge_file.n, edges) == (3, [[1, 0], [2, 1]])


def test_a_matrix_by_its_name_that_begins_as_konect_files_do(tmp_path):
    """Its size line is not an edge."""
    path = tmp_path / "a.mtx"
    path.write_text("% sym unweighted\n3 2\n1 2\n2 3\n")
    assert sniff(path) == "matrix-market"
    assert "does not begin with %%MatrixMarket" in refusal(MatrixMarketReader, path)
    path = path.rename(tmp_path / "out.graph-of-konect")
    assert sniff(path) == "edge-list"


def test_rectangular_matrix_and_matrix_without_entries(tmp_path):
    path = tmp_path / "a.mtx"
    head = "%%MatrixMarket matrix coordinate pattern general\n"
    path.write_text(head + "3 9 2\n3 9\n1 1\n")
    assert refusal(MatrixMarketReader, path) == (
        ":2: a matrix of 3 rows and 9 columns; --bipartite reads them as two sets of "
        "vertices"
    )
    edge_file, edges = read(MatrixMarketReader, path, bipartite=True)
    assert (edge_file.n, edges) == (12, [[2, 11], [0, 3]])
    assert edge_file.notes == ("3 rows are vertices from 1 on, 9 columns from 4 on",)
    path.write_text(head + "3 3 1\n3 3\n")
    edge_file, edges = read(MatrixMarketReader, path, bipartite=True)
    assert (edge_file.n, edges) == (6, [[2, 5]])
    path.write_text(head.replace("general", "symmetric") + "3 3 1\n3 2\n")
    with pytest.raises(UsageError, match="name one set of vertices"):
        read(MatrixMarketReader, path, bipartite=True)
    path.write_text(head + f"{2**62} {2**62} 0\n")
    assert "too many" in refusal(MatrixMarketReader, path, bipartite=True)
    path.write_text(head + "4 4 0\n")
    edge_file, edges = read(MatrixMarketReader, path)
    assert (edge_file.n, edge_file.tuples, edges) == (4, 0, [])


def test_number_of_vertices_can_be_given(tmp_path):
    path = tmp_path / "a.el"
    path.write_text("0 1\n3 2\n")
    assert read(EdgeListReader, path, n=10)[0].n == 10
    assert read(EdgeListReader, path, n=4)[0].n == 4
    assert refusal(EdgeListReader, path, n=3) == (
        ":2: id 3 is out of range; allowed: 0 to 2"
    )
    path.write_text("1 2\n")
    assert read(EdgeListReader, path, n=2, one_based=True)[1] == [[0, 1]]
    with pytest.raises(UsageError, match="n is 0"):
        ReaderOptions(n=0)


EDGE_LIST_FAULTS = [
    ("", ": no edges"),
    ("# a\n% b\n", ": no edges"),
    ("# a\n\n", ": no edges"),
    (
        "% bip unweighted\n% 2 1 2\n1 1\n1 2\n",
        (
            ":1: a bipartite KONECT graph, whose columns number two sets of vertices; "
            "--bipartite reads it"
        ),
    ),
    ("1 2\n-1 2\n", ":2: a negative id '-1'"),
    ("1 2\n\n3 -4", ":3: a negative id '-4'"),
    ("1 2\n3\n4 5\n", ":2: one column, where two ids are expected"),
    ("1 2\n3 4\n5", ":3: one column, where two ids are expected"),
    ("1 2.0\n", ":1: '2.0' is not an integer id"),
    ("# c\n1 nan\n", ":2: 'nan' is not an id"),
    ("source,target\nx,2\n", ":2: 'x' is not an id"),
    ("1.5,2\n1,2\n", ":1: '1.5' is not an integer id"),
    ("name,2\n1,2\n", ":1: 'name' is not an id"),
    ("name\n1,2\n", ":1: 'name' is not an id"),
    ("1 2,3\n4,5\n", ":1: '1 2' is not an id"),
    ("1\t2 3\n4\t5\n", ":1: '2 3' is not an id"),
    ("1,2\n3 4\n", ":2: '3 4' is not an id"),
    ("1 9223372036854775808\n", ":1: id '9223372036854775808' is above 2^63-1"),
    ("1 2\r\n3 4\r5 6\r\n", ":2: a carriage return inside the line"),
    ("1 2\n3 4\n\x00\x01", ":3: binary data, not text"),
    ("\x7fELF\x00\x01", ":1: binary data, not text"),
    ("1:2\n", ":1: '1:2' is not an id"),
]


@pytest.mark.parametrize(("body", "message"), EDGE_LIST_FAULTS)
def test_edge_list_refusals(tmp_path, body, message):
    path = tmp_path / "a.txt"
    path.write_bytes(body.encode())
    assert refusal(EdgeListReader, path) == message


def test_zero_in_a_one_based_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("1 2\n0 1\n")
    assert refusal(EdgeListReader, path, one_based=True) == (
        ":2: id 0 is out of range; allowed: 1 or more"
    )


BANNER = "%%MatrixMarket matrix coordinate"
GENERAL = f"{BANNER} pattern general\n"
MATRIX_FAULTS = [
    ("", ":1: the file is empty"),
    ("1 2\n", ":1: the file does not begin with %%MatrixMarket"),
    ("\n", ":1: the file does not begin with %%MatrixMarket"),
    (
        "%%MatrixMarket matrix\n",
        (
            ":1: 1 words after %%MatrixMarket, where object, format, field, symmetry "
            "are expected"
        ),
    ),
    (
        "%%MatrixMarket vector coordinate real general\n",
        ":1: object 'vector'; allowed: matrix",
    ),
    (
        "%%MatrixMarket matrix array real general\n2 2\n1\n",
        ":1: format 'array'; allowed: coordinate",
    ),
    (
        f"{BANNER} quaternion general\n",
        ":1: field 'quaternion'; allowed: pattern, integer, real, double, complex",
    ),
    (
        f"{BANNER} real diagonal\n",
        (
            ":1: symmetry 'diagonal'; allowed: general, symmetric, skew-symmetric, "
            "hermitian"
        ),
    ),
    (GENERAL, ":1: no size line"),
    (f"{GENERAL}% c\n\n", ":3: no size line"),
    (f"{GENERAL}% c\n2 2\n", ":3: the size line needs rows, columns and entries"),
    (f"{GENERAL}2 2 -1\n", ":2: the size line needs rows, columns and entries"),
    (f"{GENERAL}2 2 1.0\n", ":2: the size line needs rows, columns and entries"),
    (f"{GENERAL}0 0 0\n", ":2: no vertices"),
    (f"{GENERAL}9999999999999999999 1 1\n", ":2: a size is above 2^63-1"),
    (
        f"{BANNER} real symmetric\n2 3 0\n",
        ":2: a symmetric matrix of 2 rows and 3 columns",
    ),
    (f"{GENERAL}2 2 1\n0 1\n", ":3: id 0 is out of range; allowed: 1 to 2"),
    (f"{GENERAL}2 2 1\n3 1\n", ":3: id 3 is out of range; allowed: 1 to 2"),
    (f"{GENERAL}3 3 1\n2 4\n", ":3: id 4 is out of range; allowed: 1 to 3"),
    (f"{GENERAL}2 2 1\n-1 2\n", ":3: a negative id '-1'"),
    (f"{GENERAL}2 2 1\n1.0 2\n", ":3: '1.0' is not an integer id"),
    (f"{GENERAL}2 2 1\n1,2\n", ":3: '1,2' is not an id"),
    (f"{GENERAL}2 2 1\n# 1\n", ":3: '#' is not an id"),
    (f"{GENERAL}2 2 2\n1 2\n2\n", ":4: one column, where two ids are expected"),
    (f"{GENERAL}2 2 1\n1 2 5\n", ":3: 3 columns, where 2 are expected"),
    (
        f"{BANNER} real general\n2 2 2\n1 2 0.5\n2 1\n",
        ":4: 2 columns, where 3 are expected",
    ),
    (
        f"{BANNER} real skew-symmetric\n3 3 2\n2 1 1\n3 3 0\n",
        ":4: an entry on the diagonal, which must be empty",
    ),
    (f"{GENERAL}2 2 3\n1 2\n2 1\n", ":4: 3 entries declared, 2 found"),
    (f"{GENERAL}2 2 1\n", ":2: 1 entries declared, 0 found"),
    (f"{GENERAL}2 2 1\n1 2\n\n2 1\n", ":5: more entries than the 1 declared"),
    (f"{GENERAL}2 2 0\nx\n", ":3: more entries than the 0 declared"),
    (f"{GENERAL}2 2 1\n1 \0\n", ":3: binary data, not text"),
    ("%%Matrix\0Market\n", ":1: binary data, not text"),
]


@pytest.mark.parametrize(("body", "message"), MATRIX_FAULTS)
def test_matrix_market_refusals(tmp_path, body, message):
    path = tmp_path / "a.mtx"
    path.write_text(body)
    assert refusal(MatrixMarketReader, path) == message


def test_matrix_market_has_no_use_for_base_and_size():
    for options in (ReaderOptions(one_based=True), ReaderOptions(n=4)):
        with pytest.raises(UsageError, match="states its size"):
            MatrixMarketReader(options)


def test_line_numbers_go_on_across_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(text.TextFile.__init__, "__defaults__", (32,))
    path = tmp_path / "a.el"
    rows = [f"{i} {i + 1}\n" for i in range(500)]
    path.write_text("# long comment" * 9 + "\n" + "".join(rows))
    assert len(read(EdgeListReader, path)[1]) == 500
    rows[321] = "5 x\n"
    path.write_text("# long comment" * 9 + "\n" + "".join(rows))
    assert refusal(EdgeListReader, path) == ":323: 'x' is not an id"
    rows[321] = "5 \0\n"
    path.write_text("".join(rows))
    assert refusal(EdgeListReader, path) == ":322: binary data, not text"


def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(text.TextFile.__init__, "__defaults__", (32,))
    monkeypatch.setattr(text.TextFile, "longest", 64)
    path = tmp_path / "a.el"
    path.write_text("1 2\n" + "3" * (1 << 17))
    assert refusal(EdgeListReader, path) == ":2: a line of more than 64 bytes"
    path.write_text("%%MatrixMarket" + " " * 200)
    assert refusal(MatrixMarketReader, path) == ":1: a line of more than 64 bytes"


@pytest.mark.parametrize("name", sorted(READERS))
def test_what_is_no_file_is_refused(tmp_path, name):
    kind = lookup(READERS, "format", name)
    assert kind.name == name
    assert refusal(kind, tmp_path / "none") == ": No such file or directory"
    assert refusal(kind, tmp_path) == ": a directory, not a file"
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(InputError):
            sniff(path)
    assert refusal(kind, Path("/dev/null")) == ": neither a regular file nor a pipe"


def test_sniff_by_content_then_by_name(tmp_path):
    def made(name, body):
        path = tmp_path / name
        path.write_text(body)
        return sniff(path)

    assert made("a.txt", GENERAL) == "matrix-market"
    assert made("a", GENERAL.upper()) == "matrix-market"
    assert made("a.mtx", "1 2\n") == "matrix-market"
    for ending in ("el", "txt", "tsv", "csv", "edges", "TXT"):
        assert made(f"a.{ending}", "1 2\n") == "edge-list"
    for body in ("1 2\n", "1;2;x\n", "# c\n\nAlice Smith,Bob\n", "\ufeff0\t1\n"):
        assert made("a.dat", body) == made("a", body) == "edge-list"
        assert made("a.graph", body) == "metis"
    assert made("out.a-b", "% sym unweighted\n1 2 3\n1 2\n") == "edge-list"
    unclear = ["1\n", "hello world\n", "# 1 2\n", "", "7 11\n5 3 2\n", "1,2\x01\n"]
    for body in (*unclear, '{"nodes": [1], "links": []}\n', "a -> [b];\n"):
        with pytest.raises(InputError, match="name one of matrix-market, edge-list"):
            made("a.dat", body)
