"""The kernels of validation/cuda.cu on the host, one thread per block.

They are compiled as C++ with stand-ins for what CUDA adds, so their answers can be
compared with those of ``validate`` where there is no device; tests/gpu runs the same
cases on one.
"""

import ctypes
import re
import shutil
import subprocess
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from graphs import NAMED, Tuples, random_tuples
from hypothesis import given, settings

from distbfs.errors import UsageError
from distbfs.ranks.world import SoloWorld
from distbfs.validation import between, cuda_device, derived_cuda
from distbfs.validation import cuda as module
from distbfs.validation.cuda import validate_on_device
from distbfs.validation.faults import TEXTS
from distbfs.validation.host import validate

from .test_validate import asked, mutations, search

TYPES = [(x, y) for x in module.LEVEL_TYPES for y in module.PARENT_TYPES]
STAND_INS = """
#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__
#define __launch_bounds__(...)
struct uint4 { unsigned x, y, z, w; };
struct index { unsigned x; };
static index threadIdx = {0}, blockIdx = {0}, blockDim = {1}, gridDim = {1};
static void __syncthreads() {}
static void __syncwarp() {}
template <class T> T __ldcs(const T *p) { return *p; }
template <class T> T __ldcg(const T *p) { return *p; }
template <class T> T __ldg(const T *p) { return *p; }
template <class T> T __reduce_add_sync(unsigned, T x) { return x; }
template <class T> T __reduce_max_sync(unsigned, T x) { return x; }
static unsigned __ballot_sync(unsigned, int x) { return x != 0; }
static int __ffs(unsigned x) { return __builtin_ffs(x); }
template <class T> T __shfl_xor_sync(unsigned, T x, int) { return 0; }
template <class T> T __shfl_up_sync(unsigned, T x, int) { return x; }
static unsigned __match_any_sync(unsigned, unsigned) { return 1; }
static int __popc(unsigned x) { return __builtin_popcount(x); }
template <class T> T __shfl_sync(unsigned, T x, int) { return x; }
template <class T> T atomicAdd(T *p, T x) { return (*p += x) - x; }
template <class T> void atomicOr(T *p, T x) { *p |= x; }
template <class T> void atomicMin(T *p, T x) { if (x < *p) *p = x; }
template <class T> void atomicMax(T *p, T x) { if (x > *p) *p = x; }
#include "base.cuh"
extern "C" void set_block(unsigned block, unsigned grid)
{
    blockIdx.x = block;
    gridDim.x = grid;
}
"""

PTX = """
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char i8;
typedef int i32;
typedef long long i64;
#define INLINE static inline
INLINE u64 look(const u64 *p) { return *p; }
INLINE void add_release(u64 *p, u64 x) { *p += x; }
INLINE u64 look_acquire(const u64 *p) { return *p; }
INLINE void reload() {}
"""
BASE = Path(module.__file__).parents[1] / "engines" / "cuda" / "common" / "base.cuh"


class Stream:
    """All is done at once."""

    ptr = 0
    synchronize = record = wait_event = lambda *_: None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


STREAM = Stream()


class HostModule:
    """The kernels as a shared library, launched block by block."""

    def __init__(self, folder, compiler, source, **definitions):
        name = "-".join(definitions.values())
        code, library = folder / f"{name}.cpp", folder / f"{name}.so"
        (folder / "ptx.cuh").write_text(PTX)
        shutil.copy(BASE, folder)
        text = source.read_text(encoding="utf-8")
        code.write_text(STAND_INS + re.sub(r"#include .*", "", text))
        macros = [f"-D{key}={value}" for key, value in definitions.items()]
        flags = ["-std=c++17", "-O1", "-shared", "-fPIC", "-w", *macros]
        subprocess.run([compiler, *flags, "-o", library, code], check=True)
        self.library = ctypes.CDLL(str(library))

    def kernel(self, name):
        def launch(grid, block, *arguments):
            converted = [
                ctypes.c_void_p(x.ctypes.data)
                if isinstance(x, np.ndarray)
                else np.ctypeslib.as_ctypes_type(x.dtype)(x)
                for x in arguments
            ]
            for at in range(grid):
                self.library.set_block(at, grid)
                self.library[name](*converted)

        def prepare(arguments, grid, block):
            def run(stream):
                for at in range(grid):
                    self.library.set_block(at, grid)
                    self.library[name](arguments)

            return run

        launch.set_attribute = lambda *_: None
        launch.prepare = prepare
        return launch


