"""Graphs whose ids are sparse or text: commands take and give the ids of the file."""

import json
import re
import subprocess

import h5py
import numpy as np
import pytest
from commands import DISTBFS, environment, files_in, here, on
from graphs import random_tuples
from launching import clean_environment, find_mpiexec, needs_mpi

from distbfs.engines.openmp.whole import OpenMPWhole
from distbfs.store.hdf5 import open_store

GRAPH = random_tuples(60, 150, seed=8)
USED = np.unique(np.stack([GRAPH.u, GRAPH.v]))
MAPS = {
    "numbers": [10**15 + 7 * k for k in range(60)],
    "text": [f"{'ÄBC'[k % 3]}-{k:03}" for k in range(60)],
}


@pytest.fixture(params=sorted(MAPS))
def case(request, tmp_path):
    """A file, and what its vertices are called."""
    names = MAPS[request.param]
    path = tmp_path / "graph.csv"
    pairs = zip(GRAPH.u.tolist(), GRAPH.v.tolist(), strict=True)
    path.write_text("".join(f"{names[u]},{names[v]}\n" for u, v in pairs))
    return path, names


def convert(path, store, *words, ranks=1):
    done = on(ranks, "convert", path, "-o", store, "--relabel", *words)
    assert done.code == 0, done.err
    assert ("ids are taken as text" in done.err) == ("Ä" in path.read_text())
    return store


@pytest.mark.parametrize("parts", [1, 3])
def test_results_are_in_the_ids_of_the_file(case, tmp_path, parts):
    path, names = case
    store = convert(path, tmp_path / "store", "--parts", parts)
    other = tmp_path / "other"
    assert here("partition", store, "--parts", 2, "-o", other).code == 0
    asked = [names[v] for v in USED[[3, 0, -1]].tolist()]
    file = tmp_path / "sources.txt"
    file.write_text(f"{asked[2]}\n")
    for folder in (store, other):
        out = folder.with_suffix(".h5")
        words = ("--source", asked[0], "-s", asked[1], "--sources", file)
        report = here("bfs", folder, *words, "-o", out, "--json").values
        assert [one["source"] for one in report["searches"]] == asked
        with h5py.File(out) as found:
            ids, level, parent = (found[x][:] for x in ("ids", "level", "parent"))
        ids = [x if isinstance(x, np.int64) else x.decode() for x in ids]
        assert sorted(ids) == sorted(names[v] for v in USED.tolist())
        for row, source in enumerate(asked):
            distance = GRAPH.distances(names.index(source))
            here_level = dict(zip(ids, level[row].tolist(), strict=True))
            assert here_level == {names[v]: distance[v] for v in USED.tolist()}
            for k in np.flatnonzero(level[row] > 0).tolist():
                up = ids[parent[row, k]]
                assert here_level[up] == here_level[ids[k]] - 1


def test_info_and_verify(case, tmp_path):
    path, names = case
    store = convert(path, tmp_path / "store")
    kind = "text" if isinstance(names[0], str) else "whole numbers"
    assert f"{kind}, as in the file" in here("info", store).out
    assert f"count {len(USED)}" in here("info", store, "--verbose").out
    report = here("info", store, "--json").values
    assert report["ids"]["count"] == len(USED) == report["vertices"]
    on_disk = sum(x.stat().st_size for x in store.iterdir())
    assert report["bytes"]["files"] == on_disk
    assert here("verify", store).code == 0
    body = (store / "ids.h5").read_bytes()
    (store / "ids.h5").write_bytes(body[:-9] + bytes(9))
    assert here("bfs", store, "-s", names[USED[0]]).code == 2
    (store / "ids.h5").write_bytes(body[:-1])
    assert "ids.h5" in here("verify", store).refusal


