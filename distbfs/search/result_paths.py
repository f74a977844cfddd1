"""Shortest paths from the edges that lead back from a vertex."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from distbfs.errors import ValidationError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distbfs.types import Ids


def no_way_back(vertex: Any) -> ValidationError:
    """Return the error of a walk from a vertex that ends at no source."""
    return ValidationError(
        f"the way back from {vertex} ends at no source: the search is wrong; 'distbfs "
        "verify' shows whether the store was altered"
    )


def before_each(pairs: Ids) -> dict[int, list[int]]:
    """Return the predecessors of each v; pairs: edges (u, v), [k, 2], sorted by v."""
    before: dict[int, list[int]] = {}
    for u, v in pairs.tolist():
        before.setdefault(v, []).append(u)
    return before


def count_back(pairs: Ids, target: int) -> int:
    """Return the number of paths to a vertex along its edges of ``predecessors_to``.

    Raises ValidationError if they form a cycle.
    """
    before = before_each(pairs)
    numbers: dict[int, int] = {}
    waiting = [target]
    while waiting:
        at = waiting[-1]
        missing = [u for u in before.get(at, ()) if u not in numbers]
        if missing:
            if len(waiting) > len(pairs):  # each edge waits once, where there is none
                raise no_way_back(target)
            waiting.extend(missing)
            continue
        waiting.pop()
        numbers[at] = sum(numbers[u] for u in before[at]) if at in before else 1
    return numbers[target]


def paths_back(before: dict[int, list[int]], target: int) -> Iterator[list[int]]:
    """Yield all paths to a vertex, from a vertex without predecessors.

    Raises ValidationError if they form a cycle.
    """
    steps, choices = [target], [iter(before.get(target, ()))]
    if target not in before:
        yield [target]
    while choices:
        u = next(choices[-1], None)
        if u is None:
            choices.pop()
            steps.pop()
        elif u in before:
            if len(steps) == len(before):
                raise no_way_back(target)
            steps.append(u)
            choices.append(iter(before[u]))
        else:
            yield [u, *reversed(steps)]
