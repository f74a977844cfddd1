"""The programs of docs/examples run, and find what other libraries find."""

import json
import os
import random
import re
import runpy
import shutil
import socket
import subprocess
import sys
from itertools import pairwise
from math import comb
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from graphs import Tuples, kronecker, random_tuples
from scipy.sparse.csgraph import dijkstra

import distbfs

TESTS = Path(__file__).resolve().parents[1]
sys.path.append(str(TESTS / "cli"))

from commands import DISTBFS, begin, here, wait_until  # noqa: E402
from launching import clean_environment, end_tree, needs_mpi, run_ranks  # noqa: E402

FOLDER = TESTS.parent / "docs" / "examples"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
ELSEWHERE = {"mpi_search", "service_client"}  # of the programs, tested below
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def undirected(u, v):
    return nx.Graph(zip(np.asarray(u).tolist(), np.asarray(v).tolist(), strict=True))


def closed_roads(names):
    streets, town = names["streets"], (names["home"], names["goal"])

    def steps(some):
        graph = undirected(some.u, some.v)
        try:
            return nx.shortest_path_length(graph, *town)
        except nx.NetworkXNoPath:
            return -1

    late = streets[(streets.opens <= 22) & (streets.closes > 22)]
    free = names["free"].ravel()
    assert names["everything"] == steps(streets) == 118
    assert names["lorry"] == steps(streets[streets.height >= 3])
    assert names["late"] == steps(late)
    assert names["lorry_late"] == steps(late[late.height >= 3]) > 118
    assert names["around"] == steps(streets[free[streets.u] & free[streets.v]]) == 236


def count_paths(names):
    side, vertex = names["SIDE"], names["vertex"]
    ways = [[float(comb(x + y, x)) for x in range(side)] for y in range(side)]
    counts = names["counts"]
    np.testing.assert_allclose(getattr(counts, "get", lambda: counts)(), ways)
    assert names["exact"] == comb(2 * side - 2, side - 1)
    assert len({tuple(path) for path in names["some"]}) == 3
    for path in names["some"]:
        assert [path[0], path[-1], len(path)] == [0, vertex[2, 2], 5]
        assert {b - a for a, b in pairwise(path)} == {1, side}


def dependencies(names):
    table = names["table"]
    graph = nx.DiGraph(zip(table.package, table.needs, strict=True))
    assert set(names["needed"]) == nx.descendants(graph, "shop")
    assert set(names["affected"]) == nx.ancestors(graph, "crypto")
    assert nx.is_path(graph, names["chain"])
    assert len(names["chain"]) == nx.shortest_path_length(graph, "shop", "crypto") + 1
    wanted = [nx.has_path(graph, a, b) for a, b in names["pairs"]]
    assert wanted == [True, False, False]
    assert names["answer"] == wanted[-1]


def gnn_sampling(names):
    assert names["error"] < 1e-5
    graph = undirected(*names["edge_index"].numpy())
    near = nx.multi_source_dijkstra_path_length(graph, names["batch"].tolist(), 2)
    assert names["vertices"].tolist() == sorted(near)
    assert len(names["sample"]) == sum(a != b for a, b in graph.subgraph(near).edges)
    assert names["on_sample"].shape == (32, names["FEATURES"])


def nearest_facility(names):
    source = Tuples(names["road"].n, names["u"], names["v"])
    hops = dijkstra(source.matrix, indices=names["hospitals"], unweighted=True)
    level, nearest = names["level"], names["nearest"]
    best = hops.min(axis=0)
    np.testing.assert_array_equal(level, np.where(np.isinf(best), -1, best))
    place = {hospital: k for k, hospital in enumerate(names["hospitals"].tolist())}
    reached = np.flatnonzero(level >= 0)
    own = hops[[place[x] for x in nearest[reached].tolist()], reached]
    np.testing.assert_array_equal(own, level[reached])
    assert (nearest[level < 0] == -1).all()
    assert names["better"].depth < names["found"].depth


def odd_cycles(names):
    shortest = names["shortest_odd_cycle"]
    assert shortest(names["grid"]) is None
    for name, length in (("wider", 7), ("wrong", 9)):
        assert shortest(names[name]) == length
    for seed in range(4):
        source = random_tuples(40, 50, seed)
        graph = distbfs.Graph.from_edges(source.u, source.v, n=source.n)
        # in the cover by two copies, an odd closed walk leads to the other copy
        u, v = (x[source.u != source.v] for x in (source.u, source.v))
        cover = undirected([*u, *v], [*(v + source.n), *(u + source.n)])
        ways = [
            nx.shortest_path_length(cover, x, x + source.n)
            for x in set(u.tolist())
            if x + source.n in cover and nx.has_path(cover, x, x + source.n)
        ]
        assert shortest(graph) == (min(ways) if ways else None)


