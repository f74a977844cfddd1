"""``distbfs bfs``: results in input ids, records, engines, resumption, refusals."""

import contextlib
import gzip
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import h5py
import networkx as nx
import numpy as np
import pytest
from commands import (
    DISTBFS,
    alone,
    begin,
    check_results,
    files_in,
    finish,
    here,
    injected,
    nedge,
    on,
    ranks_below,
    results_of,
    rows_done,
    searches_begun,
    wait_until,
    write_edge_list,
)
from graphs import Tuples, check_search, random_tuples
from launching import clean_environment, is_open_mpi, needs_mpi
from shortest_paths import path_counts

from distbfs.cli import shared as common
from distbfs.cli.bfs import Kept
from distbfs.search.result_file import ResultFile

GRAPH = random_tuples(150, 260, seed=5)
SOURCES = [0, 3, 77, 149]
MANY = list(range(20))
ONE = ("--source", 3)


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Stores of the graph in 1, 2 and 4 parts."""
    folder = tmp_path_factory.mktemp("stores")
    file = write_edge_list(folder / "graph.txt", GRAPH)
    for parts in (1, 2, 4):
        done = here("convert", file, "--parts", parts, "-o", folder / str(parts))
        assert done.code == 0
    return {parts: folder / str(parts) for parts in (1, 2, 4)}


def options(sources):
    return [word for source in sources for word in ("--source", source)]


@pytest.fixture
def output(tmp_path):
    return tmp_path / "out.h5"


# results


@pytest.mark.parametrize(
    ("ranks", "parts"),
    [
        (1, 1),
        (1, 2),
        (1, 4),
        pytest.param(2, 4, marks=needs_mpi),
        pytest.param(4, 4, marks=[needs_mpi, pytest.mark.thorough]),
        pytest.param(2, 1, marks=needs_mpi),  # and cut anew
        pytest.param(3, 4, marks=needs_mpi),
    ],
)
def test_results(stores, output, ranks, parts):
    words = ("bfs", stores[parts], *options(SOURCES), "-o", output, "--json")
    report = on(ranks, *words).values
    check_results(GRAPH, output, SOURCES)
    assert files_in(output.parent) == ["out.h5"]
    assert report["complete"] is True
    assert [one["source"] for one in report["searches"]] == SOURCES
    for one in report["searches"]:
        level = GRAPH.distances(one["source"])
        assert one["reached"] == (level >= 0).sum()
        assert one["depth"] == level.max()
        assert one["nedge"] == nedge(GRAPH, one["source"])
        assert one["seconds"] > 0
        assert one["TEPS"] == pytest.approx(one["nedge"] / one["seconds"])


@pytest.mark.parametrize(
    ("ranks", "parts"), [(1, 1), pytest.param(2, 4, marks=needs_mpi)]
)
def test_sets_of_sources(stores, output, tmp_path, ranks, parts):
    """Beside searches from one vertex; a run that ended is gone on with."""
    file = tmp_path / "set.txt"
    file.write_text("# a set\n149\n3\n\n3\n")
    words = ("--source", 7, "--source-set", "0,77,0", "--source-set", f"@{file}")
    words = ("bfs", stores[parts], *words, "--source-set", 5, "-o", output, "--json")
    searches = on(ranks, *words).values["searches"]
    sets = [[7], [0, 77], [3, 149], [5]]
    starts = [x.get("sources", [x.get("source")]) for x in searches]
    assert starts == sets
    with h5py.File(output) as found:
        bounds, every = found["set_bounds"][:], found["set_sources"][:]
        assert found["sources"][:].tolist() == [min(x) for x in sets]
        for row, roots in enumerate(sets):
            assert every[bounds[row] : bounds[row + 1]].tolist() == roots
            level, parent = found["level"][row], found["parent"][row]
            check_search(GRAPH, np.array(roots), level, parent)
            assert searches[row]["reached"] == (level >= 0).sum()
    for wrong, message in (
        ("150", "source '150' is not a vertex; allowed: 0 to 149"),
        (",", "',' names no vertex"),
        ("1,x", "'x' is not a vertex;"),
        (f"@{tmp_path}/none", "No such file"),
    ):
        done = here("bfs", stores[parts], "--source-set", wrong)
        assert done.code == 2
        assert message in done.err
    table = here("bfs", stores[parts], "--source-set", "0,77").out
    assert "2 vertices" in table


@pytest.mark.parametrize(
    ("ranks", "parts"),
    [(1, 1), (1, 2), pytest.param(2, 4, marks=needs_mpi)],
)
def test_shortest_paths(stores, output, ranks, parts):
    """Their numbers, those to one vertex, and the edges within some hops."""
    graph = nx.Graph(zip(GRAPH.u.tolist(), GRAPH.v.tolist(), strict=True))
    level = GRAPH.distances(3)
    target = int(level.argmax())
    words = ("bfs", stores[parts], "--source", 3, "--paths-to", target, "--json")
    [one] = on(ranks, *words, "-o", output, "--counts", "uint64").values["searches"]
    wanted = path_counts(GRAPH.matrix, level)
    with h5py.File(output) as file:
        assert file["paths"].dtype == np.uint64
        np.testing.assert_array_equal(file["paths"][0], wanted)
    assert one["largest_count"] == wanted.max()
    answer = one["paths_to"]
    every = sorted(nx.all_shortest_paths(graph, 3, target))
    assert (answer["target"], answer["distance"]) == (target, level.max())
    assert answer["count"] == wanted[target] == len(every)
    assert all(path in every for path in answer["paths"])
    assert len(answer["paths"]) == min(10, len(every))
    table = output.with_name("edges.csv.gz")
    done = on(ranks, *words[:4], "--depth-limit", 2, "--edges", table, "--json")
    assert done.values["searches"][0]["depth"] == 2
    head, *rows = gzip.decompress(table.read_bytes()).decode().split()
    assert head == "u,v,level_u,level_v"
    near = nx.ego_graph(graph, 3, radius=2)
    near.remove_edges_from(list(nx.selfloop_edges(near)))
    cells = [tuple(map(int, row.split(","))) for row in rows]
    assert len(cells) == near.number_of_edges()
    for u, v, above, below in cells:
        assert near.has_edge(u, v)
        assert (above, below) == (level[u], level[v])
    assert cells == sorted(cells, key=lambda row: (row[2], row[0], row[1]))


def test_wrong_use_of_paths(stores, output):
    words = ("bfs", stores[1], "--source", 3)
    printed = here(*words, "--depth-limit", 0, "--edges", "-")
    assert (printed.code, printed.out) == (0, "u,v,level_u,level_v\n")
    lost = int(np.flatnonzero(GRAPH.distances(3) < 0)[0])
    assert f"no path from 3 to {lost}" in here(*words, "--paths-to", lost).out
    for more, why in (
        (("--paths-to", 150), "--paths-to: target '150' is not a vertex"),
        (("--edges", "-", "--json"), "- is stdout, for one output alone"),
        (("--edges", "-", "--source", 4), "one source, not 2"),
        (("--edges", "-", "-o", output), "--edges goes without --output"),
        (("--depth-limit", 1, "--energy"), "leave out --depth-limit"),
        (("--counts", "int8"), "int8"),
    ):
        done = here(*words, *more)
        assert done.code == 2
        assert why in done.err
    assert here(*words, "--counts", "uint64", "-o", output).code == 0
    with h5py.File(output) as file:
        assert set(file) == {"sources", "level", "parent", "paths", "done"}


def test_levels_are_those_of_networkx(stores, output):
    graph = nx.Graph(zip(GRAPH.u.tolist(), GRAPH.v.tolist(), strict=True))
    graph.add_nodes_from(range(GRAPH.n))
    assert here("bfs", stores[2], *options(SOURCES), "-o", output).code == 0
    sources, level, parent = results_of(output)
    for row, root in enumerate(sources.tolist()):
        values = nx.single_source_shortest_path_length(graph, root)
        expected = [values.get(vertex, -1) for vertex in range(GRAPH.n)]
        assert level[row].tolist() == expected
        tree = {v: p for v, p in enumerate(parent[row].tolist()) if p not in (-1, v)}
        assert all(graph.has_edge(v, p) for v, p in tree.items())


def test_sources_of_the_command_line_and_of_a_file(stores, output):
    file = output.with_name("sources.txt")
    file.write_text("# chosen by hand\n77\n\n  149 # the last\n3\n")
    words = ("bfs", stores[1], "--source", 0, "--sources", file, "-o", output)
    done = here(*words)
    assert done.code == 0
    check_results(GRAPH, output, [0, 77, 149, 3])
    rows = [line.split(None, 3) for line in done.out.splitlines()]
    assert rows[0] == ["source", "reached", "depth", "vertices by level"]
    assert [row[0] for row in rows[1:]] == ["0", "77", "149", "3"]
    level = GRAPH.distances(77)
    counts = np.bincount(level[level >= 0]).tolist()
    shown = ", ".join(map(str, counts[:12])) + ", …" * (len(counts) > 12)
    assert rows[2] == ["77", str(sum(counts)), str(len(counts) - 1), shown]
    shown = here(*words, "--force", "--verbose").out.splitlines()[0].split(None, 6)
    figures = ["nedge", "seconds", "GTEPS"]
    assert shown == [*rows[0][:3], *figures, "vertices by level"]


@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=needs_mpi)])
def test_distances_of_a_small_graph(tmp_path, ranks):
    (tmp_path / "edges.txt").write_text("Rome Oslo\nOslo Bern\nLima Cuzco\n")
    words = ("bfs", tmp_path / "edges.txt", "--relabel", "-s", "Bern")
    lines = on(ranks, *words).out.splitlines()
    assert [line.split() for line in lines[2:]] == [
        ["vertex", "level"],
        ["Bern", "0"],
        ["Oslo", "1"],
        ["Rome", "2"],
    ]
    [found] = on(ranks, *words, "--json").values["searches"]
    assert (found["levels"], found["depth"]) == ([1, 1, 1], 2)
    assert found["distances"] == {"Bern": 0, "Oslo": 1, "Rome": 2}


@pytest.mark.parametrize("parts", [1, 2])
def test_no_parents(stores, output, parts):
    words = ("bfs", stores[parts], *options(SOURCES), "-o", output, "--no-parents")
    assert here(*words).code == 0
    check_results(GRAPH, output, SOURCES, parents=False)


@pytest.mark.parametrize("parts", [1, 2])
def test_no_levels(stores, output, parts):
    words = ("bfs", stores[parts], *options(SOURCES), "--no-levels")
    report = here(*words, "-o", output, "--json").values
    check_results(GRAPH, output, SOURCES, levels=False)
    for row, root in zip(report["searches"], SOURCES, strict=True):
        distances = GRAPH.distances(root)
        facts = ((distances >= 0).sum(), distances.max(), nedge(GRAPH, root))
        assert (row["reached"], row["depth"], row["nedge"]) == facts
    table = here(*words, "-o", "-").out.splitlines()
    assert table[0] == "source,vertex,parent"
    cells = np.array([line.split(",") for line in table[1:]], dtype=int)
    _, _, parent = results_of(output)
    np.testing.assert_array_equal(cells[:, 2].reshape(parent.shape), parent)


@needs_mpi
def test_no_levels_of_ranks(stores, output):
    words = ("bfs", stores[4], *options(SOURCES), "--no-levels", "-o", output)
    assert on(2, *words).code == 0
    check_results(GRAPH, output, SOURCES, levels=False)


def test_levels_that_are_needed(stores, tmp_path):
    words = ("bfs", stores[1], "--source", 3, "--no-levels")
    assert "without levels and without parents" in here(*words, "--no-parents").refusal
    for more in (
        ("--counts", "uint64"),
        ("--paths-to", 4),
        ("--edges", tmp_path / "edges.csv"),
    ):
        assert "need levels; leave out --no-levels" in here(*words, *more).refusal


VARIANTS = [
    (1, ("--engine", "reference")),
    (2, ("--engine", "reference")),
    (1, ("--engine", "openmp", "--method", "push")),
    (1, ("--engine", "openmp", "--method", "hybrid")),
    (1, ("--engine", "openmp", "--method", "fast", "--threads", 2)),
    (1, ("--engine", "openmp", "--stepwise")),
    (1, ("--engine", "openmp", "--stepwise", "--exchange", "host")),
    (2, ("--engine", "openmp", "--direction", "push")),
    (2, ("--engine", "openmp", "--direction", "pull")),
    (4, ("--exchange", "host", "--local-all2all", "--uniquify")),
]


@pytest.mark.parametrize(("parts", "more"), VARIANTS)
def test_variants(stores, output, parts, more):
    words = ("bfs", stores[parts], *options(SOURCES), "-o", output, "--json")
    report = here(*words, *more).values
    check_results(GRAPH, output, SOURCES)
    if "--engine" in more:
        assert report["engine"] == more[1]
    assert report["mode"] == (
        "resident" if parts == 1 and "--stepwise" not in more else "stepwise"
    )


@needs_mpi
def test_variants_of_the_exchange_on_ranks(stores, output):
    words = ("bfs", stores[4], *options(SOURCES), "-o", output, "--json")
    more = ("--local-all2all", "--uniquify", "--mask-reduce", "nonblocking")
    assert on(2, *words, *more).values["exchange"] == "host"
    check_results(GRAPH, output, SOURCES)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("text", "n"), [("0 0\n", 1), ("2 2\n2 2\n", 3), ("0 1\n", 2)], ids=str
)
@pytest.mark.parametrize("parts", [1, 2, 4])
def test_tiny_graphs(output, text, n, parts):
    """One vertex, loops only, fewer vertices than parts."""
    file, store = output.with_name("tiny.txt"), output.with_name("tiny")
    file.write_text(text)
    assert here("convert", file, "--parts", parts, "-o", store).code == 0
    pairs = np.array(text.split(), dtype=np.int64).reshape(-1, 2)
    done = here("bfs", store, *options(range(n)), "-o", output)
    assert done.code == 0, done.err
    check_results(Tuples(n, *pairs.T), output, range(n))


# what is said


def test_progress_and_results_go_apart(stores):
    done = alone("bfs", stores[1], *ONE, "--json")
    assert json.loads(done.out)["complete"] is True
    assert done.err.count("\n") == 1
    assert done.err.startswith("distbfs: engine openmp (fast), 1 threads per rank")


def test_progress_shows_on_a_terminal_only(stores, output):
    words = ("bfs", stores[1], *options(MANY), "-o", output, "--json")
    shown, terminal = pty.openpty()
    process = subprocess.Popen(
        [*DISTBFS, *map(str, words)],
        env=clean_environment({"OMP_NUM_THREADS": "1", "TERM": "xterm"}),
        stdout=subprocess.PIPE,
        stderr=terminal,
    )
    os.close(terminal)
    text = b""
    with contextlib.suppress(OSError):  # how the end of a terminal reads
        while data := os.read(shown, 1 << 16):
            text += data
    os.close(shown)
    out, _ = process.communicate(timeout=120)
    assert b"searching" in text
    assert json.loads(out)["complete"] is True


@needs_mpi
def test_only_rank_0_speaks(stores):
    done = on(2, "bfs", stores[2], *ONE, "--json", "--log-format", "json")
    assert len(done.values["searches"]) == 1
    lines = [json.loads(line) for line in done.err.splitlines()]
    assert [line["level"] for line in lines] == ["info"]
    assert lines[0]["message"].startswith("engine openmp")
    assert set(lines[0]) == {"time", "level", "message"}


@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=needs_mpi)])
def test_without_a_compiler_the_reference_serves_and_says_so(stores, output, ranks):
    words = ("bfs", stores[ranks], *options(SOURCES), "-o", output)
    done = on(ranks, *words, "--json", DISTBFS_CC="none")
    assert done.values["engine"] == "reference"
    spoken = [line for line in done.err.splitlines() if "DISTBFS_CC" in line]
    why = "no C compiler: DISTBFS_CC is 'none'"
    assert spoken == [f"distbfs: engine reference: {why}"]
    check_results(GRAPH, output, SOURCES)


@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=needs_mpi)])
def test_openmp_without_a_compiler_is_no_device(stores, ranks):
    words = ("bfs", stores[ranks], *ONE, "--engine", "openmp")
    done = on(ranks, *words, DISTBFS_CC="none")
    assert (done.code, done.out) == (3, "")
    assert done.err.count("\n") == 1
    assert "no C compiler" in done.err


# level records


def read_records(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("engine", ["openmp", "reference"])
def test_records_of_a_whole_graph(stores, tmp_path, engine):
    path = tmp_path / "levels.jsonl"
    words = ("bfs", stores[1], *options(SOURCES), "--records", path)
    assert here(*words, "--engine", engine).code == 0
    records = read_records(path)
    for source in SOURCES:
        mine = [record for record in records if record["source"] == source]
        level = GRAPH.distances(source)
        assert [record["level"] for record in mine] == list(range(1, level.max() + 2))
        frontier = [int((level == k).sum()) for k in range(level.max() + 1)]
        assert [record["frontier"] for record in mine] == frontier
        assert [record["found"] for record in mine] == [*frontier[1:], 0]
        assert all(record["direction"] for record in mine)
        assert all(record["checks"] >= record["found"] for record in mine)
        assert all(record["seconds"] >= 0 for record in mine)


@pytest.mark.parametrize("name", ["bfs", "graph500"])
def test_records_on_stdout(stores, tmp_path, name):
    path = tmp_path / "levels.jsonl"
    words = {
        "bfs": (stores[1], "-s", 0),
        "graph500": ("--graph", stores[1], "--roots", 1, "--skip-validation"),
    }[name]
    assert here(name, *words, "--records", path).code == 0
    lines = here(name, *words, "--records", "-").out.splitlines()
    shown, kept = [json.loads(line) for line in lines], read_records(path)
    names = ("level", "found")
    assert [[x[k] for k in names] for x in shown] == [
        [x[k] for k in names] for x in kept
    ]
    assert shown
    more = [("--json",)] if name == "graph500" else [("--json",), ("-o", "-")]
    for other in more:
        refused = here(name, *words, "--records", "-", *other).refusal
        assert "- is stdout, for one output alone, without --json" in refused


@pytest.mark.parametrize(
    ("ranks", "parts"),
    [(1, 2), pytest.param(2, 2, marks=needs_mpi), pytest.param(2, 4, marks=needs_mpi)],
)
def test_records_of_parts(stores, tmp_path, ranks, parts):
    path = tmp_path / "levels.jsonl"
    words = ("bfs", stores[parts], *options(SOURCES), "--records", path)
    assert on(ranks, *words).code == 0
    records = read_records(path)
    for source in SOURCES:
        mine = [record for record in records if record["source"] == source]
        level = GRAPH.distances(source)
        assert [record["level"] for record in mine] == list(range(1, level.max() + 2))
        frontier = [record["normals"] + record["delegates"] for record in mine]
        assert frontier == [int((level == k).sum()) for k in range(level.max() + 1)]
        for record in mine:
            assert set(record["directions"]) == set(record["checks"])
            assert set(record["checks"]) == {"outer", "inner"}
            assert set(record["directions"].values()) <= {"push", "pull"}
            assert min(record["checks"].values()) >= 0
            assert set(record["bytes_sent"]) == set(record["messages_sent"])
            for kind, size in record["bytes_sent"].items():
                assert (size > 0) == (record["messages_sent"][kind] > 0)
            assert {"work", "advance", "exchange", "accept"} <= set(record["seconds"])
            assert min(record["seconds"].values()) >= 0
    if ranks > 1:
        assert sum(record["bytes_sent"]["masks"] for record in records) > 0
        assert sum(record["bytes_sent"]["normals"] for record in records) > 0


def test_pushing_checks_every_edge_of_the_component(stores, tmp_path):
    path = tmp_path / "levels.jsonl"
    words = ("bfs", stores[2], *ONE, "--records", path, "--direction", "push")
    assert here(*words).code == 0
    checks = sum(sum(record["checks"].values()) for record in read_records(path))
    assert checks == GRAPH.degrees[GRAPH.distances(3) >= 0].sum()


@pytest.mark.parametrize("name", ["dd", "dn", "nd"])
def test_factors_turn_one_subgraph(stores, tmp_path, name):
    """The smallest factors pull as soon as a frontier has such edges."""
    path = tmp_path / "levels.jsonl"
    never = [x for n in ("dd", "dn", "nd") for x in (f"--{n}-factors", 1e300, 0)]
    always = [f"--{name}-factors", 0, 0]
    words = ("bfs", stores[2], *ONE, "--records", path, *never, *always)
    assert here(*words, "--engine", "reference").code == 0
    pulling = {
        kind
        for record in read_records(path)[:2]
        for kind, direction in record["directions"].items()
        if direction == "pull"
    }
    assert pulling == {name}


def test_factors_are_of_engines_with_subgraphs(stores):
    refused = here("bfs", stores[2], *ONE, "--engine", "openmp", "--dd-factors", 1, 1)
    assert "dd is not an option of engine openmp; it belongs to ref" in refused.refusal


# stopped, killed, resumed


@pytest.fixture
def searches(stores, output):
    """The words of a command with many sources, all ranks and threads alike."""

    def words(parts):
        more = [*options(MANY), "--output", output, "--threads", 1]
        return [str(word) for word in ("bfs", stores[parts], *more)]

    return words


def uninterrupted(words, output):
    """Run the same command without a stop; returns its results."""
    other = output.with_name("whole.h5")
    words = [str(other) if word == str(output) else word for word in words]
    assert here(*words).code == 0
    return results_of(other)


def partial(output):
    return output.with_name(output.name + ".partial")


def start_slow(ranks, words, output, rows, seconds=0.3):
    """Start a command and return when some searches are done and one is going on."""
    log = output.with_name("log")
    process = begin(ranks, [*DISTBFS, *words], injected(log, sleep=seconds))

    def reached():
        if rows and rows_done(partial(output)) < rows:
            return False
        return all(searches_begun(log, rank) for rank in range(ranks))

    wait_until(reached, process)
    return process


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=needs_mpi)])
def test_stopped_and_resumed(searches, output, ranks, number):
    if ranks > 1 and number == signal.SIGTERM and is_open_mpi():
        pytest.skip("mpirun of Open MPI ends the ranks itself when it gets SIGTERM")
    words, records = searches(ranks), output.with_name("levels.jsonl")
    words += ["--records", str(records)]
    process = start_slow(ranks, [*words, "--json"], output, 3)
    process.send_signal(number)
    ended = finish(process)
    assert ended.values["complete"] is False
    done = rows_done(partial(output))
    assert 3 <= done < len(MANY)
    assert [one["source"] for one in ended.values["searches"]] == MANY[:done]
    assert f"stopped on request after {done} of {len(MANY)} searches" in ended.err
    assert "Traceback" not in ended.err
    assert not output.exists()

    again = on(ranks, *words, "--json")
    assert [one["source"] for one in again.values["searches"]] == MANY[done:]
    assert f"continuing after {done} of {len(MANY)} searches" in again.err
    assert output.exists()
    assert not partial(output).exists()
    check_results(GRAPH, output, MANY)
    asked = [record["source"] for record in read_records(records)]
    assert list(dict.fromkeys(asked)) == MANY
    if ranks == 1:
        whole = uninterrupted(words[:-2], output)
        for result, expected in zip(results_of(output), whole, strict=True):
            assert np.array_equal(result, expected)


@pytest.mark.thorough
@needs_mpi
def test_a_signal_to_one_rank_stops_all(searches, output):
    process = start_slow(2, searches(2), output, 3)
    ranks_below(process)[1].send_signal(signal.SIGUSR1)
    assert finish(process).code == 0
    assert 3 <= rows_done(partial(output)) < len(MANY)
    assert on(2, *searches(2)).code == 0
    check_results(GRAPH, output, MANY)


@pytest.mark.thorough
@needs_mpi
def test_a_request_that_arrives_twice(searches, output):
    """Directly and through the launcher, the second when the ranks are leaving."""
    process = start_slow(2, searches(2), output, 3)
    ranks = ranks_below(process)
    process.send_signal(signal.SIGUSR1)
    process.stderr.readline()  # the engine
    assert "stopped on request" in process.stderr.readline()
    for rank in ranks.values():
        rank.send_signal(signal.SIGUSR1)
    assert finish(process).code == 0


@pytest.mark.thorough
@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=needs_mpi)])
def test_a_second_request_ends_at_once(searches, output, ranks):
    assert on(ranks, *searches(ranks)[:-4], "-o", output).code == 0
    process = start_slow(ranks, [*searches(ranks), "--force"], output, 0, 120)
    process.send_signal(signal.SIGUSR1)
    time.sleep(1.2)  # else both count as one
    began = time.monotonic()
    process.send_signal(signal.SIGUSR1)
    assert finish(process).code != 0
    assert time.monotonic() - began < 40  # the search would go on for 120 s
    check_results(GRAPH, output, MANY)  # what was there stays


@pytest.mark.thorough
@pytest.mark.parametrize("sync", [1, 2, 3, 4, 9])
def test_killed_while_it_writes(searches, output, sync):
    env = injected(output.with_name("log"), kill_sync=sync)
    killed = finish(begin(1, [*DISTBFS, *searches(1)], env))
    assert killed.code == -signal.SIGKILL
    assert not output.exists()
    done = max(rows_done(partial(output)), 0)
    # one when the file is closed and one when it has its space; then one for the row
    # and one for its flag
    assert done == max(sync - 2, 0) // 2
    assert here(*searches(1)).code == 0
    whole = uninterrupted(searches(1), output)
    for result, expected in zip(results_of(output), whole, strict=True):
        assert np.array_equal(result, expected)
    assert files_in(output.parent) == ["log.0", "out.h5", "whole.h5"][sync <= 2 :]


@pytest.mark.thorough
@needs_mpi
def test_a_killed_rank_and_resumed(searches, output):
    process = start_slow(2, searches(2), output, 3)
    ranks = ranks_below(process)
    ranks[1].kill()
    assert finish(process, ranks=ranks.values()).code != 0
    assert rows_done(partial(output)) >= 3
    assert on(2, *searches(2)).code == 0
    check_results(GRAPH, output, MANY)


def test_resumed_where_memory_ran_out(searches, output, monkeypatch):
    put, rows = ResultFile.put, set()

    def failing(self, name, row, *values):
        rows.add(row)
        if len(rows) == 3:
            raise MemoryError
        put(self, name, row, *values)

    with monkeypatch.context() as patch:
        patch.setattr(ResultFile, "put", failing)
        done = here(*searches(1))
    assert done.code == 3
    assert done.err.splitlines()[-1] == "distbfs: there is not enough memory"
    assert not output.exists()
    assert "continuing after 2 of" in here(*searches(1)).err


@pytest.mark.thorough
def test_resumed_on_another_number_of_ranks_and_engine(searches, output):
    process = start_slow(1, searches(2), output, 3)
    process.terminate()
    assert finish(process).code == 0
    assert here(*searches(2), "--engine", "reference").code == 0
    check_results(GRAPH, output, MANY)


@pytest.fixture
def interrupted(searches, output):
    """A partial file of the graph in one part."""
    env = injected(output.with_name("log"), kill_sync=6)
    finish(begin(1, [*DISTBFS, *searches(1)], env))
    assert rows_done(partial(output)) == 2
    return partial(output)


def test_a_partial_file_of_another_run(stores, output, interrupted):
    same = ("bfs", stores[1], *options(MANY), "-o", output)
    for words in (
        ("bfs", stores[1], *options(MANY[:-1]), "-o", output),
        ("bfs", stores[1], *options(MANY[::-1]), "-o", output),
        ("bfs", stores[2], *options(MANY), "-o", output),
        (*same, "--no-parents"),
        (*same, "--no-levels"),
    ):
        text = here(*words).refusal
        assert "is from another run: graph, sources or options differ" in text
        assert rows_done(interrupted) == 2
    assert here(*same).code == 0
    check_results(GRAPH, output, MANY)


def test_force_begins_anew_where_the_partial_file_is_of_no_use(
    stores, output, interrupted
):
    words = ("bfs", stores[1], *options(SOURCES), "-o", output, "--json")
    assert len(here(*words, "--force").values["searches"]) == len(SOURCES)
    check_results(GRAPH, output, SOURCES)
    output.unlink()
    interrupted.write_text("no HDF5")
    assert "out.h5.partial: " in here(*words).refusal
    assert len(here(*words, "--force").values["searches"]) == len(SOURCES)


def test_force_goes_on_with_its_own_partial_file(stores, output, interrupted):
    """Else a job that is requeued with --force would begin anew each time."""
    output.write_text("an older result")
    words = ("bfs", stores[1], *options(MANY), "-o", output, "--json")
    assert "out.h5 exists; give --force" in here(*words).refusal
    assert len(here(*words, "--force").values["searches"]) == len(MANY) - 2
    check_results(GRAPH, output, MANY)


def test_a_partial_file_that_another_run_writes(stores, output, interrupted):
    words = ("bfs", stores[1], *options(MANY), "-o", output)
    hold = "import h5py, sys; f = h5py.File(sys.argv[1], 'r+'); print(1, flush=True)"
    holder = subprocess.Popen(
        [sys.executable, "-c", hold + "; sys.stdin.read()", str(interrupted)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        holder.stdout.readline()
        for more in ((), ("--force",)):
            assert "another run writes to it" in here(*words, *more).refusal
    finally:
        holder.communicate()
    assert here(*words).code == 0


# refusals


def test_sources_out_of_range(stores, output):
    file = output.with_name("sources.txt")
    for line, text in [
        ("150", "2: source '150' is not a vertex; allowed: 0 to 149"),
        ("-1", "2: source '-1' is not a vertex"),
        ("1.5", "2: source '1.5' is not a vertex;"),
        ("1 2", "2: source '1 2' is not a vertex;"),
        ("9" * 5000, "2: source '999"),
        ("\N{ARABIC-INDIC DIGIT ONE}", "is not a vertex;"),
    ]:
        file.write_text(f"0\n{line}\n")
        refusal = here("bfs", stores[1], "--sources", file, "-o", output).refusal
        assert f"sources.txt:{text}" in refusal or text in refusal
    file.write_text("# none\n")
    assert "no source" in here("bfs", stores[1], "--sources", file).refusal
    file.write_bytes(b"\xff\xfe")
    text = here("bfs", stores[1], "--sources", file).refusal
    assert "sources.txt:1: not UTF-8" in text
    for source in (150, -1, 2**63 - 1, -(2**63) + 1, 10**30):
        text = here("bfs", stores[1], "--source", source, "-o", output).refusal
        assert str(source) in text
    for source in ("one", "1.0", "", "-", "9" * 50):
        text = here("bfs", stores[1], "--source", source, "-o", output).refusal
        assert f"--source: source '{source[:40]}' is not a vertex;" in text
    assert "no source" in here("bfs", stores[1]).refusal
    assert "nowhere: No such" in here("bfs", stores[1], "--sources", "nowhere").refusal
    assert files_in(output.parent) == ["sources.txt"]


def test_outputs_that_cannot_be(stores, output, monkeypatch):
    words = ("bfs", stores[1], *ONE, "-o")
    output.write_text("mine")
    assert "out.h5 exists; give --force to replace it" in here(*words, output).refusal
    assert output.read_text() == "mine"
    assert here(*words, output, "--force").code == 0
    check_results(GRAPH, output, [3])
    there = output.parent / "no" / "out.h5"
    assert f"no folder {there.parent}" in here(*words, there).refusal
    for more in ((), ("--force",)):
        assert "is a folder" in here(*words, output.parent, *more).refusal
        monkeypatch.chdir(output.parent)
        assert "is a folder" in here(*words, ".", *more).refusal
    text = here("bfs", stores[1], *ONE, "--records", there).refusal
    assert "out.h5: there is no folder" in text
    assert files_in(output.parent) == ["out.h5"]


def test_options_of_another_kind(stores):
    words = ("bfs", stores[1], *ONE)
    for more, text in [
        (("--method", "warp"), "allowed: fast, push, hybrid"),
        (("--engine", "reference", "--method", "fast"), "allowed: numpy"),
        (("--engine", "cuda"), "'auto', 'reference', 'openmp'"),
        (("--exchange", "gossip"), "'auto', 'host', 'nccl'"),
        (("--exchange", "nccl"), "exchange 'nccl' is for parts on devices"),
    ]:
        assert text in here(*words, *more).refusal


@pytest.mark.thorough
@needs_mpi
@pytest.mark.parametrize(
    ("parts", "more", "text"),
    [
        (2, ("--exchange", "solo"), "'solo' is not one of 'auto', 'host', 'nccl', "),
        (2, ("--source", 150), "source '150' is not a vertex"),
        (2, ("--method", "warp"), "allowed: fast, push, hybrid"),
        (2, ("--output", "no/out.h5"), "there is no folder no"),
    ],
)
def test_refused_on_two_ranks(stores, parts, more, text):
    assert text in on(2, "bfs", stores[parts], *ONE, *more).refusal


def another_version(store):
    with h5py.File(store / "manifest.h5", "r+") as file:
        file.attrs["format_version"] = 99


def altered(store):
    path = store / "part-00001.h5"
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 4] = b"\xa5\x5a\xa5\x5a"
    path.write_bytes(data)


def truncated(store):
    path = store / "part-00001.h5"
    os.truncate(path, path.stat().st_size - 100)


def without_a_part(store):
    (store / "part-00000.h5").unlink()


def without_manifest(store):
    (store / "manifest.h5").unlink()


def linked(store):
    with h5py.File(store / "part-00001.h5", "r+") as file:
        del file["degrees"]
        file["degrees"] = h5py.SoftLink("/tuple_degrees")


DAMAGES = [
    another_version,
    altered,
    truncated,
    without_a_part,
    without_manifest,
    linked,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_stores(stores, tmp_path, damage):
    store = tmp_path / "store"
    shutil.copytree(stores[2], store)
    damage(store)
    refusal = here("bfs", store, *ONE, "-o", tmp_path / "out.h5").refusal
    assert str(store) in refusal
    if damage is altered:
        assert str(store) in here("graph500", "--graph", store).refusal
        assert "store" in here("partition", store, "-o", tmp_path / "new").refusal
    assert not (tmp_path / "out.h5").exists()


@pytest.mark.thorough
@needs_mpi
def test_damage_that_one_rank_sees(stores, tmp_path):
    store = tmp_path / "store"
    shutil.copytree(stores[2], store)
    altered(store)
    done = on(2, "bfs", store, *ONE)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("distbfs: rank 1: ")
    assert done.err.count("\n") == 1


def test_long_work_is_told_elsewhere(monkeypatch, caplog):
    """A line every few seconds, not more."""
    now = [0.0]
    monkeypatch.setattr(common.time, "monotonic", lambda: now[0])
    lines = common.Lines("loading", 200)
    with caplog.at_level("INFO", "distbfs"):
        for done in range(0, 201, 20):
            now[0] += 1
            lines(done)
    messages = [record.getMessage() for record in caplog.records]
    assert messages == ["loading: 40 %", "loading: 90 %"]
    caplog.clear()
    now[0] += 6
    with caplog.at_level("INFO", "distbfs"):
        lines(100, 1000)  # there is more to do than was thought
        now[0] += 6
        lines(200)
    messages = [record.getMessage() for record in caplog.records]
    assert messages == ["loading: 10 %", "loading: 20 %"]


def test_one_rank_tells(monkeypatch, caplog):
    monkeypatch.setattr(common, "LINE_SECONDS", 0)
    for rank, lines in ((0, 1), (1, 0)):
        caplog.clear()
        terminal = common.Terminal(SimpleNamespace(rank=rank), common.Speech())
        with caplog.at_level("INFO", "distbfs"), terminal.progress("b", 9) as tell:
            tell(3)
        assert len(caplog.records) == lines
    caplog.clear()
    quiet = common.Terminal(SimpleNamespace(rank=0), common.Speech(quiet=True))
    with caplog.at_level("INFO", "distbfs"), quiet.progress("b", 9) as tell:
        tell(3)
    assert not caplog.records


# tables of levels


def table_rows(path, between=","):
    """Return the lines of a table after the first, split, and the first."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt") as file:
        head, *rows = (line.rstrip("\n").split(between) for line in file)
    return head, rows


