"""Writers: what goes out comes back equal, and appears complete or not at all."""

import errno
import os
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import scipy.io
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from distbfs.errors import InputError, ResourceError, UsageError
from distbfs.formats import gap_sg
from distbfs.formats.base import ReaderOptions, sniff
from distbfs.formats.ids import IntegerIds, TextIds
from distbfs.formats.tuples import open_tuples
from distbfs.formats.writing import Edges, lines_of, placed, writer_for
from distbfs.ranks.world import SoloWorld
from distbfs.registry import READERS, WRITERS, lookup
from formats.packing import PACK
from formats.reading import spooling
from formats.test_relabel import NUMBERS, WORDS

FUZZ = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
KINDS = {name: lookup(WRITERS, "format", name) for name in WRITERS}
NAMED = sorted(name for name in KINDS if KINDS[name].keeps_ids)
PACKED = sorted(name for name in KINDS if KINDS[name].packs)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("writers")


@st.composite
def graphs(draw):
    """Return n and edges, each once with u < v, in any order."""
    n = draw(st.integers(1, 60))
    vertex = st.integers(0, n - 1)
    edges = draw(st.sets(st.tuples(vertex, vertex).filter(lambda x: x[0] < x[1])))
    return n, draw(st.permutations(sorted(edges)))


def made(n, pairs, ids=None, step=7):
    array = np.array(pairs, dtype=np.int64).reshape(-1, 2)

    def chunks():
        yield array[:0]  # what a part of a store gives whose edges others hold
        for start in range(0, len(array), step):
            yield array[start : start + step]

    return Edges(n, len(array), chunks, ids)


def back(path, **options):
    """Read a file; return n and the edges, sorted, each with u <= v."""
    reading = ReaderOptions(**options)
    with (
        spooling(path.parent),
        open_tuples(SoloWorld(), path, options=reading) as source,
    ):
        pieces = list(source.chunks(0, source.tuples))
        u, v = (
            np.concatenate([np.zeros(0, int), *x])
            for x in (zip(*pieces, strict=True) if pieces else ((), ()))
        )
        pairs = zip(np.minimum(u, v).tolist(), np.maximum(u, v).tolist(), strict=True)
        return source.n, sorted(pairs), source.ids, source.notes


def write(graph, path, name="", force=True):
    writer = writer_for(path, name)
    with placed(path, force=force) as partial:
        writer.write(partial, graph)
    assert not list(path.parent.glob(".*"))


@pytest.mark.thorough
@pytest.mark.parametrize("name", sorted(KINDS))
@FUZZ
@given(graphs(), st.integers(1, 9))
def test_what_goes_out_comes_back_equal(scratch, name, graph, step):
    n, pairs = graph
    for ending in KINDS[name].suffixes:
        path = scratch / f"graph{ending}"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gap_sg, "CHUNK", step)
            write(made(n, pairs, step=step), path)
        assert sniff(path) == name
        assert back(path, first_id=0) == (n, sorted(pairs), None, [])


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMED)
@FUZZ
@given(graphs(), st.data())
def test_ids_go_out_and_come_back(scratch, name, graph, data):
    n, pairs = graph
    numbers = sorted(data.draw(st.sets(NUMBERS, min_size=n, max_size=n)))
    words = st.sets(WORDS.map("w_{}".format), min_size=n, max_size=n)
    words = sorted(data.draw(words), key=str.encode)
    text = TextIds.of([word.encode() for word in words])
    for ids in (IntegerIds(np.array(numbers)), text):
        path = scratch / f"named{KINDS[name].suffixes[0]}"
        write(made(n, pairs, ids), path)
        edge_file, edges, names, _ = back(path, relabel="numbers")
        every = np.arange(n)
        assert edge_file == n
        assert names.kind == ids.kind
        assert names.names(every) == ids.names(every)
        assert [x for x in edges if x[0] < x[1]] == sorted(pairs)
        lone = sorted(set(range(n)) - {x for pair in pairs for x in pair})
        assert [x for x in edges if x[0] == x[1]] == [(x, x) for x in lone]


@pytest.mark.parametrize("ending", sorted(PACK))
@pytest.mark.parametrize("name", PACKED)
def test_text_is_compressed_by_the_ending(tmp_path, name, ending):
    path = tmp_path / f"graph{KINDS[name].suffixes[0]}{ending}"
    pairs = [(u, u + 1) for u in range(2000)]
    write(made(2500, pairs), path)
    assert back(path, first_id=0) == (2500, pairs, None, [])
    assert path.stat().st_size < 2000 * 8


def test_scipy_reads_the_matrix(tmp_path):
    path = tmp_path / "graph.mtx"
    write(made(4, [(0, 3), (1, 2)]), path)
    matrix = scipy.io.mmread(path).toarray()
    want = np.zeros((4, 4))
    for u, v in [(0, 3), (1, 2)]:
        want[u, v] = want[v, u] = 1
    assert np.array_equal(matrix, want)
    one_way = [(0, 3), (2, 1), (3, 0)]
    write(replace(made(4, one_way), directed=True), path)
    assert sorted(zip(*scipy.io.mmread(path).nonzero(), strict=True)) == one_way


