"""SIGTERM ends loading, generation, construction and validation within seconds.

The main thread is in C then, where no Python handler runs; no temporary file is left.
"""

import signal
import time

import pytest
from commands import DISTBFS, begin, files_in, finish, here, injected, wait_until
from launching import is_open_mpi, needs_mpi

LIMIT = 20.0  # of what would go on forever
CONSTRUCT = "distbfs.build.host.parts:histogram_of"
LOAD = "distbfs.search.opening:hold_host_parts"
PHASES = {
    "graph500 builds": (CONSTRUCT, "graph500 --scale 8"),
    "graph500 loads": (LOAD, "graph500 --graph {store}"),
    "graph500 validates": (
        "distbfs.benchmark.graph500:validate",
        "graph500 --scale 8 --engine reference",
    ),
    "bfs loads": (LOAD, "bfs {store} -s 0 --engine reference"),
    "serve loads": (LOAD, "serve {store} --engine reference"),
    "multisearch loads": (
        "distbfs.cli.multisearch:make_searcher",
        "multisearch diameter {store}",
    ),
    "generate": (CONSTRUCT, "generate kronecker --scale 8 -o {out}/store"),
    "convert": (CONSTRUCT, "convert {file} -o {out}/store"),
    "convert reads": (
        "distbfs.formats.tuples:check_dense",
        "convert {file} -o {out}/store",
    ),
    "partition": (CONSTRUCT, "partition {store} --parts 4 -o {out}/store"),
    "export": (
        "distbfs.store.tuples:StoreTuples.edges",
        "export {store} -o {out}/graph.el",
    ),
}


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    """A store of two parts and an edge list."""
    folder = tmp_path_factory.mktemp("given")
    store, file = folder / "store", folder / "file.el"
    words = ("--scale", 8, "--parts", 2, "-o", store)
    assert here("generate", "kronecker", *words).code == 0
    file.write_text("0 1\n1 2\n2 3\n")
    return {"store": store, "file": file}


@pytest.mark.thorough
@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=needs_mpi)])
@pytest.mark.parametrize("name", PHASES)
def test_a_phase_ends_with_sigterm(tmp_path, graphs, name, ranks):
    if ranks > 1 and is_open_mpi():
        pytest.skip("mpirun of Open MPI ends the ranks itself when it gets SIGTERM")
    where, line = PHASES[name]
    out, log = tmp_path / "out", tmp_path / "log"
    out.mkdir()
    argv = [*DISTBFS, *line.format(**graphs, out=out).split()]
    env = injected(log, stuck=where) | {"TMPDIR": str(out)}
    process = begin(ranks, argv, env)
    reads_alone = name in ("convert reads", "export")
    there = [tmp_path / f"log.{k}" for k in range(1 if reads_alone else ranks)]
    wait_until(
        lambda: all(x.exists() and "stuck" in x.read_text() for x in there), process
    )
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    done = finish(process)
    assert time.monotonic() - began < LIMIT
    assert done.code != 0
    assert "Traceback" not in done.err
    assert files_in(out) == []


@pytest.mark.thorough
@needs_mpi
def test_a_rank_that_ends_first_lets_others_remove_their_files(tmp_path, graphs):
    if is_open_mpi():
        pytest.skip("mpirun of Open MPI ends the ranks itself when it gets SIGTERM")
    where, line = PHASES["export"]
    argv = [*DISTBFS, *line.format(**graphs, out=tmp_path / "out").split()]
    (tmp_path / "out").mkdir()
    process = begin(2, argv, injected(tmp_path / "log", stuck=where, late=0))
    wait_until((tmp_path / "log.0").exists, process)
    assert len(files_in(tmp_path / "out")) == 3  # a hidden folder, its lock, the graph
    process.send_signal(signal.SIGTERM)
    assert finish(process).code != 0
    assert files_in(tmp_path / "out") == []


def test_a_killed_convert_leaves_no_spool(tmp_path, graphs):
    where, line = PHASES["convert reads"]
    argv = [*DISTBFS, *line.format(**graphs, out=tmp_path).split()]
    folder, log = tmp_path / "temporary", tmp_path / "log"
    folder.mkdir()
    process = begin(1, argv, injected(log, stuck=where) | {"TMPDIR": str(folder)})
    wait_until((tmp_path / "log.0").exists, process)
    process.kill()
    assert finish(process).code == -signal.SIGKILL
    assert files_in(folder) == []


@pytest.mark.thorough
def test_a_request_ahead_of_time_waits_for_loading(tmp_path, graphs):
    """SIGUSR1, which job managers send before a job's time is up; then SIGTERM."""
    where, line = PHASES["bfs loads"]
    argv = [*DISTBFS, *line.format(**graphs).split()]
    process = begin(1, argv, injected(tmp_path / "log", stuck=where))
    wait_until((tmp_path / "log.0").exists, process)
    process.send_signal(signal.SIGUSR1)
    time.sleep(2)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert finish(process).code == 128 + signal.SIGTERM
