"""The compiled C kernels of a wheel, for any processor of an architecture.

They are used unless a C compiler is named, and also if that compiler fails.  Each
kernel is compiled for a few levels of the architecture, and the highest level that this
processor supports is used.  The name of a library contains the digest of its code, so
that a library of another version is never found. The folder also holds machine code of
GPUs, see ``nvrtc``.

Only the standard library is imported here: ``hatch_build.py`` builds wheels with it.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from distbfs.device.compiler import compile_to, digest_of, processor
from distbfs.device.control_groups import usable_cores
from distbfs.device.sources import variants

PACKAGE = Path(__file__).resolve().parents[1]
FOLDER = PACKAGE / "_compiled"
# by machine, highest first: what gcc calls the level, and the features that Linux lists
V2 = frozenset(("cx16", "lahf_lm", "pni", "popcnt", "sse4_1", "sse4_2", "ssse3"))
V3 = V2 | {"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave"}
V4 = V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
LEVELS: Mapping[str, Mapping[str, frozenset[str]]] = {
    "x86_64": {"x86-64-v4": V4, "x86-64-v3": V3, "x86-64-v2": V2},
    "aarch64": {"armv8-a": frozenset()},
}
ARCHITECTURES = ("sm_80", "sm_90", "sm_100")  # of GPUs


def levels() -> tuple[str, ...]:
    """Return the levels of this machine's architecture, highest first."""
    return tuple(LEVELS.get(platform.machine(), ()))


def levels_of(text: str) -> tuple[str, ...]:
    """Return the levels that a processor supports, from the text of ``processor()``."""
    lines = [x for x in text.splitlines() if x.startswith(("flags", "Features"))]
    listed = [frozenset(x.partition(":")[2].split()) for x in lines]
    features = frozenset.intersection(*listed) if listed else frozenset()
    known = LEVELS.get(platform.machine(), {})
    return tuple(level for level, needed in known.items() if needed <= features)


def name_of(source: Path, definitions: Mapping[str, str | int], level: str) -> str:
    """Return the file name of a kernel's library for a level."""
    return f"{source.stem}-{level}-{digest_of(source, definitions, level)}.so"


def find(source: Path, definitions: Mapping[str, str | int]) -> tuple[str, Path] | None:
    """Return the highest level that has the kernel, and the library, or None."""
    for level in levels_of(processor()) if FOLDER.is_dir() else ():
        path = FOLDER / name_of(source, definitions, level)
        if path.is_file():
            return level, path
    return None


def build(folder: Path, wanted: Iterable[str]) -> list[Path]:
    """Compile every C kernel of the package in all variants for some levels.

    Returns the paths of the libraries, which are in ``folder``.  Raises CompilerMissing
    for the first kernel that does not compile.
    """

    def one(source: Path, definitions: Mapping[str, str], level: str) -> Path:
        target = folder / name_of(source, definitions, level)
        compile_to(source, target, definitions, [(f"-march={level}", "-s")])
        return target

    asked = [
        (source, definitions, level)
        for level in wanted
        for source in sorted(PACKAGE.rglob("*.c"))
        for definitions in variants(source)
    ]
    with ThreadPoolExecutor(usable_cores()) as pool:
        return list(pool.map(one, *zip(*asked, strict=True)))
