"""What a table of a paper is made of: entries, their verdicts, rows."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]
Rows = Mapping[str, Sequence[Row]]  # by the name of an entry
ONE = ("",)  # the graph of an entry that has none
HOLDS, FAILS, OTHER = "holds", "does not hold here", "not comparable"
OPEN = "not measured"


@dataclass(frozen=True)
class Verdict:
    """A word of the four above, and a sentence why."""

    word: str
    reason: str

    def as_dict(self) -> dict[str, str]:
        """Return it as JSON values."""
        return {"word": self.word, "reason": self.reason}


def verdict(good: bool, reason: str) -> Verdict:
    """Return that what the paper says holds, or that it does not hold here."""
    return Verdict(HOLDS if good else FAILS, reason)


@dataclass(frozen=True)
class Entry:
    """A figure or table.

    name: as in the paper, "table 2"; title: what it shows; says: what the paper says
    cannot: why it cannot be made, in one sentence; the fields below are empty then
    graphs: a row each; measure: makes the row of one of them
    rows_of: entries whose rows ``judge`` and ``draw`` read too
    judge: takes Rows; draw: takes (figure, Rows)
    value: entries of 1 are measured first; device: a CUDA device is needed
    """

    name: str
    title: str
    says: str = ""
    cannot: str = ""
    graphs: tuple[str, ...] = ONE
    measure: Callable[[Any, str], Row] | None = None
    rows_of: tuple[str, ...] = ()
    judge: Callable[[Rows], Verdict] | None = None
    draw: Callable[[Any, Rows], None] | None = None
    size: tuple[float, float] = (7, 4)
    value: int = 3
    device: bool = True

    @property
    def sources(self) -> tuple[str, ...]:
        """Entries whose rows it reads."""
        return (*((self.name,) if self.measure else ()), *self.rows_of)


@dataclass(frozen=True)
class Paper:
    """A paper: key of the command line, citation, entries."""

    key: str
    title: str
    entries: tuple[Entry, ...]

    def entry(self, name: str) -> Entry:
        """Return the entry of a name."""
        return next(entry for entry in self.entries if entry.name == name)


def drawn(
    *names: str, why: str = "a drawing of the method, without a measurement"
) -> Any:
    """Return entries that nothing is to be measured for."""
    return tuple(Entry(name, "", cannot=why) for name in names)


def judged(entry: Entry, rows: Rows, most: int | None = None) -> Verdict:
    """Return the verdict of an entry, also where it cannot be made or was not.

    most: vertices, where graphs are smaller than the paper's: nothing is decided then
    """
    if entry.cannot:
        return Verdict(OTHER, entry.cannot)
    if any(not rows.get(name) for name in entry.sources):
        return Verdict(OPEN, "nothing was measured")
    assert entry.judge is not None, entry.name
    said = entry.judge(rows)
    there = len({row["graph"] for row in rows[entry.sources[0]]})
    if entry.measure and there < len(entry.graphs) and said.word in (HOLDS, FAILS):
        told = f"of {there} of {len(entry.graphs)} graphs: {said.reason}"
        said = Verdict(said.word, told)
    if most is not None and said.word in (HOLDS, FAILS):
        return Verdict(OTHER, f"of graphs up to {most} vertices: {said.reason}")
    return said


def published(table: Mapping[str, Sequence[Any]], *keys: str) -> dict[str, Row]:
    """Return rows of a published table by graph, with names."""
    return {
        name: dict(zip(keys, values, strict=True)) for name, values in table.items()
    }


def geometric(values: Sequence[float]) -> float:
    """Return the geometric mean."""
    return statistics.geometric_mean(values)


def count_of(test: Callable[[Row], bool], rows: Sequence[Row]) -> tuple[int, int]:
    """Return for how many rows a test holds, and how many there are."""
    return sum(map(test, rows)), len(rows)


def column(rows: Sequence[Row], *keys: str) -> list[Any]:
    """Return one value of each row, keys one inside the other."""
    values = []
    for row in rows:
        value: Any = row
        for key in keys:
            value = value[key]
        values.append(value)
    return values


def names_of(rows: Sequence[Row]) -> list[str]:
    """Return the graphs of rows."""
    return [row["graph"] for row in rows]
