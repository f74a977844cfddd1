"""Sizes and rates as people write them on the command line."""

from __future__ import annotations

import re

import click

UNITS = {"": 1, **{u: 1000**k for k, u in enumerate("kMGTP", 1)}}
UNITS |= {f"{u}i": 1024**k for k, u in enumerate("KMGTP", 1)}
SIZE = re.compile(r"([\d.]+(?:e\d+)?) ?([kMGTP]|[KMGTP]i|)B?(?:/s)?")


def parse_size(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> float | None:
    """Return the number of an option as 25e9, 141GB or 80GiB; "/s" may follow."""
    if value is None:
        return None
    match = SIZE.fullmatch(value.strip())
    try:
        size = float(match[1]) * UNITS[match[2]] if match else 0.0
    except ValueError:
        size = 0.0
    if not 0 < size < float("inf"):
        text = f"{value!r} is not a size above 0; write 25e9, 141GB or 80GiB"
        raise click.BadParameter(text, ctx, param)
    return size


def whole_size(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> int | None:
    """Return how many bytes an option means; see ``parse_size``."""
    size = parse_size(ctx, param, value)
    return None if size is None else int(size)
