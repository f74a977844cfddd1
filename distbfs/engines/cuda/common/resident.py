"""Searches by vertex number in one launch, whose levels the kernel records."""

from __future__ import annotations

import ctypes
from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from distbfs.device import cuda, programs
from distbfs.device.array_table import ArrayPlan, ArrayTable, allocate
from distbfs.device.stop_word import StopWord
from distbfs.device.structures import structure
from distbfs.device.take import Back
from distbfs.engines.base import LevelRecord, Query, WholeResult, WholeSearch
from distbfs.engines.cuda.common.arguments import arguments
from distbfs.engines.cuda.common.goal import goal_of
from distbfs.errors import SearchStopped, UsageError
from distbfs.partition.share import Share
from distbfs.types import Root

RECORDS = 1 << 16  # most recorded levels
FIRST = ("step", "frontier", "checks", "found")  # members of ``Record``


class ResidentSearch(WholeSearch):
    """Searches a graph on one device by vertex number, in one launch each.

    source: file of kernel ``search``. It declares Params; Control, with the State in
    which a search ends; and Record: FIRST, what is ``extra``, and the time
    steps: names of values of ``step``

    Raises ResourceError.
    """

    source: ClassVar[Path]
    steps: ClassVar[tuple[str, ...]]

    def __init__(self, graph: Share, **values: Any) -> None:
        """Set the arguments that describe the graph; values: others."""
        self.graph, self._word = graph, StopWord()
        self.params = arguments(self.source, "Params", graph, **values)
        self._launches: dict[bool, programs.Launch] = {}
        self._records: Any = None

    @classmethod
    def records_plan(cls) -> ArrayPlan:
        """Return the array of records, the last of which has the time of the start."""
        size = ctypes.sizeof(structure(cls.source, "Record"))
        return ArrayPlan(np.uint64, (RECORDS + 1, size // 8), later=True)

    def _allocate(self, table: ArrayTable) -> None:
        """Allocate the arrays of searches by argument name."""
        control, cp = structure(self.source, "Control"), cuda.cupy()
        with cuda.memory_of("a search"):
            self._arrays = allocate(table, cp.empty)
            kept = cp.zeros(ctypes.sizeof(control), np.uint8)
        self.params.set(**self._arrays, control=kept)
        self._back = Back(kept)
        self._ended = control.from_buffer(self._back.pinned.data)

    @abstractmethod
    def _prepare(self, *, counting: bool) -> programs.Launch:
        """Return the launch of a search; counting: with records."""

    def _launch(self, *, counting: bool) -> programs.Launch:
        if counting not in self._launches:
            self._launches[counting] = self._prepare(counting=counting)
        return self._launches[counting]

    @abstractmethod
    def _end(self, state: Any) -> tuple[int, int, bool]:
        """Return (levels run, levels with vertices, whether ``stop`` ended it)."""

    def answer(self, number: Root, query: Query) -> WholeResult:
        """Search from a vertex number; with records, kernels count edge checks.

        At most 65536 levels can be recorded. Raises UsageError if there are more, and
        for an invalid vertex number.
        """
        p, self._word.stop = self.params, query.stop
        p.set(root=number, goal=goal_of(query.until, int(number), self.graph.active))
        p.stop = self._word.address
        if query.records and self._records is None:
            plan = self.records_plan()
            self._records = cuda.cupy().empty(plan.shape, plan.dtype)
            p.set(records=self._records, record_capacity=RECORDS)
        if query.records:
            self._records.fill(0)
        launch = self._launch(counting=query.records)
        seconds = launch.timed(back=self._back, word=self._word)
        depth, levels, stopped = self._end(self._ended.state)
        if stopped:
            raise SearchStopped(f"the search was stopped at level {depth}")
        log = self._log(depth) if query.records else []
        level, parent = self._arrays["level"], self._arrays.get("parent")
        return WholeResult(level, parent, levels, seconds, log)

    def _log(self, levels: int) -> list[LevelRecord]:
        """Return a record of each level, by the device's clock."""
        if levels > RECORDS:
            raise UsageError(
                f"this engine records {RECORDS} levels, and this search has {levels}; "
                "allowed: no records"
            )
        start = int(self._records[RECORDS, -1])
        rows = self._records[:levels].get().astype(np.int64)
        spans = np.diff(rows[:, -1], prepend=start) * 1e-9
        members = [name for name, _ in structure(self.source, "Record")._fields_]
        at, log = len(FIRST), []
        for row, span in zip(rows.tolist(), spans.tolist(), strict=True):
            extra = dict(zip(members[at:-1], row[at:-1], strict=True))
            step, frontier, checks, fresh = row[:at]
            name, seconds = self.steps[step], max(span, 0.0)
            log.append(LevelRecord(name, frontier, checks, fresh, seconds, extra))
        return log
