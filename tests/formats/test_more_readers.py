import gzip
import io
import struct
import zipfile
from itertools import chain

import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from distbfs.errors import InputError, UsageError
from distbfs.formats import gap_sg, metis, numpy_pairs, packed, text
from distbfs.formats.base import ReaderOptions, make_reader, sniff
from distbfs.formats.dimacs import KINDS, DimacsReader
from distbfs.formats.galois import GaloisReader
from distbfs.formats.gap_sg import GapReader
from distbfs.formats.metis import MetisReader
from distbfs.formats.numpy_pairs import NumpyReader
from distbfs.formats.packed import Int64Reader, PackedReader
from formats.reading import WAYS, compiling, read, refusal

FUZZ = settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
ID = st.integers(0, 40)
PAIRS = st.lists(st.tuples(ID, ID), min_size=1, max_size=30)


@pytest.fixture(params=[3, 1 << 18])
def chunk(request, monkeypatch):
    """Pieces so small that a short file has many, and as they are."""
    for module in (packed, gap_sg, numpy_pairs):
        monkeypatch.setattr(module, "CHUNK", request.param)


def small_chunks(patch, size):
    for module in (packed, gap_sg, numpy_pairs):
        patch.setattr(module, "CHUNK", size)


# Graph500


def packed_bytes(pairs):
    out = b""
    for u, v in pairs:
        upper = (u >> 32 & 0xFFFF) | (v >> 32 & 0xFFFF) << 16
        out += struct.pack("<III", u & 0xFFFFFFFF, v & 0xFFFFFFFF, upper)
    return out


def int64_bytes(pairs):
    return b"".join(struct.pack("<qq", *pair) for pair in pairs)


GRAPH500 = [(PackedReader, packed_bytes, 12), (Int64Reader, int64_bytes, 16)]


@pytest.mark.parametrize(("kind", "encode", "width"), GRAPH500)
@FUZZ
@given(data=st.data(), size=st.sampled_from([1, 2, 1 << 18]))
def test_graph500_round_trip(scratch, kind, encode, width, data, size):
    most = 2**47 - 1 if width == 12 else 2**63 - 2
    ids = st.integers(0, most) | st.integers(0, 9)
    pairs = data.draw(st.lists(st.tuples(ids, ids), min_size=1, max_size=12))
    scratch.write_bytes(encode(pairs))
    with pytest.MonkeyPatch.context() as patch:
        small_chunks(patch, size)
        edge_file, edges = read(kind, scratch)
    assert edges == [list(x) for x in pairs]
    assert edge_file.n == max(max(x) for x in pairs) + 1


@pytest.mark.parametrize(("kind", "encode", "width"), GRAPH500)
def test_graph500_refusals(tmp_path, kind, encode, width, chunk):
    path = tmp_path / "edges"
    path.write_bytes(b"")
    assert refusal(kind, path) == ": byte 0: the file is empty"
    good = [(0, 1)] * 5
    path.write_bytes(encode(good)[:-1])
    assert refusal(kind, path) == (
        f": byte {4 * width}: {width - 1} bytes, where an edge takes {width}"
    )
    path.write_bytes(encode([*good, (3, -2), (-1, 1)]))
    assert refusal(kind, path) == f": byte {5 * width}: a negative id -2"
    path.write_bytes(encode([*good, (3, 7)]))
    assert read(kind, path, n=8)[0].n == 8
    assert refusal(kind, path, n=7) == (
        f": byte {5 * width}: id 7 is out of range; allowed: 0 to 6"
    )
    with pytest.raises(UsageError, match="start at 0"):
        kind(ReaderOptions(one_based=True))


def test_graph500_packed_by_hand(tmp_path):
    path = tmp_path / "edges"
    path.write_bytes(bytes.fromhex("01000000 ffffffff 0200ff7f"))
    assert read(PackedReader, path)[1] == [[2 * 2**32 + 1, 2**47 - 1]]


# GAP


def lists_of(pairs, n):
    """Return offsets and neighbours of the pairs by their first id."""
    rows = [sorted(v for u, v in pairs if u == row) for row in range(n)]
    offsets = np.cumsum([0, *map(len, rows)])
    return offsets, list(chain.from_iterable(rows))


def sg_bytes(pairs, n, directed, weighted):
    """Return a file as the GAP reference code writes it."""
    if not directed:
        pairs = pairs + [(v, u) for u, v in pairs if u != v]
    out = struct.pack("<?qq", directed, len(pairs), n)
    for side in [pairs, [(v, u) for u, v in pairs]][: 1 + directed]:
        offsets, near = lists_of(side, n)
        if weighted:
            near = [x for v in near for x in (v, 255 - v)]
        out += offsets.astype("<i8").tobytes() + np.array(near, "<i4").tobytes()
    return out


@pytest.mark.thorough
@FUZZ
@given(PAIRS, st.booleans(), st.booleans(), st.sampled_from([1, 2, 5, 1 << 18]))
def test_gap_round_trip(scratch, pairs, directed, weighted, size):
    n = 41 + len(pairs)
    scratch.write_bytes(sg_bytes(pairs, n, directed, weighted))
    with pytest.MonkeyPatch.context() as patch:
        small_chunks(patch, size)
        edge_file, edges = read(GapReader, scratch)
    want = pairs if directed else [(min(x), max(x)) for x in pairs]
    assert sorted(edges) == sorted(list(x) for x in want)
    assert edge_file.n == n


