"""The time of a search over parts, from counts alone.

Source: Pan, Pearce, Owens 2018, Section V: the masks of a level are 2 d p_rank / 8
bytes and take d log2(p_rank) / 4 g, in the S' levels that need them; normal vertices
are 4 |Enn| bytes over a search and take 4 |Enn| / p g (the share of edges that stay on
their rank left out); g is the inverse of the bandwidth.  Work (Section IV-B) is counted
in visits: edge checks, and vertices that enter a frontier, a delegate once a device.
Fewer bytes than 4 an edge are sent where a vertex is sent once or asks: estimates of
``plan.threshold`` replace 4 |Enn|, and records have the bytes sent.

    T = visits / p / rate + d log2(p_rank) / 4 g S' + 4 |Enn| / p g + latency S
        + finish n / p

The last term is ours: parents and results, after the levels.  Constants not fitted to
level records are assumed, with the numbers of this file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.errors import UsageError
from distbfs.types import SUBGRAPHS, Floats

RATE = 5e10  # visits a second; searches level by level on one H200, scales 25 and 26
BANDWIDTH = 25e9  # bytes a second between ranks: one 200 Gbit/s link a device
LATENCY = 3e-5  # seconds a level: starting kernels, one small reduction
FINISH = 4e-12  # seconds a vertex of a device: level and parent, 12 bytes at 3 TB/s
CONSTANTS = ("rate", "bandwidth", "latency", "finish")
OPTIONAL = ("latency", "finish")  # may be 0
NUMBERS = ("normals", "questions", "answers")  # what parts send, in a record
SIDES = ("outer", "inner")  # names of checks in records of engines of inner graphs
ENOUGH = 3  # records that a fit needs
COUNTS = ("normals", "delegates")


@dataclass(frozen=True)
class Counts:
    """Counts of the whole graph that determine the time of a search.

    n: vertices; tuples: of the input; active: normal vertices with edges
    edges: stored directed edges by subgraph; ranks: p_rank
    sent: bytes of normal vertices of a search between all devices, None: 4 |Enn|
    except ends on one device
    """

    n: float
    tuples: float
    active: float
    delegates: float
    edges: Mapping[str, float]
    devices: int
    ranks: int
    sent: float | None = None

    @property
    def mask_volume(self) -> float:
        """Bytes of masks of a level, over all ranks: 2 d p_rank / 8."""
        return 2 * self.delegates * self.ranks / 8 if self.ranks > 1 else 0.0

    @property
    def normal_volume(self) -> float:
        """Bytes of normal vertices of a search, but for ends on one rank."""
        if self.sent is None:
            return 4 * self.edges["nn"] * (1 - 1 / self.ranks)
        return self.sent * (1 - 1 / self.ranks) / (1 - 1 / self.devices)

    @property
    def whole(self) -> bool:
        """Whether one device holds all, without delegates."""
        return self.devices == 1 and not self.delegates

    def reduced(self, mask: float) -> float:
        """Return the bytes sent in the time of reducing a mask of ``mask`` bytes."""
        return 2 * mask * math.log2(self.ranks)


@dataclass(frozen=True)
class Habit:
    """Behaviour of searches on one level, as shares, mean over the roots.

    checks: edge checks a stored edge, by subgraph
    normals: share of the active vertices that are in the frontier; delegates: of d
    masks: share of the searches whose masks change; present: that have this level
    sent: bytes of normal vertices over ``Counts.normal_volume``; by default the share
    of the nn edges checked here
    """

    checks: Mapping[str, float]
    normals: float
    delegates: float
    masks: float
    present: float
    sent: float | None = None

    def visits(self, counts: Counts) -> float:
        """Return the visits of the level, over all devices."""
        checks = sum(self.checks[k] * counts.edges[k] for k in SUBGRAPHS)
        delegates = self.delegates * counts.delegates * counts.devices
        return checks + self.normals * counts.active + delegates


def habits_of(rows: Iterable[Sequence[float]]) -> tuple[Habit, ...]:
    """Return the habits of levels; rows are in the order of the fields."""
    return tuple(
        Habit(dict(zip(SUBGRAPHS, row[:4], strict=True)), *row[4:]) for row in rows
    )


@cache
def usual_habits(name: str) -> tuple[Habit, ...]:
    """Return the habits "separated" or "whole"; ``habits.json`` says of what."""
    path = Path(__file__).with_name("habits.json")
    return habits_of(json.loads(path.read_text(encoding="utf-8"))[name]["levels"])


@dataclass(frozen=True)
class Constants:
    """Performance constants of a machine.

    rate: visits a second of a device; bandwidth: bytes a second between ranks (1/g)
    latency: seconds of a level; finish: seconds a vertex of a device, after the levels
    origin: of each "assumed", "fitted" or "given"
    """

    rate: float = RATE
    bandwidth: float = BANDWIDTH
    latency: float = LATENCY
    finish: float = FINISH
    origin: Mapping[str, str] = field(
        default_factory=lambda: dict.fromkeys(CONSTANTS, "assumed")
    )

    def with_values(self, origin: str, **values: float | None) -> Constants:
        """Return these constants with some replaced; None keeps one."""
        replaced = {name: value for name, value in values.items() if value is not None}
        for name, value in replaced.items():
            least = 0.0 if name in OPTIONAL else math.ulp(0.0)
            if not least <= value < math.inf:
                raise UsageError(f"{name} is {value}; allowed: numbers above 0")
        origins = dict(self.origin) | dict.fromkeys(replaced, origin)
        return replace(self, **replaced, origin=origins)

    def as_dict(self) -> dict[str, Any]:
        """Return the constants as JSON values."""
        return {
            name: {"value": getattr(self, name), "origin": self.origin[name]}
            for name in CONSTANTS
        }


@dataclass(frozen=True)
class LevelCost:
    """Predicted cost of one level; means over the roots.

    visits: of a device; mask_bytes, normal_bytes: over all ranks; the rest seconds
    """

    level: int
    visits: float
    mask_bytes: float
    normal_bytes: float
    work: float
    masks: float
    normals: float
    latency: float

    @property
    def seconds(self) -> float:
        """Time of the level."""
        return self.work + self.masks + self.normals + self.latency


@dataclass(frozen=True)
class Prediction:
    """Predicted cost of a search."""

    counts: Counts
    constants: Constants
    levels: tuple[LevelCost, ...]

    @property
    def finish(self) -> float:
        """Seconds after the levels."""
        return self.constants.finish * self.counts.n / self.counts.devices

    @property
    def seconds(self) -> float:
        """Time of a search."""
        return sum(level.seconds for level in self.levels) + self.finish

    @property
    def teps(self) -> float:
        """Input tuples a second, as Graph500 counts."""
        return self.counts.tuples / self.seconds

    def total(self, name: str) -> float:
        """Return the sum of a column over the levels."""
        return float(sum(getattr(level, name) for level in self.levels))

    def as_dict(self) -> dict[str, Any]:
        """Return the prediction as JSON values."""
        names = ("visits", "mask_bytes", "normal_bytes")
        parts = ("work", "masks", "normals", "latency")
        return {
            "constants": self.constants.as_dict(),
            "ranks": self.counts.ranks,
            "edges": dict(self.counts.edges),
            "seconds": self.seconds,
            "GTEPS": self.teps / 1e9,
            "seconds_by_part": {name: self.total(name) for name in parts}
            | {"finish": self.finish},
            **{name: self.total(name) for name in names},
            "levels": [vars(x) | {"seconds": x.seconds} for x in self.levels],
        }


def predict(
    counts: Counts, constants: Constants, habits: Sequence[Habit] = ()
) -> Prediction:
    """Predict the cost of a search, level by level.

    habits: of every level; default: those of ``usual_habits``
    """
    habits = habits or usual_habits("whole" if counts.whole else "separated")
    g = 1 / constants.bandwidth
    pushed = sum(habit.checks["nn"] for habit in habits) or 1.0
    levels = []
    for index, habit in enumerate(habits):
        share = habit.checks["nn"] / pushed if habit.sent is None else habit.sent
        normal_bytes = share * counts.normal_volume
        visits = habit.visits(counts) / counts.devices
        levels.append(
            LevelCost(
                level=index + 1,
                visits=visits,
                mask_bytes=habit.masks * counts.mask_volume,
                normal_bytes=normal_bytes,
                work=visits / constants.rate,
                masks=habit.masks * counts.reduced(counts.delegates / 8) * g,
                normals=normal_bytes / counts.devices * g,
                latency=habit.present * constants.latency,
            )
        )
    return Prediction(counts, constants, tuple(levels))


@dataclass(frozen=True)
class Record:
    """One level of a recorded search (``search.runners.between.LevelReport``).

    checks, normals, delegates: over all ranks; checks: by subgraph, or of ``SIDES``
    mask_bytes, normal_bytes, seconds: of the rank that wrote the record
    """

    root: int
    level: int
    checks: Mapping[str, int]
    normals: int
    delegates: int
    mask_bytes: int
    normal_bytes: int
    seconds: float

    @classmethod
    def parse(cls, values: Any) -> Record:
        """Parse a record of ``--records``; ValueError where it is none.

        seconds: a number, or by phase; a phase "total" takes precedence.
        """
        try:
            names = SIDES if SIDES[0] in values["checks"] else SUBGRAPHS
            checks = {name: int(values["checks"][name]) for name in names}
            sent = values.get("bytes_sent", {})
            spent = values["seconds"]
            if isinstance(spent, Mapping):
                spent = spent.get("total", sum(spent.values()))
            record = cls(
                root=int(values["root"] if "root" in values else values["source"]),
                level=int(values["level"]),
                checks=checks,
                normals=int(values["normals"]),
                delegates=int(values["delegates"]),
                mask_bytes=int(sent.get("masks", 0)),
                normal_bytes=sum(int(sent.get(kind, 0)) for kind in NUMBERS),
                seconds=float(spent),
            )
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError("not a level record") from error
        least = min(
            *checks.values(),
            record.normals,
            record.delegates,
            record.level - 1,
            record.mask_bytes,
            record.normal_bytes,
        )
        if least < 0 or not 0 <= record.seconds < math.inf:
            raise ValueError("not a level record")
        return record

    def by_subgraph(self, counts: Counts) -> Mapping[str, float]:
        """Return the checks by subgraph; inner ones are spread evenly over edges."""
        if SIDES[0] not in self.checks:
            return self.checks
        outer, inner = (float(self.checks[name]) for name in SIDES)
        inside = dict(counts.edges)
        inside["nn"] /= counts.devices
        share = inner / max(sum(inside.values()), 1.0)
        made = {name: share * edges for name, edges in inside.items()}
        made["nn"] += outer
        return made


@dataclass(frozen=True)
class Run:
    """Recorded searches, and the counts of the graph they searched.

    seconds: mean time of a whole search, where it is known
    """

    counts: Counts
    records: Sequence[Record]
    seconds: float | None = None

    @property
    def searches(self) -> int:
        """Number of searches, one a root."""
        return len({x.root for x in self.records})

    def finish(self) -> float | None:
        """Return the seconds a vertex of a device that levels do not explain."""
        if self.seconds is None:
            return None
        levels = sum(x.seconds for x in self.records) / self.searches
        vertices = self.counts.n / self.counts.devices
        return max(self.seconds - levels, 0.0) / max(vertices, 1.0)

    def table(self) -> tuple[Floats, Floats]:
        """Return (terms float64 [levels, 3], seconds float64 [levels]).

        Terms: visits of a device, bytes by transfer time, 1.
        """
        counts = self.counts
        rows = []
        for x in self.records:
            work = sum(x.checks.values()) + x.normals + x.delegates * counts.devices
            sent = x.normal_bytes / max(counts.devices / counts.ranks, 1)
            sent += counts.reduced(x.mask_bytes)
            rows.append((work / counts.devices, sent, 1.0))
        terms = np.array(rows, dtype=np.float64).reshape(-1, 3)
        return terms, np.array([x.seconds for x in self.records], dtype=np.float64)

    def habits(self) -> tuple[Habit, ...]:
        """Return the behaviour of these searches on each level."""
        counts, searches = self.counts, self.searches
        reduced = any(x.mask_bytes for x in self.records)
        volume = counts.normal_volume / counts.ranks  # of a rank
        sending = any(x.normal_bytes for x in self.records) and volume > 0
        with_delegates = {(x.root, x.level) for x in self.records if x.delegates}
        rows = []
        for level in range(1, max(x.level for x in self.records) + 1):
            records = [x for x in self.records if x.level == level]
            changed = sum(
                x.mask_bytes > 0 if reduced else (x.root, level + 1) in with_delegates
                for x in records
            )
            sent = sum(x.normal_bytes for x in records)
            checks = [x.by_subgraph(counts) for x in records]

            def mean(total: float, of: float) -> float:
                return total / searches / of if of else 0.0

            rows.append(
                Habit(
                    {
                        k: mean(sum(x[k] for x in checks), counts.edges[k])
                        for k in SUBGRAPHS
                    },
                    mean(sum(x.normals for x in records), counts.active),
                    mean(sum(x.delegates for x in records), counts.delegates),
                    changed / searches,
                    len(records) / searches,
                    mean(sent, volume) if sending else None,
                )
            )
        return tuple(rows)


def nonnegative(terms: Floats, values: Floats) -> Floats:
    """Return the x >= 0 of least norm of terms x - values, trying every subset.

    terms: float64 [rows, columns], few columns; values: float64 [rows]
    """
    columns = terms.shape[1]
    scale = np.maximum(np.abs(terms).max(axis=0, initial=0.0), 1e-300)
    best, least = np.zeros(columns), float(values @ values)
    for size in range(1, columns + 1):
        for chosen in combinations(range(columns), size):
            columns_chosen = terms[:, chosen] / scale[list(chosen)]
            x, *_ = np.linalg.lstsq(columns_chosen, values, rcond=None)
            rest = columns_chosen @ x - values
            if (x >= 0).all() and float(rest @ rest) < least:
                best, least = np.zeros(columns), float(rest @ rest)
                best[list(chosen)] = x / scale[list(chosen)]
    return best


def fit(runs: Sequence[Run], start: Constants | None = None) -> Constants:
    """Fit constants to level records, by least squares.

    A level weighs by the inverse root of its time, so that short levels, which show the
    latency, count beside long ones. A constant that the records do not determine keeps
    its value in ``start``. Raises UsageError for too few levels.
    """
    tables = [run.table() for run in runs]
    terms = np.concatenate([np.zeros((0, 3)), *(table[0] for table in tables)])
    seconds = np.concatenate([np.zeros(0), *(table[1] for table in tables)])
    timed = seconds > 0
    if timed.sum() < ENOUGH:
        raise UsageError(
            f"{timed.sum()} level records cannot be fitted; "
            f"at least {ENOUGH} are needed"
        )
    weight = 1 / np.sqrt(seconds[timed])
    after = [x for x in (run.finish() for run in runs) if x is not None]
    visit, byte, level = nonnegative(
        terms[timed] * weight[:, None], seconds[timed] * weight
    ).tolist()
    return (start or Constants()).with_values(
        "fitted",
        rate=1 / visit if visit else None,
        bandwidth=1 / byte if byte else None,
        latency=level,
        finish=sum(after) / len(after) if after else None,
    )
