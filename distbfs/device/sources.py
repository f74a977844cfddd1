"""Kernel sources: the headers that they include, the variants that they list."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
VARIANTS = re.compile(
    r"^[ \t]*(?://|/?\*)[ \t]*variants:(.*?)(?:\*/[ \t]*)?$", re.MULTILINE
)


def source_closure(source: Path) -> list[Path]:
    """Return a source and the headers that it includes by ``"name"``, in order."""
    closure: list[Path] = []
    waiting = [source]
    while waiting:
        path = waiting.pop()
        if path in closure:
            continue
        closure.append(path)
        names = INCLUDE.findall(path.read_text(encoding="utf-8"))
        headers = [(path.parent / name).resolve() for name in names]
        waiting += [header for header in headers if header.is_file()]
    return closure


def variants(source: Path) -> list[dict[str, str]]:
    """Return the definitions of each way that a kernel file is compiled.

    A line ``// variants: A=x,y B=z | A=w`` of the file, or in a comment with stars,
    lists them: a space separates macros, a comma the values of one, all of which go
    with all of the others, and | lists.  Without one there is a single variant, without
    definitions.
    """
    line = VARIANTS.search(source.read_text(encoding="utf-8"))
    lists = [""] if line is None else line.group(1).split("|")
    return [variant for words in lists for variant in variants_of(words, source.name)]


def variants_of(words: str, name: str) -> list[dict[str, str]]:
    """Return the variants of one list; ValueError where it cannot be read."""
    pairs = [word.partition("=") for word in words.split()]
    keys, values = [key for key, _, _ in pairs], [x.split(",") for _, _, x in pairs]
    if not all(key.isidentifier() for key in keys) or not all(map(all, values)):
        raise ValueError(f"{name}: '{words.strip()}' is not of the form A=x,y B=z")
    return [dict(zip(keys, chosen, strict=True)) for chosen in product(*values)]
