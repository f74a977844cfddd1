"""Structures of kernels and C, read from the text that declares them.

Names, types, order and lengths of members are declared only in the source.  It is read
as a compiler would read it, as far as declarations of structures require: with headers
that it includes by ``"name"``, conditions, macros without arguments, and constants.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.device.sources import code_of

DIRECTIVE = re.compile(r"#\s*(\w+)\s*(.*)")
INCLUDED = re.compile(r'"([^"]+)"')
MACRO = re.compile(r"(\w+)(?!\()(?:\s+(.*))?$")
DEFINED = re.compile(r"defined\s*\(?\s*(\w+)\s*\)?")
WORD = re.compile(r"\b[A-Za-z_]\w*\b")
SUFFIX = re.compile(r"\b(0x[0-9a-fA-F]+|\d+)[uUlL]+\b")
CONSTANT = re.compile(r"\bconstexpr\s+(?:\w+\s+)+(\w+)\s*=\s*([^;]+);")
ENUM = re.compile(r"\benum\b[^{;()]*\{([^}]*)\}")
TYPEDEF = re.compile(r"\btypedef\s+(\w[\w ]*?)\s+(\w+)\s*;")
USING = re.compile(r"\busing\s+(\w+)\s*=\s*([^;]+);")
STRUCT = re.compile(r"(\btemplate\s*<[^>]*>\s*)?\bstruct\s*(\w*)\s*(?::\s*(\w+)\s*)?\{")
QUALIFIER = re.compile(r"\b(?:const|volatile|restrict|__restrict__|struct)\b")
CALL = re.compile(r"int\s*\(\s*\*\s*(\w+)\s*\)\s*\(\s*void\s*\)$")
NAMED = r"(\w+)\s*((?:\[[^\]]*\]\s*)*)$"  # and the lengths of an array
FIRST = re.compile(rf"(\w[\w ]*?)\s*(\*[\s*]*|\s){NAMED}")  # with the type
OTHER = re.compile(rf"([\s*]*){NAMED}")
TYPES: dict[str, Any] = {
    **{f"int{bits}_t": getattr(ctypes, f"c_int{bits}") for bits in (8, 16, 32, 64)},
    **{f"uint{bits}_t": getattr(ctypes, f"c_uint{bits}") for bits in (8, 16, 32, 64)},
    **{name: getattr(ctypes, f"c_{name}") for name in ("int", "double", "float")},
    **{name: getattr(ctypes, f"c_{name}") for name in ("char", "bool")},
    "unsigned": ctypes.c_uint,
    "unsigned char": ctypes.c_uint8,
    "unsigned short": ctypes.c_ushort,
    "unsigned int": ctypes.c_uint,
    "unsigned long long": ctypes.c_ulonglong,
    "long long": ctypes.c_longlong,
    "uint2": ctypes.c_uint32 * 2,  # aligned as their words: kernels place them so
    "uint4": ctypes.c_uint32 * 4,
}
ASK = ctypes.CFUNCTYPE(ctypes.c_int)


class Record(ctypes.Structure):
    """A structure that keeps alive the arrays to which its pointers point."""

    def __init__(self, **values: Any) -> None:
        super().__init__()
        self.set(**values)

    @cached_property  # structures inside others, and of buffers, are not initialised
    def held(self) -> dict[str, Any]:
        """The values of the members that were set, by name."""
        return {}

    def set(self, **values: Any) -> None:
        """Set members by name.

        A pointer takes an array of the host or of a device, or None; an array of
        pointers takes a list of these; a nested structure takes a dict, or a structure
        of the same layout, which is copied; ``Uints`` of kernels takes an array of 32
        or 64 bits.  Raises AttributeError if there is no such member, ValueError if an
        array is not contiguous.
        """
        for name, value in values.items():
            if isinstance(value, dict):
                inner = getattr(self, name)
                for key, item in value.items():
                    self.held[f"{name}.{key}"] = item
                    write(inner, key, item)
            else:
                self.held[name] = value
                write(self, name, value)


def copied(source: Record, to: Record) -> Record:
    """Copy the members of a structure to the first ones of another; return this one.

    The arrays must be kept alive elsewhere.
    """
    ctypes.memmove(ctypes.byref(to), ctypes.byref(source), ctypes.sizeof(source))
    return to


def write(record: ctypes.Structure, name: str, value: Any) -> None:
    """Set a member of a structure, which does not keep the value alive."""
    member = getattr(type(record), name)
    if isinstance(value, list):
        kind = type(getattr(record, name))
        member.__set__(record, kind(*map(address, value)))
    elif isinstance(value, Record):  # whose class another source may have declared
        member.__set__(record, type(getattr(record, name)).from_buffer_copy(value))
    elif isinstance(inside := getattr(record, name), ctypes.Structure):
        inside.at = tagged(value)
    else:
        member.__set__(record, address(value))


def address(value: Any) -> Any:
    """Return the address of an array; None and other values are returned unchanged."""
    if isinstance(value, np.ndarray):
        if not value.flags.c_contiguous:
            raise ValueError("a kernel takes contiguous arrays only")
        return value.ctypes.data
    data = getattr(value, "data", None)  # of arrays on devices
    return getattr(data, "ptr", value)


def tagged(value: Any) -> Any:
    """Return the address of an array, plus 1 if its items have 64 bits, or None.

    Raises ValueError unless items have 32 or 64 bits.
    """
    if value is None:
        return None
    if value.dtype.itemsize not in (4, 8):
        raise ValueError(f"items of {value.dtype.itemsize} bytes, not 4 or 8")
    return address(value) + value.dtype.itemsize // 8


def uints(array: Any) -> np.uint64:
    """Return an array as an argument of a kernel that takes ``Uints``."""
    return np.uint64(tagged(array))


def structure(
    source: Path, name: str, definitions: Mapping[str, str | int] | None = None
) -> Any:
    """Return the class of a structure that a source or one of its headers declares.

    definitions: those with which the library is compiled. Raises KeyError if there is
    no such structure.
    """
    return _declarations(source, tuple(sorted((definitions or {}).items()))).kind(name)


@cache
def _declarations(
    source: Path, definitions: tuple[tuple[str, str | int], ...]
) -> Declarations:
    return Declarations(source, dict(definitions))


@cache
def _class(name: str, above: Any, fields: tuple[tuple[str, Any], ...]) -> Any:
    """Return the class for these members, the same if several sources declare it.

    It is aligned like its largest member, as in C.
    """
    return type(name, (above,), {"_fields_": list(fields)})


class Declarations:
    """The structures of a source and its headers, for some definitions.

    texts: headers by include name, used instead of the files of these names
    """

    def __init__(
        self,
        source: Path,
        definitions: Mapping[str, str | int],
        texts: Mapping[str, str] | None = None,
    ) -> None:
        self._texts = texts or {}
        self._macros = {name: str(value) for name, value in definitions.items()}
        self._read: set[Path] = set()
        self._kinds: dict[str, Any] = {}
        self._constants: dict[str, str] = {}
        text = "\n".join(self._lines(source.resolve()))
        self._constants |= dict(CONSTANT.findall(text))
        self._aliases = {name: old for old, name in TYPEDEF.findall(text)}
        self._aliases |= dict(USING.findall(text))
        for body in ENUM.findall(text):
            self._enumerate(body)
        self._bodies: dict[str, tuple[str, str]] = {}
        for start in STRUCT.finditer(text):
            body, end = enclosed(text, start.end())
            named = start[2] or text[end:].partition(";")[0].strip()
            if not start[1]:  # templates have no size
                self._bodies.setdefault(named, (start[3] or "", body))

    @property
    def names(self) -> list[str]:
        """All structures, in the order of the text."""
        return list(self._bodies)

    def kind(self, name: str) -> Any:
        """Return the class of a structure; KeyError if there is none.

        Raises ValueError if a member is of a type that is not read.
        """
        if name not in self._kinds:
            base, body = self._bodies[name]
            above = self.kind(base) if base else Record
            fields = [x for member in declared(body) for x in self._fields(member)]
            self._kinds[name] = _class(name, above, tuple(fields))
        return self._kinds[name]

    def value(self, expression: str) -> int:
        """Return the value of a constant expression; undefined names are 0."""
        text = DEFINED.sub(lambda x: str(int(x[1] in self._macros)), expression)
        text = text.replace("&&", " and ").replace("||", " or ")
        text = re.sub(r"!(?!=)", " not ", SUFFIX.sub(r"\1", text)).replace("/", "//")
        text = WORD.sub(self._known, text)
        return int(eval(text.strip(), {"__builtins__": {}}))  # noqa: S307

    def _known(self, word: re.Match[str]) -> str:
        if word[0] in ("and", "or", "not"):
            return word[0]
        text = self._macros.get(word[0]) or self._constants.get(word[0]) or "0"
        return str(self.value(text))

    def _enumerate(self, body: str) -> None:
        last, plus = "0", 0
        for item in filter(None, (x.strip() for x in body.split(","))):
            name, _, first = (x.strip() for x in item.partition("="))
            last, plus = (first, 0) if first else (last, plus)
            self._constants[name] = f"({last}) + {plus}"
            plus += 1

    def _lines(self, path: Path) -> Iterator[str]:
        """Yield the lines of a file and its headers that remain after conditions."""
        if path in self._read:
            return
        self._read.add(path)
        own = self._texts.get(path.name)
        code = code_of(path.read_bytes() if own is None else own.encode())
        text = code.decode().replace("\\\n", " ")
        taken: list[list[bool]] = []  # of each condition: whether now, whether before
        for line in text.splitlines():
            directive = DIRECTIVE.match(line.strip())
            if directive is None:
                if all(now for now, _ in taken):
                    yield line
                continue
            word, rest = directive[1], directive[2].strip()
            if word in ("if", "ifdef", "ifndef"):
                holds = all(now for now, _ in taken) and self._holds(word, rest)
                taken.append([holds, holds])
            elif word == "elif":
                holds = not taken[-1][1] and bool(self.value(rest))
                taken[-1] = [holds, holds or taken[-1][1]]
            elif word == "else":
                taken[-1] = [not taken[-1][1], True]
            elif word == "endif":
                taken.pop()
            elif all(now for now, _ in taken):
                yield from self._direct(path, word, rest)

    def _holds(self, word: str, rest: str) -> bool:
        if word == "if":
            return bool(self.value(rest))
        return (rest.split(maxsplit=1)[0] in self._macros) == (word == "ifdef")

    def _direct(self, path: Path, word: str, rest: str) -> Iterator[str]:
        if word == "define" and (macro := MACRO.match(rest)):
            self._macros[macro[1]] = (macro[2] or "1").strip()
        elif word == "undef":
            self._macros.pop(rest, None)
        elif word == "include" and (header := INCLUDED.match(rest)):
            yield from self._lines((path.parent / header[1]).resolve())

    def _fields(self, member: str) -> Iterator[tuple[str, Any]]:
        """Yield (name, type) of each member that a declaration declares."""
        if call := CALL.match(member):
            yield call[1], ASK
            return
        first, *others = re.split(r",(?![^\[]*\])", QUALIFIER.sub("", member).strip())
        matches = [FIRST.match(first), *(OTHER.match(x.strip()) for x in others)]
        parts = [x.groups() for x in matches if x]
        if len(parts) < len(matches):
            raise ValueError(f"a declaration cannot be read: {member}")
        kind = self._type(parts[0][0])
        for pointer, name, sizes in (x[-3:] for x in parts):
            made = ctypes.c_void_p if "*" in pointer else kind
            if made is None:
                raise ValueError(f"a member has an unknown type: {member}")
            for size in reversed(re.findall(r"\[([^\]]*)\]", sizes)):
                made = made * self.value(size)
            yield name, made

    def _type(self, name: str) -> Any:
        """Return a type by its name, None if it is not known."""
        while name not in TYPES and name not in self._bodies:
            known = self._macros.get(name) or self._aliases.get(name)
            if known is None:
                return None
            name = known
        return TYPES[name] if name in TYPES else self.kind(name)


def enclosed(text: str, start: int) -> tuple[str, int]:
    """Return the text in braces and where it ends; start: after the first brace."""
    depth, at = 1, start
    while depth:
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
    return text[start : at - 1], at


def declared(body: str) -> list[str]:
    """Return the declarations of members in a body; those of functions are left out."""
    while (brace := body.find("{")) >= 0:
        _, end = enclosed(body, brace + 1)
        start = max(body.rfind(";", 0, brace), body.rfind("\0", 0, brace)) + 1
        body = body[:start] + "\0" + body[end:]
    members = (x.strip() for x in body.replace("\0", ";").split(";"))
    return [x for x in members if x and not x.startswith("static ")]