def test_gap_without_edges(tmp_path, chunk):
    path = tmp_path / "a.sg"
    for directed in (True, False):
        path.write_bytes(sg_bytes([], 9, directed, weighted=False))
        edge_file, edges = read(GapReader, path)
        assert (edge_file.n, edges) == (9, [])


TRIANGLE = sg_bytes([(0, 1), (1, 2), (0, 2)], 3, directed=False, weighted=False)
ARCS = sg_bytes([(0, 1), (1, 2), (0, 2)], 3, directed=True, weighted=False)


def put(data, at, form, value):
    """Return bytes with a number replaced."""
    data = bytearray(data)
    struct.pack_into(form, data, at, value)
    return bytes(data)


GAP_FAULTS = [
    (b"", ": byte 0: the file is empty"),
    (b"\0" * 5, ": byte 5: the file ends, where a header takes 17 bytes"),
    (put(TRIANGLE, 0, "<B", 2), ": byte 0: directed is 2; allowed: 0, 1"),
    (put(TRIANGLE, 1, "<q", -6), ": byte 1: -6 entries"),
    (put(TRIANGLE, 9, "<q", 0), ": byte 9: 0 nodes; allowed: 1 to 2147483648"),
    (put(TRIANGLE, 9, "<q", 2**62), f": byte 9: {2**62} nodes; allowed: 1 to {2**31}"),
    (
        TRIANGLE[:-1],
        (": byte 72: the file ends, where 3 nodes and 6 entries take 73 or 97 bytes"),
    ),
    (
        TRIANGLE + b"\0",
        (": byte 74: the file ends, where 3 nodes and 6 entries take 73 or 97 bytes"),
    ),
    (put(TRIANGLE, 17, "<q", 1), ": byte 17: the first offset is 1, not 0"),
    (put(TRIANGLE, 25, "<q", 7), ": byte 25: offset 7 after 0, of 6 entries"),
    (put(TRIANGLE, 33, "<q", 1), ": byte 33: offset 1 after 2, of 6 entries"),
    (put(TRIANGLE, 41, "<q", 5), ": byte 41: the last offset is 5, not 6"),
    (put(TRIANGLE, 53, "<i", -1), ": byte 53: a negative id -1"),
    (put(TRIANGLE, 53, "<i", 3), ": byte 53: id 3 is out of range; allowed: 0 to 2"),
    (
        put(TRIANGLE, 53, "<i", 1),
        ": undirected, but an edge is not listed from both ends",
    ),
    (
        put(TRIANGLE, 49, "<i", 0),
        ": undirected, but an edge is not listed from both ends",
    ),
    (
        put(ARCS, len(ARCS) - 4, "<i", 0),
        ": incoming and outgoing edges differ",
    ),
    (
        put(ARCS, len(ARCS) - 4, "<i", 9),
        ": byte 101: id 9 is out of range; allowed: 0 to 2",
    ),
    (put(ARCS, len(ARCS) - 36, "<q", 4), ": byte 69: offset 4 after 0, of 3 entries"),
]


@pytest.mark.parametrize(("body", "message"), GAP_FAULTS)
def test_gap_refusals(tmp_path, body, message, chunk):
    path = tmp_path / "a.sg"
    path.write_bytes(body)
    assert refusal(GapReader, path) == message


# Galois


def galois_bytes(pairs, n, version=1, data=0, padded=True):
    """Return a file as Galois writes it."""
    offsets, near = lists_of(pairs, n)
    kind = {1: "<u4", 2: "<u8"}[version]
    out = struct.pack("<QQQQ", version, data, n, len(pairs))
    out += offsets[1:].astype("<u8").tobytes() + np.array(near, kind).tobytes()
    if len(pairs) % 2 and padded:
        out += bytes(np.dtype(kind).itemsize)
    return out + b"\xff" * (data * len(pairs))


@FUZZ
@given(
    PAIRS,
    st.sampled_from([1, 2]),
    st.sampled_from([0, 4, 8]),
    st.booleans(),
    st.sampled_from([1, 2, 5, 1 << 18]),
)
def test_galois_round_trip(scratch, pairs, version, data, padded, size):
    n = 41 + len(pairs)
    padded = padded or (version == 1 and data > 0)
    scratch.write_bytes(galois_bytes(pairs, n, version, data, padded))
    with pytest.MonkeyPatch.context() as patch:
        small_chunks(patch, size)
        edge_file, edges = read(GaloisReader, scratch)
    assert sorted(edges) == sorted(list(x) for x in pairs)
    assert edge_file.n == n
    assert edge_file.unread == ("data of edges" if data else "")


