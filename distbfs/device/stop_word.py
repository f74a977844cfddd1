"""A word by which the host ends a search on a device between two of its levels."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from distbfs.device import cuda

if TYPE_CHECKING:
    from distbfs.types import DeviceArray, Stop, Stream

ALONE = 1e-3  # seconds that a launch is waited for before anybody is asked
PAUSE = 1e-3  # seconds between two questions, at most
SHARE = 1 / 16  # of the time so far that such a pause may take


class StopWord:
    """A word of device memory, 0 or 1, that a kernel looks at between levels.

    Made, and used, with its device current; memory is taken when it is first needed.

    stop: asked while the next launch runs, None: nobody is
    """

    stop: Stop | None = None

    def __init__(self) -> None:
        self._set = False

    @cached_property
    def _word(self) -> DeviceArray:
        """The word, made, and cleared, where it is first needed."""
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
        """Where the word is, for a kernel; 0 where nobody is asked."""
        return 0 if self.stop is None else self._place

    def watch(self, ended: Callable[[], bool]) -> bool:
        """Ask ``stop`` until a launch has ended, or until it says yes: set the word.

        Returns whether the end was seen.  What is raised meanwhile is raised with the
        word set: the launch ends, too.
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
        """Set the word, beside what runs: its stream waits for no other."""
        self._word.set(self._one, stream=self._stream)
        self._set = True

    def clear(self) -> None:
        """Clear the word where it was set, when the launch has ended."""
        if self._set:
            cuda.clear(self._word, self._stream)
            self._stream.synchronize()
            self._set = False
