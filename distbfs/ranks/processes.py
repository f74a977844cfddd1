"""The state of other processes of this host."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from distbfs.ranks.agreement import gather_texts

if TYPE_CHECKING:
    from distbfs.types import World


class Process:
    """Another process on this host, identified by its id and its start time."""

    def __init__(self, rank: int, identity: str) -> None:
        self.rank = rank
        self._pid, _, self._start = identity.partition(" ")

    @staticmethod
    def myself() -> str:
        """Return the text by which other processes identify this one."""
        pid = str(os.getpid())
        return f"{pid} {Process._look(pid)[1]}"

    def runs(self) -> bool:
        """Return whether the process exists and is not a zombie."""
        state, start = self._look(self._pid)
        return start == self._start and state not in {"", "Z", "X"}

    def ticks(self) -> int:
        """Return the process's processor time in clock ticks; 0 if it has ended."""
        fields = self._fields(self._pid)
        return int(fields[11]) + int(fields[12]) if fields else 0

    @staticmethod
    def _look(pid: str) -> tuple[str, str]:
        """Return (state, start time), from fields 3 and 22 of its ``stat``."""
        fields = Process._fields(pid)
        return (fields[0], fields[19]) if fields else ("", "")

    @staticmethod
    def _fields(pid: str) -> list[str]:
        """Return the fields of a process's ``stat`` from field 3 on; [] if it ended."""
        try:
            text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
        except OSError:
            return []
        return text.rpartition(")")[2].split()  # names may contain blanks


def processes_beside(world: World) -> list[Process]:
    """Return the other ranks of this host that this process can see; collective."""
    hosts = world.hosts
    identities = gather_texts(world, Process.myself())
    others = [
        Process(rank, text)
        for rank, text in enumerate(identities)
        if rank != world.rank and hosts[rank] == hosts[world.rank]
    ]
    # processes of another container are invisible
    return [process for process in others if process.runs()]
