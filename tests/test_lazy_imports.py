"""Modules that commands and programs leave alone.

Help reads no more than the options of a command, and where no device is used, no module
of CUDA is imported; which these are, ``cuda_modules`` says.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from distbfs.cli.main import COMMANDS

HERE = Path(__file__).parent
MOST = 70  # modules of the package that help takes
HEAVY = {"numpy", "h5py", "rich", "mpi4py", "networkx", "scipy", "pandas"}
ABOUT_DEVICES = {"doctor", "plan"}  # commands that ask what these can do

HELP = """
import json, sys
from distbfs.cli.main import run
run([sys.argv[1], "--help"])
print(json.dumps([*sys.modules]))
"""
EACH = """
import json, os, sys
from contextlib import redirect_stdout
from distbfs.cli.main import run
sys.path.append(sys.argv[1])
from cuda_modules import CUDA
calls, imported = json.loads(sys.argv[2]), {}
with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
    for call in calls:
        code = exec(call, {}) if isinstance(call, str) else run(call)
        names = sorted(filter(CUDA.fullmatch, sys.modules))
        imported[str(call)] = [code or 0, names]
json.dump(imported, sys.stderr)
"""
PROGRAM = """
import distbfs
graph = distbfs.Graph.from_edges([0, 1, 2, 5], [1, 2, 3, 6])
result = distbfs.bfs(graph, 0)
assert result.level.tolist() == [0, 1, 2, 3, -1, -1, -1]
assert result.path_counts().sum() == 4 and len([*result.all_paths_to(3)]) == 1
assert distbfs.path_lengths(graph, [0, 5]).shape == (2, 7)
distbfs.betweenness(graph), distbfs.diameter(graph), distbfs.reachable(graph, [(0, 3)])
distbfs.k_hop_subgraph(graph, 0, 1)
with distbfs.open("store") as session:
    session.search(0).to_numpy()
"""
BRIEFLY = "from distbfs.device import rates; rates.HOST_COPY_BYTES = 1 << 20"
RUNS = (
    "generate kronecker --scale 5 -o store",
    "convert edges.txt -o converted --permute-seed 3",
    "partition store --parts 2 -o parts",
    "export store -o exported.txt",
    "info store --degrees",
    "verify store",
    "bfs store -s 0 --counts uint64 --paths-to 1 -o levels.csv --energy --quiet",
    "bfs parts -s 0 --engine openmp --records records.json --quiet",
    "bfs edges.txt -s 0 --engine reference --quiet",
    "multisearch betweenness store --sources 2 --quiet",
    "multisearch apsp parts --divide parts --sources 2 --quiet",
    "graph500 --scale 5 --roots 2 --quiet",
    "compare store --sources 2 --repeats 1 --quiet",
    "serve store --quiet",
    "query --help",
    "plot --help",
    *(f"{name} --help" for name in sorted(ABOUT_DEVICES)),
)


def python(folder, code, *words, **more):
    """Return a finished process that ran code without a device."""
    paths = f"{HERE.parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    environment = {"PYTHONPATH": paths, "CUDA_VISIBLE_DEVICES": "-1"}
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | environment,
        timeout=300,
        **more,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("command", ["info", "bfs"])
def test_help_loads_the_options_alone(tmp_path, command):
    done = python(tmp_path, HELP, command)
    names = json.loads(done.stdout.splitlines()[-1])
    assert sum(name.partition(".")[0] == "distbfs" for name in names) <= MOST
    assert not HEAVY & set(names)


def test_no_module_of_cuda_without_a_device(tmp_path):
    assert {words.split()[0] for words in RUNS} == {*COMMANDS}
    (tmp_path / "edges.txt").write_text("0 1\n1 2\n")
    words = [words.split() for words in RUNS]
    calls = json.dumps([*words[:12], BRIEFLY, *words[12:], PROGRAM])
    stop = '{"id": 1, "op": "distances", "source": 0, "targets": [1, 2]}\n'
    stop += '{"id": 2, "op": "shutdown"}\n'
    done = python(tmp_path, EACH, str(HERE), calls, input=stop)
    imported = json.loads(done.stderr.splitlines()[-1])
    assert len(imported) == len(RUNS) + 2
    assert imported == {call: [0, []] for call in imported}