@pytest.fixture(scope="module")
def host_device(tmp_path_factory):
    """Run the module's kernels on the host and NumPy in place of CuPy."""
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    folder = tmp_path_factory.mktemp("kernels")
    arrays = SimpleNamespace(
        empty=np.empty,
        zeros=np.zeros,
        full=np.full,
        asarray=np.asarray,
        asnumpy=np.copy,
        cuda=SimpleNamespace(
            Device=lambda: SimpleNamespace(id=0),
            Stream=lambda **_: STREAM,
            get_current_stream=lambda: STREAM,
        ),
    )
    stand_in = SimpleNamespace(
        cupy=lambda: arrays,
        memory_of=lambda what: nullcontext(),
        multiprocessors=lambda: 1,
        free_bytes=lambda: 1 << 40,
        available=lambda need: 1 << 40,
    )
    kernels = SimpleNamespace(
        Module=lambda source, **macros: HostModule(folder, compiler, source, **macros),
        PREFERRED_CARVEOUT=0,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "cuda", stand_in)
        patch.setattr(cuda_device, "cuda", stand_in)
        patch.setattr(derived_cuda, "cuda", stand_in)
        patch.setattr(between, "cuda", stand_in)
        patch.setattr(cuda_device, "programs", kernels)
        cuda_device.kernels_for.cache_clear()
        yield np
        cuda_device.kernels_for.cache_clear()


class ArrayTuples:
    """Tuples that are copied into the memory of ``xp`` (CuPy or NumPy)."""

    def __init__(self, source, xp, dtype=np.uint32):
        self.n, self.tuples, self.dtype = source.n, source.tuples, dtype
        self.u, self.v = (xp.asarray(x.astype(dtype)) for x in (source.u, source.v))

    def fill(self, start, stop, u, v):
        assert 0 <= start < stop <= self.tuples
        u[: stop - start] = self.u[start:stop]
        v[: stop - start] = self.v[start:stop]


def holds(values, dtype):
    """Whether a dtype can tell all values; the largest of unsigned ones is -1."""
    limits = np.iinfo(dtype)
    low, high = (-1, limits.max - 1) if limits.kind == "u" else (limits.min, limits.max)
    return values is None or (values.min() >= low and values.max() <= high)


def compare(xp, source, root, level, parent, types=TYPES, *, directed=False, **options):
    """Compare with the host for each pair of dtypes that can hold the result."""
    options["directed"] = directed
    if level is not None:
        level = np.asarray(level, dtype=np.int32)
    known = (SoloWorld(), source, root, level, parent)
    expected = validate(*known, directed=directed, threads=1)
    tuples = ArrayTuples(source, xp)
    if parent is None:  # whose type then makes no difference
        types = list({x: (x, y) for x, y in types}.values())
    if level is None:
        types = list({y: (x, y) for x, y in types}.values())
    for level_type, parent_type in types:
        if not (holds(level, level_type) and holds(parent, parent_type)):
            continue
        verdict = validate_on_device(
            tuples,
            root,
            None if level is None else xp.asarray(level.astype(level_type)),
            None if parent is None else xp.asarray(parent.astype(parent_type)),
            **options,
        )
        for name in ("errors", "valid", "nedge", "reached", "depth"):
            assert getattr(verdict, name) == getattr(expected, name), (
                name,
                verdict,
                expected,
            )
        assert verdict.seconds > 0
    return expected


