"""Loading of a store of one part by several ranks, each of which owns some rows.

No edge is sorted again: every vertex with edges becomes a delegate, and its edges, in a
directed graph those out and those in, become dd edges of the part that owns it. So the
part that finds a vertex by a pull is the one that stores its parent.

Source: Pan, Pearce, Owens 2018, Section III-C, for TH = 0; Algorithm 1 there would
assign each edge to the end with fewer edges.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from distbfs.device import cc
from distbfs.formats.attributes import Attribute
from distbfs.graph.csr import CSR, check_columns, check_offsets
from distbfs.partition.delegates import ByOwner
from distbfs.partition.layout import Layout
from distbfs.partition.part import INTO, Part, names_of
from distbfs.plan.host_memory import has_room_for_rows
from distbfs.plan.memory import COLUMN
from distbfs.progress import Sum
from distbfs.store import chunks, safety
from distbfs.store.hdf5 import Store, read_array
from distbfs.types import Array, World

SOURCE = Path(__file__).with_suffix(".c")


def is_divided_by_rows(world: World, store: Store) -> bool:
    """Return whether ranks are to own the rows of a store (collective).

    They are if the store is one part with all edges in nn, and each rank has room for
    the data of every vertex, which all ranks hold.
    """
    manifest = store.manifest
    if manifest.parts > 1 or manifest.delegates:
        return False
    edges = manifest.m * (1 + manifest.directed)
    return has_room_for_rows(world, manifest.n, COLUMN * edges)


def load_rows(store: Store, parts: int, index: int, done: Sum | None = None) -> Part:
    """Load the rows of part ``index`` of ``parts`` from a store of one part.

    All columns are read, because the digest is of all of them; only those of the part
    are kept. Everything else is as in ``Store.load_part``.
    """
    manifest = store.manifest
    record, layout = manifest.records[0], Layout(manifest.n, parts)
    with store.part_file(0) as datasets:

        def read(name: str) -> Array:
            return read_array(datasets[name], name, record.digests[name], done)

        vertices, degrees, tuple_ends = map(
            read, ("vertices", "degrees", "tuple_degrees")
        )
        safety.check_numbers(vertices)  # all of them: see ``Part.check`` of all parts
        # mutant: layout.part_of(vertices) -> vertices
        #   : test_owners_have_the_rows_of_their_vertices
        owned = layout.part_of(vertices) == index
        own_rows = owned[: record.active]
        numbers = ByOwner(layout, vertices[: record.active].astype(np.int64))

        def read_rows(kind: str) -> tuple[CSR, dict[str, Array]]:
            """Return this part's rows of a subgraph, and their attributes."""
            offsets = read(f"{kind}/offsets")
            check_offsets(offsets, record.edges["nn"])
            safety.check_active(kind, offsets, record.active)
            lengths = np.where(own_rows, np.diff(offsets[: record.active + 1]), 0)
            edges = int(lengths.sum())

            def read_own(name: str) -> Array:
                dataset, at = datasets[name], 0
                own = np.empty(edges, dataset.dtype)
                for start, values in chunks.slices(dataset, name, record.digests[name]):
                    at += copy_owned(offsets, own_rows, start, values, own[at:])
                    if done is not None:
                        done(values.nbytes)
                return own

            columns = read_own(f"{kind}/columns")
            check_columns(columns, record.active)
            return numbers.rows(lengths, columns), {
                name: read_own(f"{kind}/attribute_{name}")
                for name in manifest.attributes
            }

        out, attributes = read_rows("nn")
        into, of_incoming = read_rows(INTO["nn"]) if manifest.directed else (None, {})
        normals = CSR.empty(layout.local_count(index))
        part = Part(
            layout=layout,
            index=index,
            threshold=0,
            delegates=numbers.delegates,
            delegate_degrees=degrees[: record.active][numbers.order],
            nn=normals,
            nd=normals,
            dn=CSR.empty(record.active),
            dd=out,
            vertices=layout.local_of(vertices[owned]),
            degrees=degrees[owned],
            tuple_degrees=tuple_ends[owned],
            active=0,
            incoming={} if into is None else {"dd": into},
            owns_rows=True,
            attributes={
                name: of_dd(values, of_incoming.get(name), manifest.words_of(name))
                for name, values in attributes.items()
            },
        )
        part.check()
        for name, attribute in part.attributes.items():
            safety.check_words(name, attribute)
        return part


def copy_owned(
    offsets: Array, owned: Array, start: int, values: Array, out: Array
) -> int:
    """Copy the columns of owned rows from a slice; return their number.

    offsets: [rows + 1] or longer; owned: bool [rows], whether to copy a row
    values: the slice of columns from ``start`` on, at least one
    """
    stop = start + len(values)
    ends = np.array([start, stop - 1], dtype=offsets.dtype)
    after, last = np.searchsorted(offsets, ends, "right").tolist()
    first = after - 1
    # mutant: start, stop) -> 0, stop) : test_slices_that_cut_rows
    lengths = np.diff(np.clip(offsets[first : last + 1], start, stop))
    kept = owned[first:last]
    count = int(lengths[kept].sum())
    wide = "uint32_t" if offsets.itemsize == 4 else "uint64_t"
    native = cc.load_or_none(SOURCE, OFFSET=wide)
    if native is None:
        np.compress(np.repeat(kept, lengths), values, out=out[:count])
    else:
        slices = first, last, start, stop
        arguments = offsets, owned, *slices, values, values.itemsize, out
        native.copy_owned(*cc.arguments(*arguments))
    return count


def of_dd(
    values: Array, incoming: Array | None, words: tuple[str, ...] | None
) -> Attribute:
    """Return an attribute of edges that are all in dd; words: as in ``Attribute``.

    values: in the order of dd; incoming: in a directed graph, the same by target
    """
    names = names_of(directed=incoming is not None, delegates=1)
    every = {**dict.fromkeys(names, values[:0]), "dd": values}
    if incoming is not None:
        every[INTO["dd"]] = incoming
    return Attribute(every, words)