GALOIS = galois_bytes([(0, 1), (1, 2), (2, 0)], 3)
GALOIS_FAULTS = [
    (b"", ": byte 0: the file is empty"),
    (GALOIS[:31], ": byte 31: the file ends, where a header takes 32 bytes"),
    (put(GALOIS, 0, "<Q", 3), ": byte 0: version 3; allowed: 1, 2"),
    (
        put(GALOIS, 8, "<Q", 2**63),
        f": byte 8: {2**63} bytes of data; allowed: up to {2**63 - 1}",
    ),
    (put(GALOIS, 16, "<Q", 0), ": byte 16: no nodes"),
    (
        put(GALOIS, 16, "<Q", 2**33),
        f": byte 16: {2**33} nodes; allowed: up to {2**32}",
    ),
    (
        put(GALOIS, 24, "<Q", 2**64 - 1),
        f": byte 24: {2**64 - 1} edges; allowed: up to {2**63 - 1}",
    ),
    (
        GALOIS[:-1],
        ": byte 71: the file ends, where 3 nodes and 3 edges take 68 or 72 bytes",
    ),
    (
        GALOIS + b"\0",
        ": byte 73: the file ends, where 3 nodes and 3 edges take 68 or 72 bytes",
    ),
    (put(GALOIS, 32, "<Q", 4), ": byte 32: offset 4 after 0, of 3 entries"),
    (put(GALOIS, 40, "<Q", 0), ": byte 40: offset 0 after 1, of 3 entries"),
    (put(GALOIS, 48, "<Q", 2), ": byte 48: the last offset is 2, not 3"),
    (put(GALOIS, 60, "<I", 3), ": byte 60: id 3 is out of range; allowed: 0 to 2"),
    (
        put(GALOIS, 60, "<I", 2**32 - 1),
        f": byte 60: id {2**32 - 1} is out of range; allowed: 0 to 2",
    ),
]


@pytest.mark.parametrize(("body", "message"), GALOIS_FAULTS)
def test_galois_refusals(tmp_path, body, message, chunk):
    path = tmp_path / "a.gr"
    path.write_bytes(body)
    assert refusal(GaloisReader, path) == message


# DIMACS


@FUZZ
@given(
    PAIRS,
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([" ", "\t", "  "]),
    st.sampled_from([64, 1 << 20]),
    st.lists(st.sampled_from(["c", "c a 1 2 3", "", "  "]), max_size=3),
    st.booleans(),
)
def test_dimacs_round_trip(scratch, pairs, end, gap, block, noise, whole):
    rows = ["c made by a test", *noise, f"p sp 41 {len(pairs)}"]
    for u, v in pairs:
        rows += [gap.join(("a", str(u + 1), str(v + 1), "-7")), *noise]
    body = end.join(rows) + end
    scratch.write_bytes((body if whole else body.rstrip()).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text.TextFile.__init__, "__defaults__", (block,))
        edge_file, edges = read(DimacsReader, scratch)
    assert edges == [list(x) for x in pairs]
    assert edge_file.n == 41


SP = "c x\np sp 3 2\n"
ARC = "neither an edge 'a U V WEIGHT' nor a comment 'c'"
PROBLEMS = ", ".join(KINDS)
DIMACS_FAULTS = [
    ("", ":1: the file is empty"),
    ("c a\n", ":1: no problem line 'p KIND NODES EDGES'"),
    ("1 2\n", ":1: no problem line 'p KIND NODES EDGES'"),
    ("a 1 2 3\n", ":1: no problem line 'p KIND NODES EDGES'"),
    ("c\np cnf 3 2\n", f":2: problem 'cnf'; allowed: {PROBLEMS}"),
    ("p\n", f":1: problem ''; allowed: {PROBLEMS}"),
    ("p sp 3\n", ":1: the problem line needs nodes and edges"),
    ("p sp 3 -1\n", ":1: the problem line needs nodes and edges"),
    ("p sp 9999999999999999999 1\n", ":1: a size is above 2^63-1"),
    ("p sp 0 0\n", ":1: no vertices"),
    (f"{SP}a 1 2 1\n", ":3: 2 entries declared, 1 found"),
    (f"{SP}a 1 2 1\na 1 2 1\n\na 1 2 1\n", ":6: more entries than the 2 declared"),
    (f"{SP}a 1 4 1\n", ":3: id 4 is out of range; allowed: 1 to 3"),
    (f"{SP}a 0 1 1\n", ":3: id 0 is out of range; allowed: 1 to 3"),
    (f"{SP}a 1 -1 1\n", ":3: a negative id '-1'"),
    (f"{SP}a 1 1.5 1\n", ":3: '1.5' is not an integer id"),
    (f"{SP}a 1 2\n", f":3: 'a 1 2' is {ARC}"),
    (f"{SP}a 1 2 1\n1 2 1\n", f":4: '1 2 1' is {ARC}"),
    (f"{SP}a 1 2 1\n  1 2 1\n", f":4: '1 2 1' is {ARC}"),
    (f"{SP}a 1 9 1\n1 2 1\n", ":3: id 9 is out of range; allowed: 1 to 3"),
    (f"{SP}a 1 2 1\na\na 1 2 1\n", f":4: 'a' is {ARC}"),
    (f"{SP}a 1 2 1\na  \na 1 2 1\n", f":4: 'a' is {ARC}"),
    (f"{SP}a c 2 1\na 1 2 1\n", ":3: 'c' is not an id"),
    (f"{SP}a1 2 1\n", f":3: 'a1 2 1' is {ARC}"),
    (f"{SP}a 1 2 1\na 1 2 1\na", f":5: 'a' is {ARC}"),
    (f"{SP}p sp 3 2\n", ":3: a second problem line"),
    (
        "p max 3 1\nn 1 s\nn 3 t\na 1 2\n",
        ":4: 'a 1 2' is neither an edge 'a U V CAPACITY' nor a comment 'c'",
    ),
    (
        "p edge 3 1\ne 1 2 3\n",
        ":2: 'e 1 2 3' is neither an edge 'e U V' nor a comment 'c'",
    ),
    ("p col 3 1\na 1 2\n", ":2: 'a 1 2' is neither an edge 'e U V' nor a comment 'c'"),
    ("p edge 3 1\ne 1 4\n", ":2: id 4 is out of range; allowed: 1 to 3"),
    ("p tw 3 1\n1 2 3\n", ":2: 3 columns, where 2 are expected"),
    ("p tw 3 1\n0 2\n", ":2: id 0 is out of range; allowed: 1 to 3"),
    ("p td 3 1\n1\n", ":2: one column, where two ids are expected"),
    ("p td 3 1\ne 1 2\n", ":2: 'e' is not an id"),
    ("p td 3 2\n1 2\n", ":2: 2 entries declared, 1 found"),
    (f"{SP}a 1 2 1\na 1 \0 1\n", ":1: binary data, not text"),
    ("\x01\0\0\0\0\0\0\0", ":1: binary data, not text"),
]


