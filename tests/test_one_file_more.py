"""What is added to the house is one file and one line of the registry."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import h5py
import pytest
import throwaway
from launching import clean_environment, find_mpiexec, needs_mpi

import distbfs

TESTS = Path(__file__).parent
DISTBFS = ("-m", "distbfs")
CALLS = """
import json, sys
import distbfs
from distbfs.cli.main import run
for words in json.loads(sys.argv[1]):
    assert run(words) == 0
g = distbfs.Graph.from_edges([0, 1, 3], [1, 2, 4])
print(distbfs.search_many(g, "reach", [0, 3], times=3)["edges"])
"""


@pytest.fixture
def house(tmp_path):
    """A copy of the package, and what adds a file and a line to it."""
    root = tmp_path / "house"
    shutil.copytree(Path(distbfs.__file__).parent, root / "distbfs")
    registry = root / "distbfs" / "registry.py"

    def add(file, text, table, line):
        (root / "distbfs" / file).write_text(text)
        lines = registry.read_text().splitlines()
        place = next(
            k for k, one in enumerate(lines) if one.startswith(f"{table} = {{")
        )
        registry.write_text("\n".join([*lines[: place + 1], line, *lines[place + 1 :]]))

        def run(*words, ranks=1):
            launcher = () if ranks == 1 else (str(find_mpiexec()), "-n", str(ranks))
            done = subprocess.run(
                [*launcher, sys.executable, *map(str, words)],
                cwd=tmp_path,
                env=clean_environment({"PYTHONPATH": str(root), "PYTHONSAFEPATH": "1"}),
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        edges = tmp_path / "edges.txt"
        edges.write_text("0 1\n1 2\n3 4\n")
        run(*DISTBFS, "convert", edges, "-o", tmp_path / "store")
        return run

    return add


def test_an_application(house, tmp_path):
    line = '    "reach": f"{APPLICATIONS}.reach:APP",'
    run = house("multisearch/apps/reach.py", throwaway.APP, "APPS", line)
    calls = [("multisearch", "--help")]
    for engine in ("reference", "openmp"):
        words = ("--engine", engine, "--times", "2", "-o", f"{engine}.h5", "--json")
        calls.append(("multisearch", "reach", "store", *words))
    text = run("-c", CALLS, json.dumps(calls))
    assert "reach         edges out of what each source reaches" in text
    assert "What edges count; reach." in " ".join(text.split())
    for engine in ("reference", "openmp"):
        with h5py.File(tmp_path / f"{engine}.h5") as file:
            assert file["edges"][:].tolist() == [8, 8, 8, 4, 4]
            assert file["sources"][:].tolist() == [0, 1, 2, 3, 4]
            assert file.attrs["times"] == 2
    assert text.endswith("\n[12  6]\n")


@pytest.mark.thorough
def test_an_engine(house, tmp_path):
    line = '    "queue": "distbfs.engines.queue:QueueEngine",'
    run = house("engines/queue.py", throwaway.ENGINE, "ENGINES", line)
    assert "queue" in run(*DISTBFS, "bfs", "--help")
    words = ("bfs", tmp_path / "store", "-s", 0, "--engine", "queue", "--json")
    assert '"reached": 3' in run(*DISTBFS, *words)
    entries = ("--engines", "openmp,queue", "--json")
    text = run(*DISTBFS, "compare", tmp_path / "store", "--sources", 2, *entries)
    assert '"engine": "queue"' in text
    assert '"queue": "works"' in run(*DISTBFS, "doctor", "--json")
    contract = TESTS / "engines" / "test_whole_graphs.py"
    chosen = "queue and (networkx or leak or prepared)"
    options = ("-n", 0, "-p", "no:cacheprovider", "-k", chosen)
    text = run("-m", "pytest", contract, *options, "--rootdir", TESTS.parent)
    assert " passed" in text
    assert " skipped" not in text


@pytest.mark.thorough
@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=needs_mpi)])
def test_an_exchange(house, tmp_path, ranks):
    line = '    "counting": "distbfs.exchange.counting:CountingExchange",'
    run = house("exchange/counting.py", throwaway.EXCHANGE, "EXCHANGES", line)
    assert "counting" in run(*DISTBFS, "bfs", "--help")
    store = tmp_path / "parts"
    cut = ("--parts", 2, "--threshold", 9)
    run(*DISTBFS, "convert", tmp_path / "edges.txt", "-o", store, *cut)
    search = ("bfs", store, "-s", 0, "--exchange", "counting", "--json")
    # a level that asks along outer edges sends questions and answers
    text = run(*DISTBFS, *search, "--direction", "push", ranks=ranks)
    for said in ('"exchange": "counting"', '"reached": 3', "counting: 3 levels"):
        assert text.count(said) == 1
    contract = TESTS / "mpi" / "test_exchange_contract.py"
    options = ("-n", 0, "-p", "no:cacheprovider", "-k", "counting", "--with-mpi")
    text = run("-m", "pytest", contract, *options, "--rootdir", TESTS, ranks=ranks)
    assert " passed" in text
