"""The cores and memory that Linux control groups allow this process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")


def _groups(controller: str) -> Iterator[tuple[Path, bool]]:
    """Yield (folder, whether it is v2) for this process's groups, up to the root.

    They are the groups in the common tree of all controllers (v2), and those in the
    controller's own tree (v1).
    """
    try:
        lines = MEMBERSHIP.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, place = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        base = CGROUP / controllers
        folder = base / place.strip("/")
        for group in (folder, *folder.parents):
            if group.is_relative_to(base):
                yield group, not controllers


def _words(file: Path) -> list[str]:
    """Return the words of a file, none if it cannot be read."""
    try:
        return file.read_text(encoding="utf-8").split()
    except OSError:
        return []


def memory_limits() -> list[int]:
    """Return the limits of memory, in bytes."""
    limits = []
    for group, unified in _groups("memory"):
        words = _words(group / ("memory.max" if unified else "memory.limit_in_bytes"))
        limits += [int(word) for word in words if word.isdigit()]
    return limits


def usable_cores() -> int:
    """Return the number of cores that affinity and quotas allow this process.

    A quota of 2.5 cores counts as 2, so that no thread has to wait for the quota's next
    period.
    """
    cores = [float(len(os.sched_getaffinity(0)))]
    for group, unified in _groups("cpu"):
        words = _words(group / "cpu.max") if unified else []
        for name in () if unified else ("cpu.cfs_quota_us", "cpu.cfs_period_us"):
            words += _words(group / name)
        if len(words) == 2 and all(word.isdigit() for word in words):
            cores.append(int(words[0]) / max(int(words[1]), 1))
    return max(int(min(cores)), 1)