def sampled_betweenness(names):
    graph = names["graph"]
    made = nx.empty_graph(graph.n)
    made.add_edges_from(graph.edges().tolist())
    chosen = random.Random(1).sample(list(made), 16)  # as NetworkX chooses them
    # with endpoints NetworkX 3.4 scales samples as newer ones do
    estimate = distbfs.betweenness(graph, chosen, endpoints=True)
    wanted = nx.betweenness_centrality(made, k=16, seed=1, endpoints=True)
    np.testing.assert_allclose(estimate, list(wanted.values()), atol=1e-12)
    assert names["size"] < graph.n
    assert names["common"] >= names["TOP"] - 2
    assert len(names["last"]) == names["TOP"]


CHECKS = {
    check.__name__: check
    for check in (
        *(closed_roads, count_paths, dependencies, gnn_sampling),
        *(nearest_facility, odd_cycles, sampled_betweenness),
    )
}


def test_every_program_is_tested_and_listed():
    programs = {path.stem for path in FOLDER.glob("*.py")}
    assert programs == {*CHECKS, *ELSEWHERE}
    index = (FOLDER / "index.md").read_text(encoding="utf-8")
    for path in filter(Path.is_file, FOLDER.iterdir()):
        name = path.stem if path.suffix == ".ipynb" else path.name
        assert path.name == "index.md" or name in index, path.name


@pytest.mark.parametrize("name", CHECKS)
def test_programs(name, tmp_path, monkeypatch, capsys):
    if name == "gnn_sampling":
        pytest.importorskip("torch", reason="needs PyTorch")
    monkeypatch.chdir(tmp_path)
    names = runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    assert capsys.readouterr().out.count("\n") >= 3
    CHECKS[name](names)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ranks", [1, pytest.param(3, marks=needs_mpi)])
