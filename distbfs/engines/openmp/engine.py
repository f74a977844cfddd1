"""The engine for CPUs: C compiled at first use, on all cores (device/team.h)."""

from __future__ import annotations

from typing import Any

from distbfs.device import cc
from distbfs.engines.base import NoOptions
from distbfs.engines.openmp.part import OpenMPPart
from distbfs.engines.openmp.paths import OpenMPSums
from distbfs.engines.openmp.whole import METHODS, OpenMPWhole, prepare
from distbfs.errors import UsageError
from distbfs.options import SearchOptions, check_choice
from distbfs.partition.layout import Placement
from distbfs.partition.part import Part
from distbfs.types import Array

DEFAULT_METHOD = "fast"
PUSH_ONLY = ("push", "ordered")


class OpenMPEngine:
    """Methods for whole graphs: fast (default), push and hybrid of CS406, ordered."""

    name = "openmp"
    methods = METHODS
    takes = ("stepwise",)
    needless = ()
    own = NoOptions
    on_device = False
    whole_graphs = domains = directed = masks = sets = True
    devices = 1

    def __init__(self, options: SearchOptions) -> None:
        check_choice("method", options.method or DEFAULT_METHOD, self.methods)
        if options.method in PUSH_ONLY and options.direction == "pull":
            raise UsageError(
                f"method '{options.method}' cannot pull; allowed: auto, push"
            )
        self._options = options
        self._threads = cc.thread_count(options.threads)
        prepare()  # an installed compiler may still fail

    def whole(self, part: Part) -> OpenMPWhole:
        """Prepare the search of a graph of one part without delegates."""
        return OpenMPWhole(
            part,
            self._options.method or DEFAULT_METHOD,
            self._threads,
            self._options.direction,
            self._options.parents,
        )

    def domain(self, part: Part, placement: Placement) -> OpenMPPart:
        """Prepare the search of one part, level by level.

        Raises UsageError if a method is given, because parts are searched in one way
        only.
        """
        if self._options.method:
            raise UsageError(
                f"method '{self._options.method}' searches only a graph in one part; "
                "leave out --method for several parts, delegates or --stepwise"
            )
        return OpenMPPart(
            part,
            placement,
            self._threads,
            parents=self._options.parents,
            direction=self._options.direction,
        )

    def path_sums(self, level: Array, depth: int, dtype: str) -> OpenMPSums:
        """Prepare sums along shortest paths."""
        return OpenMPSums(level, depth, dtype, self._threads)

    def describe(self) -> dict[str, Any]:
        """Return the engine's hardware and settings, for reports."""
        return {
            "engine": self.name,
            "method": self._options.method or DEFAULT_METHOD,
            "threads": self._threads,
            "compiler": cc.made_by(),
        }
