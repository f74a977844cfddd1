"""The kernels without instructions of this processor: the plain half of ``bits.h``."""

import re

import numpy as np
import pytest
from graphs import (
    NAMED,
    build,
    check_search,
    kronecker,
    random_tuples,
    some_roots,
    uniform,
)
from sessions import open_parts
from variants import make_engine
from wholes import host_searches

from distbfs.device import cc, compiler
from distbfs.multisearch.part_loop import Wanted
from distbfs.options import SearchOptions
from distbfs.ranks.world import SoloWorld

GENERIC = """#!/bin/sh
for given; do
    shift
    case $given in -m*=native) ;; *) set -- "$@" "$given" ;; esac
done
exec cc "$@" -O1
"""
GRAPHS = {
    "kronecker": kronecker(12),
    "random": random_tuples(500, 900, seed=7),
    "uniform": uniform(16_000, 160_000),
    "two-hubs": NAMED["two-hubs"],
}


@pytest.fixture(scope="module", autouse=True)
def generic_compiler(tmp_path_factory):
    """A compiler without the native flags, soon done, and with a cache of its own."""
    folder = tmp_path_factory.mktemp("generic")
    script = folder / "cc"
    script.write_text(GENERIC)
    script.chmod(0o755)
    cached = (compiler.compiler_command, compiler.compiler_version, cc._load)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DISTBFS_CC", str(script))
        patch.setenv("DISTBFS_CACHE", str(folder))
        for function in cached:
            function.cache_clear()
        yield
    for function in cached:
        function.cache_clear()


@pytest.mark.thorough
@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("direction", ["auto", "push", "pull"])
def test_searches(name, parts, direction):
    source = GRAPHS[name]
    made, _ = build(source, parts, threshold=None if parts == 1 else 8)
    session = open_parts(
        SoloWorld(), made, SearchOptions(direction=direction, threads=2)
    )
    for root in some_roots(source, 2):
        level, parent = session.search(root).to_numpy()
        check_search(source, root, level, parent)


def test_the_compiler_is_the_generic_one():
    assert make_engine("openmp").describe()["engine"] == "openmp"
    assert re.search(r"/generic\d+/cc$", compiler.find_compiler())


@pytest.mark.thorough
@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("name", GRAPHS)
def test_many_searches_at_once(name, width):
    source = GRAPHS[name]
    [part], _ = build(source, 1, threshold=1 << 62)
    roots = np.array(some_roots(source, 9) * 10)
    roots = roots[: 64 * width]
    search = host_searches(SoloWorld(), [part], width, 2)
    search.run(roots, Wanted(levels=True))
    wanted = source.levels_from(roots)
    for dtype in ("int8", "int16", "int32"):
        levels = np.empty(wanted.shape, dtype)
        search.put_levels(levels)
        np.testing.assert_array_equal(levels, wanted.astype(dtype))
    reached = np.empty(wanted.shape, np.bool_)
    search.put_levels(reached)
    np.testing.assert_array_equal(reached, wanted >= 0)
