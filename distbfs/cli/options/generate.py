"""The options of ``distbfs generate``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from distbfs import registry
from distbfs.cli.command import Choice, argument, borrowed, command_of, shared_options
from distbfs.cli.options import SCALES, Speech, StoreOptions
from distbfs.generate.families import declared
from distbfs.generate.uniform import MAX_VERTICES
from distbfs.options import INPUT, DirectedOption, option


def family_options() -> type:
    """Return a class with an option for each parameter that a family has."""
    return shared_options({family: declared(family) for family in registry.FAMILIES})


def families() -> str:
    """Return a line of help for each family."""
    width = max(map(len, registry.FAMILIES)) + 2
    lines = ["\b"]
    for family in registry.FAMILIES:
        kind = registry.lookup(registry.FAMILIES, "family", family)
        lines.append(f"{family:<{width}}{getattr(kind, 'about', '')}".rstrip())
    return "\n".join(lines)


@dataclass(frozen=True, kw_only=True)
class GenerateOptions(DirectedOption, StoreOptions, Speech):
    """Generate a graph of a FAMILY and store it.

    {families}

    scale: 2^scale vertices.
    vertices: Vertices instead; for road, geometric and triangulation about as many.
    seed: Seed of the tuples.  [1]
    """

    family: str = argument(Choice(list(registry.FAMILIES)), "FAMILY")
    scale: int | None = option(INPUT, "-s", **SCALES)
    vertices: int | None = option(INPUT, "-n", low=1, high=MAX_VERTICES)
    parameters: dict[str, Any] = borrowed(family_options())
    seed: int | None = option(INPUT)


command = command_of("generate", GenerateOptions, families=families())
