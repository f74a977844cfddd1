"""The official report of a Graph500 run, as text and as JSON.

Field names, their order, number formats and the column at which values begin (33) are
those of the reference code (graph500-newreference ``src/main.c``); JSON names are those
of the Graph500 specification 2.0. Additional lines begin with ``#``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from distbfs.benchmark.statistics import rate_statistics, statistics
from distbfs.errors import ValidationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

VALUE_COLUMN = 32
SHORT = {"minimum": "min", "maximum": "max"}
SKIPPED = -1.0
LARGE = 2  # a component is large with more than one in so many of the most tuples


@dataclass(frozen=True)
class SearchFigures:
    """One search of a benchmark.

    root: vertex id in the input; seconds: the official time
    validate_seconds: -1 where validation was skipped
    nedge: input tuples in the reached component
    wall_seconds: the host's wall time, where ``seconds`` is a device's
    together: number of searches in its batch, which is validated after the last of them
    """

    root: int | str
    seconds: float
    nedge: int
    validate_seconds: float = SKIPPED
    valid: bool = True
    error: str = ""
    wall_seconds: float | None = None
    together: int = 1


@dataclass(frozen=True)
class BenchmarkFigures:
    """The values of a report.  Times are in seconds; ``threshold`` is TH.

    directed: whether edges lead one way only
    internal_ids: whether results are in internal ids rather than the input's
    notes: further lines of the report, text by name
    """

    scale: int
    edgefactor: int
    generation_seconds: float
    construction_seconds: float
    processes: int
    searches: Sequence[SearchFigures]
    engine: str
    parts: int = 1
    threshold: int | None = None
    levels: bool = True
    parents: bool = True
    directed: bool = False
    internal_ids: bool = False
    versions: Mapping[str, str] = field(default_factory=dict)
    machine: Mapping[str, Any] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)


def check_valid(figures: BenchmarkFigures) -> None:
    """Raise ValidationError, which names the first, if any search is invalid."""
    wrong = [x for x in figures.searches if not x.valid]
    if wrong:
        raise ValidationError(
            f"no results printed for invalid run: {len(wrong)} of "
            f"{len(figures.searches)} searches are wrong, the first from root "
            f"{wrong[0].root}: {wrong[0].error or 'the result is not valid'}"
        )


def as_text(figures: BenchmarkFigures) -> str:
    """Return the official report; each line ends with a newline.

    Raises ValidationError for an invalid run, which has no figures.
    """
    check_valid(figures)
    lines = [_line(name, f"{x:{form}}") for name, x, form in _official(figures)]
    lines += [_line(f"# {name}", text) for name, text in _additional(figures)]
    return "".join(line + "\n" for line in lines)


def as_json(figures: BenchmarkFigures) -> dict[str, Any]:
    """Return the report as JSON values; a figure that is undefined is None.

    Raises ValidationError for an invalid run, which has no figures.
    """
    check_valid(figures)
    large = large_rate(figures)
    official = _official(figures)
    return {name.removeprefix("bfs  "): _defined(x) for name, x, _ in official} | {
        "engine": figures.engine,
        "parts": figures.parts,
        "TH": figures.threshold,
        "result": _result(figures),
        "directed": figures.directed,
        "ids": "internal" if figures.internal_ids else "input",
        "harmonic_mean_TEPS_by_wall": wall_rate(figures),
        "harmonic_mean_TEPS_large": None if large is None else large[1],
        "validated": _validated(figures),
        "validated_together": max(x.together for x in figures.searches),
        "versions": dict(figures.versions),
        "machine": dict(figures.machine),
        "notes": dict(figures.notes),
        "searches": [
            {
                "root": x.root,
                "time": x.seconds,
                "nedge": x.nedge,
                "TEPS": x.nedge / x.seconds,
                "validate": x.validate_seconds,
                "wall_time": x.wall_seconds,
            }
            for x in figures.searches
        ],
    }


def wall_rate(figures: BenchmarkFigures) -> float | None:
    """Return harmonic mean TEPS by wall time, or None if ``seconds`` is wall time."""
    both = [(float(x.nedge), x.wall_seconds) for x in figures.searches]
    walls = [wall for _, wall in both if wall is not None]
    if len(walls) < len(both):
        return None
    return rate_statistics([edges for edges, _ in both], walls)["harmonic_mean"]


def large_rate(figures: BenchmarkFigures) -> tuple[int, float] | None:
    """Return the number of roots in small components, and the rate of the others.

    The rate is harmonic mean TEPS. The result is None if all roots are in large
    components. A single root in a component of a few tuples brings the harmonic mean
    near 0.
    """
    most = max(x.nedge for x in figures.searches)
    large = [x for x in figures.searches if LARGE * x.nedge > most]
    if len(large) == len(figures.searches):
        return None
    rate = rate_statistics([x.nedge for x in large], [x.seconds for x in large])
    return len(figures.searches) - len(large), rate["harmonic_mean"]


def _official(figures: BenchmarkFigures) -> Iterator[tuple[str, float, str]]:
    """Yield names, values and their formats in the order of the reference code."""
    yield "SCALE", figures.scale, "d"
    yield "edgefactor", figures.edgefactor, "d"
    yield "NBFS", len(figures.searches), "d"
    yield "graph_generation", figures.generation_seconds, "g"
    yield "num_mpi_processes", figures.processes, "d"
    yield "construction_time", figures.construction_seconds, "g"
    times = [x.seconds for x in figures.searches]
    edges = [float(x.nedge) for x in figures.searches]
    looked = [x.validate_seconds for x in figures.searches if x.validate_seconds >= 0]
    for label, form, of in (
        ("bfs  {}_time", "g", statistics(times)),
        ("{}_nedge", ".11g", statistics(edges)),
        ("bfs  {}_TEPS", "g", rate_statistics(edges, times)),
        ("bfs  {}_validate", "g", statistics(looked or [SKIPPED])),
    ):
        for name, value in of.items():
            yield label.format(SHORT.get(name, name)), value, form


def _additional(figures: BenchmarkFigures) -> Iterator[tuple[str, str]]:
    yield "engine", figures.engine
    yield "parts", f"{figures.parts:d}"
    yield "TH", "none" if figures.threshold is None else f"{figures.threshold:d}"
    yield "result", _result(figures)
    if figures.directed:
        yield "directed", "edges lead one way: not an official result"
    if figures.internal_ids:
        yield "ids", "results in internal ids, not those of the input"
    wall = wall_rate(figures)
    if wall is not None:
        yield "harmonic_mean_TEPS by wall", f"{wall:g}, by the host's clock"
    large = large_rate(figures)
    if large is not None:
        small, rate = large
        others = f"{rate:g} harmonic_mean_TEPS of the others"
        yield "roots in small components", f"{small}; {others}"
    if not _validated(figures):
        count = sum(x.validate_seconds >= 0 for x in figures.searches)
        some = f"{count} of {len(figures.searches)} searches" if count else "skipped"
        yield "validation", f"{some}: not an official result"
    together = [x.together for x in figures.searches if x.validate_seconds >= 0]
    if together:
        yield "validated together", f"{max(together)} of {len(figures.searches)}"
    yield from figures.notes.items()
    for name, version in figures.versions.items():
        yield f"version {name}", version


def _line(name: str, text: str) -> str:
    """Return one line; the harmonic mean is marked as in the reference code."""
    label = f"{name}:"
    if name.endswith("harmonic_mean_TEPS"):
        label = f"{label:<{VALUE_COLUMN - 3}}!"
    return f"{label:<{VALUE_COLUMN}}{text}"


def _result(figures: BenchmarkFigures) -> str:
    if not figures.levels:
        return "parents only"
    return "levels and parents" if figures.parents else "levels only"


def _validated(figures: BenchmarkFigures) -> bool:
    return all(x.validate_seconds >= 0 for x in figures.searches)


def _defined(value: float) -> float | None:
    return None if isinstance(value, float) and not math.isfinite(value) else value
