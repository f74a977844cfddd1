"""verify_store finds what every check of a single part lets pass."""

from __future__ import annotations

import dataclasses
import os

import h5py
import msgspec
import numpy as np
import pytest
from graphs import Tuples, build
from store_graphs import forge_manifest, make_parts, rows_of, write_store

from distbfs.errors import StoreError
from distbfs.formats.symmetry import hash_sum
from distbfs.graph import csr
from distbfs.graph.csr import CSR
from distbfs.options import BuildOptions
from distbfs.ranks.world import SoloWorld
from distbfs.store import chunks, schema, verify
from distbfs.store.hdf5 import open_store
from distbfs.store.write import write_graph


def findings(folder, parts, tuples, changes=()):
    store = open_store(write_store(folder, parts, tuples, changes=changes))
    verification = verify.verify_store(store)
    assert verification.ok == (not verification.findings)
    assert verification.as_dict()["findings"] == verification.findings
    return verification.findings


def pairs_of(graph):
    return list(zip(graph.sources().tolist(), graph.columns.tolist(), strict=True))


def changed(part, name, change):
    """Return a part with other edges in one subgraph."""
    graph = getattr(part, name)
    pairs = pairs_of(graph)
    change(pairs)
    rows = rows_of(graph.rows, sorted(pairs), graph.columns.dtype)
    return dataclasses.replace(part, **{name: rows})


def replaced(part, name, place, value):
    """Return a part with one other value in an array."""
    values = getattr(part, name).copy()
    values[place] = value
    return dataclasses.replace(part, **{name: values})


@pytest.fixture
def parts(tuples):
    return make_parts(90, 2, 12, tuples)


def test_nothing_found_and_progress(tmp_path, parts, tuples):
    store, calls = open_store(write_store(tmp_path / "graph", parts, tuples)), []
    verification = verify.verify_store(store, lambda *done: calls.append(done))
    assert verification.ok
    assert calls == [(1, 2), (2, 2)]
    assert verification.edges == store.manifest.edges
    assert verification.degree_sum == store.manifest.m
    assert verification.tuple_ends == 2 * len(tuples[0])


def redirect(pairs):
    """Lead one edge to a neighbour's number that its row does not have."""
    row, column = pairs[0]
    taken = {other for first, other in pairs if first == row}
    free = [column ^ bit for bit in (1, 2, 4, 8, 3, 5, 6, 7)]
    pairs[0] = (row, next(value for value in free if value not in taken))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nn", "all parts: nn is not symmetric"),
        ("nd", "part 0: dn is not the transpose of nd"),
        ("dn", "part 0: dn is not the transpose of nd"),
    ],
)
def test_redirected_edge(tmp_path, parts, tuples, name, message):
    parts[0] = changed(parts[0], name, redirect)
    assert message in findings(tmp_path / "graph", parts, tuples)


def test_dd_not_symmetric(tmp_path, parts, tuples):
    home = next(k for k, part in enumerate(parts) if part.dd.edges)
    parts[home] = changed(parts[home], "dd", lambda pairs: pairs.pop())
    lines = findings(tmp_path / "graph", parts, tuples)
    assert f"part {home}: dd is not symmetric" in lines
    assert any("delegates have another degree" in line for line in lines)


def test_edge_moved_to_another_part(tmp_path, parts, tuples):
    """One direction of a dd edge on each part: symmetric in all, on neither."""
    home = next(k for k, part in enumerate(parts) if part.dd.edges)
    edge = pairs_of(parts[home].dd)[-1]
    parts[home] = changed(parts[home], "dd", lambda pairs: pairs.remove(edge))
    parts[1 - home] = changed(parts[1 - home], "dd", lambda pairs: pairs.append(edge))
    lines = findings(tmp_path / "graph", parts, tuples)
    assert lines == ["part 0: dd is not symmetric", "part 1: dd is not symmetric"]


def test_nn_edge_one_way_between_parts(tmp_path, parts, tuples):
    crossing = next(pair for pair in pairs_of(parts[0].nn) if pair[1] >> 32 == 1)
    parts[0] = changed(parts[0], "nn", lambda pairs: pairs.remove(crossing))
    lines = findings(tmp_path / "graph", parts, tuples)
    assert "all parts: nn is not symmetric" in lines
    assert "part 0: 1 vertices have another degree than their rows" in lines


