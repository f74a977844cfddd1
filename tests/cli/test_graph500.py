"""``distbfs graph500``: the official report, its JSON, and runs that give none."""

import json
import signal

import numpy as np
import pytest
from commands import (
    DISTBFS,
    alone,
    begin,
    files_in,
    finish,
    here,
    injected,
    nedge,
    on,
    searches_begun,
    wait_until,
    write_edge_list,
)
from graphs import kronecker, random_tuples
from launching import is_open_mpi, needs_mpi

from distbfs.cli import graph500
from distbfs.search.result import Result
from distbfs.search.session import Session

GRAPH = random_tuples(150, 260, seed=5)
ROOTS = 4
QUARTILES = ("min", "firstquartile", "median", "thirdquartile", "max")
SEVEN = (*QUARTILES, "mean", "stddev")
# as the reference code prints them (graph500-newreference, src/main.c)
FIELDS = [
    "SCALE:",
    "edgefactor:",
    "NBFS:",
    "graph_generation:",
    "num_mpi_processes:",
    "construction_time:",
    *(f"bfs  {name}_time:" for name in SEVEN),
    *(f"{name}_nedge:" for name in SEVEN),
    *(f"bfs  {name}_TEPS:" for name in QUARTILES),
    "bfs  harmonic_mean_TEPS:     !",
    "bfs  harmonic_stddev_TEPS:",
    *(f"bfs  {name}_validate:" for name in SEVEN),
]


def fields_of(text):
    """Return name -> value of a report; the values begin in column 33."""
    pairs = [(line[:32].rstrip(), line[32:]) for line in text.splitlines()]
    assert [name for name, _ in pairs if not name.startswith("#")] == FIELDS
    for line, (_, value) in zip(text.splitlines(), pairs, strict=True):
        assert line[31] == " "
        assert value == value.strip() != ""
    return dict(pairs)


def command(scale, *more, roots=ROOTS):
    return ("graph500", "--scale", scale, "--roots", roots, *more)


@pytest.mark.parametrize(
    ("ranks", "parts", "scale"),
    [
        (1, 1, 9),
        (1, 2, 8),
        pytest.param(2, 2, 8, marks=needs_mpi),
        pytest.param(2, 4, 7, marks=needs_mpi),
        pytest.param(4, 4, 7, marks=needs_mpi),
    ],
)
def test_official_report(ranks, parts, scale):
    done = on(ranks, *command(scale, "--parts", parts))
    assert done.code == 0, done.err
    method = "fast" if parts == 1 else "parts"
    assert done.err.startswith(f"distbfs: engine openmp ({method}), ")
    report = fields_of(done.out)
    assert report["SCALE:"] == str(scale)
    assert report["edgefactor:"] == "16"
    assert report["NBFS:"] == str(ROOTS)
    assert report["num_mpi_processes:"] == str(ranks)
    assert report["# parts:"] == str(parts)
    assert report["# result:"] == "levels and parents"
    assert "# validation:" not in report
    for name in ("graph_generation:", "construction_time:", "bfs  min_validate:"):
        assert float(report[name]) > 0
    least, mean, most = (
        float(report[f"bfs  {name}_TEPS{end}"])
        for name, end in (("min", ":"), ("harmonic_mean", ":     !"), ("max", ":"))
    )
    assert 0 < least <= mean <= most
    if parts > 1:
        assert int(report["# TH:"]) > 0


def test_json_has_the_names_of_the_specification():
    report = here(*command(9, "--edge-factor", 4, "--seed", 3, "--json")).values
    assert (report["SCALE"], report["edgefactor"], report["NBFS"]) == (9, 4, ROOTS)
    assert report["num_mpi_processes"] == 1
    names = [f"{name}_{what}" for name in SEVEN for what in ("time", "nedge")]
    names += [f"{name}_validate" for name in SEVEN]
    names += [f"{name}_TEPS" for name in (*QUARTILES, "harmonic_mean")]
    assert all(report[name] > 0 or name.startswith("stddev") for name in names)
    assert report["harmonic_stddev_TEPS"] >= 0
    assert report["engine"].startswith("openmp (fast)")
    assert report["parts"] == 1
    assert report["TH"] is None
    assert report["validated"] is True
    assert {"distbfs", "python", "numpy", "h5py", "mpi"} <= set(report["versions"])
    assert {"processor", "cores", "memory_bytes", "hosts"} <= set(report["machine"])
    assert report["search"]["mode"] == "resident"
    tuples = kronecker(9, 4, seed=3)
    roots = [search["root"] for search in report["searches"]]
    assert len(set(roots)) == ROOTS
    assert all(tuples.degrees[roots] > 0)
    for search in report["searches"]:
        assert search["nedge"] == nedge(tuples, search["root"])
        assert search["TEPS"] == pytest.approx(search["nedge"] / search["time"])
    times = [search["time"] for search in report["searches"]]
    rates = [search["nedge"] / search["time"] for search in report["searches"]]
    assert report["mean_time"] == pytest.approx(np.mean(times))
    assert report["stddev_time"] == pytest.approx(np.std(times, ddof=1))
    assert report["harmonic_mean_TEPS"] == pytest.approx(
        ROOTS / np.sum(1 / np.array(rates))
    )


