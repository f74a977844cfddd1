"""Searches of tests/gpu/sanitize.py on a CPU, with kernels under AddressSanitizer.

Usage: addresses.py [KIND[:GRAPH] ...], as sanitize.py.  What lies around an array is
poisoned, so that reads beyond it end the program as well as writes do.  Kinds whose
kernels the emulator does not have end with an error of the compiler.
"""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(x) for x in (ROOT, ROOT / "tests", ROOT / "tests/gpu", HERE)]

import emulated_device  # noqa: E402
from emulated_device import compiler  # noqa: E402

# stacks are switched; compiled for one run
FLAGS = ("-fsanitize=address", "--param", "asan-stack=0", "-g", "-O0")
OPTIONS = "detect_leaks=0:detect_stack_use_after_return=0:use_sigaltstack=0"


def runtime():
    """The library that must be loaded first, None where the compiler has none."""
    if compiler() is None:
        return None
    command = [compiler(), "-print-file-name=libasan.so"]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return found.strip() if Path(found.strip()).is_absolute() else None


def run(kinds, **options):
    """Run kinds in a process that has the library; returns how it ended."""
    environment = {"LD_PRELOAD": runtime(), "ASAN_OPTIONS": OPTIONS}
    command = [sys.executable, __file__, *kinds]
    return subprocess.run(command, env=os.environ | environment, check=False, **options)


class Patch:
    """What ``install`` changes stays."""

    setattr = staticmethod(setattr)


def search(kinds):
    """Search as ``sanitize.py`` does."""
    import sanitize  # noqa: PLC0415 - only there

    poison = ctypes.CDLL(None).__asan_poison_memory_region
    poison.argtypes = [ctypes.c_void_p, ctypes.c_size_t]

    class Poisoned(emulated_device.EmulatedDevice):
        def guard(self, raw, start, size):
            poison(raw.ctypes.data, start)
            poison(raw.ctypes.data + start + size, len(raw) - start - size)

    kernels = emulated_device.Kernels((*emulated_device.FLAGS, *FLAGS), small=True)
    Poisoned(kernels).install(Patch())
    sanitize.search(list(sanitize.wanted(kinds)))


if __name__ == "__main__":
    if "ASAN_OPTIONS" in os.environ:
        search(sys.argv[1:])
    else:
        sys.exit(run(sys.argv[1:]).returncode)