@pytest.mark.parametrize(("body", "message"), DIMACS_FAULTS)
def test_dimacs_refusals(tmp_path, body, message):
    path = tmp_path / "a.gr"
    path.write_bytes(body.encode())
    if "a 1 \0" in body:
        message = ":4: binary data, not text"
    assert refusal(DimacsReader, path) == message


@pytest.mark.parametrize(
    ("body", "unread"),
    [
        ("c\np max 4 2\nn 1 s\nn 4 t\na 1 2 9\na 2 4 1\n", "capacities"),
        ("c\np edge 4 2\nn 1 7\ne 1 2\nd 2 1\nv 1 2\nx 3 4\ne 2 4\n", ""),
        ("p col 4 2\r\ne 1 2\r\ne\t2 4\r\n", ""),
        *((f"c\np {kind} 4 2\n1 2\nc\n2 4\n", "") for kind in ("tw", "td", "vc")),
    ],
)
def test_dimacs_problems(tmp_path, body, unread):
    path = tmp_path / "graph"
    path.write_bytes(body.encode())
    assert sniff(path) == "dimacs"
    edge_file, edges = read(DimacsReader, path)
    assert edges == [[0, 1], [1, 3]]
    assert (edge_file.n, edge_file.one_based, edge_file.unread) == (4, True, unread)
    if "p max" not in body:
        with pytest.raises(UsageError, match="leave out --directed"):
            read(DimacsReader, path, directed=True)


# METIS


def metis_text(pairs, n, fmt="", ncon="", noise=(), end="\n", gap=" "):
    """Return a file; sizes and weights are numbers above all ids."""
    flags = fmt.rjust(3, "0")
    before = (flags[0] == "1") + (flags[1] == "1") * int(ncon or 1)
    both = pairs + [(v, u) for u, v in pairs]
    rows = [*noise, f" {n}  {len(pairs)} {fmt} {ncon}"]
    for row in range(n):
        near = [v + 1 for u, v in both if u == row]
        if flags[2] == "1":
            near = [x for v in near for x in (v, 7000 + v)]
        rows += [*noise, gap.join(map(str, [5000] * before + near))]
    return end.join(rows) + end


@FUZZ
@given(
    PAIRS,
    st.sampled_from(["", "0", "1", "10", "011", "100", "111", "101"]),
    st.sampled_from(["", "1", "2"]),
    st.lists(st.sampled_from(["%", "% 1 2 é", "%1"]), max_size=2),
    st.sampled_from(["\n", "\r\n", " \n"]),
    st.sampled_from([" ", "\t", "   "]),
    st.sampled_from([1, 2, 3, 7, 64, 1 << 20]),
)
def test_metis_round_trip(scratch, pairs, fmt, ncon, noise, end, gap, piece):
    pairs = [x for x in pairs if x[0] != x[1]]
    ncon = ncon if fmt.rjust(3, "0")[1] == "1" else ""
    body = metis_text(pairs, 41, fmt, ncon, noise, end, gap)
    scratch.write_bytes(body.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metis, "BLOCK_BYTES", piece)
        edge_file, edges = read(MetisReader, scratch)
    assert sorted(edges) == sorted([min(x), max(x)] for x in pairs)
    assert edge_file.n == 41


def test_metis_manual_example(tmp_path):
    """The graph of figure 2 of the METIS manual, without and with all weights."""
    path = tmp_path / "a.graph"
    want = [(1, 2), (1, 3), (1, 5), (2, 3), (2, 4), (3, 4), (3, 5), (4, 6), (4, 7)]
    want = sorted([u - 1, v - 1] for u, v in [*want, (5, 6), (6, 7)])
    path.write_text("7 11\n5 3 2\n1 3 4\n5 4 2 1\n2 3 6 7\n1 3 6\n5 4 7\n6 4\n")
    edge_file, edges = read(MetisReader, path)
    assert (edge_file.n, sorted(edges)) == (7, want)
    path.write_text(
        "7 11 011\n4 5 1 3 2 2 1\n2 1 1 3 2 4 1\n5 5 3 4 2 2 2 1 2\n"
        "3 2 1 3 2 6 2 7 5\n1 1 1 3 3 6 2\n6 5 2 4 2 7 6\n2 6 6 4 5"
    )
    assert read(MetisReader, path)[1] == edges