@pytest.mark.thorough
def test_loops_and_repeats(tmp_path, parts, tuples):
    def loop(pairs):
        pairs[0] = (pairs[0][0], pairs[0][0])

    def repeat(pairs):
        place = next(k for k in range(1, len(pairs)) if pairs[k][0] == pairs[k - 1][0])
        pairs[place] = pairs[place - 1]

    looped = [changed(parts[0], "nn", loop), parts[1]]
    assert "part 0: nn has 1 loops" in findings(tmp_path / "a", looped, tuples)
    for name in ("nn", "nd", "dn"):
        twice = [changed(parts[0], name, repeat), parts[1]]
        lines = findings(tmp_path / name, twice, tuples)
        assert f"part 0: {name} has 1 repeated edges" in lines


def test_rows_in_any_order_are_no_repeats(tmp_path, parts, tuples):
    graph = parts[0].nn
    columns = np.concatenate(
        [row[::-1] for row in np.split(graph.columns, graph.offsets[1:-1])]
    )
    parts[0] = dataclasses.replace(parts[0], nn=CSR(graph.offsets, columns))
    assert findings(tmp_path / "graph", parts, tuples) == []


@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [
        ("degrees", 0, 99, "part 0: 1 vertices have another degree than their rows"),
        ("degrees", 0, 99, "all parts: degrees sum to"),
        ("tuple_degrees", 0, 99, "all parts: tuples have"),
        ("tuple_degrees", 0, 0, "part 0: a vertex has fewer tuple ends than"),
    ],
)
def test_degrees(tmp_path, parts, tuples, name, place, value, message):
    parts[0] = replaced(parts[0], name, place, value)
    lines = findings(tmp_path / "graph", parts, tuples)
    assert any(line.startswith(message) for line in lines)


@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [
        (
            "delegate_degrees",
            0,
            1000,
            "1 delegates have another degree than their rows",
        ),
        ("delegate_degrees", -1, 1000, "part 0: delegate degrees rise"),
        ("delegate_degrees", -1, 3, "part 0: a delegate has no degree above TH"),
        ("delegates", slice(0, 2), 1, "part 0: a delegate occurs twice"),
    ],
)
def test_delegates(tmp_path, parts, tuples, name, place, value, message):
    for index in (0, 1):
        parts[index] = replaced(parts[index], name, place, value)
    lines = findings(tmp_path / "graph", parts, tuples)
    assert any(message in line for line in lines), lines


def test_a_delegate_among_the_normal_vertices_is_not_written(tmp_path, parts, tuples):
    parts[0] = replaced(parts[0], "delegates", 0, 88)
    with pytest.raises(StoreError, match="a delegate is numbered as a normal vertex"):
        write_store(tmp_path / "graph", parts, tuples)


def test_normal_vertex_above_the_threshold(tmp_path, tuples):
    parts = make_parts(90, 2, 12, tuples)
    lower = [dataclasses.replace(part, threshold=4) for part in parts]
    lines = findings(tmp_path / "graph", lower, tuples)
    assert lines == [
        "part 0: a normal vertex has a degree above TH",
        "part 1: a normal vertex has a degree above TH",
    ]


def test_active_vertices(tmp_path, tuples):
    parts = make_parts(92, 2, 12, tuples)
    part = parts[0]
    assert part.degrees[-1] == 0
    order = np.arange(part.local_count)
    order[[part.active, -1]] = order[[-1, part.active]]
    moved = {
        x: getattr(part, x)[order] for x in ("vertices", "degrees", "tuple_degrees")
    }
    parts[0] = dataclasses.replace(part, active=part.active + 1, **moved)
    lines = findings(tmp_path / "graph", parts, tuples)
    assert lines == ["part 0: an active vertex has no edges"]


def test_damaged_part_is_a_finding(tmp_path, parts, tuples):
    store = open_store(write_store(tmp_path / "graph", parts, tuples))
    path = store.folder / schema.part_name(1)
    os.truncate(path, path.stat().st_size // 2)
    verification = verify.verify_store(store)
    assert not verification.ok
    assert len(verification.findings) == 1
    assert "it is truncated or altered" in verification.findings[0]


@pytest.mark.parametrize("step", [1, 2, 7, 1000])
def test_slices_cover_every_edge_once(parts, monkeypatch, step):
    monkeypatch.setattr(csr, "SLICE", step)
    for name in ("nn", "nd", "dn", "dd"):
        graph = getattr(parts[0], name)
        pairs = []
        for first, last in csr.row_blocks(graph.offsets):
            start, stop = (int(graph.offsets[row]) for row in (first, last))
            rows, columns = graph.sources(start, stop), graph.columns[start:stop]
            pairs += zip(rows.tolist(), columns.tolist(), strict=True)
        assert pairs == pairs_of(graph)


def test_hash_tells_directions_apart():
    one, two = np.arange(5, dtype=np.uint64), np.arange(7, 12, dtype=np.uint64)
    assert hash_sum(one, two) != hash_sum(two, one)
    order = [3, 1, 4, 0, 2]
    assert hash_sum(one, two) == hash_sum(one[order], two[order])
    zero = np.zeros(1, np.uint64)
    assert hash_sum(zero, zero + np.uint64(1)) != hash_sum(zero + np.uint64(1), zero)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            lambda p: {"nn": turned(p.nn), "incoming": {"nn": turned(p.nn)}},
            "not the transpose",
        ),
        (lambda p: {"degrees": p.degrees + 1}, "have another degree than their rows"),
        (lambda p: {"tuple_degrees": p.tuple_degrees * 0}, "fewer tuple ends"),
    ],
)
def test_directed_parts_that_do_not_fit(tmp_path, change, text):
    source = Tuples(6, [0, 0, 1, 3, 4, 4], [1, 2, 2, 4, 5, 4])
    [part], _ = build(source, directed=True)
    result = verify.Verification()
    verify.add_part(result, part)
    assert result.ok
    assert result.nn_forward == result.nn_reverse
    broken = verify.Verification()
    verify.add_part(broken, dataclasses.replace(part, **change(part)))
    if text == "not the transpose":
        assert broken.nn_forward != broken.nn_reverse
    else:
        assert any(text in line for line in broken.findings)


