"""Kernels that are linked with NVSHMEM's device library.

NVRTC compiles them as relocatable code with the headers of the wheels; nvJitLink links
the result with ``libnvshmem_device.a``.
"""

from __future__ import annotations

import ctypes
import importlib.util
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from distbfs.device.sources import source_closure
from distbfs.errors import DeviceMissing

WANTED = "pip install nvidia-nvshmem-cu13, or -cu12"
CUBIN, LIBRARY = 1, 6  # nvJitLinkInputType
HEADER = "#include <device/nvshmem"
VERSION = re.compile(
    r"^#define NVSHMEM_VENDOR_(?:MAJOR|MINOR|PATCH)_VERSION (\d+)$", re.MULTILINE
)
OPTIONS = ("-rdc=true", "--device-int128", "-diag-suppress=128")


def folders(package: str) -> list[Path]:
    """Return the folders of an installed package; it may have more than one."""
    try:
        spec = importlib.util.find_spec(package)
    except ModuleNotFoundError:
        return []
    places = None if spec is None else spec.submodule_search_locations
    return [Path(place) for place in places or ()]


def toolkits() -> Iterator[Path]:
    """Yield folders that may contain CUDA's headers or libraries."""
    for wheels in folders("nvidia"):
        yield from sorted(wheels.glob("cu[0-9]*"), reverse=True)
        yield from sorted(wheels.glob("cuda_*"))
        yield from wheels.glob("nvjitlink")
    yield Path("/usr/local/cuda")


def first(pattern: str, places: list[Path], what: str) -> Path:
    """Return the first file that matches; DeviceMissing if none does."""
    for place in places:
        for path in sorted(place.glob(pattern)):
            return path
    raise DeviceMissing(f"no {what}")


@dataclass(frozen=True)
class Nvshmem:
    """The files of NVSHMEM and those it needs.

    host: its library for hosts; device: its library for kernels
    includes: folders of headers; linker: the library nvJitLink
    """

    host: Path
    device: Path
    includes: tuple[Path, ...]
    linker: Path

    @property
    def version(self) -> str:
        """The version of the headers, "version unknown" if they state none."""
        header = self.includes[0] / "non_abi" / "nvshmem_version.h"
        text = header.read_text(encoding="utf-8") if header.is_file() else ""
        return ".".join(VERSION.findall(text)) or "version unknown"

    @property
    def options(self) -> list[str]:
        """The options of NVRTC, in addition to those of all kernels."""
        return [*OPTIONS, *(f"-I{path}" for path in self.includes)]

    @property
    def key(self) -> str:
        """A text of everything besides the source on which machine code depends."""
        parts = [
            (path.name, path.stat().st_size) for path in (self.device, self.linker)
        ]
        return repr((OPTIONS, parts))

    def link(self, code: bytes, arch: str) -> bytes:
        """Return machine code linked with the device library."""
        # CuPy cuts off the last byte of what is not a text
        linked = Linking(ctypes.CDLL(str(self.linker)), arch)
        linked.add(CUBIN, code + b"\0", "kernels")
        linked.add(LIBRARY, self.device.read_bytes(), self.device.name)
        return linked.finish()


class Linking:
    """One use of nvJitLink."""

    def __init__(self, library: ctypes.CDLL, arch: str) -> None:
        self._library, self._handle = library, ctypes.c_void_p()
        options = (ctypes.c_char_p * 1)(f"-arch={arch}".encode())
        self._call("Create", ctypes.byref(self._handle), ctypes.c_uint32(1), options)

    def add(self, kind: int, code: bytes, name: str) -> None:
        """Add a piece of code; kind: its type, a constant of nvJitLink."""
        size, text = ctypes.c_size_t(len(code)), name.encode()
        self._call("AddData", self._handle, kind, code, size, text)

    def finish(self) -> bytes:
        """Link the pieces; return the machine code."""
        self._call("Complete", self._handle)
        size = ctypes.c_size_t()
        self._call("GetLinkedCubinSize", self._handle, ctypes.byref(size))
        code = ctypes.create_string_buffer(size.value)
        self._call("GetLinkedCubin", self._handle, code)
        self._call("Destroy", ctypes.byref(self._handle))
        return code.raw

    def _call(self, name: str, *arguments: object) -> None:
        failed = self._library[f"nvJitLink{name}"](*arguments)
        if not failed:
            return
        log = ctypes.create_string_buffer(1 << 16)
        if self._handle and name != "Destroy":
            self._library.nvJitLinkGetErrorLog(self._handle, log)
        said = " ".join(log.value.decode(errors="replace").split())[:500]
        raise DeviceMissing(f"nvJitLink: {name} failed ({failed}): {said}")


def is_linked(source: Path) -> bool:
    """Return whether a kernel file includes NVSHMEM's headers and is linked with it."""
    closure = source_closure(source.resolve())
    return any(HEADER in path.read_text(encoding="utf-8") for path in closure)


@cache
def nvshmem() -> Nvshmem:
    """Return the files of NVSHMEM; raise DeviceMissing if some are missing."""
    homes = folders("nvidia.nvshmem")
    if not homes:
        raise DeviceMissing(f"no NVSHMEM; {WANTED}")
    around = list(toolkits())
    cupy = folders("cupy")
    if not cupy:
        raise DeviceMissing("no CuPy")
    bundled = cupy[0] / "_core" / "include" / "cupy" / "_cccl"
    runtime = first("include/cuda_runtime_api.h", around, "headers of CUDA's runtime")
    return Nvshmem(
        host=first("lib/libnvshmem_host.so.3", homes, f"NVSHMEM; {WANTED}"),
        device=first("lib/libnvshmem_device.a", homes, f"NVSHMEM; {WANTED}"),
        includes=(
            homes[0] / "include",
            runtime.parent,
            *(bundled / name for name in ("libcudacxx", "cub", "thrust")),
        ),
        linker=first(
            "lib*/libnvJitLink.so.1[0-9]",
            around,
            "nvJitLink; pip install nvidia-nvjitlink",
        ),
    )
