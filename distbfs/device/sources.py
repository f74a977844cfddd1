"""Kernel sources: their headers, their variants, and their code without comments."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cache
from itertools import product
from pathlib import Path
from typing import TypeAlias

Variant: TypeAlias = frozenset[tuple[str, str]]  # macros and their values

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
VARIANTS = re.compile(
    r"^[ \t]*(?://|/?\*)[ \t]*variants:(.*?)(?:\*/[ \t]*)?$", re.MULTILINE
)
KERNEL = re.compile(
    r'^extern "C" __global__ void (?:__launch_bounds__\([^)]*\) )?(\w+)\(', re.MULTILINE
)
COMMENT = rb"//(?:\\\n|[^\n])*|/\*.*?\*/"
BLANK = rb"(?:\n|\s(?=[\s/])|%b)(?:\s|%b)*" % (COMMENT, COMMENT)  # no single blank
LITERAL = rb""""(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'"""
ANGLES = rb"#[ \t]*include[ \t]*<[^>\n]*>"
# of no group: a quote after a letter or digit (raw strings, 1'000), and what has no end
TOKEN = re.compile(
    rb"""["'](?<=\w.)|(?P<blank>%b)|(?P<kept>\\\n|%b|%b)|["']|/\*"""
    % (BLANK, LITERAL, ANGLES),
    re.DOTALL,
)
COMMENTS = re.compile(COMMENT, re.DOTALL)
# line ends that compilers read in several ways, and those within the sign of a comment
UNCLEAR = re.compile(rb"\r|\?\?/|[/*]\\\n|\\[ \t\v\f]+\n")


@cache
def code_of(text: bytes) -> bytes:
    """Return C, C++ or CUDA source without comments, runs of blanks and blank lines.

    Texts that differ in nothing else compile to the same code, except for line numbers.
    A text in which comments cannot be told for certain, for example because of raw
    strings, is returned unchanged.
    """
    if UNCLEAR.search(text):
        return text
    pieces, end = [], 0
    for token in TOKEN.finditer(text):
        if token.lastgroup is None:
            return text
        if token.lastgroup == "blank":
            lines = b"\n" in COMMENTS.sub(b"", token[0])
            pieces += [text[end : token.start()], b"\n" if lines else b" "]
            end = token.end()
    return b"".join([*pieces, text[end:]]).strip()


def closure_code(source: Path) -> bytes:
    """Return the names and code of a source and its headers, for cache keys."""
    paths = source_closure(source.resolve())
    return b"".join(
        path.name.encode() + b"\0" + code_of(path.read_bytes()) + b"\0"
        for path in paths
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


def kernels(source: Path) -> list[str]:
    """Return the names of the kernels of a CUDA file, without those of headers."""
    return KERNEL.findall(source.read_text(encoding="utf-8"))


def variants(source: Path) -> list[dict[str, str]]:
    """Return the definitions of each variant in which a kernel file is compiled.

    A comment of the file lists them, such as ``// variants: A=x,y B=z | A=w``.  In a
    list, spaces separate macros and commas the values of a macro, and each combination
    of values is a variant; | separates lists.  Without such a comment, there is one
    variant, without definitions.
    """
    line = VARIANTS.search(source.read_text(encoding="utf-8"))
    lists = [""] if line is None else line.group(1).split("|")
    return [variant for words in lists for variant in variants_of(words, source.name)]


def serving(
    source: Path,
    exact: Mapping[str, str | int],
    needs: Mapping[str, bool],
    may: Collection[str] = (),
) -> Variant:
    """Return the variant of a kernel file that serves a request with the least code.

    exact: macros that must have these values; 0 if the variant does not name them
    needs: macros that must be 1 if that is needed, and else preferably are not
    may: macros that may be 1, preferably as many as possible; others must not

    Raises LookupError if no variant serves it.
    """
    ranks: dict[Variant, tuple[int, int]] = {}
    needed = {name for name, is_needed in needs.items() if is_needed}
    for variant in variants(source):
        same = all(variant.get(x, "0") == str(value) for x, value in exact.items())
        on = {x for x, value in variant.items() if value == "1" and x not in exact}
        if same and needed <= on and on - needs.keys() <= set(may):
            ranks[frozenset(variant.items())] = -len(on & set(may)), len(on)
    if not ranks:
        raise LookupError(f"no variant of {source.name} for {exact}, {needed}")
    return min(ranks, key=lambda variant: ranks[variant])


def variants_of(words: str, name: str) -> list[dict[str, str]]:
    """Return the variants of one list; ValueError if it cannot be read."""
    pairs = [word.partition("=") for word in words.split()]
    keys, values = [key for key, _, _ in pairs], [x.split(",") for _, _, x in pairs]
    if not all(key.isidentifier() for key in keys) or not all(map(all, values)):
        raise ValueError(f"{name}: '{words.strip()}' is not of the form A=x,y B=z")
    return [dict(zip(keys, chosen, strict=True)) for chosen in product(*values)]
