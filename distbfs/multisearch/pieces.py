"""Runs of a problem in pieces: progress, an estimated time, and resumption.

The first piece is one batch on each rank, and may compile kernels; the estimate comes
from the second. Pieces take a few seconds each, so that a killed run loses no more than
that. Sums per vertex are written less often if writing takes long.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.errors import SearchStopped
from distbfs.multisearch.problem import Problem, State
from distbfs.progress import Progress
from distbfs.ranks.agreement import errors_of_all
from distbfs.ranks.signals import interrupts_wait
from distbfs.search.result_file import PartialFile
from distbfs.timing import clock
from distbfs.types import Array, Ids

if TYPE_CHECKING:
    from distbfs.multisearch.searchers import Searcher

PIECE_SECONDS = 2.0
SAVING_SHARE = 0.1  # of the time that writing sums may take


@dataclass
class Unfinished:
    """The file that keeps finished searches while others run.

    path: path of the file; identity: JSON values that identify graph, application and
    options
    force: replace the file of another run; anew: how a user asks for this, for messages
    again: how a user resumes, for messages; opened: whether this run has opened the
    file
    """

    path: Path
    identity: Any
    force: bool = False
    anew: str = "give --force to begin anew"
    again: str = "the same command continues"
    opened: bool = False

    def open(
        self, problem: Problem, sources: Ids, n: int, stack: ExitStack
    ) -> tuple[PartialFile, int]:
        """Open the file for the results of a problem, until the stack ends.

        n: number of vertices. Returns the file, and how many of the sources are done.
        """
        count = len(sources)
        kinds: dict[str, dict[str, Any]] = {"search": {}, "vertex": {}}
        for state in results_of(problem):
            shape = (n,) if state.per == "vertex" else (count,)
            kinds[state.per][state.name] = shape, np.dtype(state.dtype)
        file = PartialFile(
            self.path,
            {"sources": sources},
            kinds["search"],
            json.dumps(self.identity),
            totals=kinds["vertex"],
            anew=self.anew,
        )
        flags = stack.enter_context(file).open(force=self.force)
        self.opened = True
        if kinds["vertex"]:
            return file, file.read_totals()[0]
        return file, count if flags.all() else int(np.argmin(flags))

    def remove(self) -> None:
        """Delete the file if this run used it, since the results are elsewhere now."""
        if self.opened:
            self.path.unlink(missing_ok=True)


def results_of(problem: Problem) -> list[State]:
    """Return the states of a problem that are results."""
    return [state for state in problem.state if state.result]


@dataclass
class Saving:
    """The writing of a run's results to the file, which rank 0 has.

    done: number of searches in the file; last, took: when the last write was, and how
    many seconds it took
    """

    file: PartialFile | None
    states: list[State]
    done: int
    last: float = 0.0
    took: float = 0.0

    def save(self, done: int, values: Mapping[str, Array], *, now: bool) -> None:
        """Write the results of the first ``done`` searches, at once if ``now``."""
        if self.file is None or done == self.done:
            return
        began = clock()
        summed = {s.name: values[s.name] for s in self.states if s.per == "vertex"}
        pause = max(PIECE_SECONDS, self.took / SAVING_SHARE)
        if summed and not now and began - self.last < pause:
            return
        rows = slice(self.done, done)
        each = {s.name: values[s.name][rows] for s in self.states if s.per == "search"}
        self.file.write_rows(rows, each)
        if summed:
            self.file.write_totals(done, summed)
        self.done, self.last = done, clock()
        self.took = self.last - began


@dataclass
class Pieces:
    """Runs problems whose results are per search or per vertex.

    label: name of the computation; unfinished: file of finished searches, on rank 0;
    resumed: number of searches that the file had
    """

    searcher: Searcher
    label: str
    progress: Progress
    say: Callable[[str], None]
    unfinished: Unfinished | None = None
    resumed: int = 0

    def run(
        self,
        problem: Problem,
        sources: Ids,
        search: Callable[[Ids], Mapping[str, Array]] | None = None,
    ) -> dict[str, Array]:
        """Return results by name, [k] or [n], on all ranks (collective).

        search: function that returns the results of some sources, by default the
        searcher's. With host engines, all pieces of sums have one size, so that sums
        are equal from run to run. Raises SearchStopped or KeyboardInterrupt with the
        number of finished searches; if a rank cannot open the file, all ranks raise its
        error.
        """
        world, count = self.searcher.world, len(sources)
        states = results_of(problem)
        find = search or (lambda some: self.searcher.run(problem, some).values)
        with ExitStack() as stack:
            kept, file, done = self.unfinished, None, 0
            sampled = any(state.per == "vertex" for state in states)
            fixed = sampled and self.searcher.engine != "xbfs"
            with errors_of_all(world):
                if kept is not None:
                    file, done = kept.open(problem, sources, self.searcher.n, stack)
            self.resumed = done = world.broadcast(done)
            values = self._begun(states, file, done, count)
            saving = Saving(file, states, done)
            if done:
                self.say(f"{self.label}: continuing after {done} of {count} sources")
            tell = stack.enter_context(self.progress(self.label, count))
            step = size = self.searcher.smallest
            piece = 0
            try:
                while done < count:
                    rows = slice(done, min(done + size, count))
                    began = clock()
                    results = find(sources[rows])
                    # mutant: interrupts_wait() -> ExitStack()
                    #   : test_pieces::test_ctrl_c_waits_while_results_are_written
                    with interrupts_wait():
                        for state in states:
                            if state.per == "vertex":
                                values[state.name] += results[state.name]
                            else:
                                values[state.name][rows] = results[state.name]
                        done, piece = rows.stop, piece + 1
                        saving.save(done, values, now=done == count)
                    spent = clock() - began
                    each = spent / (rows.stop - rows.start)
                    tell(done)
                    if done < count and piece == 2:
                        self._estimate(each, count, sampled=sampled)
                    steps = 1 if fixed else int(PIECE_SECONDS / max(each * step, 1e-9))
                    size = step * world.broadcast(max(steps, 1))
            except (SearchStopped, KeyboardInterrupt) as error:
                saving.save(done, values, now=True)
                again = "" if file is None or kept is None else f"; {kept.again}"
                reached = f"after {done} of {count} sources{again}"
                if isinstance(error, KeyboardInterrupt):
                    raise KeyboardInterrupt(reached) from error
                raise SearchStopped(f"stopped {reached}") from error
        return values

    def _begun(
        self, states: list[State], file: PartialFile | None, done: int, count: int
    ) -> dict[str, Array]:
        """Return arrays of states by name with the results of the first ``done``."""
        totals, values = dict[str, Array](), dict[str, Array]()
        if done and file is not None and any(s.per == "vertex" for s in states):
            _, totals = file.read_totals()
        for state in states:
            rows = self.searcher.n if state.per == "vertex" else count
            value = values[state.name] = np.zeros(rows, dtype=state.dtype)
            if not done:
                continue
            held = value[:0]
            if file is not None:
                held = totals.get(state.name, held)
                if state.per == "search":
                    # mutant: file.read(state.name) -> value
                    #   : test_pieces::test_killed_and_resumed
                    held = file.read(state.name)[:done]
            held = np.concatenate(self.searcher.world.allgather(held))
            value[: len(held)] = held
        return values

    def _estimate(self, each: float, count: int, *, sampled: bool) -> None:
        """Announce the estimated time for all sources, at ``each`` seconds a source."""
        left = count - self.resumed
        what = f"{left:,} vertices" + (" that are left" if self.resumed else "")
        if sampled and count < self.searcher.n:
            what = f"{self.searcher.n:,} vertices from {count:,} samples"
        self.say(f"{self.label} of {what}: about {readable_time(each * left)}")

    def facts(self) -> dict[str, Any]:
        """Return the number of searches resumed, if any (JSON values)."""
        return {"resumed": self.resumed} if self.resumed else {}


def readable_time(seconds: float) -> str:
    """Return a time in two digits or more: seconds, minutes or hours."""
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