@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=needs_mpi)])
def test_a_table_of_levels(stores, tmp_path, ranks):
    table = tmp_path / "levels.csv.gz"
    words = (*options(SOURCES), "--counts", "uint64")
    assert on(ranks, "bfs", stores[ranks], *words, "-o", table).code == 0
    head, rows = table_rows(table)
    assert head == ["source", "vertex", "level", "parent", "paths"]
    values = np.array(rows, dtype=np.int64).reshape(len(SOURCES), GRAPH.n, 5)
    for source, (whose, vertex, level, parent, paths) in zip(
        SOURCES, values.transpose(0, 2, 1), strict=True
    ):
        assert set(whose) == {source}
        assert np.array_equal(vertex, np.arange(GRAPH.n))
        check_search(GRAPH, source, level.astype(np.int32), parent)
        assert np.array_equal(paths, path_counts(GRAPH.matrix, level))
    refused = here("bfs", stores[1], *ONE, "-o", table).refusal
    assert "levels.csv.gz exists; give --force to replace it" in refused


def test_tables_are_alike_in_all_formats(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    edges = tmp_path / "edges.txt"
    edges.write_text("a b\nb c\nd e\n")
    words = ("bfs", edges, "--relabel", "-s", "a", "-s", "d", "-o")
    assert here(*words, tmp_path / "levels.csv").code == 0
    assert here(*words, tmp_path / "levels.parquet").code == 0
    head, rows = table_rows(tmp_path / "levels.csv")
    table = parquet.read_table(tmp_path / "levels.parquet").to_pydict()
    assert [*table] == head
    assert [[str(x) for x in row] for row in zip(*table.values(), strict=True)] == rows
    words = ("bfs", edges, "--relabel", "-s", "a", "--edges", tmp_path / "e.parquet")
    assert here(*words).code == 0
    table = parquet.read_table(tmp_path / "e.parquet").to_pydict()
    assert table == {
        "u": ["a", "b"],
        "v": ["b", "c"],
        "level_u": [0, 1],
        "level_v": [1, 2],
    }


def test_a_table_names_vertices_as_the_file(tmp_path):
    edges = tmp_path / "edges.txt"
    edges.write_text("a b\nb c\nd e\n")
    words = ("bfs", edges, "--relabel", "-s", "a", "--no-parents")
    table = tmp_path / "levels.tsv"
    assert here(*words, "-o", table).code == 0
    levels = [["a", "0"], ["b", "1"], ["c", "2"], ["d", "-1"], ["e", "-1"]]
    rows = [["a", *pair] for pair in levels]
    assert table_rows(table, "\t") == (["source", "vertex", "level"], rows)
    done = here(*words[:-1], "-o", "-")
    assert done.out.splitlines() == [
        *("source,vertex,level,parent", "a,a,0,a", "a,b,1,a", "a,c,2,b"),
        *("a,d,-1,", "a,e,-1,"),
    ]
    assert not Path("-").exists()
    done = here(*words, "-o", "-", "--json")
    assert (done.code, done.out) == (2, "")
    assert "- is stdout, for one output alone" in done.err


def test_a_table_of_searches_that_fail_is_not_left(stores, tmp_path, monkeypatch):
    def failing(self, *search):
        raise MemoryError

    monkeypatch.setattr(Kept, "write", failing)
    assert here("bfs", stores[1], *ONE, "-o", tmp_path / "levels.csv").code == 3
    assert files_in(tmp_path) == []


def test_an_output_says_its_format(stores, tmp_path):
    for name in ("x.txt", "x.json", "x", "x.h5.gz", "x.npy"):
        text = here("bfs", stores[1], "-s", 0, "-o", tmp_path / name).refusal
        assert f"{tmp_path / name}: the ending '" in text
        assert "allowed: .h5, .hdf5, .csv, .tsv, .parquet" in text
    text = here("bfs", stores[1], "-s", 0, "--edges", tmp_path / "x.h5").refusal
    assert "allowed: .csv, .tsv, .parquet" in text
    assert list(tmp_path.iterdir()) == []
    path = tmp_path / "edges.tsv"
    assert here("bfs", stores[1], "-s", 0, "--edges", path).code == 0
    assert path.read_text().startswith("u\tv\tlevel_u\tlevel_v\n")
    assert here("bfs", stores[1], "-s", 0, "-o", tmp_path / "x.HDF5").code == 0
    assert h5py.is_hdf5(tmp_path / "x.HDF5")
