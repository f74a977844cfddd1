"""Compile kernels into a wheel that serves machines without a compiler.

Environment: ``DISTBFS_PORTABLE`` names the levels that the wheel holds C kernels for,
and ``DISTBFS_CUBINS`` the architectures of GPUs, as sm_90, that it holds the common
CUDA kernels for; separated by commas, ``all`` or ``none``.  What they name has to
compile.  Without them the wheel has none: each is compiled at its first use.
"""

from __future__ import annotations

import atexit
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import platform_tags

GLIBC = re.compile(rb"\0GLIBC_2\.(\d+)\b")
OLDEST = 28  # of the C library, minor version: that of RHEL 8


class CompiledKernels(BuildHookInterface):  # type: ignore[type-arg]
    """Adds kernels to a wheel: shared libraries, and machine code of GPUs."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the kernels, but not for an editable installation."""
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        from distbfs.device import portable  # noqa: PLC0415

        folder = tempfile.TemporaryDirectory(prefix="distbfs-")
        atexit.register(folder.cleanup)  # when the wheel is written
        libraries = self._libraries(Path(folder.name))
        for path in (*libraries, *self._cubins(Path(folder.name))):
            place = f"distbfs/{portable.FOLDER.name}/{path.name}"
            build_data["force_include"][str(path)] = place
        if libraries:
            # plain C that ctypes calls: any Python, and a C library that has the calls
            build_data["tag"] = f"py3-none-{platform_of(libraries)}"
            build_data["pure_python"] = False

    def _asked(self, name: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
        """Return what a variable of the environment names; abort for anything else."""
        wanted = os.environ.get(name, "none")
        some = () if wanted == "none" else tuple(wanted.split(","))
        every = allowed if wanted == "all" else some
        if not set(every) <= set(allowed):
            self._refuse(name, f"; allowed: all, none, {', '.join(allowed)}")
        return every

    def _refuse(self, name: str, why: object) -> None:
        self.app.abort(f"{name} is '{os.environ[name]}'{why}")

    def _libraries(self, folder: Path) -> list[Path]:
        from distbfs.device import portable  # noqa: PLC0415
        from distbfs.errors import CompilerMissing  # noqa: PLC0415

        levels = self._asked("DISTBFS_PORTABLE", portable.levels())
        try:
            return portable.build(folder, levels)
        except CompilerMissing as error:
            self._refuse("DISTBFS_PORTABLE", f": {error}")
        return []

    def _cubins(self, folder: Path) -> list[Path]:
        from distbfs.device.portable import ARCHITECTURES  # noqa: PLC0415

        asked, made = self._asked("DISTBFS_CUBINS", ARCHITECTURES), list[Path]()
        if not asked:
            return made
        try:
            from distbfs.device import nvrtc  # noqa: PLC0415
            from distbfs.engines.cuda.xbfs.engine import common_kernels  # noqa: PLC0415
            from distbfs.errors import DistbfsError  # noqa: PLC0415
        except ImportError as error:
            where = "install distbfs with an extra for CUDA and leave out isolation"
            self._refuse("DISTBFS_CUBINS", f": {error}; {where}")
        try:
            for arch in asked:
                made += nvrtc.build(folder, arch, common_kernels())
        except DistbfsError as error:
            self._refuse("DISTBFS_CUBINS", f": {error}")
        return made


def platform_of(libraries: list[Path]) -> str:
    """Return the tag of the platform with the oldest libc that libraries run on."""
    tags = [tag for tag in platform_tags() if not tag.startswith("linux")]
    called = {x for path in libraries for x in GLIBC.findall(path.read_bytes())}
    oldest = max([OLDEST, *map(int, called)])
    fitting = [x for x in tags if x.startswith(f"manylinux_2_{oldest}_")]
    return (fitting or tags)[0]
