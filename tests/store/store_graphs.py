"""Parts for the store tests: Algorithm 1 written once more, edge by edge.

Shares no code with the builder.  Rules (Pan, Pearce, Owens 2018, Section III-B): an
edge u -> v lies with u where u is normal, else with v where v is normal, else with the
end of smaller degree, and with the smaller id where degrees are equal; but with the
other end where four divides the sum of the delegate numbers.
"""

from __future__ import annotations

import json

import h5py
import msgspec
import numpy as np
import xxhash

from distbfs.graph.csr import CSR
from distbfs.partition.layout import Layout
from distbfs.partition.part import INTO, Part
from distbfs.store import schema
from distbfs.store.hdf5 import StoreWriter, write_manifest
from distbfs.store.schema import Manifest
from distbfs.types import SUBGRAPHS


def random_tuples(n, count, seed, hubs=3):
    """Return random (u, v) with a few hubs, loops and repeats."""
    rng = np.random.default_rng(seed)
    u, v = rng.integers(0, max(n, 1), (2, count)) if n else np.zeros((2, 0), int)
    if n and count:
        v[: count // 3] = rng.integers(0, min(hubs, n), count // 3)
        v[-2:] = u[-2:]
    return u.astype(np.int64), v.astype(np.int64)


def make_parts(n, p, threshold, tuples):
    """Return the parts of a graph, by plain loops over its edges."""
    edges = set()
    ends = [0] * n
    for u, v in zip(*(side.tolist() for side in tuples), strict=True):
        ends[u] += 1
        ends[v] += 1
        if u != v:
            edges |= {(u, v), (v, u)}
    degree = [0] * n
    for u, _ in edges:
        degree[u] += 1
    delegates = [v for v in range(n) if degree[v] > threshold]
    delegates.sort(key=lambda v: (-degree[v], v))
    rank_of = {v: k for k, v in enumerate(delegates)}
    owned, number, active = [], {}, []
    for k in range(p):
        normal = [v for v in range(k, n, p) if v not in rank_of and degree[v]]
        normal.sort(key=lambda v: (-degree[v], v))
        rest = [v for v in range(k, n, p) if v in rank_of or not degree[v]]
        owned.append(normal + rest)
        active.append(len(normal))
        number.update({v: i for i, v in enumerate(owned[k])})
    pairs = [{name: [] for name in ("nn", "nd", "dn", "dd")} for _ in range(p)]
    for u, v in sorted(edges):
        kind = ("d" if u in rank_of else "n") + ("d" if v in rank_of else "n")
        if kind[0] == "n":
            home = u % p
        elif kind[1] == "n":
            home = v % p
        else:
            ends_of = sorted((u, v), key=lambda w: (degree[w], w))
            home = ends_of[(rank_of[u] + rank_of[v]) % 4 == 0] % p
        row = rank_of[u] if kind[0] == "d" else number[u]
        column = rank_of[v] if kind[1] == "d" else number[v]
        if kind == "nn" and p > 1:
            column |= (v % p) << 32
        pairs[home][kind].append((row, column))
    parts = []
    for k in range(p):
        graphs = {}
        for name, pairs_of_name in pairs[k].items():
            rows = len(delegates) if name[0] == "d" else len(owned[k])
            wide = name == "nn" and p > 1
            graphs[name] = rows_of(rows, sorted(pairs_of_name), "u8" if wide else "u4")
        parts.append(
            Part(
                layout=Layout(n, p),
                index=k,
                threshold=threshold,
                delegates=np.array(delegates, np.int64),
                delegate_degrees=np.array([degree[v] for v in delegates], np.int64),
                vertices=np.array([v // p for v in owned[k]], np.uint32),
                degrees=np.array([degree[v] for v in owned[k]], np.int64),
                tuple_degrees=np.array([ends[v] for v in owned[k]], np.int64),
                active=active[k],
                **graphs,
            )
        )
    return parts


OF_DIRECTED = [f"{x}/{y}" for x in INTO.values() for y in ("offsets", "columns")]
"""The names of the arrays of edges in."""


def rows_of(rows, pairs, dtype):
    """Return sorted (row, column) pairs as compressed rows."""
    offsets = np.zeros(rows + 1, np.uint32)
    for row, _ in pairs:
        offsets[row + 1] += 1
    columns = np.array([column for _, column in pairs], dtype=dtype)
    return CSR(np.cumsum(offsets, dtype=np.uint32), columns)


def make_manifest(parts, records, tuples, changes=()):
    """Return a manifest for parts and their records."""
    u, v = tuples
    loops = int(np.count_nonzero(u == v))
    edges = sum(part.edges for part in parts)
    values = {
        "n": parts[0].layout.n,
        "tuples": len(u),
        "threshold": parts[0].threshold,
        "delegates": parts[0].delegate_count,
        "source": {"family": "file", "name": "random"},
        "relabel": {"method": "hash", "seed": 7},
        "order_block": 1 << 15,
        "loops": loops,
        "repeats": len(u) - loops - edges // (1 if parts[0].directed else 2),
        "records": tuple(records),
        "statistics": {"largest": 3, "histogram": [1, 2, 3]},
    }
    return Manifest(**(values | dict(changes)))


def write_store(folder, parts, tuples, overwrite=False, changes=()):
    """Write a store in one process and return its folder."""
    with StoreWriter(folder, overwrite) as writer:
        records = [writer.write_part(part) for part in parts]
        return writer.finish(make_manifest(parts, records, tuples, changes))


def same_part(left, right):
    """Return whether two parts are equal in every array, dtype and number."""
    if left is right:
        return True
    numbers = ("layout", "index", "threshold", "active")
    if any(getattr(left, name) != getattr(right, name) for name in numbers):
        return False
    mine, other = schema.part_arrays(left), schema.part_arrays(right)
    return all(
        mine[name].dtype == other[name].dtype
        and np.array_equal(mine[name], other[name])
        for name in mine
    )


def reconcile(store, change, indexes=(1,)):
    """Change part files with ``change(file)`` and make the manifest agree with them.

    Size, digests, edge counts and totals follow the files, as a forger would do it;
    what is refused after that is refused by the checks themselves.
    """
    by_index = {}
    for index in indexes:
        path = store.folder / schema.part_name(index)
        with h5py.File(path, "r+", libver=("v110", "v110")) as file:
            change(file)
        with h5py.File(path, "r") as file:
            by_index[index] = {"file_bytes": path.stat().st_size, **record_of(file)}

    def follow(values):
        for index, record in by_index.items():
            values["records"][index]["digests"].update(record.pop("digests"))
            values["records"][index]["edges"].update(record.pop("edges"))
            values["records"][index].update(record)
        for name in SUBGRAPHS:
            records = values["records"]
            values[name] = sum(record["edges"][name] for record in records)
        values["m"] = sum(values[name] for name in SUBGRAPHS)
        values["loops"] = values["repeats"] = 0
        values["tuples"] = values["m"] // (
            1 if OF_DIRECTED[0] in values["records"][0]["digests"] else 2
        )

    forge_manifest(store, follow)


def record_of(file):
    """Return what a record says of a part file, as far as it can be read."""
    record = {"digests": {}, "edges": {}, "array_bytes": 0}
    if type(file.attrs.get("active")) is np.int64:
        record["active"] = int(file.attrs["active"])
    for name in (*schema.DATASETS, *OF_DIRECTED):
        item = file
        for step in name.split("/"):
            plain = isinstance(item, h5py.Group) and step in item
            if plain and isinstance(item.get(step, getlink=True), h5py.HardLink):
                item = item[step]
            else:
                item = None
        if not isinstance(item, h5py.Dataset) or item.size is None:
            continue  # as those of edges in, which most stores do not have
        record["array_bytes"] += item.size * item.dtype.itemsize
        if name in ("nn/columns", "nd/columns", "dn/columns", "dd/columns"):
            record["edges"][name[:2]] = item.size
        if name == "incoming/columns" and file.attrs["parts"] > 1:
            record["edges"]["incoming"] = item.size
        elsewhere = item.is_virtual or item.external
        if item.dtype.kind in "iu" and item.size < 1 << 20 and not elsewhere:
            data = np.ascontiguousarray(item[()]).tobytes()
            record["digests"][name] = xxhash.xxh3_128(data).hexdigest()
    record["array_bytes"] = min(record["array_bytes"], (1 << 63) - 1)
    return record


def replace_manifest(store, **changes):
    """Write another manifest into a store."""
    (store.folder / schema.MANIFEST_NAME).unlink()
    write_manifest(store.folder, msgspec.structs.replace(store.manifest, **changes))


def forge_manifest(store, change):
    """Write a manifest whose JSON values are changed without any check."""
    values = json.loads(store.manifest.to_json())
    change(values)
    write_text(store.folder / schema.MANIFEST_NAME, json.dumps(values).encode())


def write_text(path, text):
    """Write a manifest file with any text."""
    data = np.frombuffer(text, np.uint8)
    with h5py.File(path, "w", libver=("v110", "v110")) as file:
        file.attrs["format_version"] = np.int64(1)
        file.create_dataset(
            "manifest", data=data, chunks=(min(len(data), 1 << 20),), fletcher32=True
        )