def test_64_roots_unless_told():
    report = here("graph500", "--scale", 7, "--json").values
    assert report["NBFS"] == 64
    assert len({search["root"] for search in report["searches"]}) == 64


@needs_mpi
def test_the_same_roots_and_edges_for_every_number_of_ranks():
    words = command(7, "--seed", 5, "--json")
    runs = [
        on(ranks, *words, *more)
        for ranks, more in [(1, ()), (2, ()), (4, ()), (2, ("--parts", 4))]
    ]
    pairs = [
        [(search["root"], search["nedge"]) for search in run.values["searches"]]
        for run in runs
    ]
    assert pairs[1:] == pairs[:1] * 3
    other = here(*command(7, "--seed", 6, "--json")).values["searches"]
    assert [search["root"] for search in other] != [root for root, _ in pairs[0]]


@pytest.mark.parametrize("parts", [1, 2])
def test_levels_only_is_said(parts):
    words = command(8, "--no-parents", "--parts", parts)
    report = fields_of(here(*words).out)
    assert report["# result:"] == "levels only"
    assert here(*words, "--json").values["result"] == "levels only"


@pytest.mark.parametrize("parts", [1, 2])
def test_parents_only_are_said_and_validated(parts):
    words = command(8, "--no-levels", "--parts", parts)
    report = fields_of(here(*words).out)
    assert report["# result:"] == "parents only"
    values = here(*words, "--json").values
    assert values["result"] == "parents only"
    assert values["validated"] is True
    both = here(*command(8, "--parts", parts, "--json")).values["searches"]
    edges = [search["nedge"] for search in values["searches"]]
    assert edges == [search["nedge"] for search in both]
    assert "without levels and without parents" in here(*words, "--no-parents").refusal


def test_a_wrong_parent_is_told(monkeypatch):
    """Without levels, too: the search of a root that has one is not valid."""
    search = Session.search

    def wrong(session, *arguments, **options):
        found = search(session, *arguments, **options)
        [parent] = found._outcome.parent
        x = int(np.flatnonzero(parent >= 0)[-1])
        parent[x] = found.root if parent[x] != found.root else x
        return found

    monkeypatch.setattr(Session, "search", wrong)
    done = here(*command(8, "--no-levels", "--parts", 1, "--engine", "reference"))
    assert done.code == 1
    assert "no results printed for invalid run: " in done.err
    assert "rule" in done.err


def test_skipped_validation_is_said():
    report = fields_of(here(*command(8, "--skip-validation")).out)
    assert report["# validation:"] == "skipped: not an official result"
    assert report["bfs  mean_validate:"] == "-1"
    values = here(*command(8, "--skip-validation", "--json")).values
    assert values["validated"] is False


@pytest.mark.parametrize(
    ("ranks", "parts"), [(1, 1), (1, 2), pytest.param(2, 2, marks=needs_mpi)]
)
@pytest.mark.parametrize("count", [1, 3, ROOTS, 99])
def test_some_are_validated(ranks, parts, count):
    words = command(8, "--parts", parts, "--validate", count)
    report = on(ranks, *words, "--json").values
    looked = [search["validate"] >= 0 for search in report["searches"]]
    assert looked == [k < count for k in range(ROOTS)]
    assert report["validated"] is (count >= ROOTS)
    assert report["min_validate"] > 0
    if ranks == 1:
        lines = fields_of(here(*words).out)
        some = f"{count} of {ROOTS} searches: not an official result"
        assert lines.get("# validation:") == (some if count < ROOTS else None)


def test_only_what_is_validated_can_be_wrong(monkeypatch):
    real, calls = Result.to_numpy, []

    def wrong(found):
        calls.append(found.root)
        level, parent = (np.array(values) for values in real(found))
        if len(calls) == 3:
            wrong_level(level, parent)
        return level, parent

    monkeypatch.setattr(Result, "to_numpy", wrong)
    assert here(*command(8, "--validate", 2)).code == 0
    assert len(calls) == 2
    calls.clear()
    assert here(*command(8, "--validate", 3)).code == 1


def test_validate_or_skip():
    words = command(5, "--skip-validation", "--validate", 2)
    assert "either --skip-validation or --validate" in here(*words).refusal