def test_refusals(case, tmp_path):
    path, _ = case
    store = convert(path, tmp_path / "store")
    before = files_in(tmp_path)
    for word in ("nobody", "-1", "", "9" * 40, "4"):
        text = here("bfs", store, "--source", word).refusal
        assert f"source '{word}' is not an id of the graph" in text
    file = tmp_path / "sources.txt"
    file.write_text("\nnobody\n")
    text = here("bfs", store, "--sources", file).refusal
    assert "sources.txt:2: source 'nobody' is not an id" in text
    file.unlink()
    words = ("convert", path, "-o", tmp_path / "new", "--relabel")
    assert "give none" in here(*words, "--one-based").refusal
    assert "give none" in here(*words, "--vertices", 70).refusal
    words = (*words, "--format", "metis")
    assert "not relabelled" in here(*words).refusal
    assert files_in(tmp_path) == before


def test_an_output_of_other_ids_is_not_gone_on_with(case, tmp_path):
    path, names = case
    store = convert(path, tmp_path / "store")
    out = tmp_path / "out.h5"
    source = names[USED[0]]
    assert here("bfs", store, "-s", source, "-o", out).code == 0
    out.rename(tmp_path / "out.h5.partial")
    path.write_text(path.read_text().replace(str(names[USED[1]]), "777"))
    convert(path, tmp_path / "second")
    words = ("bfs", tmp_path / "second", "-s", source, "-o", out)
    assert "is from another run" in here(*words).refusal
    assert here("bfs", store, "-s", source, "-o", out).code == 0


def served(ranks, store, requests, *words):
    """Answers of a service by id, which is asked over stdin."""
    said = "".join(json.dumps({"id": k, **x}) + "\n" for k, x in enumerate(requests))
    command = [*DISTBFS, "serve", str(store), *map(str, words)]
    if ranks > 1:
        command = [str(find_mpiexec()), "-n", str(ranks), *command]
    done = subprocess.run(
        command,
        input=said,
        capture_output=True,
        text=True,
        env=clean_environment(environment()),
        timeout=90,
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(x) for x in done.stdout.splitlines() if x.startswith("{")]
    answers = {line["id"]: line for line in lines}
    assert len(answers) == len(requests)
    return [answers[k] for k in range(len(requests))]


@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=needs_mpi)])
def test_a_service_takes_and_gives_the_ids_of_the_file(case, tmp_path, ranks):
    path, names = case
    store = convert(path, tmp_path / "store", "--parts", 2)
    source, *targets = (names[v] for v in USED[[3, 0, 5, -1]].tolist())
    distance = GRAPH.distances(names.index(source))
    by_name = {names[v]: distance[v] for v in USED.tolist()}
    far = max(by_name, key=by_name.get)
    bfs = {"op": "bfs", "source": source}
    requests = [
        {"op": "distances", "source": source, "targets": targets},
        {"op": "path", "source": source, "target": far},
        bfs,
        {"op": "bfs", "sources": [source, far], "parents": False},
        {**bfs, "source": "nobody"},
        {"op": "distances", "source": source, "targets": [far, -1]},
        {**bfs, "result": "summary"},
        {**bfs, "source": str(source), "result": "summary"},
        {"op": "stats"},
    ]
    answer = served(ranks, store, requests)
    assert answer[0]["distances"] == [by_name[x] for x in targets]
    steps = answer[1]["path"]
    assert (steps[0], steps[-1], len(steps)) == (source, far, by_name[far] + 1)
    assert [by_name[x] for x in steps] == list(range(len(steps)))
    assert answer[2]["source"] == source
    assert dict(zip(answer[2]["ids"], answer[2]["level"], strict=True)) == by_name
    for name, up in zip(answer[2]["ids"], answer[2]["parent"], strict=True):
        if by_name[name] <= 0:
            assert up == (source if by_name[name] == 0 else None)
        else:
            assert by_name[up] == by_name[name] - 1
    assert sorted(answer[3]["sources"]) == sorted([source, far])
    assert sorted(answer[3]["ids"]) == sorted(by_name)
    assert answer[4]["error"]["message"] == (
        'source is "nobody"; allowed: ids of the graph'
    )
    assert "targets[1] is -1; allowed: ids of the gr" in answer[5]["error"]["message"]
    assert answer[6]["source"] == answer[7]["source"] == source
    assert answer[8]["graph"]["ids"] == ("text" if type(source) is str else "integer")


