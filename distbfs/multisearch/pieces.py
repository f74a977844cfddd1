"""A problem from many sources in pieces: progress, an estimate, and what is resumed.

The first piece is a batch of each rank. The first two give the estimate; others take
a few seconds each, so that a run that is killed loses no more.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.errors import DistbfsError, InputError, SearchStopped
from distbfs.exchange.agreement import first_reason
from distbfs.multisearch.problem import Problem, State
from distbfs.progress import Progress
from distbfs.search.result_file import PartialFile
from distbfs.timing import clock
from distbfs.types import Array, Ids

if TYPE_CHECKING:
    from distbfs.multisearch.searchers import Searcher

PIECE_SECONDS = 2.0
LONG_SECONDS = 0.5  # of a first piece after which it is said how long all take


@dataclass
class Unfinished:
    """Where finished searches are kept while others run.

    path: of the file; identity: tells graph, application and options (JSON values)
    force: replace the file of another run; anew: what a user does for that
    again: what resumes; opened: whether this run has opened the file
    """

    path: Path
    identity: Any
    force: bool = False
    anew: str = "give --force to begin anew"
    again: str = "the same command goes on"
    opened: bool = False

    def open(
        self, problem: Problem, sources: Ids, stack: ExitStack
    ) -> tuple[PartialFile, int]:
        """Open the file for the results per search of a problem, until the stack ends.

        Returns it, and how many of the sources are done.
        """
        shape = (len(sources),)
        file = PartialFile(
            self.path,
            {"sources": sources},
            {s.name: (shape, np.dtype(s.dtype)) for s in problem.state},
            json.dumps(self.identity),
            anew=self.anew,
        )
        flags = stack.enter_context(file).open(force=self.force)
        self.opened = True
        return file, len(sources) if flags.all() else int(np.argmin(flags))

    def remove(self) -> None:
        """Delete the file if this run has used it: the results are elsewhere."""
        if self.opened:
            self.path.unlink(missing_ok=True)


@dataclass
class Pieces:
    """Runs problems whose results are per search or per vertex.

    label: what is computed; unfinished: of rank 0, for a problem without results per
    vertex; resumed: searches found there
    estimated: seconds of all searches, from the first two pieces
    """

    searcher: Searcher
    label: str
    progress: Progress
    say: Callable[[str], None]
    unfinished: Unfinished | None = None
    resumed: int = 0
    estimated: float | None = None

    def run(self, problem: Problem, sources: Ids) -> dict[str, Array]:
        """Return results by name, [k] or [n], on all ranks (collective).

        Raises SearchStopped with the number of finished searches; on all ranks the
        error of the first that cannot open the file.
        """
        world, count = self.searcher.world, len(sources)
        with ExitStack() as stack:
            kept, file, done = self.unfinished, None, 0
            sampled = any(state.per == "vertex" for state in problem.state)
            failure: DistbfsError | None = None
            if kept is not None and not sampled:
                try:
                    file, done = kept.open(problem, sources, stack)
                except DistbfsError as error:
                    failure = error
            if reason := first_reason(world, str(failure or "")):
                raise failure or InputError(reason)
            self.resumed = done = world.broadcast(done)
            values = {s.name: self._begun(s, file, done, count) for s in problem.state}
            if done:
                self.say(f"{self.label}: going on after {done} of {count} sources")
            tell = stack.enter_context(self.progress(self.label, count))
            step = size = self.searcher.smallest
            piece = 0
            while done < count:
                rows = slice(done, min(done + size, count))
                began = clock()
                try:
                    results = self.searcher.run(problem, sources[rows]).values
                except SearchStopped as error:
                    again = "" if file is None or kept is None else f"; {kept.again}"
                    raise SearchStopped(
                        f"stopped after {done} of {count} sources{again}"
                    ) from error
                for state in problem.state:
                    if state.per == "vertex":
                        values[state.name] += results[state.name]
                    else:
                        values[state.name][rows] = results[state.name]
                if file is not None:
                    file.write_rows(rows, results)
                spent = clock() - began
                each = spent / (rows.stop - rows.start)
                done, piece = rows.stop, piece + 1
                tell(done)
                if done < count and self._surprises(each, count, spent, piece):
                    self._estimate(each, count, sampled=sampled)
                steps = int(PIECE_SECONDS / max(each * step, 1e-9))
                size = step * world.broadcast(max(steps, 1))
        return values

    def _begun(
        self, state: State, file: PartialFile | None, done: int, count: int
    ) -> Array:
        """Return the array of a state with the results of the first ``done``."""
        if state.per == "vertex":
            return np.zeros(self.searcher.n, dtype=state.dtype)
        value = np.zeros(count, dtype=state.dtype)
        if done:
            held = value[:0] if file is None else file.read(state.name)[:done]
            value[:done] = np.concatenate(self.searcher.world.allgather(held))
        return value

    def _surprises(self, each: float, count: int, spent: float, piece: int) -> bool:
        """Return whether a piece tells how long all take, and none did before.

        The first one may compile kernels: the second has another say.
        """
        if self.estimated is None:
            return piece > 1 or spent >= LONG_SECONDS
        return piece == 2 and 2 * each * (count - self.resumed) < self.estimated

    def _estimate(self, each: float, count: int, *, sampled: bool) -> None:
        """Say how long all sources take, by the seconds of each."""
        left = count - self.resumed
        self.estimated = each * left
        what = f"{left:,} vertices" + (" that are left" if self.resumed else "")
        if sampled:
            what = f"{self.searcher.n:,} vertices from {count:,} samples"
        self.say(f"{self.label} of {what}: about {readable_time(self.estimated)}")

    def facts(self) -> dict[str, Any]:
        """Return what is reported (JSON values)."""
        facts: dict[str, Any] = {}
        if self.resumed:
            facts["resumed"] = self.resumed
        if self.estimated is not None:
            facts["estimated_seconds"] = self.estimated
        return facts


def readable_time(seconds: float) -> str:
    """Return a time in two digits or more: seconds, minutes or hours."""
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
