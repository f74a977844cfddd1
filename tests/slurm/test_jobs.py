"""The job files of ``slurm/``, run by Slurm."""

import json
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from commands import DISTBFS, check_results, injected, rows_done, searches_begun
from graphs import kronecker

from distbfs.service.client import connect

FILES = Path(__file__).resolve().parents[2] / "slurm"
TWO = ("--ntasks=2",)
A_RANK_A_HOST = ("--partition=pair", "--nodes=2", "--ntasks-per-node=1")
A_RANK_A_DEVICE = ("--partition=pair", "--nodes=2", "--ntasks-per-node=2")
# each task writes its node, place there, cores, GPUs, a variable of NCCL, the nodes of
# the run and its arguments; and the output that batch.sbatch waits for
PROGRAM = """#!/bin/sh
echo "$SLURMD_NODENAME $SLURM_LOCALID $(env -u OMP_NUM_THREADS nproc)" \\
    "${CUDA_VISIBLE_DEVICES-all} ${NCCL_IB_HCA:-none} $SLURM_STEP_NUM_NODES" \\
    "$*" >>"$SEEN"
[ -d "$OUT" ] || : >"$OUT"
"""
SOURCE = kronecker(8)
SOURCES = list(range(60))


@pytest.fixture(scope="module")
def store(cluster):
    made = cluster.folder / "graph"
    arguments = ("--scale", 8, "--parts", 2, "-o", made)
    cluster.run(*DISTBFS, "generate", "kronecker", *arguments)
    (cluster.folder / "sources").write_text("\n".join(map(str, SOURCES)))
    return made


@pytest.mark.parametrize("file", sorted(FILES.glob("*.sbatch")), ids=lambda f: f.stem)
def test_every_file_says_what_it_takes(file):
    text = file.read_text()
    assert text.startswith("#!/bin/bash\n# ")
    assert "set -euo pipefail" in text
    head = text.partition("set -euo")[0]
    for name in ("STORE", "SCALE", "SOURCES", "OUT", "ARGS", "MPI", "SOCKET"):
        assert (f"${{{name}:-" in text or f'"${name}"' in text) == (f"{name}:" in head)


def test_graph500(cluster):
    job = cluster.submit(FILES / "graph500.sbatch", *TWO, SCALE=8, ARGS="--parts 4")
    text = cluster.finish(job, "graph500")
    assert "num_mpi_processes:              2\n" in text
    assert "bfs  harmonic_mean_TEPS:     !" in text
    assert "# parts:                        4\n" in text


def test_programs_of_a_shell(cluster):
    """Slurm serves MPI to the first one only; none needs it where there is one task."""
    code = "from distbfs.ranks import world; print(world.start().size)"
    twice = f"{sys.executable} -c '{code}' && {sys.executable} -c '{code}'"
    text = cluster.run("srun", "--ntasks=1", "--mpi=pmi2", "sh", "-c", twice)
    assert text.split() == ["1", "1"]


@pytest.fixture
def tasks(cluster, tmp_path):
    """Run a job file with ``PROGRAM`` for distbfs; return what its tasks wrote."""
    program = tmp_path / "distbfs"
    program.write_text(PROGRAM)
    program.chmod(0o755)

    def run(file, *options, **env):
        seen, out = tmp_path / "seen", tmp_path / "out"
        if file.stem in {"weak", "strong"}:
            out.mkdir()
        env |= {"SEEN": seen, "OUT": out, "STORE": "graph", "SOURCES": "sources"}
        path = f"{tmp_path}:{cluster.env['PATH']}"
        job = cluster.submit(file, *options, **env, PATH=path)
        cluster.finish(job, {"batch": "bfs"}.get(file.stem, file.stem))
        return sorted(line.split(maxsplit=6) for line in seen.read_text().splitlines())

    return run


@pytest.mark.parametrize("name", ["graph500", "batch", "serve"])
def test_a_rank_a_device(tasks, name):
    """Each sees the GPUs of its node, whatever binding the job asks for."""
    options = (*A_RANK_A_DEVICE, "--gpus-per-node=2", "--gpu-bind=single:1")
    made = tasks(FILES / f"{name}.sbatch", *options, NCCL_IB_HCA="mlx5")
    assert [task[:3] for task in made] == [
        [node, place, "1"] for node in ("n1", "n2") for place in "01"
    ]
    for task in made:
        assert task[3] in {"all", "0,1"}  # Slurm 22.05: no variable
        assert task[4] == "mlx5"


@pytest.mark.parametrize("name", ["graph500", "batch", "serve"])
def test_a_rank_a_host(tasks, name, tmp_path):
    """Each has all cores and GPUs; what the job itself sets is passed on."""
    setup = tmp_path / "setup"
    setup.write_text("export NCCL_IB_HCA=mlx5\n")
    options = (*A_RANK_A_HOST, "--gpus-per-node=4", "--cpus-per-task=2")
    passed = "--export=PATH,SEEN,OUT,STORE,SOURCES,BASH_ENV"
    made = tasks(FILES / f"{name}.sbatch", *options, passed, BASH_ENV=setup)
    assert [task[:5] for task in made] == [
        [node, "0", "2", "0,1,2,3", "mlx5"] for node in ("n1", "n2")
    ]