METIS_FAULTS = [
    ("", ":1: the file is empty"),
    ("% a\n", ":1: the header needs vertices, edges and, optionally, fmt and ncon"),
    ("\n3 1\n", ":1: the header needs vertices, edges and, optionally, fmt and ncon"),
    ("3\n", ":1: the header needs vertices, edges and, optionally, fmt and ncon"),
    ("3 -1\n", ":1: the header needs vertices, edges and, optionally, fmt and ncon"),
    (
        "3 1 0 0 0\n",
        ":1: the header needs vertices, edges and, optionally, fmt and ncon",
    ),
    ("9999999999999999999 1\n", ":1: a size is above 2^63-1"),
    ("0 0\n", ":1: no vertices"),
    ("3 1 2\n", ":1: fmt '2'; allowed: three of 0, 1"),
    ("3 1 1111\n", ":1: fmt '1111'; allowed: three of 0, 1"),
    ("3 1 1 2\n", ":1: ncon 2, but fmt 1 has no weights"),
    ("3 1 10 1999999999\n", ":1: ncon 1999999999; allowed: up to 1073741824"),
    ("3 1\n2\n1\n", ":3: 3 vertices declared, 2 found"),
    ("3 1\n2\n% c\n1", ":4: 3 vertices declared, 2 found"),
    ("3 1\n", ":1: 3 vertices declared, 0 found"),
    ("3 1\n2\n1\n\n\n1\n", ":6: more lines than the 3 vertices declared"),
    ("3 1\n4\n", ":2: id 4 is out of range; allowed: 1 to 3"),
    ("3 1\n2\n0\n", ":3: id 0 is out of range; allowed: 1 to 3"),
    ("3 1\n2\n-1\n", ":3: a negative id '-1'"),
    ("3 1\n2\n1.0\n", ":3: '1.0' is not an integer id"),
    ("3 1\n2\n1 x\n", ":3: 'x' is not an id"),
    ("3 1\n2\r1\n1\n", ":2: '2\\r1' is not an id"),
    ("3 1\n2 é\n1\n", ":2: '\\\\xc3\\\\xa9' is not an id"),
    ("3 1\n4\nx\n", ":2: id 4 is out of range; allowed: 1 to 3"),
    ("3 1\n2\n99999999999999999999\n", ":3: id '99999999999999999999' is above 2^63-1"),
    (f"3 1\n2\n{1:020}\n", ":3: 3 vertices declared, 2 found"),
    (f"{10**18} 1\n2\n{10**18}\n", ":3: a number of more than 18 digits"),
    ("3 1\n1\n", ":2: vertex 1 lists itself"),
    ("3 1\n2\n3\n\n", ": an edge is not listed from both ends"),
    (
        "3 2\n2\n1\n\n",
        ":4: 2 edges declared, 2 neighbours found, where two per edge are expected",
    ),
    ("3 1 1\n2\n1 5\n\n", ":2: a neighbour without its weight"),
    ("3 1 1\n2 x\n1 5\n\n", ":2: 'x' is not a size or weight"),
    ("3 1 1\n2 1.5\n1 5\n\n", ":2: '1.5' is not a size or weight"),
    ("3 1 10\n5 2\n5 1\n\n", ":4: 0 numbers, where sizes and weights take 1"),
    ("3 1 110 2\n5 5 5 2\n5 5\n\n", ":3: 2 numbers, where sizes and weights take 3"),
    ("3 1\n2\n1 \0\n", ":3: binary data, not text"),
]


@pytest.mark.parametrize("piece", [2, 5, 1 << 20])
@pytest.mark.parametrize(("body", "message"), METIS_FAULTS)
def test_metis_refusals(tmp_path, monkeypatch, body, message, piece):
    monkeypatch.setattr(metis, "BLOCK_BYTES", piece)
    path = tmp_path / "a.graph"
    path.write_bytes(body.encode())
    assert refusal(MetisReader, path) == message


def test_metis_lines_may_be_long_but_not_endless(tmp_path, monkeypatch):
    monkeypatch.setattr(metis, "BLOCK_BYTES", 16)
    monkeypatch.setattr(text.TextFile, "longest", 32)
    path = tmp_path / "a.graph"
    path.write_text(metis_text([(0, v) for v in range(1, 99)], 99))
    assert len(read(MetisReader, path)[1]) == 98
    monkeypatch.setattr(metis.ListFile, "longest", 32)
    path.write_text("2 1\n2\n" + "1 " * 100)
    assert refusal(MetisReader, path) == ":3: a line of more than 32 bytes"


# NumPy


DTYPES = st.sampled_from(["<i4", ">i4", "<i8", "<u8", ">u2", "u1", "i1"])


