"""The contract of an application of many searches, for command, files and library.

An application is one file of ``apps`` with its ``APP``, and one line of
``registry.APPS``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from distbfs.engines.base import NoOptions
from distbfs.errors import UsageError
from distbfs.formats.ids import IdMap, name_of
from distbfs.multisearch.base import Results
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


@contextmanager
def no_rows(dtype: str) -> Iterator[Take]:  # noqa: ARG001
    """Discard rows of levels."""
    yield lambda first, rows: None  # noqa: ARG005


@dataclass(frozen=True)
class Task:
    """A requested run of an application.

    searcher: runs problems, on all ranks
    sources: int64 [k]; pairs: int64 [q, 2]; equal on all ranks
    rows: returns a function that stores rows of levels as a dtype, -1 = unreached; an
    error in its context discards the stored rows
    ids: the ids that vertices have in their file, on rank 0
    label: name of the work in progress bars; seed: seed of random sources
    unfinished: file that keeps finished searches, on rank 0; None if none are kept
    """

    searcher: Searcher
    sources: Ids
    pairs: Ids = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    rows: Callable[[str], AbstractContextManager[Take]] = no_rows
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
    run: function of a Task and the options by name, which returns arrays, complete on
    rank 0 alone, and the facts to report (collective): ``sources`` and ``samples`` if
    they are not those of the task
    takes: kind of its sources; repeats: whether repeated sources are kept
    writes: whether its arrays make a file; if not, it only reports
    resumes: whether it continues from the finished searches of ``Task.unfinished``
    """

    name: str
    summary: str
    run: Callable[..., Results]
    options: type = NoOptions
    takes: Literal["sources", "pairs", "nothing"] = "sources"
    repeats: bool = False
    writes: bool = True
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
