"""Delimited text: separators, quotes, names of columns; KONECT files."""

import csv
import gzip
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distbfs.errors import InputError, UsageError
from distbfs.formats import delimited, text
from distbfs.formats.base import ReaderOptions
from distbfs.formats.edge_list import EdgeListReader
from distbfs.formats.tuples import open_tuples
from formats.reading import read, refusal
from formats.test_relabel import FUZZ, WORDS, Solo, named, opened

SEPARATORS = {"comma": ",", "tab": "\t", "semicolon": ";"}
CELLS = st.text(st.sampled_from('ab1 ,;"\té#%|'), max_size=6)
NAMES = WORDS | CELLS.map(lambda x: x.replace("\t", " ").strip()).filter(bool)
NOTES = CELLS | st.sampled_from(["x\ny", "5,6\n7,8", "5\t6\n7\t8\n", '"\n5;6', "\r\n"])


def written(rows, separator, quoting, end):
    """What Python's csv module writes for rows."""
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=separator, quoting=quoting, lineterminator=end).writerows(
        rows
    )
    return out.getvalue()


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("delimited")


@FUZZ
@given(
    st.lists(st.tuples(NAMES, NAMES, NOTES), min_size=1, max_size=12),
    st.sampled_from(sorted(SEPARATORS)),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([16, 64, 1 << 20]),
    st.sampled_from(["", "source", "quoted"]),
    st.booleans(),
    st.booleans(),
)
def test_names_are_read_as_written(
    scratch, rows, kind, end, block, header, packed, bom
):
    separator = SEPARATORS[kind]
    first = [("A B", "É", "x"), ("C", f"D {separator.strip()} E", "y")]
    head = [("Source", "Target", "z")] if header == "source" else []
    head = [("Source", "Target", "z\nz")] if header == "quoted" else head
    body = written([*head, *first], separator, csv.QUOTE_MINIMAL, end)
    body += f"# {separator} no {separator} edge{end}{end}"
    body += written(rows, separator, csv.QUOTE_ALL, end)
    path = scratch / f"names.edgelist{'.gz' * packed}"
    data = b"\xef\xbb\xbf" * bom + body.rstrip("\r\n").encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text.TextFile.__init__, "__defaults__", (block,))
        with opened(path) as source:
            assert named(source) == [x[:2] for x in (*first, *rows)]
            said = [x for x in source.notes if "names the columns" in x]
            assert said == [
                f"{path}: line 1 names the columns; ids are in 'Source' and 'Target'"
            ] * bool(header)
            assert source.notes[-1].endswith("after the second are ignored")


@FUZZ
@given(
    st.lists(st.tuples(*[st.integers(0, 99)] * 2, NOTES), min_size=1, max_size=12),
    st.sampled_from(sorted(SEPARATORS)),
    st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC]),
    st.sampled_from([16, 64, 1 << 20]),
    st.booleans(),
)
def test_integers_with_quotes_beside_them(scratch, rows, kind, quoting, block, one):
    path = scratch / "integers"
    rows = [(u + one, v + one, note) for u, v, note in rows]
    body = written([(int(one), int(one), "x"), *rows], SEPARATORS[kind], quoting, "\n")
    path.write_bytes(body.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text.TextFile.__init__, "__defaults__", (block,))
        edge_file, edges = read(EdgeListReader, path, one_based=one)
    assert edges == [[0, 0], *([u - one, v - one] for u, v, _ in rows)]
    assert edge_file.unread == "columns after the second"


@pytest.mark.parametrize("quoted", [False, True])
@pytest.mark.parametrize("kind", sorted(SEPARATORS))
def test_columns_are_chosen_by_name(tmp_path, kind, quoted):
    path = tmp_path / "a.data"
    rows = [("id", "to", "a b", "from"), (7, 1, 2, 3), ("x y", 4, 5, 6)]
    quoting = csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL
    path.write_text(written(rows, SEPARATORS[kind], quoting, "\n"))
    edge_file, edges = read(EdgeListReader, path)
    assert edges == [[3, 1], [6, 4]]
    assert edge_file.notes == ("line 1 names the columns; ids are in 'from' and 'to'",)
    assert edge_file.unread == "columns beside the two ids"
    columns = ("a b", "to")
    assert read(EdgeListReader, path, columns=columns)[1] == [[2, 1], [5, 4]]
    assert read(EdgeListReader, path, columns=columns, n=6)[0].n == 6
    message = ":3: id 5 is out of range; allowed: 0 to 4"
    assert refusal(EdgeListReader, path, columns=columns, n=5) == message
    with opened(path, columns=("id", "from")) as source:
        assert named(source) == [("7", "3"), ("x y", "6")]
    wrong = ":1: columns id, to, a b, from; not one each of id and x"
    assert refusal(EdgeListReader, path, columns=("id", "x")) == wrong


