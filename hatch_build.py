"""Compile the C kernels into the wheel, so that distbfs is fast without a compiler.

Environment: ``DISTBFS_PORTABLE`` names the levels that the wheel holds kernels for,
separated by commas, ``all`` or ``none``; what it names has to compile.  Without it they
are all tried, and a wheel that is built without a C compiler has none.
"""

from __future__ import annotations

import atexit
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import platform_tags


class PortableKernels(BuildHookInterface):  # type: ignore[type-arg]
    """Adds a shared library for each kernel, variant and level to a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the kernels, but not for an editable installation."""
        wanted = os.environ.get("DISTBFS_PORTABLE", "")
        if version == "editable" or wanted == "none":
            return
        sys.path.insert(0, self.root)
        from distbfs.device import portable  # noqa: PLC0415
        from distbfs.errors import CompilerMissing  # noqa: PLC0415

        levels = portable.levels()
        if wanted not in ("", "all"):
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
            if wanted:
                self.app.abort(f"DISTBFS_PORTABLE is '{wanted}': {error}")
            self.app.display_warning(f"no compiled kernels in this wheel: {error}")
            return
        if not libraries:  # an architecture without levels
            return
        for path in libraries:
            place = f"distbfs/{portable.FOLDER.name}/{path.name}"
            build_data["force_include"][str(path)] = place
        # plain C that ctypes calls: any Python, and the libc of this machine or newer
        tags = [tag for tag in platform_tags() if not tag.startswith("linux")]
        build_data["tag"] = f"py3-none-{tags[0]}"
        build_data["pure_python"] = False
