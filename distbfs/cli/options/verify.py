"""The options of ``distbfs verify``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from distbfs.cli.command import STORE, argument, command_of
from distbfs.cli.options import Speech


@dataclass(frozen=True, kw_only=True)
class VerifyOptions(Speech):
    """Check every byte of STORE and every rule that its parts must keep.

    The parts are shared out among the ranks.  Exit code 2 if anything is wrong.
    """

    store: Path = argument(STORE)


command = command_of("verify", VerifyOptions)
