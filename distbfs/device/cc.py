"""Compile C kernels with the system compiler at first use and cache them by content.

The key holds the source, the headers it includes, the definitions, the compiler and
the processor, so one home folder may serve different machines.  Ranks that start
together compile once: a lock per key, and a rename when the library is complete.

Environment: ``DISTBFS_CC`` names the compiler (``none``: do without one),
``DISTBFS_CACHE`` the folder for compiled kernels.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np

from distbfs.device.cache import cache_folder, exclusive, is_sound, source_closure
from distbfs.errors import CompilerMissing
from distbfs.timing import COMPILING
from distbfs.types import Array

FLAGS = (
    "-std=gnu11",
    "-O3",
    "-fPIC",
    "-shared",
    "-pthread",
    "-fopenmp-simd",
    "-fno-math-errno",
)
COMPILE_SECONDS = 120
CACHE_LINE = 64


@cache
def compiler_command() -> tuple[str, ...]:
    """Return how the C compiler is called; CompilerMissing where there is none.

    DISTBFS_CC and CC may hold arguments, as in ``ccache gcc``.
    """
    named = os.environ.get("DISTBFS_CC") or os.environ.get("CC")
    if named == "none":
        raise CompilerMissing("no C compiler: DISTBFS_CC is 'none'")
    for words in [shlex.split(named)] if named else [["cc"], ["gcc"], ["clang"]]:
        path = shutil.which(words[0]) if words else None
        if path:
            return path, *words[1:]
    raise CompilerMissing(f"no C compiler: {named or 'cc, gcc, clang'} not found")


def find_compiler() -> str:
    """Return the C compiler as a text; CompilerMissing where there is none."""
    return " ".join(compiler_command())


@cache
def compiler_version() -> str:
    """Return the first line that the compiler prints of its version."""
    done = subprocess.run(
        [*compiler_command(), "--version"], capture_output=True, text=True, check=False
    )
    return (done.stdout or done.stderr).partition("\n")[0].strip()


@cache
def processor() -> str:
    """Return a text that changes with what ``-march=native`` would mean."""
    with contextlib.suppress(OSError):
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        lines = re.findall(r"^(?:model name|flags|Features)\s*:.*$", text, re.MULTILINE)
        return "\n".join(sorted(set(lines)))
    return platform.processor() or platform.machine()


def content_key(source: Path, definitions: Mapping[str, str | int]) -> str:
    """Return the cache key of a kernel on this machine with this compiler."""
    digest = hashlib.blake2b(digest_size=16)
    for path in source_closure(source.resolve()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    for part in (sorted(definitions.items()), FLAGS, compiler_version(), processor()):
        digest.update(repr(part).encode() + b"\0")
    return digest.hexdigest()


def compile_to(
    source: Path, target: Path, definitions: Mapping[str, str | int]
) -> None:
    """Compile a source to a shared library that appears complete or not at all."""
    macros = [f"-D{name}={value}" for name, value in definitions.items()]
    handle, name = tempfile.mkstemp(suffix=".so", dir=target.parent)
    os.close(handle)
    message = ""
    try:
        for tune in (["-march=native"], ["-mcpu=native"], []):
            command = [*compiler_command(), *FLAGS, *tune, *macros]
            done = subprocess.run(
                [*command, "-o", name, str(source), "-lm"],
                capture_output=True,
                text=True,
                check=False,
                timeout=COMPILE_SECONDS,
            )
            if done.returncode == 0:
                Path(name).chmod(0o700)
                Path(name).replace(target)
                return
            message = done.stderr.strip() or f"exit code {done.returncode}"
    except subprocess.TimeoutExpired:
        message = f"not done after {COMPILE_SECONDS} s"
    except OSError as error:
        message = str(error)
    finally:
        Path(name).unlink(missing_ok=True)
    lines = message.splitlines()
    first = next((line for line in lines if "error:" in line), lines[0])
    raise CompilerMissing(f"{find_compiler()} cannot compile {source.name}: {first}")


@cache
def _load(source: Path, definitions: tuple[tuple[str, str | int], ...]) -> ctypes.CDLL:
    macros = dict(definitions)
    folder = cache_folder()
    key = content_key(source, macros)
    target = folder / f"{source.stem}-{key}.so"
    if is_sound(target):
        with contextlib.suppress(OSError):  # damaged: compile it again
            return ctypes.CDLL(str(target))
        target.unlink(missing_ok=True)
    with exclusive(folder / f"{key}.lock"):
        if not is_sound(target):
            with COMPILING():
                compile_to(source, target, macros)
    try:
        return ctypes.CDLL(str(target))
    except OSError as error:
        raise CompilerMissing(f"cannot load compiled {source.name}: {error}") from error


def load(source: Path, **definitions: str | int) -> ctypes.CDLL:
    """Return the library of a C source, compiled with ``-D`` definitions if need be.

    Raises CompilerMissing, with the reason, where it cannot be compiled.
    """
    return _load(source, tuple(sorted(definitions.items())))


def load_or_none(source: Path, **definitions: str | int) -> ctypes.CDLL | None:
    """Return the library of a C source, or None where it cannot be compiled."""
    try:
        return load(source, **definitions)
    except CompilerMissing:
        return None


def pointer(array: Array | None) -> ctypes.c_void_p:
    """Return the address of an array of any dtype and shape for a C call.

    None becomes a null pointer.  Raises ValueError unless the array is contiguous.
    """
    if array is None:
        return ctypes.c_void_p(None)
    if not array.flags.c_contiguous:
        raise ValueError("a kernel takes contiguous arrays only")
    return ctypes.c_void_p(array.ctypes.data)


def thread_count(requested: int = 0) -> int:
    """Return the OpenMP threads to use: as requested, else what the process may use."""
    if requested:
        return requested
    limit = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    if limit.isdigit() and int(limit) > 0:
        return int(limit)
    return len(os.sched_getaffinity(0))


def aligned_empty(shape: int, dtype: type[np.generic]) -> Array:
    """Return an uninitialised array [shape] of a dtype on a cache-line boundary."""
    size = shape * np.dtype(dtype).itemsize
    raw = np.empty(size + CACHE_LINE, dtype=np.uint8)
    start = -raw.ctypes.data % CACHE_LINE
    return raw[start : start + size].view(dtype)


def aligned_full(shape: int, value: int, dtype: type[np.generic]) -> Array:
    """Return ``aligned_empty(shape, dtype)``, filled with one value."""
    out = aligned_empty(shape, dtype)
    out[:] = value
    return out


def aligned_copy(values: Array, size: int = 0, fill: int = 0) -> Array:
    """Return a copy of an array [k] on a cache-line boundary, of the same dtype.

    size: least length of the copy; elements from k on are ``fill``
    """
    out = aligned_empty(max(size, len(values)), values.dtype.type)
    out[: len(values)] = values
    out[len(values) :] = fill
    return out
