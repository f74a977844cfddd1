"""The options of ``distbfs generate``."""

from __future__ import annotations

from dataclasses import Field, dataclass, field, make_dataclass, replace
from typing import Any, get_type_hints

from distbfs import registry
from distbfs.cli.command import Choice, argument, borrowed, command_of, help_of
from distbfs.cli.options import SCALES, Speech, StoreOptions
from distbfs.generate.families import declared
from distbfs.generate.uniform import MAX_VERTICES
from distbfs.options import INPUT, DirectedOption, option


def family_options() -> type:
    """Return a class with an option for each parameter that a family has."""
    holders: dict[str, dict[str, tuple[type, Field[Any]]]] = {}
    for family in registry.FAMILIES:
        kind, items = declared(family)
        for item in items:
            holders.setdefault(item.name, {})[family] = kind, item
    texts, made = [], []
    for name, some in holders.items():
        kind, item = next(iter(some.values()))
        usual = {
            family: x.metadata["option"].usual or f"{x.default:g}"
            for family, (_, x) in some.items()
            if x.default or x.metadata["option"].usual
        }
        same = len({*usual.values()}) == 1
        shown = (
            next(iter(usual.values()))
            if same
            else "; ".join(map(": ".join, usual.items()))
        )
        text = help_of(kind, {})[name].rstrip(".")
        texts.append(f"{name}: {text}; {', '.join(some)}.  [{shown}]")
        known = replace(item.metadata["option"], usual=None)
        made.append(
            (
                name,
                get_type_hints(kind)[name],
                field(default=None, metadata={"option": known}),
            )
        )
    namespace = {"__doc__": "\n".join(texts)}
    return make_dataclass("FamilyOptions", made, namespace=namespace)


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