@pytest.mark.parametrize("name", ["weak", "strong"])
@pytest.mark.parametrize(
    ("layout", "gpus", "devices", "nodes"),
    [
        (A_RANK_A_HOST, 4, 4, "122"),
        (A_RANK_A_DEVICE, 2, 1, "1112222"),
        (A_RANK_A_DEVICE, 1, 1, "1112222"),
    ],
)
def test_scaling_takes_devices_in_step(tasks, name, layout, gpus, devices, nodes):
    """Runs of few tasks fill one node, and leave GPUs of the other tasks alone."""
    file = FILES / f"{name}.sbatch"
    made = tasks(file, *layout, f"--gpus-per-node={gpus}", ARGS="--quiet")
    assert "".join(sorted(task[5] for task in made)) == nodes
    given = {task[6].split("--devices ")[1] for task in made}
    assert given == {f"{devices} --quiet"}


def test_the_job_among_the_examples(cluster):
    file = FILES.parent / "docs" / "examples" / "graph500_report.sbatch"
    job = cluster.submit(file, *TWO, SCALE=8)
    text = cluster.finish(job, "graph500")
    assert re.search(r"^devices +2$", text, re.MULTILINE)
    told = json.loads((cluster.folder / f"graph500-{job}.json").read_text())
    assert (told["SCALE"], told["num_mpi_processes"]) == (8, 2)
    rate = told["harmonic_mean_TEPS"] / 1e9
    assert text.endswith(f"scale 8: {rate:.3g} GTEPS, {told['NBFS']} searches\n")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "scales"), [("weak", [8, 9]), ("strong", [8, 8])])
def test_scaling(cluster, name, scales):
    job = cluster.submit(FILES / f"{name}.sbatch", *TWO, SCALE=8)
    cluster.finish(job, name)
    folder = cluster.folder / f"{name}-{job}"
    assert sorted(path.name for path in folder.iterdir()) == [
        f"{name}-{ranks}.json" for ranks in (1, 2)
    ]
    told = [json.loads((folder / f"{name}-{k}.json").read_text()) for k in (1, 2)]
    assert [one["SCALE"] for one in told] == scales
    assert [one["num_mpi_processes"] for one in told] == [1, 2]


def batch(cluster, store, name, *options, sleep=0.2):
    """Submit the batch of sources with slow searches; returns (job, log, output)."""
    out, log = cluster.folder / f"{name}.h5", cluster.folder / f"{name}.log"
    env = {**injected(log, sleep=sleep), "STORE": store, "OUT": out}
    env["SOURCES"] = cluster.folder / "sources"
    job = cluster.submit(FILES / "batch.sbatch", *TWO, *options, **env)
    cluster.wait(lambda: searches_begun(log) >= 3)
    return job, log, out


def check_resumed(cluster, job, log, out):
    """Let a job that queues again go on, to a complete result without repeats."""
    cluster.wait(lambda: cluster.state(job) == "PENDING")
    done = rows_done(Path(f"{out}.partial"))
    assert 0 < done < len(SOURCES)
    assert not out.exists()
    begun = searches_begun(log)
    cluster.start_again(job)
    cluster.wait(lambda: searches_begun(log) > begun)
    cluster.finish(job, "bfs")
    check_results(SOURCE, out, SOURCES)
    assert searches_begun(log) == begun + len(SOURCES) - done, "a search was repeated"
    assert cluster.show(job)["Restarts"] == "1"


@pytest.mark.thorough
@pytest.mark.slow
def test_a_batch_goes_on_after_its_time(cluster, store):
    """Slurm itself sends the signal, up to 30 seconds early, and looks twice a minute.

    So it comes 15 to 45 seconds after the start: Python is there, searches go on.
    """
    options = ("--time=2", "--signal=USR1@75")
    job, log, out = batch(cluster, store, "timed", *options, sleep=0.8)
    check_resumed(cluster, job, log, out)


@pytest.mark.thorough
@pytest.mark.slow
def test_a_batch_goes_on_after_a_preemption(cluster, store):
    job, log, out = batch(cluster, store, "preempted")
    other = cluster.submit(FILES / "graph500.sbatch", *TWO, "--partition=high", SCALE=6)
    cluster.finish(other, "graph500")
    check_resumed(cluster, job, log, out)


def test_a_complete_batch_does_nothing(cluster, store):
    out = cluster.folder / "there.h5"
    out.write_text("")
    job = cluster.submit(FILES / "batch.sbatch", *TWO, OUT=out)
    assert "is complete" in cluster.finish(job, "bfs")


def test_the_service(cluster, store):
    path = cluster.folder / "socket"
    job = cluster.submit(FILES / "serve.sbatch", *TWO, STORE=store, SOCKET=path)
    output = cluster.folder / f"serve-{job}.out"
    cluster.wait(lambda: output.exists() and "ready" in output.read_text())
    with connect(path) as client:
        assert client.distances(3, SOURCES) == SOURCE.distances(3)[SOURCES].tolist()
        assert client.stats()["graph"]["ranks"] == 2
    cluster.run("scancel", "--signal=TERM", job)
    assert "the service ends" in cluster.finish(job, "serve")
    assert not path.exists()
