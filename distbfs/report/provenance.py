"""The origin of figures: device, driver, versions, commit and command."""

from __future__ import annotations

import os
import platform
import re
import shlex
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import distbfs
from distbfs.device import cuda
from distbfs.device.control_groups import usable_cores

DRIVER = Path("/proc/driver/nvidia/version")


def commit() -> str | None:
    """Return the git commit of this source, None outside git.

    "-changed" is appended if files were changed. DISTBFS_COMMIT takes precedence, for
    copies without history.
    """
    named = os.environ.get("DISTBFS_COMMIT")
    if named:
        return named
    root = Path(distbfs.__file__).resolve().parents[1]

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(root), *words],
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
        return done.stdout.strip()

    try:
        if Path(git("rev-parse", "--show-toplevel")).resolve() != root:
            return None
        head = git("rev-parse", "--short=12", "HEAD")
        return head + ("-changed" if git("status", "--porcelain") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def driver_version() -> str | None:
    """Return the version of the NVIDIA driver, None if unknown."""
    try:
        text = DRIVER.read_text(encoding="utf-8")
    except OSError:
        return None
    version = re.search(r"\b\d+\.\d+(?:\.\d+)?\b", text)
    return version.group() if version else None


def provenance(command: Sequence[str], *, device: bool) -> dict[str, Any]:
    """Return the facts that make figures repeatable (JSON values).

    device: whether a CUDA device was used, which is then described
    """
    facts: dict[str, Any] = {
        "command": shlex.join(command),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commit": commit(),
        "versions": versions(),
        "machine": machine(),
    }
    if device:
        facts["device"] = cuda.describe() | {"driver_version": driver_version()}
    return facts


def versions() -> dict[str, str]:
    """Return the versions that a report names."""
    return {
        "distbfs": distbfs.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "h5py": h5py.__version__,
        "hdf5": h5py.version.hdf5_version,
    }


def machine() -> dict[str, Any]:
    """Return the facts about this host for reports (JSON values)."""
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            names = [x.partition(":")[2].strip() for x in lines if "model name" in x]
        model = names[0] if names else model
    except OSError:
        pass
    return {
        "processor": model,
        "cores": usable_cores(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.release()}",
    }
