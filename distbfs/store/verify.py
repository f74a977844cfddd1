"""The check of a whole store, beyond the checks when single parts are loaded.

Loading already checks types, digests, offsets and ids. This module also checks the
digest of the bytes of each part's file that are not values of datasets, and:

1. every part has the same delegates, by descending degree, each above TH, each once;
2. degrees are right: that of a normal vertex is the length of its rows in nn and nd, at
most TH, that of a delegate the length of its rows in dn and dd over all parts; their
sum is the number of stored edges;
3. dn is the transpose of nd on each part, dd is symmetric on each part, nn is symmetric
over all parts;
4. there are no loops and no repeated edges; the number of ends of tuples is twice the
number of tuples; a tuple that is neither a loop nor a repeat gives two edges;
5. the vertices' ids in their input file, if kept, are in ascending order, so each is
   unique.

In a directed graph, degrees count rows of edges out and of edges in, which are their
transposes: incoming_dn of nd, incoming_nd of dn, incoming_dd of dd on each part,
incoming of nn over all parts; a vertex has two ends for each tuple that leaves it, and
a tuple gives one edge.

Rule 3 compares sums modulo 2^64 of a hash of (source, destination) and of (destination,
source): the sums of equal multisets are equal, others differ except with a probability
of 2^-64. One part is in memory at a time; its edges are expanded in slices.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.errors import StoreError
from distbfs.formats.symmetry import hash_sum
from distbfs.graph.csr import row_blocks
from distbfs.partition.part import INTO, KIND, PART_SHIFT
from distbfs.ranks.agreement import gather_texts
from distbfs.ranks.world import SoloWorld
from distbfs.types import SUBGRAPHS, Array, Ids

if TYPE_CHECKING:
    from collections.abc import Callable

    from distbfs.partition.part import Part
    from distbfs.store.hdf5 import Store
    from distbfs.types import World

WORD = (1 << 64) - 1
TRANSPOSES = (  # on each part: of symmetric graphs, of directed ones with delegates
    (("nd", "dn"), ("dd", "dd")),
    (("nd", INTO["dn"]), ("dn", INTO["nd"]), ("dd", INTO["dd"])),
)
SUMS = ("parts", "degree_sum", "tuple_ends", "nn_forward", "nn_reverse")


def nothing() -> Ids:
    """Return an empty int64 array."""
    return np.zeros(0, dtype=np.int64)


@dataclass
class Verification:
    """The findings, and the sums over the parts that have been checked.

    findings: one line for each broken rule; edges: number of stored edges by subgraph
    delegates, delegate_degrees: as in the first part, int64 [d]
    delegate_rows: row lengths of each delegate in dn and dd so far, int64 [d]
    """

    findings: list[str] = field(default_factory=list)
    parts: int = 0
    edges: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SUBGRAPHS, 0))
    degree_sum: int = 0
    tuple_ends: int = 0
    nn_forward: int = 0
    nn_reverse: int = 0
    delegates: Ids = field(default_factory=nothing)
    delegate_degrees: Ids = field(default_factory=nothing)
    delegate_rows: Ids = field(default_factory=nothing)

    @property
    def ok(self) -> bool:
        """Whether there are no findings."""
        return not self.findings

    def as_dict(self) -> dict[str, Any]:
        """Return findings and totals as JSON values."""
        return {
            "ok": self.ok,
            "findings": list(self.findings),
            "parts": self.parts,
            "edges": dict(self.edges),
            "degree_sum": self.degree_sum,
            "tuple_ends": self.tuple_ends,
        }


def verify_store(
    store: Store,
    progress: Callable[[int, int], None] | None = None,
    world: World | None = None,
) -> Verification:
    """Check every part of a store, and the rules across parts (collective).

    progress: called with (parts done, parts) after each part of this rank
    world: the ranks among which the parts are divided, by default this process alone

    Broken rules, and files that cannot be loaded, are findings, not exceptions; all
    ranks return the same findings. Parts on different ranks have the same delegates
    because the digests of the delegates in the manifest are the same.
    """
    world, manifest = world or SoloWorld(), store.manifest
    result, pairs = Verification(), list[tuple[int, str]]()
    indices = range(world.rank, manifest.parts, world.size)
    for done, index in enumerate(indices, 1):
        verify_part(result, store, index)
        pairs += [(index, line) for line in result.findings[len(pairs) :]]
        if progress is not None:
            progress(done, len(indices))
    every = [json.loads(text) for text in gather_texts(world, json.dumps(pairs))]
    by_part = sorted((pair for some in every for pair in some), key=itemgetter(0))
    result.findings = [line for _, line in by_part]
    own = [*result.edges.values(), *(getattr(result, name) for name in SUMS)]
    sums = world.allreduce(np.array(own, dtype=np.uint64)).tolist()
    result.edges = dict(zip(SUBGRAPHS, sums, strict=False))
    for name, value in zip(SUMS, sums[len(SUBGRAPHS) :], strict=True):
        setattr(result, name, value)
    rows = np.zeros(manifest.delegates, dtype=np.int64)
    if len(result.delegate_rows):
        rows += result.delegate_rows
    result.delegate_rows = world.allreduce(rows)
    if world.rank == 0:
        if result.parts == manifest.parts:
            check_totals(result, store)
        check_ids(result, store)
    result.findings = world.broadcast(result.findings)
    return result


def verify_part(result: Verification, store: Store, index: int) -> None:
    """Check each byte of a part's file, then its rules; add its sums to ``result``."""
    try:
        part = store.load_part(index)
        store.check_frame(index)
    except StoreError as error:
        result.findings.append(str(error))
    else:
        add_part(result, part)


