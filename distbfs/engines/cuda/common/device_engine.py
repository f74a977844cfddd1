"""Shared base of engines that search graphs in device memory."""

from __future__ import annotations

from typing import Any, ClassVar

from distbfs.device import cuda
from distbfs.engines.base import NoOptions
from distbfs.options import SearchOptions, check_choice


class DeviceEngine:
    """Checks the options of an engine and describes it; see ``Engine``.

    Raises UsageError for option values that the engine does not support, DeviceMissing
    if there is no device.
    """

    name: ClassVar[str]
    methods: ClassVar[tuple[str, ...]]
    own: ClassVar[type] = NoOptions
    on_device = True
    devices = 1

    def __init__(self, options: SearchOptions) -> None:
        self.method = options.method or self.methods[0]
        self.options = options
        self.check()
        cuda.cupy()

    def check(self) -> None:
        """Raise UsageError for option values that the engine does not support."""
        check_choice("method", self.method, self.methods)

    def describe(self) -> dict[str, Any]:
        """Return the engine's hardware and settings, for reports."""
        return {
            "engine": self.name,
            "method": self.method,
            "threads": 1,
            **cuda.describe(),
        }
