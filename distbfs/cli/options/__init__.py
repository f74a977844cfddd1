"""The commands as click knows them: options and help, without what runs them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any


def carry_out(command: str, values: Mapping[str, Any], function: str = "run") -> Any:
    """Import the module of a command and run it; values: of its options, by name."""
    return getattr(import_module(f"distbfs.cli.{command}"), function)(**values)