def check_ids(result: Verification, store: Store) -> None:
    """Check the vertices' ids in their input file, if the store keeps them."""
    try:
        ids = store.load_ids()
    except StoreError as error:
        result.findings.append(str(error))
        return
    fault = "" if ids is None else ids.fault()
    if fault:
        result.findings.append(f"ids: {fault}")


def add_part(result: Verification, part: Part) -> None:
    """Check one part by itself and add its sums to ``result``."""

    def expect(holds: bool | np.bool_, what: str) -> None:
        if not holds:
            result.findings.append(f"part {part.index}: {what}")

    check_delegates(result, part, expect)
    check_degrees(part, expect)
    sums = {name: edge_sums(part, name, expect) for name in part.subgraphs}
    for name, back in TRANSPOSES[part.directed and "incoming_dd" in sums]:
        what = f"{back} is not the transpose of {name}"
        expect(
            # mutant: == sums[back][1] -> >= 0 : test_dd_not_symmetric
            sums[name][0] == sums[back][1],
            "dd is not symmetric" if name == back else what,
        )
    result.nn_forward = (result.nn_forward + sums["nn"][0]) & WORD
    back = "incoming" if part.directed else "nn"
    result.nn_reverse = (result.nn_reverse + sums[back][1]) & WORD
    for name in SUBGRAPHS:
        result.edges[name] += getattr(part, name).edges
    result.degree_sum += int(part.degrees.sum())
    result.tuple_ends += int(part.tuple_degrees.sum())
    result.parts += 1


def check_totals(result: Verification, store: Store) -> None:
    """Check the rules that concern all parts together."""
    manifest = store.manifest

    def expect(holds: bool | np.bool_, what: str) -> None:
        if not holds:
            result.findings.append(f"all parts: {what}")

    total, ends = result.degree_sum, result.tuple_ends
    expected = manifest.m * (2 if manifest.directed else 1)
    expect(total == expected, f"degrees sum to {total} instead of {expected}")
    stated = 2 * manifest.tuples
    expect(ends == stated, f"tuples have {ends} ends instead of {stated}")
    kept = manifest.tuples - manifest.loops - manifest.repeats
    each = 1 if manifest.directed else 2
    expect(each * kept == manifest.m, f"{kept} tuples were kept for {manifest.m} edges")
    # mutant: result.nn_forward == result.nn_reverse -> True
    #   : test_nn_edge_one_way_between_parts, test_a_directed_store_is_verified
    same = result.nn_forward == result.nn_reverse
    what = "incoming is not the transpose of nn" if manifest.directed else ""
    expect(same, what or "nn is not symmetric")
    wrong = np.count_nonzero(result.delegate_rows != result.delegate_degrees)
    expect(not wrong, f"{wrong} delegates have another degree than their rows")