@pytest.mark.thorough
@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=needs_mpi)])
def test_the_benchmark_and_comparisons_name_vertices(case, tmp_path, ranks):
    path, names = case
    store = convert(path, tmp_path / "store", "--parts", 2)
    known = {names[v] for v in USED.tolist()}
    log = tmp_path / "log"
    words = ("graph500", "--graph", store, "--roots", 3, "--records", log, "--json")
    roots = [x["root"] for x in on(ranks, *words).values["searches"]]
    assert len(set(roots)) == 3
    assert set(roots) <= known
    logged = [json.loads(line)["root"] for line in log.read_text().splitlines()]
    assert list(dict.fromkeys(logged)) == roots
    words = ("compare", store, "--engines", "reference,openmp", "--sources", 2)
    report = on(ranks, *words, "--repeats", 1, "--json").values
    assert set(report["sources"]) <= known


def test_what_is_wrong_is_told_in_ids_of_the_file(case, tmp_path, monkeypatch):
    path, names = case
    store = convert(path, tmp_path / "store")
    known = {names[v] for v in USED.tolist()}
    whole = OpenMPWhole.answer

    def wrong(self, root, query):
        found = whole(self, root, query)
        found.level[root] = 1
        return found

    monkeypatch.setattr(OpenMPWhole, "answer", wrong)
    words = ("compare", store, "--engines", "reference,openmp", "--sources", 1)
    done = here(*words, "--repeats", 1)
    assert done.code == 1
    match = re.search("levels from source (.*) differ: vertex (.*) has 0 by", done.err)
    assert {match[1], match[2]} <= {str(x) for x in known}
    done = here("graph500", "--graph", store, "--roots", 1, "--engine", "openmp")
    assert done.code == 1
    match = re.search("the first from root (.*): rule 1", done.err)
    assert match[1] in {str(x) for x in known}
    assert "(vertices are numbers of the store here, from 0)" in done.err


@needs_mpi
def test_on_two_ranks(case, tmp_path):
    path, names = case
    one = convert(path, tmp_path / "one", "--parts", 2)
    two = convert(path, tmp_path / "two", ranks=2)
    assert open_store(one).manifest == open_store(two).manifest
    source = names[USED[5]]
    report = on(2, "bfs", two, "-s", source, "--json").values
    assert report["searches"][0]["source"] == source
    text = on(2, "bfs", two, "-s", "nobody").refusal
    assert "source 'nobody' is not an id of the graph" in text


def test_zero_based_is_the_usual_base(tmp_path):
    path = tmp_path / "a.el"
    path.write_text("1 2\n2 3\n")
    counts = {}
    for words in ((), ("--zero-based",), ("--one-based",)):
        store = tmp_path / "".join(("store", *words))
        counts[words] = here("convert", path, "-o", store, *words, "--json").values[
            "vertices"
        ]
    assert list(counts.values()) == [4, 4, 3]
    check = here("bfs", tmp_path / "store--one-based", "-s", 1, "-o", tmp_path / "o.h5")
    assert check.code == 0
    matrix = tmp_path / "a.mtx"
    matrix.write_text("%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n")
    for word in ("--zero-based", "--one-based"):
        text = here("convert", matrix, "-o", tmp_path / "new", word).refusal
        assert "give neither" in text