def planted(source, root, level, parent, seed):
    """Yield (name, source, root, level, parent) with one kind of fault each."""
    rng = np.random.default_rng(seed)
    n = source.n
    reached = np.flatnonzero(level >= 0)
    others = np.flatnonzero(level < 0)
    below = reached[reached != root]
    x = int(rng.choice(below if len(below) else reached))
    away = int(rng.choice(others)) if len(others) else x

    def with_values(name, levels=(), parents=(), source=source, root=root):
        a, b = level.copy(), parent.copy()
        for at, value in levels:
            a[at] = value
        for at, value in parents:
            b[at] = value
        return name, source, root, a, b

    some = rng.choice(n, max(n // 7, 1), replace=False)
    deepest = below[level[below] == level.max()] if len(below) else reached
    outside = Tuples(n, source.u.copy(), source.v.copy(), source.size)
    if outside.tuples:
        outside.u[rng.integers(outside.tuples, size=2)] = n + 3
        outside.v[rng.integers(outside.tuples)] = 2**32 - 1
    yield with_values("none")
    yield with_values("level up", [(x, level[x] + 1)])
    yield with_values("level down", [(x, level[x] - 1)])
    yield with_values("levels up", [(deepest, level.max() + 2)])
    yield with_values("levels random", [(some, rng.integers(-1, 5, len(some)))])
    yield with_values("parent any", [], [(x, rng.integers(n))])
    yield with_values("parents any", [], [(some, rng.integers(0, n, len(some)))])
    yield with_values("parent is child", [], [(parent[x], x)])
    yield with_values("parents swapped", [], [(x, parent[away]), (away, parent[x])])
    yield with_values("parent is itself", [], [(x, x), (some, some)])
    yield with_values("lost", [(some, -1)], [(some, -1)])
    yield with_values("lost below", [(level > 1, -1)], [(level > 1, -1)])
    yield with_values("nothing reached", [(slice(None), -1)], [(slice(None), -1)])
    yield with_values("other root", root=away)
    yield with_values("root level", [(root, 1)])
    yield with_values("root lost", [(root, -1)], [(root, -1)])
    yield with_values("root parent", [], [(root, x)])
    yield with_values("two roots", [(x, 0)], [(x, x)])
    yield with_values("level zero", [(x, 0)])
    yield with_values("level n", [(x, n)])
    yield with_values("level past n", [(some, 254), (x, 254)])
    yield with_values("level large", [(x, 2**31 - 1)])
    yield with_values("level negative", [(x, -2), (away, -(2**31))])
    yield with_values("level only", [(away, 2)])
    yield with_values("parent only", [], [(away, x)])
    yield with_values("parent lost", [], [(x, -1)])
    yield with_values("parent n", [], [(x, n)])
    yield with_values("parents past n", [], [(some, n + 5), (x, 2**32 - 2)])
    yield with_values("parent negative", [], [(x, -7), (away, -(2**31))])
    yield with_values("parent huge", [], [(x, 2**63 - 1), (away, -(2**63))])
    yield with_values("island", [(others, 3)], [(others, x)])
    yield with_values("all wrong", [(slice(None), 7)], [(slice(None), n - 1)])
    yield with_values("tuples outside", source=outside)


def graphs_for(seed):
    """Yield (name, source, root)."""
    for name, source in NAMED.items():
        yield name, source, source.n // 2
    rng = np.random.default_rng(seed)
    for n, count in ((30, 20), (300, 900)):
        yield f"random {n}", random_tuples(n, count, seed), int(rng.integers(n))


CASES = {name: (source, root) for name, source, root in graphs_for(5)}


@pytest.mark.parametrize("graph", CASES)
def test_planted_faults_are_told_as_the_host_tells_them(host_device, graph):
    """Each fault with some types, and with levels or parents alone, in turns."""
    (source, root), turn = CASES[graph], [*CASES].index(graph)
    level, parent = search(source.n, source.u, source.v, root)
    for k, (name, *case) in enumerate(planted(source, root, level, parent, seed=11)):
        types = TYPES[(k + turn) % 4 :: 4] if k else TYPES
        verdicts = [compare(host_device, *case, types, chunk=1000)]
        *known, level_of, parent_of = case
        if not k or (k + turn) % 2:
            few = max(37, source.tuples // 13)
            verdicts.append(compare(host_device, *known, level_of, None, chunk=few))
        if not k or (k + turn // 2) % 2:
            types = TYPES[(k + turn) % 2 :: 2]
            verdicts.append(
                compare(host_device, *known, None, parent_of, types, chunk=1000)
            )
        assert name != "none" or all(verdict.valid for verdict in verdicts)


@settings(max_examples=80, deadline=None)
@given(mutations())
def test_answers_are_those_of_the_host(host_device, case):
    n, u, v, root, *known, directed = case
    way = {"chunk": 5, "directed": directed}
    compare(host_device, Tuples(n, u, v), root, *asked(*known), **way)


def test_kinds_stand_in_the_order_of_their_texts():
    text = cuda_device.SOURCE.read_text(encoding="utf-8")
    listed = re.search(r"enum Kind \{([^}]*)\}", text)[1]
    names = [word.strip().lower() for word in listed.split(",")]
    assert names == [*TEXTS, "kinds"]


def test_what_does_not_fit_is_refused_before_a_device_is_asked_for():
    source = ArrayTuples(NAMED["isolated"], np)
    level, parent = np.zeros(7, np.int8), np.zeros(7, np.int32)
    for root in (-1, 7):
        with pytest.raises(UsageError, match="allowed: 0 to 6"):
            validate_on_device(source, root, level, parent)
    with pytest.raises(UsageError, match="chunk is 0"):
        validate_on_device(source, 0, level, parent, chunk=0)
    for wrong in (level[:6], level.astype(np.int64), np.zeros(14, np.int8)[::2]):
        with pytest.raises(UsageError, match="levels are not one"):
            validate_on_device(source, 0, wrong, parent)
    for wrong in (parent[:6], parent.astype(np.float32)):
        with pytest.raises(UsageError, match="parents are not one"):
            validate_on_device(source, 0, level, wrong)
    large = SimpleNamespace(n=(1 << 42) + 1, tuples=0)
    with pytest.raises(UsageError, match="allowed: 4398046511104"):
        validate_on_device(large, 0, level, parent)