def check_delegates(
    result: Verification, part: Part, expect: Callable[[bool | np.bool_, str], None]
) -> None:
    """Check that delegates are in order and equal on all parts; add their rows."""
    ids, degrees = part.delegates, part.delegate_degrees
    if result.parts == 0:
        result.delegates, result.delegate_degrees = ids, degrees
        result.delegate_rows = np.zeros(len(ids), dtype=np.int64)
        ordered = np.sort(ids)
        expect(np.all(ordered[1:] > ordered[:-1]), "a delegate occurs twice")
        expect(np.all(degrees[1:] <= degrees[:-1]), "delegate degrees rise")
        expect(np.all(degrees > part.threshold), "a delegate has no degree above TH")
    same = np.array_equal(ids, result.delegates) and np.array_equal(
        degrees, result.delegate_degrees
    )
    expect(same, "delegates are not those of part 0")
    if same:
        for side in part.sides:
            result.delegate_rows += side["dn"].degrees() + side["dd"].degrees()


def check_degrees(part: Part, expect: Callable[[bool | np.bool_, str], None]) -> None:
    """Check the degrees of a part's vertices."""
    each = [side["nn"].degrees() + side["nd"].degrees() for side in part.sides]
    out, rows = each[0], np.sum(each, axis=0)
    active = part.active
    expect(np.all(rows[:active] > 0), "an active vertex has no edges")
    owned, local = part.owned_delegates()
    numbers = part.numbers_of(local)
    rows[numbers] = part.delegate_degrees[owned]
    wrong = np.count_nonzero(part.degrees != rows)
    expect(not wrong, f"{wrong} vertices have another degree than their rows")
    rows[numbers] = 0
    expect(np.all(rows <= part.threshold), "a normal vertex has a degree above TH")
    enough = np.all(part.tuple_degrees >= (2 * out if part.directed else part.degrees))
    expect(enough, "a vertex has fewer tuple ends than neighbours")


def edge_sums(
    part: Part, name: str, expect: Callable[[bool | np.bool_, str], None]
) -> tuple[int, int]:
    """Return the hash sums of (source, destination) and of the reverse.

    It also checks that there are no loops (nn, dd) and no repeated edges, and that
    columns are active vertices (dn).
    """
    graph, kind = part.subgraphs[name], KIND[name]
    forward = reverse = loops = repeats = 0
    part_bits = part.index << PART_SHIFT if kind == "nn" else 0
    for first, last in row_blocks(graph.offsets):
        start, stop = int(graph.offsets[first]), int(graph.offsets[last])
        rows, columns = graph.sources(start, stop), graph.columns[start:stop]
        sources = rows.astype(np.uint64) | np.uint64(part_bits)
        targets = columns.astype(np.uint64)
        forward = (forward + hash_sum(sources, targets)) & WORD
        reverse = (reverse + hash_sum(targets, sources)) & WORD
        if kind in ("nn", "dd"):
            loops += int(np.count_nonzero(sources == targets))
        repeats += count_repeats(rows, columns)
    expect(not loops, f"{name} has {loops} loops")
    expect(not repeats, f"{name} has {repeats} repeated edges")
    if kind == "dn" and graph.edges:
        below = int(graph.columns.max()) < part.active
        expect(below, f"{name} leads to a vertex that is not active")
    return forward, reverse


def count_repeats(rows: Ids, columns: Array) -> int:
    """Count the edges that repeat another one; rows: int64 [k], ascending."""
    same_row = rows[1:] == rows[:-1]
    if np.all(columns[1:][same_row] > columns[:-1][same_row]):
        return 0
    order = np.lexsort((columns, rows))
    rows, columns = rows[order], columns[order]
    twice = (rows[1:] == rows[:-1]) & (columns[1:] == columns[:-1])
    return int(np.count_nonzero(twice))
