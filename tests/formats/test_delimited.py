"""Delimited text: separators, quotes, names of columns; KONECT files."""

import csv
import gzip
import io
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distbfs.errors import InputError, UsageError
from distbfs.formats import pairs, text
from distbfs.formats.base import ReaderOptions, make_reader
from distbfs.formats.edge_list import EdgeListReader
from distbfs.formats.tuples import open_tuples
from distbfs.ranks.world import SoloWorld
from formats.reading import compiling, read, refusal
from formats.test_relabel import FUZZ, WORDS, named, opened

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
        with opened(path, "edge-list") as source:
            assert named(source) == [x[:2] for x in (*first, *rows)]
            said = [x for x in source.notes if "names the columns" in x]
            assert said == [
                f"{path}: line 1 names the columns; ids are in 'Source' and 'Target'"
            ] * bool(header)
            assert ": columns after the second" in source.notes[-1]


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
    assert edge_file.unread.startswith("columns after the second")


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


def edges_of(path, name="", **options):
    """The edges of a file by the ids in it, and what is said."""
    with opened(path, name, **options) as source:
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
    edge = "line 1 is an edge, from 'Alice' to 'Bob'"
    assert notes[-1] == f"{edge}; --header leaves it out, if it names columns"
    assert notes[-2] == f"{kind} separate the columns"
    assert edges_of(path, header=False)[1] == notes[:-1]


@pytest.mark.parametrize(
    ("first", "rest"),
    [
        ("person_a,person_b", ["alice,bob", "bob,carol"]),
        ("u,v", ["v,w", "w,u"]),
        ("id 1,id 2,w", ["007,8,1", "8,9,1"]),
        ("5 4", ["a b", "b c"]),
    ],
)
def test_a_first_line_is_an_edge_or_not_as_one_says(tmp_path, first, rest):
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["# c", first, *rest]) + "\n")
    pairs = [tuple(row.replace(",", " ").split()[:2]) for row in rest]
    edges, notes = edges_of(path, header=True)
    assert edges == pairs
    names = re.split("[, ]" if "," not in first else ",", first)
    assert HEAD.format(2, ascii(names[0]), ascii(names[1])) in notes
    edges, notes = edges_of(path, header=False)
    assert edges == [(names[0], names[1]), *pairs]
    assert not [x for x in notes if x.startswith("line 2")]