def test_ranks(ranks):
    pytest.importorskip("mpi4py", reason="needs mpi4py")
    program = [sys.executable, str(FOLDER / "mpi_search.py")]
    done = run_ranks(ranks, program, 60, {"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    first, *groups = done.stdout.splitlines()
    level = kronecker(12).distances(3)
    counts = np.bincount(level[level >= 0]).tolist()
    assert first == f"{ranks} ranks: {sum(counts)} vertices on levels {counts}"
    wanted = []
    for rank in range(ranks):
        level = kronecker(10 + rank % 2).distances(3)
        some = f"{(level >= 0).sum()} vertices reached, depth {level.max()}"
        wanted.append(f"group {rank % 2}: {some}")
    assert groups == wanted


def free_port():
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return made.getsockname()[1]


@pytest.fixture
def proxied(tmp_path):
    """A service, and nginx in front of it as the example configures it: its port."""
    pytest.importorskip("h11", reason="needs the extra 'serve'")
    path = f"{os.environ['PATH']}:/usr/sbin"
    nginx, openssl = (shutil.which(x, path=path) for x in ("nginx", "openssl"))
    if not nginx or not openssl:
        pytest.skip("needs nginx and openssl")
    words = ("generate", "kronecker", "--scale", 8, "-o", tmp_path / "graph")
    assert here(*words).code == 0
    ports = free_port(), free_port()
    key, certificate = tmp_path / "key", tmp_path / "certificate"
    made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1"
    subject = "-subj /CN=localhost -addext subjectAltName=DNS:localhost"
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(
        [openssl, *made.split(), *subject.split(), *files],
        check=True,
        capture_output=True,
    )
    text = (FOLDER / "service_nginx.conf").read_text(encoding="utf-8")
    for old, new in (
        ("127.0.0.1:8080", f"127.0.0.1:{ports[0]}"),
        ("listen 443 ssl", f"listen 127.0.0.1:{ports[1]} ssl"),
        ("server_name graph.example.org", "server_name localhost"),
        ("/etc/ssl/certs/graph.example.org.pem", str(certificate)),
        ("/etc/ssl/private/graph.example.org.key", str(key)),
    ):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (tmp_path / "site.conf").write_text(text)
    temporary = "".join(
        f"{name}_temp_path {tmp_path}/{name};\n"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    whole = tmp_path / "nginx.conf"
    whole.write_text(
        f"daemon off; master_process off; pid {tmp_path}/pid; error_log stderr;\n"
        f"events {{}}\nhttp {{ access_log off; {temporary}"
        f"include {tmp_path}/site.conf; }}\n"
    )
    options = ("--http", ports[0], "--token-file", tmp_path / "token")
    words = [*DISTBFS, "serve", tmp_path / "graph", *options]
    service = begin(1, [str(word) for word in words], {"OMP_NUM_THREADS": "1"})
    proxy = begin(1, [nginx, "-e", "stderr", "-c", str(whole)], {})
    try:
        assert service.stdout.readline() == "ready\n", service.stderr.read()
        wait_until((tmp_path / "pid").exists, proxy)
        yield ports[1]
    finally:
        for process in (proxy, service):
            end_tree(process)
            process.communicate()


def test_the_service_behind_a_proxy(proxied, tmp_path):
    level = kronecker(8).distances(3)
    farthest = int(level.argmax())
    environment = {
        "SSL_CERT_FILE": str(tmp_path / "certificate"),
        "DISTBFS_TOKEN": (tmp_path / "token").read_text().strip(),
    }

    def ask(**more):
        url = f"https://localhost:{proxied}"
        words = [sys.executable, str(FOLDER / "service_client.py"), url, "3"]
        return subprocess.run(
            [*words, str(farthest)],
            env=clean_environment(environment | more),
            capture_output=True,
            text=True,
            timeout=120,
        )

    done = ask()
    assert done.returncode == 0, done.stderr
    size, hops, way = done.stdout.splitlines()
    assert size == f"a graph of {len(level)} vertices"
    assert hops == f"{level[farthest]} hops from 3 to {farthest}"
    steps = [int(x) for x in NUMBER.findall(way)]
    assert level[steps].tolist() == list(range(level[farthest] + 1))
    done = ask(DISTBFS_TOKEN="a-token-of-somebody-else")
    assert done.returncode == 1
    assert done.stderr.startswith("service_client: the token is wrong; ")


def texts(cell):
    """Return (kinds, text) of each output of a notebook's cell.

    Lines that are printed come in one output, or in several where the kernel is slow.
    """
    made = []
    for output in cell.get("outputs", []):
        assert output["output_type"] != "error", output
        data = output.get("data", {})
        text = "".join(output.get("text", data.get("text/plain", "")))
        if not data and made and not made[-1][0]:
            text = made.pop()[1] + text
        made.append((sorted(data), text))
    return made


def test_printed_lines_in_one_output_or_in_several():
    value = {"output_type": "execute_result", "data": {"text/plain": "3"}}
    lines = [{"output_type": "stream", "text": text} for text in ("a\n", "b\n")]
    parts, whole = [*lines, value], [{"output_type": "stream", "text": "a\nb\n"}, value]
    assert texts({"outputs": parts}) == texts({"outputs": whole})
    assert texts({"outputs": parts}) == [([], "a\nb\n"), (["text/plain"], "3")]
    assert len(texts({"outputs": [lines[0], value, lines[1]]})) == 3


def same_texts(one, other):
    """Return whether texts differ in no more than the vertices of a path."""
    if " - " in one:
        return len(one.split(" - ")) == len(other.split(" - "))
    numbers = [[float(x) for x in NUMBER.findall(text)] for text in (one, other)]
    words = [NUMBER.sub("#", text).split() for text in (one, other)]
    return words[0] == words[1] and np.allclose(*numbers, rtol=1e-3)


@pytest.mark.thorough
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks(path, tmp_path):
    for name in ("nbclient", "ipykernel", "matplotlib", "pandas"):
        pytest.importorskip(name, reason=f"needs {name}")
    import nbformat  # noqa: PLC0415
    from nbclient import NotebookClient  # noqa: PLC0415

    assert path.stat().st_size < 80_000
    kept = nbformat.read(path, 4)
    made = nbformat.from_dict(json.loads(json.dumps(kept)))
    environment = clean_environment()
    resources = {"metadata": {"path": str(tmp_path)}}
    patience = {"timeout": 120, "startup_timeout": 120}
    client = NotebookClient(made, resources=resources, **patience)
    client.execute(env=environment)
    pictures = 0
    for before, after in zip(kept.cells, made.cells, strict=True):
        assert before.source == after.source
        wanted, found = texts(before), texts(after)
        assert [kinds for kinds, _ in found] == [kinds for kinds, _ in wanted]
        for (kinds, one), (_, other) in zip(wanted, found, strict=True):
            for pair in zip(one.splitlines(), other.splitlines(), strict=True):
                assert same_texts(*pair), pair
            pictures += "image/png" in kinds
    assert pictures
