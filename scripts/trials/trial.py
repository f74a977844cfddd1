"""One trial: what it may draw from, where it writes, and how it runs commands."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.cli import main
from distbfs.errors import DistbfsError
from trials.checker import Truth, Wrong

SECONDS = 300  # that a command in a process of its own may take
GRAPH, NOTES = "drawn-graph.txt", "drawn-notes.txt"
ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Done:
    """How a command ended: exit code, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def values(self) -> Any:
        """What ``--json`` printed."""
        return json.loads(self.out)


class Trial:
    """A trial of a kind with a seed, the same on all ranks.

    Everything is drawn from ``rng`` on all ranks; files are written, and answers looked
    at, by rank 0 alone (``write``, ``check``).

    The graph and what was drawn are kept in the folder (``draws``, ``note``), so that
    they are there when the process is not.

    searches: answers that were looked at
    repeat: the line that repeats a failure, where it is not that of the trial
    """

    def __init__(self, kind: str, seed: int, folder: Path, world: Any) -> None:
        self.kind, self.seed, self.folder, self.world = kind, seed, folder, world
        self.rng = np.random.default_rng([zlib.crc32(kind.encode()), seed])
        self.repeat = ""
        self.searches = 0

    @property
    def command(self) -> str:
        """The line that repeats the trial."""
        if self.repeat:
            return self.repeat
        ranks = f"mpiexec -n {self.world.size} " if self.world.size > 1 else ""
        script = "python scripts/campaign.py"
        return f"{ranks}{script} --only {self.kind} --trial {self.seed}"

    def choose(self, *values: Any) -> Any:
        """Return one of some values."""
        return values[int(self.rng.integers(len(values)))]

    def chance(self, share: float) -> bool:
        """Return True in a share of all cases."""
        return bool(self.rng.random() < share)

    def below(self, count: int) -> int:
        """Return a number from 0 to count - 1."""
        return int(self.rng.integers(count))

    def vertices(self, n: int, most: int) -> list[int]:
        """Return up to ``most`` vertices, one at least, perhaps the same twice."""
        return self.rng.integers(0, n, 1 + self.below(most)).tolist()

    def draws(self, truth: Truth) -> None:
        """Keep the graph for the report of a failure."""
        if self.world.rank == 0:
            (self.folder / GRAPH).write_text(truth.text())

    def note(self, text: str) -> None:
        """Keep what was drawn for the report of a failure."""
        if self.world.rank == 0:
            with (self.folder / NOTES).open("a") as file:
                file.write(f"{text}\n")

    def write(self, name: str, data: bytes) -> Path:
        """Write a file that all ranks see; return its path."""
        path = self.folder / name
        if self.world.rank == 0:
            path.write_bytes(data)
        self.world.barrier()
        return path

    def check(self, look: Callable[[], None]) -> None:
        """Let rank 0 look at an answer; Wrong on all ranks."""
        fault = None
        if self.world.rank == 0:
            try:
                look()
            except Wrong as wrong:
                fault = [wrong.rule, str(wrong).partition(": ")[2]]
        fault = self.world.broadcast(fault)
        if fault is not None:
            raise Wrong(*fault)
        self.searches += 1

    def run(self, *words: Any) -> Done:
        """Run a distbfs command in this process, on all ranks; Done with any code."""
        arguments = [str(word) for word in words]
        self.note(f"{self.world.size} ranks: distbfs {' '.join(arguments)}")
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = main.run(arguments)
            except DistbfsError as error:
                code = error.exit_code
                err.write(f"distbfs: {error}\n")
        self.world.barrier()
        return Done(code, out.getvalue(), err.getvalue())

    def good(self, *words: Any) -> Done:
        """Run a command that must succeed."""
        done = self.run(*words)
        if done.code != 0:
            last_line = (done.err.splitlines() or [""])[-1]
            raise Wrong("exit", f"{words[0]} ended with {done.code}: {last_line}")
        return done

    def apart(self, *words: Any, **options: Any) -> Done:
        """Run a distbfs command in a process of its own."""
        arguments = [str(word) for word in words]
        self.note(f"distbfs {' '.join(arguments)}")
        done = subprocess.run(
            [sys.executable, "-m", "distbfs", *arguments],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            env=environment(),
            check=False,
            **options,
        )
        return Done(done.returncode, done.stdout, done.stderr)


def environment() -> dict[str, str]:
    """Return an environment in which processes find this package."""
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p)}
