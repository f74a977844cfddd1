"""Tables on the screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from distbfs.errors import legible


def shown(value: Any) -> str:
    """Return a value as a table shows it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{shown(key)} {shown(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(shown(item) for item in value)
    return legible(str(value), None)


def print_lines(table: Table) -> None:
    """Print a table without trailing blanks; do not cut lines in a file or pipe."""
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console = Console(highlight=False, markup=False, width=10_000, soft_wrap=True)
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def print_fields(values: Mapping[str, Any]) -> None:
    """Print names and values, one per line."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column()
    table.add_column(overflow="fold")
    for name, value in values.items():
        table.add_row(name.replace("_", " "), shown(value))
    print_lines(table)


def counted(count: int, noun: str) -> str:
    """Return a number with a noun: "1 loop", "2 loops"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], *, right: bool = False
) -> None:
    """Print a table with a header; numbers are aligned to the right.

    right: whether all columns but the first are aligned to the right
    """
    table = Table(box=None, pad_edge=False)
    for index, name in enumerate(columns):
        number = bool(rows) and isinstance(rows[0][index], (int, float))
        table.add_column(
            name,
            justify="right" if number or (right and index) else "left",
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(shown(value) for value in row))
    print_lines(table)