def edges_of(path, **options):
    """The edges of a file by the ids in it, and what is said."""
    with opened(path, **options) as source:
        return named(source), [x.removeprefix(f"{path}: ") for x in source.notes]


HEAD = "line {} names the columns; ids are in {} and {}"
TEXTS = [
    # one separator, and it alone
    ("Alice Smith,Bob\n", [("Alice Smith", "Bob")], ""),
    ("Alice Smith\tBob\n", [("Alice Smith", "Bob")], ""),
    ("Smith, Alice\tDoe, Bob\n", [("Smith, Alice", "Doe, Bob")], ""),
    ("a b;c;0,5\n", [("a b", "c")], ""),
    ("a,b;c\nd,e;f\ng,h\n", [("a", "b;c"), ("d", "e;f"), ("g", "h")], ""),
    (
        '"Alice Smith" Bob\n"A ""x""" \t B\n',
        [("Alice Smith", "Bob"), ('A "x"', "B")],
        "",
    ),
    ("1 Main St,2 High St\n3,x\n", [("1 Main St", "2 High St"), ("3", "x")], ""),
    (' a , "b, c"\n', [("a", "b, c")], ""),
    ("5\" x,'y'\n", [('5" x', "'y'")], ""),
    # names of columns
    ("Source;Target\na b;c\n", [("a b", "c")], HEAD.format(1, "'Source'", "'Target'")),
    ("# c\n\nu,v\na,b\n", [("a", "b")], HEAD.format(3, "'u'", "'v'")),
    ("u,v\nv,w\n", [("u", "v"), ("v", "w")], ""),
    ("source target\na b\n", [("a", "b")], HEAD.format(1, "'source'", "'target'")),
    ("name,friend\na,b\n", [("name", "friend"), ("a", "b")], ""),
    (",src,dst\n0,a,b\n", [("a", "b")], HEAD.format(1, "'src'", "'dst'")),
]


@pytest.mark.parametrize(("body", "edges", "note"), TEXTS)
def test_texts(tmp_path, body, edges, note):
    path = tmp_path / "a.edgelist"
    path.write_text(body)
    named, notes = edges_of(path)
    assert named == edges
    assert [x for x in notes if "names the columns" in x] == [note] * bool(note)


@pytest.mark.parametrize(
    ("gap", "kind"),
    [(",", "commas"), ("\t", "tabs"), (";", "semicolons"), (" ", "blanks")],
)
def test_what_separates_names_is_said(tmp_path, gap, kind):
    path = tmp_path / "a.edgelist"
    path.write_text(f"Alice{gap}Bob\n")
    named, notes = edges_of(path)
    assert named == [("Alice", "Bob")]
    assert notes[-1] == f"{kind} separate the columns"


NUMBERS = [
    ("node 1,node 2\n1,2\n", [[1, 2]], HEAD.format(1, "'node 1'", "'node 2'")),
    ("FromId\tToId\n1\t2\n", [[1, 2]], HEAD.format(1, "'FromId'", "'ToId'")),
    ("a b\n1 2\n", [[1, 2]], HEAD.format(1, "'a'", "'b'")),
    ("\ufeff1,2\n3,4\n", [[1, 2], [3, 4]], ""),
    ("\ufeffa;b\n1;2\n", [[1, 2]], HEAD.format(1, "'a'", "'b'")),
    ("1 2 1\t 108\n3\t4 1 9\n", [[1, 2], [3, 4]], ""),
    ("1 2 0,5\n3 4 0,7\n", [[1, 2], [3, 4]], ""),
    ("1;2;0,5\r\n\r\n3;4;0,7", [[1, 2], [3, 4]], ""),
    ('1,2,"a"\n# c\n3,4\n', [[1, 2], [3, 4]], ""),
]


@pytest.mark.parametrize(("body", "edges", "note"), NUMBERS)
def test_numbers(tmp_path, body, edges, note):
    path = tmp_path / "a.edgelist"
    path.write_text(body)
    edge_file, pairs = read(EdgeListReader, path)
    assert pairs == edges
    assert list(edge_file.notes) == [note] * bool(note)


def test_bytes_that_are_not_utf8(tmp_path):
    path = tmp_path / "a.csv"
    for body, line in (
        (b"a,b\nc\xff,d\n", 2),
        (b"a,b\nc,\xed\xa0\x80\n", 2),
        (b'"a\xff","x"\n', 1),
        (b"\xff b\nc d\n", 1),
    ):
        path.write_bytes(body)
        with pytest.raises(InputError, match=rf"a.csv:{line}: id .* is not UTF-8"):
            opened(path)
    path.write_bytes(b"a,b,\xe9\n# \xe9\nc,d\n")
    assert edges_of(path)[0] == [("a", "b"), ("c", "d")]