@pytest.mark.parametrize("engine", ["reference", "openmp"])
def test_engines(engine):
    report = here(*command(8, "--engine", engine, "--json")).values
    assert report["search"]["engine"] == engine


def test_without_a_compiler():
    done = alone(*command(8, "--json"), DISTBFS_CC="none")
    assert done.values["search"]["engine"] == "reference"
    assert done.err.count("DISTBFS_CC") == 1
    compiled = here(*command(8, "--json")).values
    assert [(x["root"], x["nedge"]) for x in done.values["searches"]] == [
        (x["root"], x["nedge"]) for x in compiled["searches"]
    ]


# stored graphs


@pytest.mark.parametrize("parts", [1, 2])
def test_stored_kronecker_graph(tmp_path, parts):
    words = ("--scale", 8, "--edge-factor", 6, "--seed", 4)
    made = ("generate", "kronecker", *words, "--parts", parts)
    assert here(*made, "-o", tmp_path / "graph").code == 0
    stored = here("graph500", "--graph", tmp_path / "graph", "--seed", 4, "--json")
    fresh = here("graph500", *words, "--json").values
    report = stored.values
    assert (report["SCALE"], report["edgefactor"], report["parts"]) == (8, 6, parts)
    assert report["graph_generation"] == 0
    assert report["notes"]["validated by"] == "its tuples"
    assert [(x["root"], x["nedge"]) for x in report["searches"]] == [
        (x["root"], x["nedge"]) for x in fresh["searches"]
    ]


@pytest.mark.parametrize(
    ("ranks", "parts"), [(1, 1), (1, 2), pytest.param(2, 2, marks=needs_mpi)]
)
def test_stored_converted_graph(tmp_path, ranks, parts):
    file = write_edge_list(tmp_path / "graph.txt", GRAPH)
    store = tmp_path / "graph"
    assert here("convert", file, "--parts", parts, "-o", store).code == 0
    report = on(ranks, "graph500", "--graph", store, "--roots", 6, "--json").values
    assert report["SCALE"] == 8  # 150 vertices
    assert report["edgefactor"] == round(260 / 150)
    assert report["notes"]["validated by"] == "its stored edges"
    for search in report["searches"]:
        assert GRAPH.degrees[search["root"]] > 0
        assert search["nedge"] == nedge(GRAPH, search["root"])


@pytest.mark.thorough
@needs_mpi
@pytest.mark.parametrize(("parts", "ranks"), [(1, 2), (3, 2), (2, 3)])
def test_stored_parts_that_do_not_divide(tmp_path, parts, ranks):
    """Rows of one part get owners, others are cut anew; the generator validates."""
    store = tmp_path / "graph"
    words = ("-s", 7, "--parts", parts, "-o", store)
    assert here("generate", "kronecker", *words).code == 0
    done = on(ranks, "graph500", "--graph", store, "--roots", 6, "--json")
    how = "1 part is divided by its rows"
    how = how if parts == 1 else f"{parts} parts are repartitioned"
    assert f"{how} for {ranks} ranks" in done.err
    assert (done.values["parts"], done.values["validated"]) == (ranks, True)
    alone = here("graph500", "--graph", store, "--roots", 6, "--json").values
    edges = [[x["root"], x["nedge"]] for x in done.values["searches"]]
    assert edges == [[x["root"], x["nedge"]] for x in alone["searches"]]


def test_fewer_roots_than_asked_for(tmp_path):
    (tmp_path / "graph.txt").write_text("0 1\n1 2\n4 4\n")
    store = tmp_path / "graph"
    assert here("convert", tmp_path / "graph.txt", "-o", store).code == 0
    report = here("graph500", "--graph", store, "--json").values
    assert report["NBFS"] == 3
    assert sorted(search["root"] for search in report["searches"]) == [0, 1, 2]


def test_one_root_has_no_deviation():
    report = here(*command(6, "--json", roots=1)).values
    assert report["stddev_time"] in (0, None)
    assert report["min_TEPS"] == report["max_TEPS"]
    assert here(*command(6, roots=1)).code == 0


def test_a_graph_without_roots(tmp_path):
    (tmp_path / "graph.txt").write_text("1 1\n")
    store = tmp_path / "graph"
    assert here("convert", tmp_path / "graph.txt", "-o", store).code == 0
    done = here("graph500", "--graph", store)
    assert (done.code, done.out) == (1, "")
    assert "no vertex has a neighbour other than itself" in done.err


# invalid runs


def wrong_level(level, parent):
    level[np.flatnonzero(level == 1)[0]] = 7


