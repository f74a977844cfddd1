"""CUDA C++ kernels, compiled by NVRTC at first use and cached by content.

The key holds the code of the source and of every header that it includes, without
comments, the options and the NVRTC version; the result is machine code for one
architecture, so no device is needed to compile.  Kernels use no header of the CUDA
toolkit.  A wheel may contain machine code, which is used whatever version of NVRTC made
it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Thread
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from distbfs.device import portable
from distbfs.device.cache import cache_folder, cached
from distbfs.device.control_groups import usable_cores
from distbfs.device.sources import INCLUDE, closure_code, code_of, source_closure
from distbfs.errors import DeviceMissing, DistbfsError

if TYPE_CHECKING:
    from distbfs.device.nvshmem import Nvshmem

OPTIONS = ("-std=c++17", "-default-device", "--fmad=true")
NO_TEXTS: Mapping[str, str] = MappingProxyType({})
AHEAD = "kernels compiled ahead"  # threads


class KernelRefused(DeviceMissing):
    """NVRTC cannot compile a kernel; log: the compiler's full output."""

    def __init__(self, message: str, log: str = "") -> None:  # pickles leave it out
        super().__init__(message)
        self.log = log


def bindings() -> Any:
    """Return CuPy's NVRTC bindings; raise DeviceMissing if they cannot be loaded."""
    try:
        from cupy.cuda import nvrtc  # noqa: PLC0415

        nvrtc.getVersion()
    except Exception as error:
        why = " ".join(str(error).split())
        raise DeviceMissing(
            f"no NVRTC: {why}; pip install '.[cuda13]' or '.[cuda12]'"
        ) from error
    return nvrtc


def options_for(arch: str, definitions: Mapping[str, str | int]) -> list[str]:
    """Return the compiler options."""
    macros = [f"-D{name}={value}" for name, value in sorted(definitions.items())]
    return [f"--gpu-architecture={arch}", *OPTIONS, *macros]


def name_of(
    source: Path,
    arch: str,
    definitions: Mapping[str, str | int],
    texts: Mapping[str, str] = NO_TEXTS,
) -> str:
    """Return the name of a kernel's machine code; arch, texts: as in ``cubin``."""
    digest = hashlib.blake2b(closure_code(source), digest_size=16)
    for name, text in sorted(texts.items()):
        digest.update(name.encode() + b"\0" + code_of(text.encode()) + b"\0")
    digest.update(repr(options_for(arch, definitions)).encode())
    return f"{source.stem}-{arch}-{digest.hexdigest()}"


def content_key(name: str, library: Nvshmem | None = None) -> str:
    """Return the cache key of a kernel that is compiled on this machine."""
    digest = hashlib.blake2b(name.encode(), digest_size=16)
    digest.update(repr(bindings().getVersion()).encode())
    if library is not None:
        digest.update(library.key.encode())
    return digest.hexdigest()


Wanted: TypeAlias = tuple[Path, Mapping[str, str | int]]  # a kernel, and definitions


def build(folder: Path, arch: str, wanted: Iterable[Wanted]) -> list[Path]:
    """Compile kernels for a wheel into ``folder``; return the files."""

    def one(asked: Wanted) -> Path:
        target = folder / f"{name_of(asked[0], arch, asked[1])}.cubin"
        target.write_bytes(compile_source(asked[0], arch, asked[1]))
        return target

    with ThreadPoolExecutor(usable_cores()) as pool:
        return list(pool.map(one, wanted))


def headers_of(source: Path) -> dict[str, Path]:
    """Return the headers that a kernel file includes, include name -> path.

    NVRTC knows headers only by these names, so a name must stand for one file.
    """
    headers: dict[str, Path] = {}
    for path in source_closure(source.resolve()):
        for name in INCLUDE.findall(path.read_text(encoding="utf-8")):
            header = (path.parent / name).resolve()
            if header.is_file() and headers.setdefault(name, header) != header:
                raise DeviceMissing(f"{source.name} includes two files named '{name}'")
    return headers


def compile_source(
    source: Path,
    arch: str,
    definitions: Mapping[str, str | int] | None = None,
    texts: Mapping[str, str] = NO_TEXTS,
    library: Nvshmem | None = None,
) -> bytes:
    """Compile a kernel file; return its machine code (cubin).

    arch: architecture, such as "sm_90"
    texts: headers by include name, used instead of the files of these names
    library: the device library that the kernel is linked with, if any

    Raises KernelRefused with NVRTC's first error.
    """
    nvrtc = bindings()
    files = {name: path.read_bytes() for name, path in headers_of(source).items()}
    headers = files | {name: text.encode() for name, text in texts.items()}
    program = nvrtc.createProgram(
        source.read_text(encoding="utf-8"),
        source.name,
        list(headers.values()),
        [name.encode() for name in headers],
    )
    options = options_for(arch, definitions or {})
    if library is not None:
        options += library.options
    try:
        nvrtc.compileProgram(program, options)
        code: bytes = nvrtc.getCUBIN(program)
    except nvrtc.NVRTCError as error:
        log = nvrtc.getProgramLog(program)
        lines = [line for line in log.splitlines() if line.strip()] or [str(error)]
        first = next((line for line in lines if "error" in line), lines[0])
        raise KernelRefused(
            f"NVRTC cannot compile {source.name} for {arch}: {first}", log
        ) from error
    finally:
        nvrtc.destroyProgram(program)
    return code if library is None else library.link(code, arch)


def ahead(arch: str, wanted: Iterable[Wanted]) -> None:
    """Begin to compile kernels that are likely to be needed, each in a thread.

    A request for one of them waits for its thread and raises its error; nothing waits
    for the others.
    """

    def compile_one(source: Path, definitions: Mapping[str, str | int]) -> None:
        with suppress(DistbfsError, OSError):
            cubin(source, arch, definitions, waits=False)

    for one in wanted:
        Thread(target=compile_one, args=one, name=AHEAD, daemon=True).start()


def cubin(
    source: Path,
    arch: str,
    definitions: Mapping[str, str | int] | None = None,
    texts: Mapping[str, str] = NO_TEXTS,
    library: Nvshmem | None = None,
    *,
    waits: bool = True,
) -> bytes:
    """Return the machine code of a kernel file, from the wheel, the cache or NVRTC.

    waits: whether the caller waits for it; no phase includes this time
    """
    macros = definitions or {}
    name = name_of(source, arch, macros, texts)
    brought = portable.FOLDER / f"{name}.cubin"
    if library is None and brought.is_file():
        return brought.read_bytes()
    key = content_key(name, library)
    target = cache_folder() / f"{source.stem}-{arch}-{key}.cubin"

    def make(path: Path) -> None:
        path.write_bytes(compile_source(source, arch, macros, texts, library))

    cached(target, make, aside=waits)
    return target.read_bytes()
