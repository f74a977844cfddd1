"""Files of every format that convert reads, and readers of those that export writes."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from pyarrow import feather, parquet

from trials.checker import Truth, equal
from trials.trial import Trial

try:
    from compression import zstd
except ImportError:
    from backports import zstd

PACKERS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstd.compress,
}
WORDS = ("a", "bb", "Zoë", "x-1", "_", "é", "München", "p.q", "A", "10a", "o'c", "-x")


@dataclass
class Written:
    """A file: what it holds, its ending, and what convert must be told.

    truth: the graph that it stands for; names: what it calls the vertices, where that
    is not their numbers; first: 1 where they are numbers from 1
    """

    data: bytes
    suffix: str
    truth: Truth
    options: list[str] = field(default_factory=list)
    names: list[Any] | None = None
    first: int = 0

    def __post_init__(self) -> None:
        self.first = self.first or int("--one-based" in self.options)
        if self.first:
            self.names = list(range(1, self.truth.n + 1))


def joined(rows: list[list[Any]], separator: str, end: str = "\n") -> str:
    """Return lines of columns."""
    return "".join(separator.join(map(str, row)) + end for row in rows)


def sized(trial: Trial, truth: Truth, base: int) -> list[str]:
    """Return options for files that do not say how many vertices or where ids begin."""
    options = ["--one-based"] if base else trial.choose([], ["--zero-based"])
    full = len(truth.pairs) > 0 and truth.pairs.max() + 1 == truth.n
    if not full or trial.chance(0.3):
        options = [*options, "--vertices", str(truth.n)]
    return options


def edge_list(trial: Trial, truth: Truth) -> Written:
    """Write two ids per line, in one of many forms."""
    base = trial.below(2)
    separator = trial.choose(" ", "\t", ",", "  ", " \t", ", ")
    rows: list[list[Any]] = [[u + base, v + base] for u, v in truth.pairs.tolist()]
    if trial.chance(0.3):
        rows = [[*row, trial.choose(1, 0.5, -3, "w")] for row in rows]
    lines = [separator.join(map(str, row)) for row in rows]
    suffix = trial.choose(".txt", ".el", ".csv", ".tsv", ".edges", ".wel")
    for _ in range(trial.below(3)):
        lines.insert(trial.below(len(lines) + 1), trial.choose("# c 1 2", "% x", "#"))
    options = sized(trial, truth, base)
    if separator in (",", "\t") and trial.chance(0.4):
        names = trial.choose(("src", "dst"), ("source", "target"), ("from", "to"))
        lines.insert(0, separator.join(names))
    elif not separator.strip() and trial.chance(0.1):
        lines.insert(0, f"% {trial.choose('sym', 'asym')} unweighted")
        options = [*options, *([] if base else ["--zero-based"])]
    end = trial.choose("\n", "\n", "\n", "\r\n")
    text = end.join(lines) + trial.choose(end, "")
    return Written(text.encode(), suffix, truth, options)


def named_list(trial: Trial, truth: Truth) -> Written:
    """Write an edge list of sparse numbers or words, for --relabel."""
    truth, names = renamed(trial, truth)
    separator = trial.choose(" ", "\t", ",")
    rows = [[names[u], names[v]] for u, v in truth.pairs.tolist()]
    data = joined(rows, separator).encode()
    suffix = ".csv" if separator == "," else trial.choose(".txt", ".tsv", ".el")
    return Written(data, suffix, truth, ["--relabel"], names)


def blank_names(trial: Trial, truth: Truth) -> Written:
    """Write a delimited file of names with blanks inside, for --relabel."""
    truth, _ = renamed(trial, truth)
    names = [f"{trial.choose(*WORDS)} of {k}" for k in range(truth.n)]
    separator, suffix = trial.choose((",", ".csv"), ("\t", ".tsv"))
    rows = [[names[u], names[v]] for u, v in truth.pairs.tolist()]
    data = joined([["src", "dst"], *rows], separator).encode()
    return Written(data, suffix, truth, ["--relabel"], names)


def renamed(trial: Trial, truth: Truth) -> tuple[Truth, list[Any]]:
    """Return the graph without vertices that no tuple names, and names of the rest."""
    used, pairs = np.unique(truth.pairs, return_inverse=True)
    n = len(used)
    if trial.chance(0.5):
        step = trial.choose(1, 3, 10**6, 10**12)
        names: list[Any] = (np.cumsum(1 + trial.rng.integers(0, step, n))).tolist()
    else:
        padded = [f"{'0' * (1 + k % 3)}{k // 3}" for k in range(n)]
        words = [f"{trial.choose(*WORDS)}{k}" for k in range(n)]
        names = padded if trial.chance(0.3) else words
    names = [names[k] for k in trial.rng.permutation(n)]
    return Truth(n, pairs.reshape(-1, 2), truth.directed), names


def matrix_market(trial: Trial, truth: Truth) -> Written:
    """Write a coordinate matrix: general, or the lower triangle of a symmetric one."""
    pairs = truth.pairs + 1
    kind = trial.choose("pattern", "real", "integer", "complex")
    symmetry = "general" if truth.directed else trial.choose("general", "symmetric")
    if symmetry == "symmetric":
        pairs = np.sort(pairs, axis=1)[:, ::-1]
    value = {"pattern": [], "real": ["0.5"], "integer": [-2], "complex": [1.5, "2e3"]}
    rows = [[*pair, *value[kind]] for pair in pairs.tolist()]
    sizes = joined([[truth.n, truth.n, len(rows)]], " ")
    head = f"%%MatrixMarket matrix coordinate {kind} {symmetry}\n"
    text = head + trial.choose("", "% c\n", "%\n% 1 2\n") + sizes + joined(rows, " ")
    return Written(text.encode(), trial.choose(".mtx", ".mm"), truth, first=1)


def rows_of(n: int, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (offsets, columns) of pairs by their first ends, int64."""
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    counts = np.bincount(pairs[:, 0], minlength=n)
    return np.append(0, np.cumsum(counts)), pairs[order, 1]


