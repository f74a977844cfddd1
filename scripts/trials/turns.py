"""Threads that share a graph or a session, functions that search, forked children.

Rules:
    waits   every thread, function and child ends
    child   a child finds what its parent would find, or is told to open the graph again
    others  as of the checker
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import distbfs
from distbfs.engines.openmp import whole
from distbfs.errors import UsageError
from distbfs.multisearch.problem import FUNCTIONS
from trials.checker import Truth, Wrong, check_path, check_search, close, ended, equal
from trials.library import METHODS
from trials.multisearch import harmonic
from trials.sessions import Tuples
from trials.shapes import draw_graph
from trials.trial import Trial

Use = Callable[[], None]  # raises Wrong
MOST = 700  # vertices
LONGEST = 60  # seconds of a child, and of all threads
FEW = 3
REFUSED = ("cannot search its graph", "open the graph again")


class Turns:
    """What threads share, and what they may do with it.

    Everything is drawn beforehand, so that a trial does the same again, if not in the
    same order.

    search: takes a source and options, as ``Session.search``
    """

    def __init__(self, trial: Trial) -> None:
        self.trial, self.truth = trial, draw_graph(trial, least=1, most=MOST)
        truth = self.truth
        self.graph = distbfs.Graph.from_edges(
            *truth.pairs.T, n=truth.n, directed=truth.directed
        )
        self.session: Any = None
        self.search: Any = partial(distbfs.bfs, self.graph, **self.ways())
        if trial.chance(0.5):
            self.session = self.opened()
            self.search = self.session.search
        self.after: list[threading.Thread] = []

    def ways(self) -> dict[str, Any]:
        """Draw an engine for a graph."""
        engine = self.trial.choose(*METHODS["openmp"], "reference")
        threads = self.trial.choose(1, 2)
        if engine == "reference":
            return {"engine": engine}
        return {"engine": "openmp", "method": engine, "threads": threads}

    def opened(self) -> Any:
        """Open the graph, or its tuples in parts."""
        if self.truth.directed or self.trial.chance(0.5):
            ways = self.ways()
            self.trial.note(f"session of the graph, {ways}")
            return distbfs.open(self.graph, **ways)
        parts, threshold = self.trial.choose(1, 2, 3), self.trial.choose(None, 0, 4)
        engine = self.trial.choose("openmp", "reference")
        self.trial.note(f"session of {parts} parts, TH {threshold}, {engine}")
        return distbfs.open(
            Tuples(self.truth), parts=parts, threshold=threshold, engine=engine
        )

    def use(self) -> Use:
        """Draw a use of what is shared."""
        uses = [self.single, self.single, self.yielded, self.forked]
        if self.session is None:
            uses += [self.masked, self.many, self.called]
        else:
            uses += [self.stopped]
        return self.trial.choose(*uses)()

    def single(self) -> Use:
        """Search from a vertex, perhaps to a limit, and look at the result."""
        trial, truth = self.trial, self.truth
        source, limit = trial.below(truth.n), trial.choose(None, None, 1, 3)
        targets = trial.vertices(truth.n, 3) if trial.chance(0.2) else None
        wanted = ended(truth.levels(source), limit, targets)
        early = {"limit": limit, "targets": targets}
        trial.note(f"single {source}, {early}")

        def use() -> None:
            found = self.search(source, depth_limit=limit, targets=targets)
            level, parent = found.to_numpy()
            equal("count", found.reached, int((wanted >= 0).sum()), "reached")
            far = int(wanted.argmax())
            equal("count", found.at([far])[0].tolist(), [wanted[far]], "at")
            check_path(truth, found.path_to(far), source, far)
            check_search(truth, source, level, parent, **early)
            check_search(truth, source, *found.keep().to_numpy(), **early)

        return use

    def fewer(self) -> Use:
        """Search in the shortest way."""
        source = self.trial.below(self.truth.n)
        wanted = self.truth.levels(source).tolist()

        def use() -> None:
            equal("level", self.search(source).to_numpy()[0].tolist(), wanted, "level")

        return use

    def refused(self, use: Use) -> Callable[..., bool]:
        """Return a function that a search calls: a use is right, or is refused.

        Deep searches call it often; FEW times tell.
        """
        left = [None] * FEW

        def function(*_: Any) -> bool:
            try:
                if left:
                    left.pop()
                    use()
            except UsageError as error:
                if not any(text in str(error) for text in REFUSED):
                    raise
            return False

        return function

    def yielded(self) -> Use:
        """Search from a set that comes from a generator, which searches too."""
        vertices, use_it = self.trial.vertices(self.truth.n, 4), self.fewer()
        rows = np.array([self.truth.levels(v) for v in vertices])
        wanted = np.where(rows < 0, self.truth.n, rows).min(axis=0)
        wanted[wanted == self.truth.n] = -1
        self.trial.note(f"yielded {vertices}")

        def each() -> Iterator[int]:
            for vertex in vertices:
                use_it()
                yield vertex

        def use() -> None:
            found = self.search(each()).to_numpy()[0]
            equal("level", found.tolist(), wanted.tolist(), "a set")

        return use

    def masked(self) -> Use:
        """Search a graph of which some vertices are seen."""
        source, rng = self.trial.below(self.truth.n), self.trial.rng
        seen = rng.random(self.truth.n) < self.trial.choose(0.5, 0.9)
        seen[source] = True
        pairs = self.truth.pairs
        part = Truth(self.truth.n, pairs[seen[pairs].all(axis=1)], self.truth.directed)
        wanted = part.levels(source).tolist()
        engine = self.trial.choose("openmp", "reference")

        def use() -> None:
            found = distbfs.bfs(self.graph, source, engine, vertices=seen)
            equal("level", found.level.tolist(), wanted, "masked")

        return use

    def many(self) -> Use:
        """Search from a few vertices at once, which a generator yields."""
        vertices, use_it = self.trial.vertices(self.truth.n, 4), self.fewer()
        rows = [self.truth.levels(v).tolist() for v in vertices]
        sums, name = harmonic(self.truth, vertices), self.trial.choose("all", "sums")

        def each() -> Iterator[int]:
            for vertex in vertices:
                use_it()
                yield vertex

        def use() -> None:
            if name == "all":
                found = distbfs.path_lengths(self.graph, each())
                equal("level", found.tolist(), rows, "path_lengths")
            else:
                close("value", distbfs.harmonic(self.graph, each()), sums, "harmonic")

        return use

    def called(self) -> Use:
        """Make many searches that call a function, which searches or begins to."""
        vertices = sorted(set(self.trial.vertices(self.truth.n, 4)))
        function = self.refused(self.trial.choose(self.single, self.forked)())
        later, name = self.fewer(), self.trial.choose("progress", *FUNCTIONS)
        engine, begun = self.trial.choose("openmp", "reference"), []
        sums = harmonic(self.truth, vertices)[vertices]
        self.trial.note(f"called {name} of {engine}")

        def call(*_: Any) -> None:
            function()
            if not begun:
                begun.append(threading.Thread(target=self.noted, args=(later,)))
                begun[0].start()  # it waits until this search is over
                self.after.append(begun[0])

        def use() -> None:
            if name == "progress":
                found = distbfs.search_many(
                    self.graph, "harmonic", vertices, engine, progress=call
                )
                close("value", found["value"][vertices], sums, "harmonic")
                return
            state = (distbfs.State("reached", "int64", "search"),)
            problem = distbfs.Problem("reached", state, {name: call})
            found = distbfs.search_many(self.graph, problem, vertices, engine)
            reached = [(self.truth.levels(v) >= 0).sum() for v in vertices]
            equal("count", found["reached"].tolist(), reached, "reached")

        return use

    def stopped(self) -> Use:
        """Search with a function that is asked whether to stop, and searches."""
        source = self.trial.below(self.truth.n)
        function = self.refused(self.trial.choose(self.single, self.forked)())
        wanted = self.truth.levels(source).tolist()

        def use() -> None:
            found = self.search(source, stop=function).to_numpy()[0]
            equal("level", found.tolist(), wanted, "with stop")

        return use

    def forked(self) -> Use:
        """Fork a child that searches."""
        inside = self.refused(self.fewer())
        file = self.trial.folder / f"child-{self.trial.below(1 << 40)}"

        def use() -> None:
            child = os.fork()
            if not child:
                try:
                    signal.signal(signal.SIGALRM, signal.SIG_DFL)
                    signal.alarm(LONGEST)
                    inside()
                    os._exit(0)
                except BaseException as error:  # noqa: BLE001
                    file.write_text(f"{type(error).__name__}: {error}")
                finally:
                    os._exit(1)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            text = file.read_text() if file.exists() else "no message"
            if code == -signal.SIGALRM:
                raise Wrong("waits", f"a child did not end in {LONGEST} s")
            equal("child", code, 0, text)

        return use

    def noted(self, *uses: Use) -> None:
        """Make uses one after the other; note what is wrong."""
        try:
            for use in uses:
                use()
                self.trial.searches += 1
        except BaseException as error:  # noqa: BLE001
            self.faults.append(error)

    def run(self) -> None:
        """Let threads use what they share; raise the first fault."""
        trial, self.faults = self.trial, list[BaseException]()
        plans = [
            [self.use() for _ in range(1 + trial.below(6))]
            for _ in range(2 + trial.below(4))
        ]
        threads = [
            threading.Thread(target=self.noted, args=plan, daemon=True)
            for plan in plans
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LONGEST)
        for thread in self.after:
            thread.join(LONGEST)
        if any(thread.is_alive() for thread in (*threads, *self.after)):
            raise Wrong("waits", f"a thread did not end in {LONGEST} s")
        if self.faults:
            raise self.faults[0]


def run(trial: Trial) -> None:
    """Let threads share a graph or a session."""
    if trial.seed % 2:
        whole.SMALL = 0  # threads share the searches of all graphs
    turns = Turns(trial)
    turns.run()
    if turns.session is not None:
        turns.session.close()
        try:
            turns.search(0)
        except UsageError:
            return
        raise Wrong("refusal", "a closed session searches")
