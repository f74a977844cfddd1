"""Trials in a process of their own, which may crash or never end."""

from __future__ import annotations

import multiprocessing
import signal
import traceback
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from trials.checker import Wrong
from trials.trial import Trial

MODULES = {"networkx": "nx_backend"}


@dataclass
class Result:
    """What came of a trial: answers that were looked at, and what was wrong.

    rule: that was broken, "" for none; command: the line that repeats it
    """

    checked: int = 0
    rule: str = ""
    text: str = ""
    command: str = ""


def perform(kind: str, seed: int, folder: Path, world: Any) -> Result:
    """Make a trial on all ranks; what a rank alone raises ends all of them."""
    trial = Trial(kind, seed, folder, world)
    try:
        import_module(f"trials.{MODULES.get(kind, kind)}").run(trial)
    except Wrong as wrong:
        return Result(trial.searches, wrong.rule, str(wrong), trial.command)
    except Exception as error:
        if world.size > 1:
            raise
        text = f"{type(error).__name__}: {error}\n{traceback.format_exc()}"
        return Result(trial.searches, "error", text, trial.command)
    return Result(trial.searches)


class Worker:
    """Makes trials in a child, which is replaced where one ends it."""

    def __init__(self, world: Any, longest: float) -> None:
        """Take the ranks, and the seconds that a trial may take."""
        self._world, self._longest = world, longest
        self._process: Any = None

    def _begin(self) -> None:
        context = multiprocessing.get_context("fork")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=self._serve, args=(theirs,), daemon=False
        )
        self._process.start()
        theirs.close()

    def _serve(self, pipe: Any) -> None:
        self._pipe.close()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        while (asked := pipe.recv()) is not None:
            pipe.send(perform(*asked, self._world))

    def perform(self, kind: str, seed: int, folder: Path) -> Result:
        """Make a trial; a crash or no end is what was wrong with it."""
        if self._process is None:
            self._begin()
        self._pipe.send((kind, seed, folder))
        command = Trial(kind, seed, folder, self._world).command
        if not self._pipe.poll(self._longest):
            self._process.kill()
            self._end()
            return Result(0, "time", f"time: no end in {self._longest} s", command)
        try:
            return self._pipe.recv()
        except EOFError:
            self._process.join()
            text = f"crash: the process ended with {self._process.exitcode}"
            self._end()
            return Result(0, "crash", text, command)

    def _end(self) -> None:
        self._process.join()
        self._pipe.close()
        self._process = None

    def close(self) -> None:
        """End the child."""
        if self._process is not None:
            self._pipe.send(None)
            self._end()