def both_ways(truth: Truth) -> np.ndarray:
    """Return each simple edge from both ends, int64 [2 k, 2]."""
    pairs = np.array(sorted(truth.simple), dtype=np.int64).reshape(-1, 2)
    return np.concatenate([pairs, pairs[:, ::-1]])


def undirected(truth: Truth) -> Truth:
    """Return the graph as a format keeps it that lists edges from both ends."""
    plain = Truth(truth.n, truth.pairs)
    return Truth(truth.n, sorted(plain.simple))


def gap_sg(trial: Trial, truth: Truth) -> Written:
    """Write a serialized graph of GAP, with weights or not."""
    weighted = trial.chance(0.3)

    def lists(pairs: np.ndarray) -> bytes:
        offsets, columns = rows_of(truth.n, pairs)
        if weighted:
            columns = np.stack([columns, np.arange(len(columns))], axis=1)
        return offsets.astype("<i8").tobytes() + columns.astype("<i4").tobytes()

    if truth.directed or trial.chance(0.2):
        pairs, held = truth.pairs, truth
        body = lists(pairs) + lists(pairs[:, ::-1])
    else:
        held = undirected(truth)
        pairs = both_ways(held)
        body = lists(pairs)
    head = struct.pack("<?2q", held is truth, len(pairs), truth.n)
    return Written(head + body, ".wsg" if weighted else ".sg", held)


def metis(trial: Trial, truth: Truth) -> Written:
    """Write lists of neighbours, with sizes and weights of any kind."""
    held = undirected(truth)
    flags = trial.choose("", "0", "1", "001", "10", "011", "100", "111")
    sizes, weights, costs = (flag == "1" for flag in flags.rjust(3, "0"))
    many = 1 + trial.below(3) if weights and trial.chance(0.5) else 0
    head = [held.n, len(held.pairs), *([flags] if flags else [])]
    head += [many] if many else []
    lines = [" ".join(map(str, head))]
    for near in held.neighbours:
        row: list[int] = [7] if sizes else []
        row += [5] * ((many or 1) if weights else 0)
        for v in near:
            row += [v + 1, 3] if costs else [v + 1]
        lines.append(" ".join(map(str, row)))
    if trial.chance(0.3):
        lines.insert(trial.below(len(lines)), "% a comment 1 2")
    suffix = trial.choose(".graph", ".metis")
    return Written(("\n".join(lines) + "\n").encode(), suffix, held, first=1)


