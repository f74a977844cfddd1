"""The system's C compiler, and the facts that a compiled kernel depends on.

Environment: ``DISTBFS_CC`` names the compiler (``none``: use no compiler).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from distbfs.device.sources import closure_code
from distbfs.errors import CompilerMissing

FLAGS = (
    "-std=gnu11",
    "-O3",
    "-fPIC",
    "-shared",
    "-pthread",
    "-fopenmp-simd",
    "-fno-math-errno",
)
NATIVE = (("-march=native",), ("-mcpu=native",), ())  # the first that is known
COMPILE_SECONDS = 120


@cache
def compiler_command() -> tuple[str, ...]:
    """Return the command of the C compiler; CompilerMissing if there is none.

    DISTBFS_CC and CC may contain arguments, as in ``ccache gcc``.
    """
    named = os.environ.get("DISTBFS_CC") or os.environ.get("CC")
    if named == "none":
        raise CompilerMissing("no C compiler: DISTBFS_CC is 'none'")
    for words in [shlex.split(named)] if named else [["cc"], ["gcc"], ["clang"]]:
        path = shutil.which(words[0]) if words else None
        if path:
            return path, *words[1:]
    raise CompilerMissing(f"no C compiler: {named or 'cc, gcc, clang'} not found")


def find_compiler() -> str:
    """Return the C compiler as text; CompilerMissing if there is none."""
    return " ".join(compiler_command())


@cache
def compiler_version() -> str:
    """Return the first line that the compiler prints about its version."""
    done = subprocess.run(
        [*compiler_command(), "--version"], capture_output=True, text=True, check=False
    )
    return (done.stdout or done.stderr).partition("\n")[0].strip()


@cache
def processor() -> str:
    """Return a text that differs where ``-march=native`` means different processors."""
    with contextlib.suppress(OSError):
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        lines = re.findall(r"^(?:model name|flags|Features)\s*:.*$", text, re.MULTILINE)
        return "\n".join(sorted(set(lines)))
    return platform.processor() or platform.machine()


def digest_of(source: Path, definitions: Mapping[str, str | int], *more: object) -> str:
    """Return a digest of code, headers, definitions and flags.

    Comments in the source and its headers do not affect it.
    """
    digest = hashlib.blake2b(closure_code(source), digest_size=16)
    macros = sorted((name, str(value)) for name, value in definitions.items())
    for part in (macros, FLAGS, *more):
        digest.update(repr(part).encode() + b"\0")
    return digest.hexdigest()


def content_key(source: Path, definitions: Mapping[str, str | int]) -> str:
    """Return the cache key of a kernel on this machine with this compiler."""
    return digest_of(source, definitions, compiler_version(), processor())


def compile_to(
    source: Path,
    target: Path,
    definitions: Mapping[str, str | int],
    choices: Sequence[Sequence[str]] = NATIVE,
) -> None:
    """Compile a source to a shared library.

    choices: sets of flags to add to FLAGS; the first set that the compiler accepts is
    used
    """
    macros = [f"-D{name}={value}" for name, value in definitions.items()]
    message = ""
    try:
        for flags in choices:
            command = [*compiler_command(), *FLAGS, *flags, *macros]
            done = subprocess.run(
                [*command, "-o", str(target), str(source), "-lm"],
                capture_output=True,
                text=True,
                check=False,
                timeout=COMPILE_SECONDS,
            )
            if done.returncode == 0:
                return
            message = done.stderr.strip() or f"exit code {done.returncode}"
    except subprocess.TimeoutExpired:
        message = f"not done after {COMPILE_SECONDS} s"
    except OSError as error:
        message = str(error)
    lines = message.splitlines()
    first = next((line for line in lines if "error:" in line), lines[0])
    raise CompilerMissing(f"{find_compiler()} cannot compile {source.name}: {first}")
