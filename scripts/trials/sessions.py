"""Sessions of stores and of tuples in parts: early ends, values, kept results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import distbfs
from distbfs.options import BuildOptions, SearchOptions
from distbfs.search.choose import Request
from distbfs.search.open import open_source, source_of
from distbfs.search.result import Result
from distbfs.search.session import Session
from distbfs.search.vertices import gather_on_first
from distbfs.store.hdf5 import open_store
from trials.checker import Truth, check_search, ended, equal, first_wrong
from trials.files import Written
from trials.library import SMALL
from trials.stores import make_store
from trials.trial import Trial

FAR = 1 << 31  # beyond the last level of any graph
MOST = 9  # vertices that are asked for by their ids


class Tuples:
    """The tuples of a graph, as a program gives them (a TupleSource)."""

    def __init__(self, truth: Truth) -> None:
        self.n, self.tuples, self._pairs = truth.n, len(truth.pairs), truth.pairs

    def chunks(self, start: int, stop: int) -> Iterator[tuple[Any, Any]]:
        """Yield the ends of tuples."""
        yield self._pairs[start:stop, 0], self._pairs[start:stop, 1]

    def describe(self) -> dict[str, Any]:
        """Return what reports say of the tuples."""
        return {"family": "trial"}


def run(trial: Trial) -> None:
    """Search a store, then the same tuples in parts that are made of them."""
    made, store, _ = make_store(trial, most=SMALL)
    truth = made.truth
    look_at(trial, truth, places(made, store), opened(trial, store))
    if not truth.directed:
        choices = {
            "parts": trial.world.size * trial.choose(1, 2, 3, 4),
            "threshold": trial.choose(None, 0, 1, 2, 4, 16, 10**9),
            "uniquify": trial.chance(0.3),
            "local_all2all": trial.chance(0.3),
            "mask_reduce": trial.choose("blocking", "nonblocking"),
        }
        session = opened(trial, Tuples(truth), **choices)
        look_at(trial, truth, np.arange(truth.n), session)


def opened(
    trial: Trial,
    source: Any,
    parts: int | None = None,
    threshold: int | None = None,
    **options: Any,
) -> Session:
    """Return the session of a store or of tuples, on all ranks."""
    options |= {"engine": trial.choose("auto", "openmp", "reference")}
    options |= {"threads": trial.choose(1, 1, 2)}
    trial.note(f"{type(source).__name__}, {parts}, TH {threshold}, {options}")
    named = isinstance(source, Path) and open_store(source).load_ids() is not None
    if trial.world.size == 1 and not named:  # here vertices are told by number
        return distbfs.open(source, parts=parts, threshold=threshold, **options)
    made = source_of(source, trial.world, parts, BuildOptions(threshold=threshold))
    request = Request(parts, "parts" if parts else "")
    return open_source(trial.world, made, SearchOptions.named(**options), request)


def places(made: Written, store: Path) -> np.ndarray:
    """Return the id in a store of each vertex of the truth."""
    ids = open_store(store).load_ids()
    if ids is None or made.names is None:
        return np.arange(made.truth.n)
    return np.array([ids.find(str(name)) for name in made.names], dtype=np.int64)


def look_at(trial: Trial, truth: Truth, place: np.ndarray, session: Session) -> None:
    """Search a few times, and look at a kept result after the next search."""
    last = None
    for _ in range(1 + trial.below(4)):
        source, parents = trial.below(truth.n), trial.chance(0.8)
        limit = trial.choose(None, None, 0, 1, 2, 5, FAR)
        targets = trial.vertices(truth.n, 4) if trial.chance(0.5) else None
        trial.note(f"from {source}, parents {parents}, {limit}, {targets}")
        result = session.search(
            int(place[source]),
            parents=parents,
            depth_limit=limit,
            targets=None if targets is None else place[targets].tolist(),
        )
        asked = (source, limit, targets, parents)
        look(trial, truth, place, result, *asked)
        counts(trial, truth, place, result, *asked[:3])
        if last is not None:
            look(trial, truth, place, *last)
        last = (result.keep(), *asked)
    session.close()


def look(
    trial: Trial,
    truth: Truth,
    place: np.ndarray,
    result: Result,
    source: int,
    limit: int | None,
    targets: list[int] | None,
    parents: bool,
) -> None:
    """Raise Wrong unless levels and parents are those of a search (collective)."""
    level, parent = (gather_on_first(trial.world, x) for x in result.to_numpy())

    def check() -> None:
        vertex = np.full(truth.n + 1, -1)
        vertex[place] = np.arange(truth.n)
        above = None if parent is None else vertex[parent][place]
        early = {"limit": limit, "targets": targets}
        check_search(truth, source, level[place], above, parents=parents, **early)

    trial.check(check)


def counts(
    trial: Trial,
    truth: Truth,
    place: np.ndarray,
    result: Result,
    source: int,
    limit: int | None,
    targets: list[int] | None,
) -> None:
    """Raise Wrong unless all that a result counts is right (collective)."""
    wanted = ended(truth.levels(source), limit, targets)
    some = np.array(trial.vertices(truth.n, MOST))
    counted = result.reached, result.depth, result.nedge, result.level_counts().tolist()
    level, _ = result.at(place[some])

    def check() -> None:
        held = wanted[wanted >= 0]
        equal("count", counted[0], len(held), "reached")
        equal("count", counted[1], int(held.max()), "depth")
        equal("count", counted[2], truth.nedge_of(wanted), "nedge")
        equal("count", counted[3], np.bincount(held).tolist(), "level_counts")
        first_wrong("level", level != wanted[some], source, found=level)

    trial.check(check)
