"""The contract of an application of many searches, for command, files and library.

An application is one file of ``apps`` with its ``APP``, and one line of
``registry.APPS``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import numpy as np

from distbfs.engines.base import NoOptions
from distbfs.errors import UsageError
from distbfs.formats.ids import IdMap, name_of
from distbfs.multisearch.result_files import FILES
from distbfs.options import SEARCH, option
from distbfs.progress import Progress, no_progress, unsaid
from distbfs.types import Array, Ids

if TYPE_CHECKING:
    from distbfs.multisearch.pieces import Pieces, Unfinished
    from distbfs.multisearch.searchers import Searcher

SHOWN = 10

Facts: TypeAlias = dict[str, Any]  # JSON values
Take: TypeAlias = Callable[[int, Array], None]  # (first row, rows [some, n])


@dataclass(frozen=True, kw_only=True)
class Normalized:
    """The option of applications whose values NetworkX scales.

    normalized: Scale as NetworkX does by default.
    """

    normalized: bool = option(SEARCH, default=True)


class Output(Protocol):
    """Receives the arrays of an application, on rank 0."""

    def keep(self, arrays: Mapping[str, Array]) -> None:
        """Store arrays by name."""

    def keep_pairs(self, answers: Array) -> None:
        """Store the answers, bool [q], one for each pair."""

    def rows(self, dtype: str) -> AbstractContextManager[Take]:
        """Return a function that stores rows of levels as ``dtype``, -1 = unreached.

        An error inside discards the stored rows.
        """


def nowhere(first: int, rows: Array) -> None:
    """Discard rows."""


@dataclass(frozen=True)
class Task:
    """A requested run of an application.

    searcher: runs problems, on all ranks
    sources: int64 [k]; pairs: int64 [q, 2]; equal on all ranks
    output: receives the arrays, on rank 0, if they are requested
    ids: the ids that vertices have in their file, on rank 0
    label: name of the work in progress bars; seed: seed of random sources
    unfinished: file that keeps finished searches, on rank 0; None if none are kept
    """

    searcher: Searcher
    sources: Ids
    pairs: Ids = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    output: Output | None = None
    ids: IdMap | None = None
    progress: Progress = no_progress
    say: Callable[[str], None] = unsaid
    label: str = "searching"
    seed: int = 1
    unfinished: Unfinished | None = None

    def pieces(self, searcher: Searcher | None = None) -> Pieces:
        """Return a runner of problems in pieces; searcher: by default the task's."""
        from distbfs.multisearch.pieces import Pieces  # noqa: PLC0415 - has HDF5

        return Pieces(
            searcher or self.searcher,
            self.label,
            self.progress,
            self.say,
            self.unfinished,
        )

    def keep(self, **arrays: Array) -> None:
        """Pass arrays and the sources to the output, if there is one."""
        if self.output is not None:
            self.output.keep({"sources": self.sources, **arrays})

    def rows(self, dtype: str) -> AbstractContextManager[Take]:
        """Return a function that stores rows of levels; see ``Output``."""
        if self.output is None:
            return nullcontext(nowhere)
        return self.output.rows(dtype)

    def largest(self, value: Array) -> list[list[Any]]:
        """Return [vertex, value] of the largest of values [n] but NaN, on rank 0."""
        if self.searcher.world.rank:
            return []
        known = np.flatnonzero(np.nan_to_num(value, nan=-1.0) >= 0)
        order = known[np.argsort(-value[known], kind="stable")][:SHOWN]
        return [[name_of(int(v), self.ids), float(value[v])] for v in order]


@dataclass(frozen=True)
class Application:
    """An application of many searches.

    summary: a phrase for the help
    options: a dataclass whose fields are its options, in the command and the library
    run: function of a Task and the options by name, which passes arrays on and returns
    the facts to report (collective), with ``searches`` if their number is not that of
    the sources
    takes: kind of its sources; repeats: whether repeated sources are kept
    endings: file name endings that it can write, none if it only reports
    resumes: whether it continues from the finished searches of ``Task.unfinished``
    """

    name: str
    summary: str
    run: Callable[..., Facts]
    options: type = NoOptions
    takes: Literal["sources", "pairs", "nothing"] = "sources"
    repeats: bool = False
    endings: tuple[str, ...] = FILES
    resumes: bool = False

    def options_of(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options that are not None; raise UsageError for unknown ones."""
        chosen = {item.name: item.default for item in fields(self.options)}
        for name, value in values.items():
            if value is None:
                continue
            if name not in chosen:
                allowed = ", ".join(chosen) or "none"
                raise UsageError(
                    f"{self.name} has no option '{name}'; allowed: {allowed}"
                )
            chosen[name] = value
        return chosen