@FUZZ
@given(
    PAIRS,
    DTYPES,
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1, 3, 1 << 18]),
)
def test_npy_round_trip(scratch, pairs, dtype, turned, fortran, one_based, size):
    array = np.array(pairs, dtype) + np.array(one_based, dtype)
    turned = turned and len(pairs) > 2
    array = array.T if turned else array
    order = np.asfortranarray if fortran else np.ascontiguousarray
    with scratch.open("wb") as out:
        np.save(out, order(array))
    with pytest.MonkeyPatch.context() as patch:
        small_chunks(patch, size)
        edge_file, edges = read(NumpyReader, scratch, one_based=one_based)
    assert edges == [list(x) for x in pairs]
    assert edge_file.n == np.max(pairs) + 1


@FUZZ
@given(PAIRS, DTYPES, DTYPES, st.booleans(), st.sampled_from([1, 3, 1 << 18]))
def test_npz_columns_round_trip(scratch, pairs, first, second, compressed, size):
    src, dst = zip(*pairs, strict=True)
    save = np.savez_compressed if compressed else np.savez
    with scratch.open("wb") as out:
        save(out, dst=np.array(dst, second), src=np.array(src, first))
    with pytest.MonkeyPatch.context() as patch:
        small_chunks(patch, size)
        edge_file, edges = read(NumpyReader, scratch, n=50)
    assert edges == [list(x) for x in pairs]
    assert edge_file.n == 50


@pytest.mark.thorough
@FUZZ
@given(
    st.sets(st.tuples(ID, ID), max_size=30),
    st.sampled_from(["csr", "csc", "coo"]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1, 3, 1 << 18]),
)
def test_scipy_round_trip(scratch, pairs, kind, array, compressed, size):
    """As a square matrix, and as a rectangular one, whose columns follow its rows."""
    u, v = np.array(sorted(pairs), int).reshape(-1, 2).T
    make = scipy.sparse.coo_array if array else scipy.sparse.coo_matrix
    for rows, bipartite in ((60, False), (41, True)):
        matrix = make((np.ones(len(u)), (u, v)), shape=(rows, 60)).asformat(kind)
        with scratch.open("wb") as out:
            scipy.sparse.save_npz(out, matrix, compressed=compressed)
        with pytest.MonkeyPatch.context() as patch:
            small_chunks(patch, size)
            edge_file, edges = read(NumpyReader, scratch, bipartite=bipartite)
        shift = rows if bipartite else 0
        assert sorted(edges) == sorted([u, v + shift] for u, v in pairs)
        assert edge_file.n == 60 + shift
    notes = ("41 rows are vertices from 0 on, 60 columns from 41 on",)
    assert edge_file.notes == notes
    assert refusal(NumpyReader, scratch) == (
        ": a matrix of 41 rows and 60 columns; --bipartite reads them as two sets of "
        "vertices"
    )


def test_numpy_pairs_are_not_bipartite(tmp_path):
    path = tmp_path / "a"
    for body in (npy_bytes(np.array([[0, 1]])), npz_bytes(src=[0], dst=[1])):
        path.write_bytes(body)
        with pytest.raises(UsageError, match="ids of NumPy pairs name one set"):
            read(NumpyReader, path, bipartite=True)


