"""The searches of a benchmark run, one root after another, and their validation.

Source: Graph500 specification 2.0, Sections 5 to 8.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from typing import TypeAlias

import numpy as np

from distbfs.benchmark.graph500_report import SKIPPED, SearchFigures
from distbfs.progress import Sum
from distbfs.search.result import Result, bytes_of
from distbfs.search.session import Session
from distbfs.types import Ids, TupleSource
from distbfs.validation.faults import Validation
from distbfs.validation.host import validate

Check: TypeAlias = Callable[[Result], Validation]

RESULT_BYTES = 1 << 30  # host memory of one rank for results not yet validated
MOST_BYTES = 1 << 60  # no bound for results on a device: its free memory decides


def run_searches(
    session: Session,
    source: TupleSource,
    roots: Ids,
    *,
    exact: bool,
    directed: bool = False,
    check: int,
    each: Callable[[Sequence[int]], Iterable[Result]],
    hurry: Callable[[], AbstractContextManager[None]] = nullcontext,
    done: Sum | None = None,
) -> list[SearchFigures]:
    """Search from every root and validate the results (collective).

    Searches run in batches, and each batch is validated before the next; a batch is as
    large as RESULT_BYTES of host memory, or free device memory, allows. A warm-up
    search is not counted, or two on devices, where bitmaps alternate between searches
    and each set has its own CUDA graphs.

    roots: int64; source: the tuples by which results are validated
    exact: whether these are the input tuples, so that nedge counted from tuples must
    equal nedge counted from degrees
    directed: whether tuples lead only from their first end to their second
    check: the number of searches to validate, which are the first ones
    each: searches from each of some roots, or from the first ones if it is stopped
    hurry: context in which validations run
    done: called with 1 after each search and after each validation
    """
    figures: list[SearchFigures] = []
    done = done or Sum()
    validation = validation_of(session, source, directed=directed) if check else None
    warm_up = roots[:1].tolist() * (2 if session.on_devices else 1)
    last = deque(each(warm_up), maxlen=1)
    if not last:
        return figures
    most = MOST_BYTES if session.on_devices else RESULT_BYTES
    holders = max(len(set(session.held.devices)), 1)
    size = max(bytes_of(last.pop()) // holders, 1)
    size = int(session.world.allreduce(np.array([size]), "max")[0])
    batch = max(1, min(session.room(most) // size, len(roots)))
    results = iter(each(roots.tolist()))
    while True:
        left = check - len(figures)
        most = max(min(batch, left), 1)
        kept: list[Result] = []
        for result in islice(results, most):
            kept.append(result.keep() if most > 1 else result)
            done(1)
        if not kept:
            return figures
        looked = validation if left > 0 else None
        figures += judge(kept, looked, hurry, done, exact=exact)


def validation_of(
    session: Session, source: TupleSource, *, directed: bool = False
) -> Check:
    """Return the session's validator, on devices if the results are there (collective).

    directed: as in ``run_searches``
    """
    if session.on_devices:
        from distbfs.benchmark import device_validation  # noqa: PLC0415 - of CUDA

        return device_validation.validation_on_devices(
            session, source, directed=directed
        )

    def on_host(outcome: Result) -> Validation:
        return validate(
            session.world, source, outcome.roots, *outcome.to_numpy(), directed=directed
        )

    return on_host


def judge(
    outcomes: Sequence[Result],
    validation: Check | None,
    hurry: Callable[[], AbstractContextManager[None]],
    done: Sum,
    *,
    exact: bool,
) -> Iterator[SearchFigures]:
    """Count the edges of searches and validate them (collective)."""
    results: list[Validation | None] = []
    if validation is None:
        results = [None] * len(outcomes)
    else:
        with hurry():
            for outcome in outcomes:
                results.append(validation(outcome))
                done(1)
    for outcome, result in zip(outcomes, results, strict=True):
        nedge = outcome.nedge
        seconds, errors = SKIPPED, list[str]()
        if result is not None:
            seconds, errors = result.seconds, list(result.errors)
            if exact and result.valid and result.nedge != nedge:
                errors.append(f"{nedge} tuples by degrees, {result.nedge} by tuples")
        yield SearchFigures(
            outcome.root,
            outcome.seconds,
            nedge,
            seconds,
            valid=not errors,
            error="; ".join(errors),
            wall_seconds=outcome.wall_seconds,
            together=len(outcomes),
        )