def dimacs(_: Trial, truth: Truth) -> Written:
    """Write arcs of the shortest-path challenge."""
    rows = [["a", u + 1, v + 1, 1 + u % 9] for u, v in truth.pairs.tolist()]
    head = joined([["c", "arcs"], ["p", "sp", truth.n, len(rows)]], " ")
    return Written((head + joined(rows, " ")).encode(), ".gr", truth, first=1)


def galois(trial: Trial, truth: Truth) -> Written:
    """Write a binary graph of Galois, version 1 or 2, with data of edges or not."""
    version, data = trial.choose(1, 2), trial.choose(0, 4)
    offsets, columns = rows_of(truth.n, truth.pairs)
    edges = len(columns)
    body = struct.pack("<4Q", version, data, truth.n, edges)
    body += offsets[1:].astype("<u8").tobytes()
    body += columns.astype("<u4" if version == 1 else "<u8").tobytes()
    if version == 1 and edges % 2:
        body += bytes(4)
    return Written(body + bytes(data * edges), ".gr", truth)


def npy(trial: Trial, truth: Truth) -> Written:
    """Write an array of pairs, by rows or by columns."""
    base = trial.below(2)
    kinds = [k for k in ("i8", "u4", ">i8", "i2", "u1") if truth.n < np.iinfo(k).max]
    pairs = (truth.pairs + base).astype(trial.choose(*kinds))
    if len(pairs) != 2 and trial.chance(0.5):
        pairs = pairs.T
    out = io.BytesIO()
    np.save(out, np.asarray(pairs, order=trial.choose("C", "F")))
    return Written(out.getvalue(), ".npy", truth, sized(trial, truth, base))


def npz(trial: Trial, truth: Truth) -> Written:
    """Write src and dst, or a sparse matrix of SciPy."""
    out, (u, v) = io.BytesIO(), truth.pairs.T
    if trial.chance(0.5):
        base = trial.below(2)
        save = trial.choose(np.savez, np.savez_compressed)
        save(out, src=u + base, dst=(v + base).astype("i4"))
        return Written(out.getvalue(), ".npz", truth, sized(trial, truth, base))
    held = Truth(truth.n, np.unique(truth.pairs, axis=0), truth.directed)
    entries = np.ones(len(held.pairs)), tuple(held.pairs.T)
    matrix = sp.coo_matrix(entries, shape=(truth.n, truth.n))
    sp.save_npz(out, matrix.asformat(trial.choose("csr", "csc", "coo")))
    return Written(out.getvalue(), ".npz", held)


def table(trial: Trial, truth: Truth) -> Written:
    """Write a Parquet or Arrow table, of numbers or of names."""
    base, names = trial.below(2), None
    options: list[str] = []
    if trial.chance(0.3) and len(truth.pairs):
        truth, names = renamed(trial, truth)
        sides = [[names[v] for v in side] for side in truth.pairs.T.tolist()]
        options = ["--relabel"]
        kind = None
    else:
        sides = (truth.pairs + base).T.tolist()
        options = sized(trial, truth, base)
        kind = trial.choose(pa.int64(), pa.int32(), pa.uint32(), pa.uint64())
    heads = trial.choose(("src", "dst"), ("source", "target"), ("a", "b"))
    if heads == ("a", "b"):
        options = [*options, "--columns", *heads]
    columns = {heads[0]: pa.array(sides[0], kind), heads[1]: pa.array(sides[1], kind)}
    more = {"w": pa.array([0.5] * len(sides[0]))} if trial.chance(0.3) else {}
    made = pa.table({**more, **columns} if trial.chance(0.5) else {**columns, **more})
    out, rows = io.BytesIO(), 1 + trial.below(50)
    suffix = trial.choose(".parquet", ".arrow", ".feather")
    if suffix == ".parquet":
        packing = trial.choose("none", "snappy", "zstd")
        parquet.write_table(made, out, row_group_size=rows, compression=packing)
    elif suffix == ".feather":
        packing = trial.choose("uncompressed", "lz4", "zstd")
        feather.write_feather(made, out, compression=packing, chunksize=rows)
    else:
        with pa.ipc.new_file(out, made.schema) as writer:
            writer.write_table(made, max_chunksize=rows)
    return Written(out.getvalue(), suffix, truth, options, names)


