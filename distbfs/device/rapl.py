"""Energy of CPUs by RAPL, from Linux's counters under /sys/class/powercap."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from distbfs.errors import DeviceMissing

FOLDER = Path("/sys/class/powercap")
ZONE = re.compile(r"intel-rapl:\d+(?::\d+)?")
PERIOD = 1.0  # seconds between readings, short enough to see every wrap of a counter


@dataclass
class Zone:
    """A counter of microjoules that wraps at ``limit``."""

    path: Path
    name: str
    limit: int
    last: int = 0
    total: int = 0

    def look(self) -> None:
        """Read the counter, and add the energy used since the last reading."""
        now = int((self.path / "energy_uj").read_text(encoding="ascii"))
        step = now - self.last
        self.total += step if step >= 0 else step + self.limit + 1
        self.last = now


@dataclass
class CpuEnergy:
    """The energy of a zone: a CPU package, or its memory ("dram")."""

    zone: str
    joules: float


def zones(folder: Path) -> list[Zone]:
    """Return the zones of packages and memory; DeviceMissing if none can be read."""
    readable: list[Zone] = []
    try:
        paths = sorted(p for p in folder.iterdir() if ZONE.fullmatch(p.name))
    except OSError as error:
        raise DeviceMissing(f"no RAPL: {folder}: {error.strerror}") from error
    for path in paths:
        try:
            name = (path / "name").read_text(encoding="ascii").strip()
            if path.name.count(":") == 2 and name != "dram":
                continue  # included in its package's count
            limit = int((path / "max_energy_range_uj").read_text(encoding="ascii"))
            zone = Zone(path, name, limit)
            zone.look()
        except PermissionError as error:
            raise DeviceMissing(
                f"no RAPL: {error.filename} is readable by root only"
            ) from error
        except (OSError, ValueError):
            continue
        readable.append(zone)
    if not readable:
        raise DeviceMissing(f"no RAPL: {folder} has no readable zone")
    return readable


class RaplMeter:
    """Measures this host's CPUs; raises DeviceMissing if RAPL cannot be read."""

    def __init__(self, folder: Path | None = None) -> None:
        self._zones = zones(FOLDER if folder is None else folder)
        self.period = PERIOD

    def sample(self) -> None:
        """Read all counters."""
        for zone in self._zones:
            zone.look()

    def start(self) -> None:
        """Start measuring."""
        self.sample()
        for zone in self._zones:
            zone.total = 0

    def stop(self) -> list[CpuEnergy]:
        """Stop measuring; return the energy of each zone."""
        self.sample()
        return [CpuEnergy(zone.name, zone.total * 1e-6) for zone in self._zones]