def test_a_first_line_that_is_no_edge_may_have_one_column(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("friends\na,b\n")
    edges, notes = edges_of(path, header=True)
    assert edges == [("a", "b")]
    assert "line 1 names the columns; ids are in 'friends'" in notes


def test_text_ids_are_not_counted_by_a_head(tmp_path):
    path = tmp_path / "a.el"
    path.write_text("# distbfs edge list: 3 vertices, 2 edges\n0 1\n1 x\n2 x\n")
    assert edges_of(path)[0] == [("0", "1"), ("1", "x"), ("2", "x")]


SIZES = [
    ("5 4", "0 1,1 2,2 3,3 4", {}, 4),
    ("4 4", "1 2,2 3,3 4,4 1", {"one_based": True}, 4),
    ("5 5 4", "0 1 7,1 2 7,2 3 7,3 4 7", {}, 4),
    ("3 5", "0 1,1 2,2 4", {}, 4),
    ("4 4", "0 1,1 2,2 3,3 4,4 1", {}, None),
    ("3 4", "0 1,1 2,2 3,3 4", {}, None),
    ("0 1", "1 2", {}, None),
    ("0 0", "", {}, None),
]


@pytest.mark.parametrize(("first", "rest", "options", "highest"), SIZES)
def test_a_first_line_that_may_state_sizes_is_said(
    tmp_path, first, rest, options, highest
):
    path = tmp_path / "a.txt"
    rows = rest.split(",") if rest else []
    path.write_text("\n".join([first, *rows]) + "\n")
    edge_file, edges = read(EdgeListReader, path, **options)
    said = [x for x in edge_file.notes if x.startswith("line 1 is an edge, but may")]
    assert bool(said) == (highest is not None)
    if said:
        assert (
            f"as {len(rows)} edges follow, with ids up to {highest}; --hea" in said[0]
        )
    options["header"] = False
    assert read(EdgeListReader, path, **options) == (
        replace(edge_file, notes=()),
        edges,
    )
    if rows:
        options["header"] = True
        left_out = read(EdgeListReader, path, **options)
        assert left_out[1] == edges[1:]
        assert left_out[0].n == max(map(max, edges[1:])) + 1


DOUBTFUL = [
    ("0 1 2 3\n1 0 2\n2 0 1\n3 0\n", "lines have 2 to 4 columns, as in an adjacency"),
    ("a,b,c\nb,c\n", "lines have 2 to 3 columns"),
    ("5 4\n0 1 .5\n1 2 .5\n", "lines have 2 to 3 columns"),
    ("a -> b\nb -> c\n", "'->' stands between the ids of its lines; allowed: tabs, "),
    ("a\t--\tb\n", "'--' stands between"),
    ("0 : 1\n1 : 2\n", "':' stands between"),
    ("a: b\nb: c\n", "':' stands between"),
    ("<x> <p> <y> .\n", "'>' stands between"),
]


@pytest.mark.parametrize("name", ["a.txt", "a"])
@pytest.mark.parametrize(("body", "why"), DOUBTFUL)
def test_lines_with_more_than_two_ids_or_signs_are_refused(tmp_path, body, why, name):
    path = tmp_path / name
    path.write_text(body)
    with pytest.raises(InputError) as error:
        opened(path)
    unknown = name == "a" and "the format is not known" in str(error.value)
    assert unknown or str(error.value).startswith(f"{path}: {why}")
    edges, notes = edges_of(path, name="edge-list")
    first = re.split("[ ,\t]", body.partition("\n")[0])[:2]
    assert list(map(str, edges[0])) == first
    if "\n" in body[:-1] and "stands" not in why:
        assert re.search(
            r"columns after the second(, in . of . lines,)? are", notes[-1]
        )


@pytest.mark.parametrize(
    "body",
    [
        "0 1 \n1 2\n",
        "u,v,note\n1,2\n3,4,x\n",
        "a;b;\nb;c;x\n",
        "- a\nb -\n",
        f'1,2,x,7\n3,4,"y\n{"z" * (1 << 16)}",7\n5,6,x,7\n',
        "# distbfs edge list of ids; convert --relabel reads it\na: b\n",
    ],
)
def test_edge_lists_are_not_doubted(tmp_path, body):
    path = tmp_path / "a.txt"
    path.write_text(body)
    assert edges_of(path)[0]


def test_a_header_is_of_edge_lists(tmp_path):
    path = tmp_path / "a.mtx"
    path.write_text("%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n")
    for header in (True, False):
        with pytest.raises(UsageError, match="matrix-market has no line that names"):
            make_reader(path, "", ReaderOptions(header=header))
    with pytest.raises(UsageError, match="leave out --no-header"):
        ReaderOptions(header=False, columns=("u", "v"))


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
    path.write_bytes(b"a,b,\xe9\n# \xe9\nc,d,\n")
    assert edges_of(path)[0] == [("a", "b"), ("c", "d")]


def test_lines_of_faults_count_quoted_lines_and_comments(tmp_path, monkeypatch):
    monkeypatch.setattr(text.TextFile.__init__, "__defaults__", (16,))
    path = tmp_path / "a.csv"
    body = '# c\na,b,"x\n# no comment\n"\n\n% c\nc d,e\n'
    path.write_text(body + '"f",\n')
    with pytest.raises(InputError, match=r"a.csv:8: an empty column"):
        opened(path, "edge-list")
    path.write_text(body + 'f,"g\nh\n' + "i,j\n" * 99999)
    with pytest.raises(InputError, match=r"a.csv:8: a column too long, or a quote"):
        opened(path, "edge-list")
    path.write_text(body + "f,g\n\0")
    with pytest.raises(InputError, match=r"a.csv:9: binary data, not text"):
        opened(path, "edge-list")


def test_long_files_are_handed_over_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(pairs, "PAIRS", 10)
    path = tmp_path / "a.csv"
    path.write_text("".join(f"v {k},v {k + 1}\n" for k in range(95)))
    sizes = []
    with compiling(compiled=False):
        reader = EdgeListReader(ReaderOptions(relabel="text"))
        edge_file = reader.read(path, lambda piece: sizes.append(len(piece)))
    assert sizes == [10] * 9 + [5]
    assert edge_file.tuples == 95


# KONECT


KONECT = "% {} unweighted\n% 3 4 4\n1\t2 1\n2 3\n% c\n4 1\n"


@pytest.mark.parametrize("kind", ["sym", "asym"])
@pytest.mark.parametrize("name", ["out.moreno_zebra_zebra", "a.tsv"])
def test_konect_files_count_from_1(tmp_path, kind, name):
    path = tmp_path / name
    path.write_text(KONECT.format(kind))
    with open_tuples(SoloWorld(), path) as source:
        assert source.n == 4
        pairs = np.concatenate([np.stack(x, axis=1) for x in source.chunks(0, 3)])
        assert pairs.tolist() == [[0, 1], [1, 2], [3, 0]]
        assert source.notes[0] == f"{path}: a KONECT file, whose ids begin at 1"
        assert source.describe()["one_based"] is True
    with open_tuples(
        SoloWorld(), path, options=ReaderOptions(one_based=False)
    ) as source:
        assert source.n == 5
        said = "columns after the second, in 1 of 3 lines, are ignored"
        assert source.notes == [f"{path}: {said}"]
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
    assert refusal(EdgeListReader, path, bipartite=True) == ": no edges"