def graph500(trial: Trial, truth: Truth) -> Written:
    """Write the pairs that Graph500's code writes, packed or not."""
    options = ["--format", "graph500-int64"]
    data = truth.pairs.astype("<i8").tobytes()
    if trial.chance(0.5):
        options = ["--format", "graph500-packed"]
        words = np.zeros((len(truth.pairs), 3), dtype="<u4")
        words[:, :2] = truth.pairs
        data = words.tobytes()
    full = truth.pairs.max() + 1 == truth.n
    options += [] if full else ["--vertices", str(truth.n)]
    return Written(data, ".bin", truth, options)


ANY = (matrix_market, matrix_market, gap_sg, galois, dimacs, metis)
SOME = (edge_list, edge_list, edge_list, npy, npz, table, table, graph500, named_list)
SYMMETRIC = (metis,)  # cannot hold a directed graph


def written(trial: Trial, truth: Truth) -> Written:
    """Return the graph in a format that can hold it; n is 1 or more."""
    forms = [*ANY, *(SOME if len(truth.pairs) else ())]
    if len(truth.pairs) and trial.chance(0.03):
        forms = [blank_names]
    if truth.directed:
        forms = [form for form in forms if form not in SYMMETRIC]
    form = trial.choose(*forms)
    made = form(trial, truth)
    if made.truth.directed:
        made.options.append("--directed")
    if trial.chance(0.2):
        packing = trial.choose(*PACKERS)
        made.data, made.suffix = PACKERS[packing](made.data), made.suffix + packing
    trial.note(f"{form.__name__} {made.suffix}")
    return made


def read_exported(
    path: Path, packing: str, *, directed: bool
) -> tuple[int | None, list[tuple[Any, Any]]]:
    """Return (vertices if the file says so, edges) of an exported file.

    directed: edges are wanted as they lead, so one that is written for both ways
    counts twice
    """
    data = path.read_bytes()
    unpack = {".gz": gzip, ".bz2": bz2, ".xz": lzma, ".zst": zstd}
    if packing:
        data = unpack[packing].decompress(data)
    kind = path.name.removesuffix(packing).rpartition(".")[2]
    if kind == "sg":
        return read_sg(data, directed=directed)
    if kind == "parquet":
        made = parquet.read_table(io.BytesIO(data))
        sides = (made[name].to_pylist() for name in ("src", "dst"))
        return None, list(zip(*sides, strict=True))
    lines = data.decode().splitlines()
    plain = [tuple(line.split()) for line in lines if line[0] not in "#%"]
    if kind != "mtx":
        stated = re.search("([0-9]+) vertices", lines[0])
        return int(stated[1]) if stated else None, plain
    rows, _, count = map(int, plain.pop(0))
    pairs = [(int(u) - 1, int(v) - 1) for u, v in plain]
    equal("export", len(pairs), count, "entries of the matrix")
    if directed and lines[0].endswith(" symmetric"):
        pairs += [(v, u) for u, v in pairs]
    return rows, pairs


def read_sg(data: bytes, *, directed: bool) -> tuple[int, list[tuple[Any, Any]]]:
    """Return the edges of a GAP graph, an undirected one from its smaller end."""
    one_way, entries, n = struct.unpack_from("<?2q", data)
    offsets = np.frombuffer(data, "<i8", n + 1, 17)
    near = np.frombuffer(data, "<i4", entries, 17 + 8 * (n + 1))
    rows = np.repeat(np.arange(n), np.diff(offsets))
    pairs = list(zip(rows.tolist(), near.tolist(), strict=True))
    if one_way or directed:
        return n, pairs
    equal("export", sorted(pairs), sorted((v, u) for u, v in pairs), "both ends")
    return n, [(u, v) for u, v in pairs if u <= v]