@pytest.mark.parametrize("name", ["nd", "dn", "dd", "incoming_nd", "incoming_dd"])
def test_directed_parts_whose_edges_in_are_others(name):
    """Each subgraph of edges out is compared with its edges in."""
    rng = np.random.default_rng(5)
    source = Tuples(40, *rng.integers(0, 40, (2, 260)))
    parts, _ = build(source, 2, directed=True, threshold=12)
    for part in parts:
        right = verify.Verification()
        verify.add_part(right, part)
        assert right.ok
    [part, _] = parts
    rows = dict(part.subgraphs)
    rows[name] = turned(rows[name])
    broken = verify.Verification()
    verify.add_part(broken, part.with_rows(rows))
    pair = {"nd": "incoming_dn", "dn": "incoming_nd"}.get(name, name)
    assert any(
        f"{x} is not the transpose of" in line
        for line in broken.findings
        for x in (pair, "incoming_dd")
    )


def turned(graph):
    """Rows with their columns in other rows."""
    return CSR(graph.offsets, graph.columns[::-1].copy())


def test_a_directed_store_is_verified(tmp_path):
    source = Tuples(6, [0, 0, 1, 3, 4, 4], [1, 2, 2, 4, 5, 4])
    options = BuildOptions(directed=True)
    write_graph(SoloWorld(), source, tmp_path / "graph", 1, options)
    store = open_store(tmp_path / "graph")
    assert verify.verify_store(store).ok
    manifest = store.manifest
    with pytest.raises(StoreError, match="5 edges do not fit 6 tuples, 0 loops and 0"):
        msgspec.structs.replace(manifest, loops=0, repeats=0)
    [record] = manifest.records
    with pytest.raises(StoreError, match=r"part 0 does not have .* incoming_nd"):
        msgspec.structs.replace(manifest, delegates=1)
    digests = dict(record.digests)
    del digests["incoming/columns"]
    with pytest.raises(StoreError, match="lacks the key 'incoming/columns'"):
        msgspec.structs.replace(record, digests=digests)


def test_every_byte_of_a_part_is_checked(tmp_path, parts, tuples):
    folder = write_store(tmp_path / "graph", parts, tuples)
    path = folder / "part-00000.h5"
    whole = path.read_bytes()
    with h5py.File(path) as file:
        frame = chunks.places_of(file["vertices"])[0]
    checksum = frame.byte_offset + frame.size - 1
    unused = whole.index(b"FSSE") + 6  # space that HDF5 does not use
    for place in (checksum, unused):
        altered = bytearray(whole)
        altered[place] ^= 1
        path.write_bytes(altered)
        assert verify.verify_store(open_store(folder)).findings == [
            f"{path}: is altered outside its datasets"
        ]


def test_a_store_without_frames_is_read(tmp_path, parts, tuples):
    store = open_store(write_store(tmp_path / "graph", parts, tuples))
    forge_manifest(store, lambda x: [record.pop("frame") for record in x["records"]])
    old = open_store(store.folder)
    assert [record.frame for record in old.manifest.records] == ["", ""]
    assert "frame" not in old.manifest.to_json()
    assert verify.verify_store(old).ok


def test_bytes_behind_a_manifest_are_refused(tmp_path, parts, tuples):
    folder = write_store(tmp_path / "graph", parts, tuples)
    with (folder / "manifest.h5").open("ab") as file:
        file.write(b"x")
    with pytest.raises(StoreError, match=r"manifest\.h5: has \d+ bytes instead of"):
        open_store(folder)
