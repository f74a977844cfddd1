"""Compressed files: read as what they hold, in bounded memory, or refused."""

import lzma
import sys
import tracemalloc

import numpy as np
import pytest
import scipy.sparse
import xxhash
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from distbfs.errors import InputError, ResourceError
from distbfs.formats import compressed, text
from distbfs.formats.base import ReaderOptions, make_reader, sniff
from distbfs.formats.compressed import Unpacker, load_zstd
from formats.packing import PACK

ENDINGS = sorted(PACK)
needs_zstd = pytest.mark.skipif(".zst" not in PACK, reason="no Zstandard")
FUZZ = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
PAIRS = [[0, 1], [1, 2], [2, 0], [7, 3]]


def unpack(path, most):
    """Return the content in pieces of at most ``most`` bytes."""
    with path.open("rb") as handle:
        unpacker = Unpacker(path, compressed.packing_of(path), handle.read)
        pieces = []
        while piece := unpacker.read(most):
            assert len(piece) <= most
            pieces.append(piece)
        assert all(len(piece) == most for piece in pieces[:-1])
        assert unpacker.read(1) == b""
    return b"".join(pieces)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("packed")


@pytest.mark.thorough
@pytest.mark.parametrize("ending", ENDINGS)
@FUZZ
@given(
    st.lists(st.binary(max_size=300) | st.just(b"ab" * 5000), min_size=1, max_size=4),
    st.sampled_from([0, 4, 8]),
    st.sampled_from([1, 7, 1 << 16]),
)
def test_streams_one_after_the_other(scratch, ending, bodies, padding, most):
    path = scratch / f"file{ending}"
    between = bytes(padding)
    path.write_bytes(between.join(map(PACK[ending], bodies)) + between)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compressed, "FEED_BYTES", most)
        assert unpack(path, most) == b"".join(bodies)


@pytest.mark.parametrize("ending", ENDINGS)
def test_truncated_altered_and_other_files(tmp_path, ending):
    path = tmp_path / f"a.txt{ending}"
    body = np.random.default_rng(1).bytes(3000)
    whole = PACK[ending](body)
    said = rf"^{path}: byte \d+: the \w+ data is "
    for keep in range(1, len(whole), 97):
        path.write_bytes(whole[:keep])
        with pytest.raises(InputError, match=said):
            unpack(path, 1 << 16)
    path.write_bytes(whole[:-1])
    with pytest.raises(InputError, match=said + "truncated"):
        unpack(path, 1 << 16)
    path.write_bytes(whole + b"more")
    with pytest.raises(InputError, match=said):
        unpack(path, 1 << 16)
    path.write_bytes(b"0 1\n1 2\n" * 9)
    with pytest.raises(InputError, match=said + "corrupt"):
        unpack(path, 1 << 16)
    path.write_bytes(b"")
    with pytest.raises(InputError, match="byte 0: the file is empty"):
        unpack(path, 1 << 16)


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz"])
def test_every_flipped_byte_of_the_data_is_seen(tmp_path, ending):
    path = tmp_path / f"a{ending}"
    body = np.random.default_rng(1).bytes(60)
    whole = PACK[ending](body)
    refused = 0
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        try:
            assert unpack(path, 1 << 16) == body
        except InputError:
            refused += 1
    assert refused > 60


@pytest.mark.thorough
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_bomb_is_read_in_bounded_memory(tmp_path, ending, monkeypatch):
    """4 MiB of lines from some kilobytes, in blocks of 64 KiB."""
    monkeypatch.setattr(text.TextFile.__init__, "__defaults__", (1 << 16,))
    path = tmp_path / f"a.txt{ending}"
    line, times = b"0 1\n" * 256, (4 << 20) // 1024
    path.write_bytes(PACK[ending](line * times))
    assert path.stat().st_size < 200_000
    counted = [0]
    reader = make_reader(path, "", ReaderOptions())

    def take(pairs):
        counted[0] += len(pairs)

    reader.read(path, take)
    tracemalloc.start()
    reader.read(path, take)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert counted[0] == 2 * 256 * times
    assert peak < 2 << 20


def test_streams_that_want_much_memory_are_refused(tmp_path, monkeypatch):
    """The memory that a file states, however short it is."""
    monkeypatch.setattr(compressed, "WINDOW_BYTES", 1 << 20)
    body = np.random.default_rng(1).bytes(3 << 10)
    path = tmp_path / "a.xz"
    path.write_bytes(lzma.compress(body, preset=6))
    with pytest.raises(InputError, match="Memory usage limit"):
        unpack(path, 1 << 16)


