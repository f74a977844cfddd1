"""A C compiler that does not optimise: for tests that compile all kernels."""

QUICK = """#!/bin/sh
for word; do
    shift
    case $word in -O3) word=-O0 ;; esac
    set -- "$@" "$word"
done
exec cc "$@"
"""


def quick_compiler(folder):
    """Write the compiler into a folder; returns what DISTBFS_CC may be."""
    path = folder / "quick-cc"
    path.write_text(QUICK)
    path.chmod(0o755)
    return str(path)
