"""C kernels, compiled by the system compiler at first use and cached by content.

The key holds the code of the source and of the headers it includes, without comments,
the definitions, the compiler and the processor, so one home folder may serve different
machines.  Ranks that start together compile each kernel once, under a lock per key; a
complete library is renamed to its place.  If a wheel contains the kernels
(``portable``), they are used instead and no compiler is needed.

Environment: ``DISTBFS_CC`` names the compiler, which then compiles the kernels even if
a wheel contains them (``none``: use no compiler); ``DISTBFS_CACHE`` names the folder
for compiled kernels.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.device import compiler, portable
from distbfs.device.cache import cache_folder, cached, is_sound
from distbfs.device.control_groups import usable_cores
from distbfs.device.structures import address
from distbfs.errors import CompilerMissing
from distbfs.types import Array

CACHE_LINE = 64
PORTABLE_LEVELS: set[str] = set()  # of the portable kernels that were loaded


def _compiled(source: Path, macros: Mapping[str, str | int]) -> ctypes.CDLL:
    """Return the library of a kernel for this processor, compiled if necessary."""
    key = compiler.content_key(source, macros)
    target = cache_folder() / f"{source.stem}-{key}.so"
    if is_sound(target):
        with contextlib.suppress(OSError):  # damaged: compile it again
            return ctypes.CDLL(str(target))
        target.unlink(missing_ok=True)
    cached(target, lambda path: compiler.compile_to(source, path, macros))
    try:
        return ctypes.CDLL(str(target))
    except OSError as error:
        raise CompilerMissing(f"cannot load compiled {source.name}: {error}") from error


@cache
def _load(source: Path, definitions: tuple[tuple[str, str | int], ...]) -> ctypes.CDLL:
    macros = dict(definitions)
    if os.environ.get("DISTBFS_CC", "none") == "none":
        brought = _portable(source, macros)
        return _compiled(source, macros) if brought is None else brought
    try:
        return _compiled(source, macros)
    except CompilerMissing:
        brought = _portable(source, macros)
        if brought is None:
            raise
        return brought


def _portable(source: Path, macros: Mapping[str, str | int]) -> ctypes.CDLL | None:
    """Return the library in the wheel for this processor, None if there is none."""
    level, path = portable.find(source, macros) or ("", None)
    if path is None:
        return None
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise CompilerMissing(f"cannot load {path.name}: {error}") from error
    PORTABLE_LEVELS.add(level)
    return library


def made_by() -> str:
    """Return the origin of the kernels in use: the compiler, or "portable" and a level.

    Raises CompilerMissing if no kernel has been loaded and there is no compiler.
    """
    if PORTABLE_LEVELS:
        return f"portable, {', '.join(sorted(PORTABLE_LEVELS))}"
    return compiler.compiler_version()


def load(source: Path, **definitions: str | int) -> ctypes.CDLL:
    """Return the library of a C source, compiled with ``-D`` definitions, if any.

    The definitions must be a variant that the source lists (``sources.variants``).
    Raises CompilerMissing, with the reason, if the source cannot be compiled and the
    wheel does not contain the library.
    """
    return _load(source, tuple(sorted(definitions.items())))


def load_or_none(source: Path, **definitions: str | int) -> ctypes.CDLL | None:
    """Return the library of a C source, or None if it cannot be compiled."""
    try:
        return load(source, **definitions)
    except CompilerMissing:
        return None


def pointer(array: Array | None) -> ctypes.c_void_p:
    """Return the address of an array of any dtype and shape for a C call.

    The address of None is a null pointer.  Raises ValueError unless the array is
    contiguous.
    """
    return ctypes.c_void_p(address(array))


def arguments(*values: Any) -> list[Any]:
    """Return the arguments of a C call.

    Arrays and None are passed by address, see ``pointer``, whole numbers with 64 bits,
    and what ctypes has made as it is.
    """
    return [_argument(value) for value in values]


def _argument(value: Any) -> Any:
    if value is None or isinstance(value, np.ndarray):
        return pointer(value)
    return ctypes.c_int64(value) if hasattr(value, "__index__") else value


def thread_count(requested: int = 0) -> int:
    """Return the number of OpenMP threads: as requested, or all that are allowed."""
    if requested:
        return requested
    limit = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    if limit.isdigit() and int(limit) > 0:
        return int(limit)
    return usable_cores()


def aligned_empty(shape: int, dtype: type[np.generic]) -> Array:
    """Return an uninitialised array that begins on a cache-line boundary."""
    size = shape * np.dtype(dtype).itemsize
    raw = np.empty(size + CACHE_LINE, dtype=np.uint8)
    start = -raw.ctypes.data % CACHE_LINE
    return raw[start : start + size].view(dtype)


def aligned_copy(values: Array) -> Array:
    """Return a copy of an array [k] that begins on a cache-line boundary."""
    out = aligned_empty(len(values), values.dtype.type)
    out[:] = values
    return out