def test_a_source_that_is_no_unicode_text_names_no_vertex(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("?,Ä\n")
    store = convert(path, tmp_path / "store")
    text = here("bfs", store, "--source", "\udcff").refusal
    assert "source '\\udcff' is not an id of the graph" in text
    words = [*DISTBFS, "bfs", str(store), "--source", b"\xff"]
    done = subprocess.run(words, capture_output=True, env=environment(), timeout=90)
    assert done.returncode == 2
    assert b"is not an id of the graph" in done.stderr
    [good] = served(1, store, [{"op": "bfs", "source": "?"}])
    assert good["source"] == "?"
    file = tmp_path / "sources.txt"
    file.write_bytes(b"?\r\n\xff\n")
    assert f"{file}:2: not UTF-8" in here("bfs", store, "--sources", file).refusal
    words = ("multisearch", "reachability", store, "--pairs", file)
    assert f"{file}:2: not UTF-8" in here(*words).refusal
    file.write_bytes(b"\xef\xbb\xbf?\n")
    assert here("bfs", store, "--sources", file).code == 0


@pytest.mark.parametrize("gap", [",", "\t", ";"])
def test_names_with_blanks(tmp_path, gap):
    path = tmp_path / "friends"
    rows = [("Alice Smith", "Bob"), ("Bob", "Zoe  Ä"), ('"q, r"', "Zoe  Ä")]
    path.write_text("".join(f"{u}{gap}{v}\n" for u, v in rows))
    store = convert(path, tmp_path / "store")
    words = ("--source", "Alice Smith", "-o", tmp_path / "out.h5", "--json")
    report = here("bfs", store, *words).values
    assert report["searches"][0]["source"] == "Alice Smith"
    with h5py.File(tmp_path / "out.h5") as file:
        names = [x.decode() for x in file["ids"][:]]
        levels = dict(zip(names, file["level"][0].tolist(), strict=True))
    assert levels == {"Alice Smith": 0, "Bob": 1, "Zoe  Ä": 2, "q, r": 3}
    refusal = here("bfs", store, "--source", "Smith").refusal
    assert "is not an id of the graph" in refusal


def test_columns_of_delimited_files(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id;friend 1;friend 2\n9;0;1\n8;1;2\n")
    words = ("convert", path, "-o", tmp_path / "store")
    done = here(*words, "--columns", "friend 1", "friend 2", "--json")
    assert done.values["vertices"] == 3
    said = "line 1 names the columns; ids are in 'friend 1' and 'friend 2'"
    assert done.err.splitlines() == [
        f"distbfs: {path}: {said}",
        f"distbfs: {path}: columns beside the two ids are ignored",
    ]
    text = here(*words, "--force", "--columns", "friend 1", "x").refusal
    assert "a.csv:1: columns id, friend 1, friend 2; not one each of friend 1" in text


@pytest.mark.parametrize(
    ("name", "body"),
    [
        (
            "a.mtx",
            "%%MatrixMarket matrix coordinate pattern general\n2 3 2\n1 1\n2 3\n",
        ),
        ("out.bip", "% bip unweighted\n% 2 2 3\n1 1\n2 3\n"),
    ],
)
def test_bipartite_files(tmp_path, name, body):
    path = tmp_path / name
    path.write_text(body)
    words = ("convert", path, "-o", tmp_path / "store")
    assert "--bipartite reads" in here(*words).refusal
    done = here(*words, "--bipartite", "--json")
    assert (done.values["vertices"], done.values["edges"]) == (5, 2)
    said = f"distbfs: {path}: 2 rows are vertices from 1 on, 3 columns from 3 on\n"
    assert done.err.endswith(said)
    answer = here("bfs", tmp_path / "store", "-s", 1, "-o", tmp_path / "out.h5")
    assert answer.code == 0
    with h5py.File(tmp_path / "out.h5") as file:
        assert file["level"][0].tolist() == [0, -1, 1, -1, -1]
    done = here(*words, "--force", "--bipartite", "--directed", "--json")
    assert done.values["edges"] == done.values["stored_edges"] == 2
    graph = tmp_path / "a.graph"
    graph.write_text("2 1\n2\n1\n")
    text = here("convert", graph, "-o", tmp_path / "new", "--bipartite").refusal
    assert "format metis has no matrices; leave out --bipartite" in text


def test_a_konect_file_counts_from_1(tmp_path):
    path = tmp_path / "out.zebra"
    path.write_text("% sym unweighted\n% 2 3 3\n1 2\n2 3\n")
    words = ("convert", path, "--force", "-o", tmp_path / "store", "--json")
    done = here(*words)
    assert done.values["vertices"] == 3
    assert done.err == f"distbfs: {path}: a KONECT file, whose ids begin at 1\n"
    done = here(*words, "--zero-based")
    assert done.values["vertices"] == 4
    assert done.err == ""


def test_ids_and_names_of_files_are_told_as_what_can_be_printed(tmp_path):
    """A terminal does not obey them; JSON has them as they are."""
    path, turned = tmp_path / "graph\x1b[2K.csv", "a\u202e"
    path.write_text(f"{turned},b\n")
    words = ("bfs", path, "--relabel", "--source", "b", "--paths-to", turned)
    done = here(*words)
    assert r"from b to a\u202e" in done.out
    refused = here("bfs", path, "--relabel", "--source", "none\x1b[2K")
    for text in (done.out, done.err, refused.err):
        assert all(line.isprintable() for line in text.splitlines())
    assert r"graph\x1b[2K.csv" in here("bfs", tmp_path / "no" / path.name).err
    [row] = here(*words, "--json").values["searches"]
    assert row["paths_to"]["target"] == turned


FROM_1 = {
    "a.mtx": "%%MatrixMarket matrix coordinate pattern general\n4 4 3\n1 2\n2 3\n3 4\n",
    "a.gr": "p sp 4 3\na 1 2 5\na 2 3 5\na 3 4 5\n",
    "a.metis": "4 3\n2\n1 3\n2 4\n3\n",
    "out.konect": "% sym unweighted\n1 2\n2 3\n3 4\n",
    "a.el": "1 2\n2 3\n3 4\n",
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", sorted(FROM_1))
def test_files_that_count_from_1(tmp_path, name):
    """The path 1 2 3 4, searched as a file and as a store; a part keeps the base."""
    path, store, parts = tmp_path / name, tmp_path / "store", tmp_path / "parts"
    path.write_text(FROM_1[name])
    words = ("--one-based",) if name == "a.el" else ()
    assert here("convert", path, "-o", store, *words).code == 0
    assert here("partition", store, "-o", parts, "--parts", 2).code == 0
    assert "ids            whole numbers from 1" in here("info", store).out
    for graph, more in ((path, words), (store, ()), (parts, ())):
        done = here("bfs", graph, *more, "-s", 4, "--depth-limit", 2, "-o", "-")
        assert done.out.split() == TABLE.split()
        refused = here("bfs", graph, *more, "-s", 0)
        *_, line = refused.err.splitlines()
        assert line == "distbfs: --source: source '0' is not a vertex; allowed: 1 to 4"
        assert refused.code == 2
        other = here("bfs", graph, *more, "-s", 0, "--first-id", 0, "-o", "-")
        assert other.out.split()[1:] == ["0,0,0,0", "0,1,1,0", "0,2,2,1", "0,3,3,2"]


TABLE = "source,vertex,level,parent 4,1,-1,-1 4,2,2,3 4,3,1,4 4,4,0,4"


def path_of(folder, ids):
    """A file with one of some ids per line."""
    path = folder / "ids.txt"
    path.write_text(ids.replace(" ", "\n"))
    return path


@pytest.fixture
def from_1(tmp_path):
    """The store of the path 1 2 3 4."""
    (tmp_path / "a.mtx").write_text(FROM_1["a.mtx"])
    store = tmp_path / "store"
    assert here("convert", tmp_path / "a.mtx", "-o", store).code == 0
    return store


def test_all_that_bfs_takes_and_gives_counts_from_1(from_1, tmp_path):
    out, trace = tmp_path / "out.h5", tmp_path / "trace.json"
    words = ("--sources", path_of(tmp_path, "3"), "--source-set", "2,4")
    words = (*words, "--paths-to", 1, "-o", out, "--trace", trace)
    values = here("bfs", from_1, *words, "--json").values["searches"]
    assert [x.get("source", x.get("sources")) for x in values] == [3, [2, 4]]
    assert [x["paths_to"]["paths"] for x in values] == [[[3, 2, 1]], [[2, 1]]]
    assert values[1]["paths_to"]["target"] == 1
    events = json.loads(trace.read_text())["traceEvents"]
    assert [x["args"]["root"] for x in events if x["name"] == "search"] == [3, 2]
    with h5py.File(out) as found:
        ids = found["ids"][:]
        assert ids.tolist() == [1, 2, 3, 4]
        assert ids[found["sources"][:]].tolist() == [3, 2]
        assert found["level"][0].tolist() == [2, 1, 0, 1]
        assert ids[found["parent"][0]].tolist() == [2, 3, 3, 3]
    text = here("bfs", from_1, "-s", 4, "-o", out, "--first-id", 0).refusal
    assert "source '4' is not a vertex; allowed: 0 to 3" in text
    edges = here("bfs", from_1, "-s", 1, "--depth-limit", 1, "--edges", "-").out.split()
    assert edges == ["u,v,level_u,level_v", "1,2,0,1"]
    seen = path_of(tmp_path, "1 2")
    text = here("bfs", from_1, "-s", 4, "--vertices", seen).refusal
    assert "source 4 is a vertex that is not seen" in text


def test_other_commands_count_from_1(from_1, tmp_path):
    pairs, out = tmp_path / "pairs.txt", tmp_path / "out.csv"
    pairs.write_text("1 4\n4 1\n")
    words = ("multisearch", "reachability", from_1, "--pairs", pairs, "-o", out)
    assert here(*words).code == 0
    assert out.read_text() == "from,to,reachable\n1,4,1\n4,1,1\n"
    pairs.write_text("0 4\n")
    assert "source '0' is not a vertex; allowed: 1 to 4" in here(*words[:5]).refusal
    assert here(*words[:5], "--first-id", 0).refusal.endswith("allowed: 0 to 3")
    words = ("--sources", path_of(tmp_path, "4"), "-o", tmp_path / "out.h5")
    assert here("multisearch", "apsp", from_1, *words).code == 0
    with h5py.File(tmp_path / "out.h5") as found:
        assert found["ids"][:].tolist() == [1, 2, 3, 4]
        assert found["level"][:].tolist() == [[3, 2, 1, 0]]
    found = here("multisearch", "betweenness", from_1, "--json").values["found"]
    rows = found["largest"]
    assert sorted(row[0] for row in rows) == [1, 2, 3, 4]
    assert {row[0] for row in rows[:2]} == {2, 3}
    words = ("graph500", "--graph", from_1, "--roots", 4, "--json")
    report = here(*words).values
    assert sorted(x["root"] for x in report["searches"]) == [1, 2, 3, 4]


@pytest.mark.thorough
@needs_mpi
def test_ranks_count_from_1(from_1):
    for graph in (from_1, from_1.with_name("a.mtx")):
        done = on(2, "bfs", graph, "-s", 4, "--depth-limit", 2, "-o", "-")
        assert (done.code, done.out.split()) == (0, TABLE.split())
        done = on(2, "bfs", graph, "-s", 0)
        assert (done.code, "allowed: 1 to 4" in done.err) == (2, True)


def test_ids_of_a_store_have_no_first_one(case, tmp_path):
    path, names = case
    store = convert(path, tmp_path / "store")
    text = here("bfs", store, "-s", names[0], "--first-id", 1).refusal
    assert "keeps ids; first_id is for consecutive numbers" in text
    again = ("convert", path, "-o", tmp_path / "again", "--relabel", "--first-id", 0)
    assert "neither a base nor a size" in here(*again).refusal


@pytest.mark.thorough
def test_a_service_counts_from_1(from_1):
    asked = [{"op": "distances", "source": k, "targets": [4]} for k in (1, 0)]
    near, wrong, stats = served(1, from_1, [*asked, {"op": "stats"}])
    assert near["distances"] == [3]
    assert "source is 0; allowed: vertices 1 to 4" in wrong["error"]["message"]
    assert (stats["graph"]["ids"], stats["graph"]["first_id"]) == (None, 1)
    _, other = served(1, from_1, [asked[1], {"op": "stats"}], "--first-id", 0)
    assert other["graph"]["first_id"] == 0
