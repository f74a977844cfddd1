"""The engine for CPUs: C compiled at first use, on all cores (device/team.h)."""

from __future__ import annotations

from typing import Any

from distbfs.device import cc
from distbfs.engines.base import Engine
from distbfs.engines.openmp.part import OpenMPPart
from distbfs.engines.openmp.paths import OpenMPSums
from distbfs.engines.openmp.whole import METHODS, OpenMPWhole, prepare
from distbfs.errors import UsageError
from distbfs.options import SearchOptions
from distbfs.partition.layout import Placement
from distbfs.partition.part import Part
from distbfs.types import Array

PUSH_ONLY = ("push", "ordered")


class OpenMPEngine(Engine):
    """Methods for whole graphs: fast (default), push and hybrid of CS406, ordered."""

    name = "openmp"
    methods = METHODS
    takes = ("stepwise",)
    whole_graphs = domains = directed = masks = sets = True

    def __init__(self, options: SearchOptions) -> None:
        super().__init__(options)
        if self.method in PUSH_ONLY and options.direction == "pull":
            raise UsageError(
                f"method '{options.method}' cannot pull; allowed: auto, push"
            )
        self._threads = cc.thread_count(options.threads)
        prepare()  # an installed compiler may still fail

    def whole(self, part: Part) -> OpenMPWhole:
        """Prepare the search of a graph of one part without delegates."""
        return OpenMPWhole(
            part,
            self.method,
            self._threads,
            self.options.direction,
            self.options.parents,
        )

    def domain(self, part: Part, placement: Placement) -> OpenMPPart:
        """Prepare the search of one part, level by level.

        Raises UsageError if a method is given, because parts are searched in one way
        only.
        """
        if self.options.method:
            raise UsageError(
                f"method '{self.options.method}' searches only a graph in one part; "
                "leave out --method for several parts, delegates or --stepwise"
            )
        return OpenMPPart(
            part,
            placement,
            self._threads,
            parents=self.options.parents,
            direction=self.options.direction,
        )

    def path_sums(self, level: Array, depth: int, dtype: str) -> OpenMPSums:
        """Prepare sums along shortest paths."""
        return OpenMPSums(level, depth, dtype, self._threads)

    def describe(self) -> dict[str, Any]:
        """Return the engine's hardware and settings, for reports."""
        made_by = {"threads": self._threads, "compiler": cc.made_by()}
        return super().describe() | made_by