def test_lists_of_a_gap_graph_rise(tmp_path):
    path = tmp_path / "graph.sg"
    write(made(4, [(0, 3), (0, 1), (1, 2), (0, 2)]), path)
    body = path.read_bytes()
    assert body[0] == 0
    assert np.frombuffer(body, "<i8", 2, 1).tolist() == [8, 4]
    assert np.frombuffer(body, "<i8", 5, 17).tolist() == [0, 3, 5, 7, 8]
    assert np.frombuffer(body, "<i4", 8, 57).tolist() == [1, 2, 3, 0, 2, 0, 1, 0]


@FUZZ
@given(st.lists(st.tuples(NUMBERS, NUMBERS), max_size=20))
def test_lines(pairs):
    array = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    assert lines_of(array).decode() == "".join(f"{u} {v}\n" for u, v in pairs)


def test_a_cut_edge_list_is_seen(tmp_path):
    path = tmp_path / "graph.el"
    write(made(9, [(0, 3), (1, 2)]), path)
    body = path.read_bytes()
    assert body == b"# distbfs edge list: 9 vertices, 2 edges\n0 3\n1 2\n"
    path.write_bytes(body[:-4])
    with pytest.raises(InputError, match="2: 2 entries declared, 1 found"):
        back(path)
    path.write_bytes(body + b"1 2\n")
    with pytest.raises(InputError, match="4: more entries than the 2 declared"):
        back(path)
    path.write_bytes(body.replace(b"0 3", b"0 9"))
    with pytest.raises(InputError, match="2: id 9 is out of range; allowed: 0 to 8"):
        back(path)
    path.write_bytes(body.replace(b"9 vertices", b"0 vertices"))
    with pytest.raises(InputError, match="1: 0 vertices"):
        back(path)
    path.write_bytes(body.replace(b"9 vertices", b"9999999999 vertices"))
    with pytest.raises(InputError, match="9999999999 vertices for 2 edges"):
        back(path)
    path.write_bytes(body)
    assert back(path, n=20)[0] == 20


@pytest.mark.parametrize("word", ["a b", "a,b", "#a", "%a", '"a', "a\tb"])
def test_ids_that_cannot_stand_in_a_line(tmp_path, word):
    path = tmp_path / "graph.el"
    ids = TextIds.of(sorted([word.encode(), b"zz"]))
    with pytest.raises(InputError, match="cannot stand in an edge list"):
        write(made(2, [(0, 1)], ids), path)
    assert list(tmp_path.iterdir()) == []


def test_refusals(tmp_path):
    graph = made(2, [(0, 1)])
    path = tmp_path / "graph.el"
    write(graph, path)
    with pytest.raises(UsageError, match="give --force"):
        write(graph, path, force=False)
    with pytest.raises(UsageError, match="is a folder"):
        write(graph, tmp_path, "edge-list")
    with pytest.raises(UsageError, match="there is no folder"):
        write(graph, tmp_path / "none" / "a.el")
    with pytest.raises(UsageError, match="the ending names no format"):
        writer_for(tmp_path / "a.xyz")
    with pytest.raises(UsageError, match="unknown format"):
        writer_for(tmp_path / "a.el", "numpy")
    for name in ("a.sg.gz", "a.parquet.zst"):
        with pytest.raises(UsageError, match="are not compressed"):
            writer_for(tmp_path / name)
    with pytest.raises(InputError, match="allowed in a GAP graph"):
        write(made(2**31 + 1, []), tmp_path / "a.sg")
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_text().endswith("0 1\n")


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("force", [True, False])
def test_a_file_that_came_meanwhile(tmp_path, monkeypatch, force, links):
    """Of two writers without force the second is refused, also without hard links."""

    def refused(*_, **__):
        raise PermissionError(errno.EPERM, "as injected")

    if not links:
        monkeypatch.setattr(os, "link", refused)
    path = tmp_path / "graph.el"
    refusal = pytest.raises(UsageError, match="exists; give --force")
    with nullcontext() if force else refusal, placed(path, force=force) as slow:
        slow.write_text("slow")
        with placed(path, force=force) as fast:
            fast.write_text("fast")
        assert path.read_text() == "fast"
    assert path.read_text() == ("slow" if force else "fast")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", sorted(KINDS))
@pytest.mark.parametrize(
    ("code", "kind"), [(errno.ENOSPC, ResourceError), (errno.EIO, InputError)]
)
def test_a_failed_write_leaves_what_was_there(tmp_path, name, code, kind):
    path = tmp_path / f"graph{KINDS[name].suffixes[0]}"
    write(made(3, [(0, 1)]), path)
    before = path.read_bytes()

    def chunks():
        yield np.array([[0, 2]])
        raise OSError(code, "as injected")

    with pytest.raises(kind, match=os.strerror(code)):
        write(Edges(3, 2, chunks), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_every_format_that_is_written_is_read():
    assert set(WRITERS) <= set(READERS)
