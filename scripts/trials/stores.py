"""Commands on files and stores: convert, bfs, export, partition, info, verify."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np

from trials.checker import Truth, Wrong, check_counts, check_search, equal
from trials.files import Written, read_exported, written
from trials.library import SMALL
from trials.shapes import draw_graph
from trials.trial import Trial


def run(trial: Trial) -> None:
    """Make a store from a file, then do what the commands do."""
    made, store, _ = make_store(trial)
    steps = [search, search, export, partition, look]
    for _ in range(1 + trial.below(3)):
        step = trial.choose(*steps)
        if step is partition:
            if made.truth.directed:
                continue
            store = partition(trial, made, store)
        else:
            step(trial, made, store)


def draw_parts(trial: Trial, truth: Truth) -> tuple[int, list[Any]]:
    """Return a number of parts that the ranks can share, and options for a store."""
    ranks = trial.world.size
    options: list[Any] = []
    parts = ranks
    if not truth.directed:
        parts = ranks * trial.choose(1, 1, 2, 3)
        if parts != ranks or trial.chance(0.3):
            options += ["--parts", parts]
    if trial.chance(0.5):
        options += ["--threshold", trial.choose(0, 1, 2, 4, 16, 10**9)]
    if trial.chance(0.2):
        options += ["--memory", "0.000001"]
    return parts, options


def make_store(trial: Trial, **limits: Any) -> tuple[Written, Path, int]:
    """Write a file and convert it; return what it holds, the store and its parts."""
    directed = False if trial.world.size > 1 else None
    limits = {"directed": directed, **limits}
    truth = draw_graph(trial, least=1, **limits)
    made = written(trial, truth)
    trial.draws(made.truth)
    file = trial.write(f"graph{made.suffix}", made.data)
    parts, options = draw_parts(trial, made.truth)
    if trial.chance(0.5):
        options += ["--permute-seed", trial.choose(0, 1, 7, (1 << 64) - 1)]
    store = trial.folder / "store"
    done = trial.good("convert", file, "-o", store, *made.options, *options, "--json")
    trial.check(
        lambda: equal("count", done.values["vertices"], made.truth.n, "n of convert")
    )
    return made, store, parts


def name_in(made: Written, vertex: int) -> str:
    """Return the name of a vertex on the command line."""
    return str(vertex if made.names is None else made.names[vertex])


def draw_engine(trial: Trial, truth: Truth) -> list[Any]:
    """Return options of a search that fit the graph."""
    options: list[Any] = ["--threads", trial.choose(0, 1, 1, 2, 3)]
    if trial.chance(0.3) and truth.n <= SMALL:
        options += ["--engine", "reference"]
    elif trial.chance(0.5):
        options += ["--engine", "openmp"]
    stepwise = trial.chance(0.3) and not truth.directed and truth.n <= SMALL
    options += ["--stepwise"] if stepwise else []
    if trial.chance(0.3) and truth.n <= SMALL:
        options += ["--direction", trial.choose("auto", "push", "pull")]
    for name in ("dd", "dn", "nd") if "reference" in options else ():
        if trial.chance(0.2):
            factors = trial.choose(0, 1e-7, 0.01, 1, 1e9), trial.choose(0, 1e-7, 0.5)
            options += [f"--{name}-factors", *factors]
    if trial.chance(0.3):
        options += ["--mask-reduce", trial.choose("blocking", "nonblocking")]
    options += ["--local-all2all"] if trial.chance(0.3) else []
    options += ["--uniquify"] if trial.chance(0.3) else []
    return options


def search(trial: Trial, made: Written, store: Path) -> None:
    """Search from some sources and look at the counts and the file of results."""
    truth = made.truth
    sources = [trial.below(truth.n) for _ in range(1 + trial.below(4))]
    sources = list(dict.fromkeys(sources)) if trial.chance(0.7) else sources
    options = draw_engine(trial, truth)
    parents = trial.chance(0.8)
    options += [] if parents else ["--no-parents"]
    if trial.chance(0.3):
        lines = "".join(f"{name_in(made, s)}\n" for s in sources)
        options += ["--sources", trial.write("sources", lines.encode())]
    else:
        options += [f"--source={name_in(made, s)}" for s in sources]
    if trial.chance(0.1):
        options += ["--records", trial.folder / "records"]
    out = trial.folder / "levels.h5"
    done = trial.good("bfs", store, *options, "-o", out, "--force", "--json")

    def look() -> None:
        searches = done.values["searches"]
        equal("count", len(searches), len(sources), "searches")
        for source, counts in zip(sources, searches, strict=True):
            check_counts(truth, source, counts)
        check_file(made, out, sources, parents=parents)

    trial.check(look)


def places(made: Written, file: Any) -> np.ndarray:
    """Return where a file of results holds each vertex of the truth."""
    if made.names is None:
        equal("form", "ids" in file, False, "ids in the results")
        return np.arange(made.truth.n)
    called = [
        x.decode() if isinstance(x, bytes) else x for x in file["ids"][:].tolist()
    ]
    place = {name: k for k, name in enumerate(called)}
    names = [name if name in place else str(name) for name in made.names]
    equal("names", sorted(map(str, called)), sorted(map(str, made.names)), "ids")
    return np.array([place[name] for name in names], dtype=np.int64)


def check_file(made: Written, path: Path, sources: list[int], *, parents: bool) -> None:
    """Raise Wrong unless a file of results is right, read by h5py alone."""
    truth = made.truth
    with h5py.File(path) as file:
        place = places(made, file)
        level, held = file["level"][:], file["sources"][:]
        parent = file["parent"][:] if "parent" in file else None
        equal("form", bool(file["done"][:].all()), True, "all searches are done")
    equal("form", held.tolist(), place[sources].tolist(), "sources")
    equal("form", level.shape, (len(sources), truth.n), "shape of levels")
    vertex = np.full(truth.n + 1, -1)
    vertex[place] = np.arange(truth.n)
    for row, source in enumerate(sources):
        above = None
        if parent is not None:
            if not ((parent[row] >= -1) & (parent[row] < truth.n)).all():
                raise Wrong("reached", f"parents outside of -1 to {truth.n - 1}")
            above = vertex[parent[row]][place]
        check_search(truth, source, level[row][place], above, parents=parents)


def partition(trial: Trial, made: Written, store: Path) -> Path:
    """Store the graph in other parts; return the store."""
    _, options = draw_parts(trial, made.truth)
    other = store.with_name(store.name + "-")
    trial.good("partition", store, "-o", other, *options)
    return other


def look(trial: Trial, made: Written, store: Path) -> None:
    """Verify the store, and look at what info tells."""
    done = trial.good(trial.choose("verify", "info"), store, "--json")
    if "n" in done.out[:2000] and trial.world.size == 1:
        values = done.values
        for name in ("n", "vertices"):
            if isinstance(values.get(name), int):
                equal("count", values[name], made.truth.n, name)
    trial.searches += 1


def export(trial: Trial, made: Written, store: Path) -> None:
    """Write the edges, read them back by the campaign's reader, perhaps convert them.

    Names with blanks are refused in text, with 2, where no other rank waits for them.
    """
    truth = made.truth
    ending = trial.choose(".txt", ".el", ".csv", ".mtx", ".sg", ".parquet")
    blanks = any(" " in str(name) for name in made.names or ())
    if blanks and trial.world.size > 1:
        ending = ".parquet"
    packing = ""
    if ending not in (".sg", ".parquet") and trial.chance(0.3):
        packing = trial.choose(".gz", ".bz2", ".xz", ".zst")
    path = trial.folder / f"out{ending}{packing}"
    done = trial.run("export", store, "-o", path, "--force")
    if done.code == 2 and blanks and "cannot stand in an edge list" in done.err:
        return
    equal("exit", done.code, 0, f"export: {done.err:.300}")
    kept = made.names if ending not in (".mtx", ".sg") else None

    def check() -> None:
        n, pairs = read_exported(path, packing, directed=truth.directed)
        if n is not None:
            equal("export", n, truth.n, f"vertices in {path.name}")
        edges = truth.simple
        known = kept is not None or made.names is None or made.first
        if not known:  # by number
            pairs = [(u, v) for u, v in pairs if int(u) != int(v)]
            equal("export", len(pairs), len(edges), f"edges in {path.name}")
            return
        names = {str(name): k for k, name in enumerate(kept or range(truth.n))}
        exported = [(names[str(u)], names[str(v)]) for u, v in pairs]
        exported = [(u, v) for u, v in exported if u != v]
        if not truth.directed:
            exported = [(min(pair), max(pair)) for pair in exported]
        equal("export", sorted(exported), sorted(edges), f"edges in {path.name}")

    trial.check(check)
    if made.names is None and not truth.directed and trial.chance(0.4):
        again = trial.folder / "again"
        trial.good("convert", path, "-o", again, "--force")
        plain = Truth(truth.n, sorted(truth.simple))
        search(trial, Written(b"", "", plain, first=int(ending == ".mtx")), again)