def npy_bytes(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def npz_bytes(**arrays):
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def csr_bytes(**changes):
    members = {
        "indptr": [0, 1, 2],
        "indices": [1, 0],
        "data": [1, 1],
        "shape": [2, 2],
        "format": b"csr",
    }
    return npz_bytes(**{k: v for k, v in (members | changes).items() if v is not None})


def zip_bytes(method=zipfile.ZIP_STORED, **members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return out.getvalue()


IDS = npy_bytes(np.arange(2))
NUMPY_FAULTS = [
    (b"", ": byte 0: the file is empty"),
    (b"0 1\n2 3\n", ": byte 0: neither a .npy array nor a .npz archive"),
    (b"\x93NUMPY", ": the file cannot be read: EOF: reading magic string"),
    (
        b"\x93NUMPY\x04\0" + bytes(9),
        ": the file cannot be read: we only support format version",
    ),
    (
        b"\x93NUMPY\x02\0\xff\xff\xff\x7f",
        ": the file cannot be read: EOF: reading array header, expected",
    ),
    (npy_bytes(np.ones((2, 2))), ": float64 values, where integers are expected"),
    (
        npy_bytes(np.array([[True, False]])),
        ": bool values, where integers are expected",
    ),
    (
        npy_bytes(np.array([[{}, {}]], object)),
        ": the file cannot be read: Array can't be memory-mapped: Python objects",
    ),
    (
        npy_bytes(np.ones((3, 3), int)),
        ": shape [3, 3], where [k, 2] or [2, k] is expected",
    ),
    (npy_bytes(np.ones(4, int)), ": shape [4], where [k, 2] or [2, k] is expected"),
    (
        npy_bytes(np.ones((4, 2), int))[:-1],
        ": the file cannot be read: the file ends before the last value",
    ),
    (
        npy_bytes(np.ones((4, 2), int)) + b"\0",
        ": the file cannot be read: bytes after the last value",
    ),
    (npy_bytes(np.ones((0, 2), int)), ": no edges"),
    (npy_bytes(np.array([[0, 1], [2, -3]])), ": [1]: a negative id -3"),
    (
        npy_bytes(np.array([[0, 1], [2**63, 3]], np.uint64)),
        f": [1]: id {2**63} is above 2^63-1",
    ),
    (npz_bytes(a=[1]), ": neither arrays src and dst nor a SciPy sparse matrix"),
    (
        zip_bytes(src=IDS, dst=IDS).replace(b"dst.npy", b"src.npy"),
        ": 2 arrays 'src'",
    ),
    (npz_bytes(src=[1, 2], dst=[1]), ": dst: 1 values, where 2 are expected"),
    (
        npz_bytes(src=[1.0], dst=[1]),
        ": src: float64 values, where integers are expected",
    ),
    (npz_bytes(src=[[1]], dst=[1]), ": src: shape [1, 1], where [k] is expected"),
    (npz_bytes(src=[0, 1, 2, 3], dst=[1, 1, 1, -1]), ": dst[3]: a negative id -1"),
    (npz_bytes(src=np.ones(0, int), dst=np.ones(0, int)), ": no edges"),
    (
        zip_bytes(src=IDS[:-1], dst=IDS),
        ": src: the file cannot be read: the file ends before the last value",
    ),
    (
        zip_bytes(src=IDS, dst=IDS + b"\0"),
        ": dst: the file cannot be read: bytes after the last value",
    ),
    (
        zip_bytes(zipfile.ZIP_BZIP2, src=IDS, dst=IDS),
        ": src: the file cannot be read: compressed by method 12",
    ),
    (
        zip_bytes(src=b"", dst=IDS),
        ": src: the file cannot be read: EOF: reading magic string",
    ),
    (
        npy_bytes(np.ones((2, 2), int)).replace(b"False", b"Falsy"),
        ": the file cannot be read: malformed node or string on line 1",
    ),
    (csr_bytes()[:100], ": the file cannot be read: File is not a zip file"),
    (csr_bytes(format=b"dia"), ": sparse format 'dia'; allowed: csr, csc, coo"),
    (csr_bytes(format=7), ": format: not a word"),
    (csr_bytes(indptr=None), ": no array 'indptr'"),
    (csr_bytes(shape=[2, 2, 2]), ": shape: 3 sizes, not 2"),
    (csr_bytes(shape=[2, -2]), ": shape[1]: a negative id -2"),
    (csr_bytes(shape=[0, 0]), ": no vertices"),
    (csr_bytes(shape=[3, 3]), ": indptr: 3 values, where 4 are expected"),
    (csr_bytes(indptr=[1, 1, 2]), ": indptr[0]: the first offset is 1, not 0"),
    (csr_bytes(indptr=[0, 2, 1]), ": indptr[2]: offset 1 after 2, of 2 entries"),
    (csr_bytes(indptr=[0, 1, 1]), ": indptr[2]: the last offset is 1, not 2"),
    (csr_bytes(indices=[1, 2]), ": indices[1]: id 2 is out of range; allowed: 0 to 1"),
    (csr_bytes(format=b"coo"), ": no array 'row'"),
    (
        csr_bytes(format=b"coo", row=[0, 2], col=[0, 3], shape=[3, 3]),
        ": col[1]: id 3 is out of range; allowed: 0 to 2",
    ),
]


@pytest.mark.parametrize(("body", "message"), NUMPY_FAULTS)
def test_numpy_refusals(tmp_path, body, message, chunk):
    path = tmp_path / "a.npy"
    path.write_bytes(body)
    assert refusal(NumpyReader, path).startswith(message)


def test_numpy_base_and_size(tmp_path):
    path = tmp_path / "a.npz"
    path.write_bytes(npz_bytes(src=[1, 2], dst=[2, 3]))
    assert read(NumpyReader, path, n=3, one_based=True)[1] == [[0, 1], [1, 2]]
    assert refusal(NumpyReader, path, n=3) == (
        ": dst[1]: id 3 is out of range; allowed: 0 to 2"
    )
    path.write_bytes(csr_bytes())
    for options in (ReaderOptions(one_based=True), ReaderOptions(n=4)):
        with pytest.raises(UsageError, match="states its size"):
            NumpyReader(options).read(path, print)


def test_an_archive_with_a_wrong_checksum_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    body = npz_bytes(src=[1, 2], dst=[2, 3])
    at = body.index(struct.pack("<q", 3))
    path.write_bytes(put(body, at, "<q", 4))
    assert "Bad CRC-32" in refusal(NumpyReader, path)


def test_a_full_disk_is_not_a_bad_file(tmp_path):
    path = tmp_path / "a.npz"
    path.write_bytes(npz_bytes(src=[1, 2], dst=[2, 3]))

    def take(pairs):
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        NumpyReader().read(path, take)


# All of them


def test_sizes_that_a_format_states_are_not_asked_for():
    for kind in (GapReader, GaloisReader, DimacsReader, MetisReader):
        for options in (ReaderOptions(one_based=True), ReaderOptions(n=4)):
            with pytest.raises(UsageError, match="states its size"):
                kind(options)


def test_sniff(tmp_path):
    def made(name, body):
        path = tmp_path / name
        path.write_bytes(body)
        return sniff(path)

    assert made("a", b"c x\n\nc p\np sp 3 2\n") == "dimacs"
    assert made("a.gr", b"\x01\0\0\0\0\0\0\0") == "dimacs"
    assert made("a.gr", GALOIS) == made("a", GALOIS) == "galois"
    assert made("a.gr.gz", gzip.compress(GALOIS)) == "galois"
    for entries, n in (([], 1), ([], 300), ([(0, 1)], 300)):
        directed = sg_bytes(entries, n, directed=True, weighted=False)
        assert made("a.sg", directed) == "gap-sg"
    assert made("a.el", b"c x\np cnf 3 2\n") == "edge-list"
    assert made("a.wel", b"0 1 5\n") == "edge-list"
    assert made("a.graph", b"2 1\n2\n1\n") == "metis"
    assert made("a.sg", TRIANGLE) == made("a.WSG", b"") == "gap-sg"
    assert made("a", IDS) == made("b", csr_bytes()) == "numpy"
    assert made("a.npz", b"") == "numpy"
    with pytest.raises(InputError, match="the format is not known"):
        made("a.zip", b"PK\x03\x04" + b"\0" * 50)
    path = tmp_path / "a.el"
    path.write_bytes(int64_bytes([(0, 1)]))
    assert make_reader(path, "graph500-int64", ReaderOptions()).name


SAMPLES = {
    PackedReader: [packed_bytes([(0, 1), (2, 3)])],
    Int64Reader: [int64_bytes([(0, 1), (2, 3)])],
    GapReader: [TRIANGLE, ARCS, sg_bytes([(0, 1)], 2, directed=True, weighted=True)],
    GaloisReader: [GALOIS, galois_bytes([(0, 1), (3, 2)], 4, 2, 8)],
    DimacsReader: [b"c x\np sp 4 3\na 1 2 3\nc y\na 2 4 5\r\na 3 3 1\n"],
    MetisReader: [
        metis_text([(0, 1), (1, 2), (0, 3)], 4, noise=["% a"]).encode(),
        metis_text([(0, 1), (1, 2)], 3, "111", "2").encode(),
    ],
    NumpyReader: [
        npy_bytes(np.array([[0, 1], [1, 2], [3, 4]])),
        npy_bytes(np.array([[0, 1, 2], [1, 2, 3]], np.uint8)),
        npz_bytes(src=[0, 1], dst=[1, 2]),
        csr_bytes(),
    ],
}


@st.composite
def mutated(draw, samples):
    """Bytes near a valid file, or any."""
    data = bytearray(draw(st.sampled_from(samples)))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        end = draw(st.integers(at, min(at + 8, len(data))))
        data[at:end] = draw(
            st.binary(max_size=8) | st.sampled_from([b"0", b"\n", b" "])
        )
    return bytes(data) if draw(st.integers(0, 4)) else draw(st.binary(max_size=200))


@pytest.mark.thorough
@pytest.mark.parametrize("kind", list(SAMPLES), ids=lambda x: x.name)
@settings(FUZZ, max_examples=150)
@given(data=st.data(), size=st.sampled_from([1, 4, 64, 1 << 18]))
def test_whatever_a_file_holds_it_is_read_or_refused(scratch, kind, data, size):
    scratch.write_bytes(data.draw(mutated(SAMPLES[kind])))
    answers = []
    with pytest.MonkeyPatch.context() as patch:
        small_chunks(patch, size)
        patch.setattr(metis, "BLOCK_BYTES", size)
        for compiled in WAYS:
            edges = []
            try:
                with compiling(compiled):
                    edge_file = kind().read(
                        scratch, lambda x, out=edges: out.extend(x.tolist())
                    )
            except InputError as error:
                answers.append(str(error))
                continue
            assert edge_file.tuples == len(edges)
            assert all(0 <= x < edge_file.n for pair in edges for x in pair)
            answers.append(edges)
    assert all(x == answers[0] for x in answers)
    if isinstance(answers[0], str):
        assert answers[0].startswith(f"{scratch}:")
        assert "\n" not in answers[0]


UNREAD = [
    ("edge-list", b"0 1\n1 2 \n", ""),
    ("edge-list", b"0 1\n1 2 .5\n", "columns after the second, in 1 of 2 lines,"),
    ("edge-list", b"0 1 1\n1 2 .5\n", "columns after the second"),
    ("dimacs", SAMPLES[DimacsReader][0], "weights"),
    ("metis", b"2 1\n2\n1\n", ""),
    ("metis", b"2 1 1\n2 7\n1 7\n", "sizes and weights"),
    ("gap-sg", TRIANGLE, ""),
    ("gap-sg", sg_bytes([(0, 1)], 2, directed=True, weighted=True), "weights"),
    ("galois", GALOIS, ""),
    ("galois", galois_bytes([(0, 1)], 2, 1, 4), "data of edges"),
    ("numpy", npz_bytes(src=[0, 1], dst=[1, 2]), ""),
    ("numpy", csr_bytes(), "values"),
    ("matrix-market", b"%%MatrixMarket matrix coordinate pattern general\n1 1 0\n", ""),
    (
        "matrix-market",
        b"%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 5\n",
        "values",
    ),
]


@pytest.mark.parametrize("compiled", WAYS)
@pytest.mark.parametrize(("name", "body", "unread"), UNREAD)
def test_what_is_not_looked_at_is_known(tmp_path, name, body, unread, compiled):
    path = tmp_path / "file"
    path.write_bytes(body)
    with compiling(compiled):
        reader = make_reader(path, name, ReaderOptions())
        assert reader.read(path, lambda pairs: None).unread == unread
