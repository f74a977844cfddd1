"""Compile the C kernels into a wheel that serves machines without a compiler.

Environment: ``DISTBFS_PORTABLE`` names the levels that the wheel holds kernels for,
separated by commas, ``all`` or ``none``; what it names has to compile.  Without it the
wheel has none: a machine that can build them compiles each at its first use.
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


class PortableKernels(BuildHookInterface):  # type: ignore[type-arg]
    """Adds a shared library for each kernel, variant and level to a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the kernels, but not for an editable installation."""
        wanted = os.environ.get("DISTBFS_PORTABLE", "none")
        if version == "editable" or wanted == "none":
            return
        sys.path.insert(0, self.root)
        from distbfs.device import portable  # noqa: PLC0415
        from distbfs.errors import CompilerMissing  # noqa: PLC0415

        levels = portable.levels()
        if wanted != "all":
            levels = tuple(wanted.split(","))
        if not set(levels) <= set(portable.levels()):
            self.app.abort(
                f"DISTBFS_PORTABLE is '{wanted}'; allowed: all, none, "
                f"{', '.join(portable.levels())}"
            )
        folder = tempfile.TemporaryDirectory(prefix="distbfs-")
        atexit.register(folder.cleanup)  # when the wheel is written
        try:
            libraries = portable.build(Path(folder.name), levels)
        except CompilerMissing as error:
            self.app.abort(f"DISTBFS_PORTABLE is '{wanted}': {error}")
        if not libraries:  # an architecture without levels
            return
        for path in libraries:
            place = f"distbfs/{portable.FOLDER.name}/{path.name}"
            build_data["force_include"][str(path)] = place
        # plain C that ctypes calls: any Python, and a C library that has what is called
        build_data["tag"] = f"py3-none-{platform_of(libraries)}"
        build_data["pure_python"] = False


def platform_of(libraries: list[Path]) -> str:
    """Return the tag of the platform with the oldest libc that libraries run on."""
    tags = [tag for tag in platform_tags() if not tag.startswith("linux")]
    called = {x for path in libraries for x in GLIBC.findall(path.read_bytes())}
    oldest = max([OLDEST, *map(int, called)])
    fitting = [x for x in tags if x.startswith(f"manylinux_2_{oldest}_")]
    return (fitting or tags)[0]