def test_lines_of_faults_count_quoted_lines_and_comments(tmp_path, monkeypatch):
    monkeypatch.setattr(text.TextFile.__init__, "__defaults__", (16,))
    path = tmp_path / "a.csv"
    body = '# c\na,b,"x\n# no comment\n"\n\n% c\nc d,e\n'
    path.write_text(body + '"f",\n')
    with pytest.raises(InputError, match=r"a.csv:8: an empty column"):
        opened(path)
    path.write_text(body + 'f,"g\nh\n' + "i,j\n" * 99999)
    with pytest.raises(InputError, match=r"a.csv:8: a column too long, or a quote"):
        opened(path)
    path.write_text(body + "f,g\n\0")
    with pytest.raises(InputError, match=r"a.csv:9: binary data, not text"):
        opened(path)


def test_long_files_are_handed_over_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "PAIRS", 10)
    path = tmp_path / "a.csv"
    path.write_text("".join(f"v {k},v {k + 1}\n" for k in range(95)))
    sizes = []
    reader = EdgeListReader(ReaderOptions(relabel="text"))
    edge_file = reader.read(path, lambda pairs: sizes.append(len(pairs)))
    assert sizes == [10] * 9 + [5]
    assert edge_file.tuples == 95
    assert len(edge_file.words) == 96


# KONECT


KONECT = "% {} unweighted\n% 3 4 4\n1\t2 1\n2 3\n% c\n4 1\n"


@pytest.mark.parametrize("kind", ["sym", "asym"])
@pytest.mark.parametrize("name", ["out.moreno_zebra_zebra", "a.tsv"])
def test_konect_files_count_from_1(tmp_path, kind, name):
    path = tmp_path / name
    path.write_text(KONECT.format(kind))
    with open_tuples(Solo(), path) as source:
        assert source.n == 4
        pairs = np.concatenate([np.stack(x, axis=1) for x in source.chunks(0, 3)])
        assert pairs.tolist() == [[0, 1], [1, 2], [3, 0]]
        assert source.notes[0] == f"{path}: a KONECT file, whose ids begin at 1"
        assert source.describe()["one_based"] is True
    with open_tuples(Solo(), path, options=ReaderOptions(one_based=False)) as source:
        assert source.n == 5
        assert source.notes == [f"{path}: columns after the second are ignored"]
    with opened(path) as source:
        assert named(source) == [(1, 2), (2, 3), (4, 1)]
    path.write_text(KONECT.format(kind) + "0 1\n")
    message = ":7: id 0 is out of range; allowed: 1 or more"
    assert refusal(EdgeListReader, path) == message
    path.write_text(KONECT.format("symmetric matrix"))
    assert read(EdgeListReader, path)[0].n == 5


@pytest.mark.parametrize("sizes", ["", "% 3 2 5\n", "% 3 2 5 1\r\n"])
def test_bipartite_konect_files(tmp_path, sizes):
    path = tmp_path / "out.bip"
    path.write_text(f"% bip weighted\n{sizes}1 2 7\n2 5 8\n1 1 9\n")
    message = (
        ":1: a bipartite KONECT graph, whose columns number two sets of vertices; "
        "--bipartite reads it"
    )
    assert refusal(EdgeListReader, path) == message
    edge_file, edges = read(EdgeListReader, path, bipartite=True)
    assert edges == [[0, 3], [1, 6], [0, 2]]
    assert (edge_file.n, edge_file.one_based) == (7, True)
    assert edge_file.notes == (
        "a KONECT file, whose ids begin at 1",
        "2 rows are vertices from 1 on, 5 columns from 3 on",
    )
    for options in ({"relabel": "numbers"}, {"n": 9}):
        with pytest.raises(UsageError, match="a bipartite KONECT graph st"):
            read(EdgeListReader, path, **options)
    if sizes:
        path.write_text(f"% bip weighted\n{sizes}3 1\n")
        message = ":3: id 3 is out of range; allowed: 1 to 2"
        assert refusal(EdgeListReader, path, bipartite=True) == message
    path.write_text("% sym weighted\n1 2\n")
    with pytest.raises(UsageError, match="leave out --bipartite"):
        read(EdgeListReader, path, bipartite=True)
    path.write_text("% bip weighted\n")
    assert refusal(EdgeListReader, path, bipartite=True) == ":1: no edges"