@needs_zstd
def test_a_zstd_stream_with_a_wide_window_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(compressed, "WINDOW_BYTES", 1 << 20)
    body = np.random.default_rng(1).bytes(3 << 20)
    zstd = load_zstd()
    path = tmp_path / "a.zst"
    options = {zstd.CompressionParameter.window_log: 22}
    path.write_bytes(zstd.compress(body, options=options))
    with pytest.raises(InputError, match="too much memory"):
        unpack(path, 1 << 16)


def test_without_the_module_for_zstd(tmp_path, monkeypatch):
    path = tmp_path / "a.txt.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd")
    for name in ("backports.zstd", "compression.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ResourceError, match="pip install"):
        make_reader(path, "", ReaderOptions())


def files(folder):
    """Write one small file of many formats; return their paths by format."""
    made = {
        "matrix-market": folder / "a.mtx",
        "edge-list": folder / "a.csv",
        "dimacs": folder / "a.gr",
        "metis": folder / "a.graph",
        "numpy": folder / "a.npy",
        "gap-sg": folder / "a.sg",
    }
    made["matrix-market"].write_text(
        "%%MatrixMarket matrix coordinate pattern general\n8 8 2\n1 2\n8 4\n"
    )
    made["edge-list"].write_text("0,1\n7,3\n")
    made["dimacs"].write_text("p sp 8 2\na 1 2 1\na 8 4 1\n")
    made["metis"].write_text("4 1\n2\n1\n\n\n")
    np.save(made["numpy"], np.array(PAIRS))
    made["gap-sg"].write_bytes(
        np.array([0], "?").tobytes()
        + np.array([2, 2, 0, 1, 2], "<i8").tobytes()
        + np.array([1, 0], "<i4").tobytes()
    )
    return made


def edges_of(path, name=""):
    edges = []
    reader = make_reader(path, name, ReaderOptions())
    edge_file = reader.read(path, lambda pairs: edges.extend(pairs.tolist()))
    return edge_file, edges


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_reader_reads_what_is_packed(tmp_path, ending):
    for name, path in files(tmp_path).items():
        inside = path.with_name(path.name + ending)
        inside.write_bytes(PACK[ending](path.read_bytes()))
        assert sniff(inside) == name
        plain, edges = edges_of(path)
        edge_file, same = edges_of(inside)
        assert same == edges
        assert (edge_file.n, edge_file.tuples) == (plain.n, plain.tuples)
        digest = xxhash.xxh3_128(inside.read_bytes()).hexdigest()
        assert edge_file.digest == digest
        inside.write_bytes(inside.read_bytes()[:-3])
        with pytest.raises(InputError, match="byte"):
            edges_of(inside)


def test_other_binary_files_that_are_packed(tmp_path):
    path = tmp_path / "edges.bin.gz"
    path.write_bytes(PACK[".gz"](np.array(PAIRS, "<i8").tobytes()))
    assert edges_of(path, "graph500-int64")[1] == PAIRS
    matrix = scipy.sparse.csr_matrix(np.eye(3, k=1))
    scipy.sparse.save_npz(tmp_path / "m.npz", matrix)
    inside = tmp_path / "m.npz.xz"
    inside.write_bytes(PACK[".xz"]((tmp_path / "m.npz").read_bytes()))
    assert edges_of(inside)[1] == [[0, 1], [1, 2]]


def test_a_full_disk_while_unpacking(tmp_path, monkeypatch):
    path = tmp_path / "edges.gz"
    path.write_bytes(PACK[".gz"](np.array(PAIRS, "<i8").tobytes()))

    def full():
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(text.tempfile, "TemporaryFile", full)
    with pytest.raises(ResourceError, match=r"cannot unpack .*No space"):
        edges_of(path, "graph500-int64")


def test_progress_is_in_bytes_of_the_file(tmp_path):
    for ending in ("", *ENDINGS):
        path = tmp_path / f"a.txt{ending}"
        body = b"0 1\n" * 1000
        path.write_bytes(PACK[ending](body) if ending else body)
        seen = []
        reader = make_reader(path, "", ReaderOptions(progress=seen.append))
        reader.read(path, lambda pairs: None)
        assert seen == sorted(seen)
        assert seen[-1] == path.stat().st_size