def wrong_parent(level, parent):
    far = np.flatnonzero(level == 2)[0]
    parent[far] = np.flatnonzero(level == 0)[0]


def missing_vertex(level, parent):
    far = np.flatnonzero(level == level.max())[0]
    level[far] = parent[far] = -1


@pytest.mark.parametrize("harm", [wrong_level, wrong_parent, missing_vertex])
@pytest.mark.parametrize("more", [(), ("--json",), ("--parts", 2)])
def test_an_invalid_run_prints_no_figures(monkeypatch, harm, more):
    real = Result.to_numpy
    calls = 0

    def wrong(found):
        nonlocal calls
        calls += 1
        level, parent = (np.array(values) for values in real(found))
        if calls == 3:
            harm(level, parent)
        return level, parent

    monkeypatch.setattr(Result, "to_numpy", wrong)
    done = here(*command(8, *more))
    assert (done.code, done.out) == (1, "")
    _, line = done.err.splitlines()
    assert line.startswith("distbfs: no results printed for invalid run: 1 of ")
    assert " searches are wrong, the first from root " in line


def test_wrong_edge_counts_are_found(monkeypatch):
    real = Result.nedge
    monkeypatch.setattr(Result, "nedge", property(lambda x: real.fget(x) + 1))
    done = here(*command(6, roots=2))
    assert (done.code, done.out) == (1, "")
    assert "tuples by degrees" in done.err


def test_the_building_of_a_large_graph_is_announced(monkeypatch):
    monkeypatch.setattr(graph500, "MANY_TUPLES", 1)
    done = here(*command(8))
    first, second = done.err.splitlines()
    assert first == "distbfs: building 256 vertices from 4096 tuples"
    assert second.startswith("distbfs: engine")


# what stops a run


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=needs_mpi)])
def test_stopped_run_reports_what_is_done(tmp_path, ranks, number):
    if ranks > 1 and number == signal.SIGTERM and is_open_mpi():
        pytest.skip("mpirun of Open MPI ends the ranks itself when it gets SIGTERM")
    log, records = tmp_path / "log", tmp_path / "levels.jsonl"
    words = [*command(8, "--records", records, roots=64)]
    env = injected(log, sleep=0.1)
    process = begin(ranks, [*DISTBFS, *map(str, words)], env)
    wait_until(lambda: searches_begun(log) > 4, process)
    process.send_signal(number)
    done = finish(process)
    assert done.code == 0, done.err
    report = fields_of(done.out)
    count = int(report["NBFS:"])
    assert 3 <= count < 64
    assert f"distbfs: stopped on request after {count} of 64 searches\n" in done.err
    assert records.read_text() == ""  # they would take as long as the searches


def test_stopped_at_once(tmp_path):
    log = tmp_path / "log"
    process = begin(1, [*DISTBFS, *map(str, command(8))], injected(log, sleep=0.3))
    wait_until(lambda: searches_begun(log) > 0, process)  # which warms up
    process.terminate()
    done = finish(process)
    assert done.code == 0, done.err
    count = int(fields_of(done.out)["NBFS:"]) if done.out else 0
    assert count <= 1
    assert f"stopped on request after {count} of {ROOTS} searches" in done.err


# files and messages


@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=needs_mpi)])
def test_level_records(tmp_path, ranks):
    path = tmp_path / "levels.jsonl"
    words = command(8, "--records", path, "--parts", 2, "--json")
    report = on(ranks, *words).values
    records = [json.loads(line) for line in path.read_text().splitlines()]
    roots = [search["root"] for search in report["searches"]]
    assert list(dict.fromkeys(record["root"] for record in records)) == roots
    for root in roots:
        mine = [record for record in records if record["root"] == root]
        assert [record["level"] for record in mine] == list(range(1, len(mine) + 1))
        reached = sum(record["normals"] + record["delegates"] for record in mine)
        level = kronecker(8).distances(root)
        assert reached == (level >= 0).sum()


def test_level_records_that_cannot_be_written(tmp_path):
    refusal = here(*command(8, "--records", tmp_path / "no" / "x")).refusal
    assert "x: there is no folder" in refusal
    assert files_in(tmp_path) == []


@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=needs_mpi)])
def test_log_as_json_lines(ranks):
    done = on(ranks, *command(8, "--log-format", "json"))
    assert done.code == 0
    fields_of(done.out)
    lines = [json.loads(line) for line in done.err.splitlines()]
    assert [set(line) for line in lines] == [{"time", "level", "message"}]
    assert lines[0]["message"].startswith("engine openmp (")


@needs_mpi
def test_refused_on_two_ranks():
    words = ("graph500", "--scale", 5, "--parts", 3)
    assert "3 parts cannot be split evenly over 2 ranks" in on(2, *words).refusal
