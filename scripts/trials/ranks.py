"""Batches of trials on several ranks: a launch takes seconds, a trial less."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from trials.checker import Wrong
from trials.trial import GRAPH, ROOT, Trial, environment

TRIALS = 12  # of a batch
SECONDS = 240
# left behind by a launcher they would make a process look launched
LAUNCHERS = ("PMI", "OMPI_", "MPI_LOCAL", "HYD", "SLURM_", "PALS_", "FLUX_")


def run(trial: Trial) -> None:
    """Launch a campaign on ranks; its first failure is this trial's."""
    ranks = trial.choose(1, 2, 2, 4, 4)
    report, current = trial.folder / "report.json", trial.folder / "current.json"
    out = trial.folder / "out"
    words = [sys.executable, ROOT / "scripts" / "campaign.py", "--quiet"]
    words += ["--only", trial.choose("stores", "sessions", "multisearch")]
    words += ["--seed", trial.seed % (1 << 32), "--trials", TRIALS]
    words += ["--stop", "--json", report, "--current", current, "--out", out]
    command = [mpiexec(), "-n", str(ranks), *map(str, words)]
    trial.note(" ".join(command))
    kept = {k: v for k, v in environment().items() if not k.startswith(LAUNCHERS)}
    started = subprocess.Popen(
        command,
        env={**kept, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        text = started.communicate(timeout=SECONDS)[0]
    except subprocess.TimeoutExpired:
        os.killpg(started.pid, signal.SIGKILL)
        text = f"no end in {SECONDS} s\n{started.communicate()[0]}"
    if started.returncode not in (0, 1) or not report.exists():
        if current.exists():
            kind, seed = current.read_text().split()
            script = "python scripts/campaign.py"
            trial.repeat = f"mpiexec -n {ranks} {script} --only {kind} --trial {seed}"
        raise Wrong("ranks", f"{ranks} ranks ended with {last_line(text)}\n{text}")
    result = json.loads(report.read_text())
    trial.searches += sum(kind["checked"] for kind in result["kinds"].values())
    for failure in result["failures"]:
        trial.repeat = failure["command"]
        copied = out / f"{failure['kind']}-{failure['seed']}"
        shutil.copy(copied / "graph.txt", trial.folder / GRAPH)
        trial.note((copied / "failure.txt").read_text())
        raise Wrong(failure["rule"], failure["text"].partition(": ")[2])


def last_line(text: str) -> str:
    """Return the last line of a text that says something."""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no word"


def mpiexec() -> str:
    """Return the launcher beside this Python, else the one on the path."""
    beside = Path(sys.executable).parent / "mpiexec"
    return str(beside) if beside.exists() else shutil.which("mpiexec") or "mpiexec"
