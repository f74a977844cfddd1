"""A word in device memory by which the host ends a search between two levels."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from distbfs.device import cuda

if TYPE_CHECKING:
    from distbfs.types import DeviceArray, Stop, Stream

ALONE = 1e-3  # seconds of a launch before ``stop`` is first called
PAUSE = 1e-3  # most seconds between two calls
SHARE = 1 / 16  # most of the elapsed time that such a pause may take


class StopWord:
    """A word of device memory, 0 or 1, that a kernel reads between levels.

    Create and use it with its device current; memory is allocated on first use.

    stop: a function to call repeatedly during the next launch, or None
    """

    stop: Stop | None = None

    def __init__(self) -> None:
        self._set = False

    @cached_property
    def _word(self) -> DeviceArray:
        """The word, allocated and cleared on first use."""
        cp = cuda.cupy()
        self._one = cuda.pinned_empty(1, np.uint64)
        self._one[0] = 1
        self._stream: Stream = cp.cuda.Stream(non_blocking=True)
        word: DeviceArray = cp.zeros(1, dtype=np.uint64)
        return word

    @cached_property
    def _place(self) -> int:
        return int(self._word.data.ptr)

    @property
    def address(self) -> int:
        """Address of the word for a kernel; 0 if ``stop`` is None."""
        return 0 if self.stop is None else self._place

    def watch(self, ended: Callable[[], bool]) -> bool:
        """Call ``stop`` until a launch has ended; set the word once it returns True.

        Returns whether the end of the launch was observed. An exception of ``stop``
        also sets the word, so that the launch ends, and is then raised.
        """
        if self.stop is None:
            return False
        began = time.perf_counter()
        try:
            while not ended():
                spent = time.perf_counter() - began
                if spent < ALONE:
                    continue
                if self.stop():
                    self._raise()
                    return False
                time.sleep(min(PAUSE, SHARE * spent))
        except BaseException:
            self._raise()
            raise
        return True

    def _raise(self) -> None:
        """Set the word during the launch, on a separate stream."""
        self._word.set(self._one, stream=self._stream)
        self._set = True

    def clear(self) -> None:
        """Clear the word if it was set; the launch must have ended."""
        if self._set:
            cuda.clear(self._word, self._stream)
            self._stream.synchronize()
            self._set = False
