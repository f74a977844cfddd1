"""Structures that Python shares with kernels, C and the driver have one layout.

Each says in its docstring what it mirrors: ``Name`` in a file.  A compiler of that file
compares the size of both, and where each member lies and how large it is.
"""

import ctypes
import importlib
import importlib.util
import os
import pkgutil
import re
import subprocess
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from device_problems import device_problem

import distbfs
from distbfs.device import compiler, nvrtc
from distbfs.device.nvrtc import KernelRefused
from distbfs.device.nvshmem import nvshmem
from distbfs.device.sources import source_closure, variants
from distbfs.device.structures import ASK, Declarations, Record, uints
from distbfs.engines.cuda.common import host_loop, paths
from distbfs.engines.cuda.pan import search as pan
from distbfs.engines.cuda.papers.bfs4k import search as bfs4k
from distbfs.engines.cuda.papers.xbfs import search as paper
from distbfs.engines.cuda.xbfs import arrays, limits, shared
from distbfs.engines.cuda.xbfs import share_search as fast
from distbfs.errors import DeviceMissing, ResourceError
from distbfs.multisearch import (
    bits,
    cuda_program,
    domain_paths,
    domain_share,
)
from distbfs.validation import states

ROOT = Path(distbfs.__file__).parent
SYNTAX = "-fdevice-syntax-only"  # no machine code is made
MIRRORS = re.compile(r"``(\w+)``\)? in ([\w.]+\w)")
COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
NUMBERED = re.compile(r"(\w+?)(\d+)")
PROGRAM = cuda_program.program_of(device_problem("betweenness"))
TEXTS = {"multi.cu": {cuda_program.HEADER: PROGRAM.text}}  # in the place of a file
MACROS = {  # of files that are not kernels
    "part.c": {"OFFSET": "uint32_t", "VERTEX": "int32_t"},
}
RENAMED = {
    ("cuda.h", "grid"): "gridDimX",
    ("cuda.h", "block"): "blockDimX",
    ("cuda.h", "shared"): "sharedMemBytes",
    ("cuda.h", "stream"): "hStream",
    ("cuda.h", "attributes"): "attrs",
    ("cuda.h", "count"): "numAttrs",
    ("cuda.h", "function"): "func",
    ("cuda.h", "parameters"): "kernelParams",
    ("cuda.h", "kernel"): "kern",
    ("cuda.h", "context"): "ctx",
    ("nvshmem_types.h", "rank"): "myrank",
    ("nvshmem_types.h", "ranks"): "nranks",
    ("nvshmem_types.h", "unique_id"): "uid_args",
    ("nvshmem_types.h", "communicator"): "mpi_comm",
    ("nvshmem_types.h", "arguments"): "args",
}
MORE = {  # constants that Python has, too, and sizes of what it does not mirror
    "bfs4k.cuh": [
        f"THREADS == {bfs4k.THREADS} && LOCAL == {bfs4k.LOCAL}",
    ],
    "paper_state.cuh": [f"THREADS == {paper.THREADS}"],
    "loop.cuh": [
        f"THREADS == {host_loop.THREADS} && BLOCKS == {host_loop.BLOCKS}",
        f"COUNTS == {host_loop.COUNTS}",
    ],
    "part.cuh": [
        f"THREADS == {pan.THREADS} && PULL_BLOCKS == {pan.BLOCKS['pull']}",
        f"COUNT_BITS == {pan.ENTRIES_BITS} && COUNTS == {pan.COUNTS}",
        f"FIRST == {pan.FIRST} && BOX_STEP == {pan.BOX_STEP}",
    ],
    "search.cuh": [
        f"sizeof(Control) <= {fast.CONTROL_BYTES} && NARROW == {limits.NARROW}"
    ],
    "xbfs/search.cu": [f"TOGETHER == {arrays.RESULT_BLOCKS}"],
    "domain.cuh": [f"MOST_PARTS == {shared.MOST_PARTS} && ALONE == {shared.ALONE}"],
    "bits_domain.cuh": [
        f"MOST_PARTS == {shared.MOST_PARTS} && TURNS == {domain_share.TURNS}",
        f"sizeof(Tally) == {8 * domain_share.TALLY_WORDS}",
    ],
    "paths.cu": [
        f"MOST_PARTS == {shared.MOST_PARTS} && ITEM == {domain_paths.ITEM}",
        f"THREADS == {paths.THREADS}",
    ],
    "cuda.cu": [
        f"32 >> ALONE_SHIFT == {states.WIDTHS[0]} && ALONE_CODE == {states.ALONE.code}",
        f"TUPLES == {states.TUPLES_PER_THREAD}",
    ],
    "bits_search.h": [f"sizeof(bit_record) == {bits.RECORD.itemsize}"],
}


def structures():
    """Return all structures of the package that no text of it declares."""
    for module in pkgutil.walk_packages(distbfs.__path__, "distbfs."):
        if module.name.endswith("__main__"):
            continue
        importlib.import_module(module.name)
    found, waiting = [], [ctypes.Structure]
    while waiting:
        for kind in waiting.pop().__subclasses__():
            if kind is Record:  # those are read from what declares them
                continue
            waiting.append(kind)
            if kind.__module__.startswith("distbfs."):
                found.append(kind)
    return found


def mirrored(kind):
    """Return the name of what a structure mirrors and its file, from the docstring."""
    name, file = MIRRORS.search(kind.__doc__ or "no docstring").groups()
    return name, file


def near(kind, file):
    """Return the path of a file by its name, that beside the structure's module."""
    paths = [x for x in ROOT.rglob(file) if x.is_file()]
    beside = Path(importlib.import_module(kind.__module__).__file__).parent
    return next((x for x in paths if x.parent == beside), *paths)


def members(kind):
    """Return the fields of a structure with those of its bases, in order."""
    if kind in (Record, ctypes.Structure):
        return []
    return members(kind.__base__) + [name for name, *_ in kind.__dict__["_fields_"]]


def checks(kind, name, file, text):
    """Yield what must hold of the structure ``name``, in the language of its file."""
    yield f"sizeof({name}) == {ctypes.sizeof(kind)}"
    words = set(re.findall(r"\w+", COMMENTS.sub(" ", text)))
    for member in members(kind):
        where = getattr(kind, member)
        there = RENAMED.get((file, member), member)
        if there not in words and NUMBERED.fullmatch(there):
            there = NUMBERED.sub(r"\1[\2]", there)
        yield f"__builtin_offsetof({name}, {there}) == {where.offset}"
        if not there.endswith("X"):  # three of them here, one there
            yield f"sizeof((({name} *)0)->{there}) == {where.size}"


KINDS = {kind: mirrored(kind) for kind in structures()}
FILES = {}  # the structures of each file
for kind, (_, file) in reversed(KINDS.items()):
    place = "" if file in ("cuda.h", "nvshmem_types.h") else near(kind, file).parent
    FILES.setdefault((file, place), []).append(kind)


def kernel_file(path):
    """Return a kernel file that includes a header, or is it; first those beside it."""
    sources = sorted(ROOT.rglob("*.cu"), key=lambda x: (x.parent != path.parent, x))
    return next(x for x in sources if path in source_closure(x))


def probe(path, include, conditions, check):
    """Write a file that includes another and says what must hold; return its path."""
    lines = [f'#include "{include}"', *(f'{check}({x}, "{x}");' for x in conditions)]
    path.write_text("\n".join(lines) + "\n")
    return path


def compile_kernels(folder, source, include, wanted):
    """Compile what must hold where a file of kernels is included."""
    made = probe(folder / "probe.cu", include, wanted, "static_assert")
    more = nvshmem().options if source.name == "between_loop.cu" else []
    front = SimpleNamespace(options=[*more, SYNTAX], link=lambda code, _: code)
    texts = TEXTS.get(source.name, {})
    nvrtc.compile_source(made, "sm_90", variants(source)[0], texts, front)


@contextmanager
def compiling_kernels():
    """Fail with all that NVRTC says; skip the test without it, but in CI."""
    try:
        nvrtc.bindings()
        yield
    except KernelRefused as error:
        pytest.fail(error.log)
    except ResourceError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))


def compile_mirrors(folder, path, kinds):
    """Compile what must hold of structures of a file of kernels."""
    source, file = kernel_file(path), path.name
    texts = TEXTS.get(source.name, {})
    if file in texts:  # which has its place in that file alone
        path = source
    known = [x.read_text(encoding="utf-8") for x in source_closure(path)]
    wanted = conditions(kinds, "".join([*known, *texts.values()]))
    compile_kernels(folder, source, path, wanted)


def conditions(kinds, text):
    """Return what must hold of structures of one file."""
    return [x for kind in kinds for x in checks(kind, *KINDS[kind], text)]


def compile_host(folder, kinds, include, text, *options):
    """Compile what must hold of structures of C; options: of the compiler besides."""
    file = KINDS[kinds[0]][1]
    made = probe(folder / "probe.c", include, conditions(kinds, text), "_Static_assert")
    macros = [f"-D{key}={value}" for key, value in MACROS.get(file, {}).items()]
    command = [
        *compiler.compiler_command(),
        *compiler.FLAGS,
        "-fsyntax-only",
        *macros,
        *options,
        str(made),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def driver_header():
    """Return cuda.h of a toolkit, of the system or of a package; skip without."""
    spec = importlib.util.find_spec("nvidia")
    packages = spec.submodule_search_locations if spec else ()
    folders = [Path(os.environ.get("CUDA_PATH", "/usr/local/cuda"))]
    folders += [x for package in packages for x in sorted(Path(package).iterdir())]
    for folder in folders:
        if (folder / "include" / "cuda.h").is_file():
            return folder / "include" / "cuda.h"
    pytest.skip("no cuda.h")


def test_structures_are_found():
    assert len(KINDS) >= 7


@pytest.mark.parametrize(("file", "folder"), FILES)
def test_layouts(file, folder, tmp_path):
    kinds = FILES[file, folder]
    with compiling_kernels():
        if file == "cuda.h":
            compile_host(tmp_path, kinds, driver_header(), "")
        elif file == "nvshmem_types.h":
            home = nvshmem().includes[0]
            types = home / "device_host" / file
            cpp = ("-xc++", "-std=c++17", "-D_Static_assert=static_assert")
            compile_host(tmp_path, kinds, types, "", *cpp, f"-I{home}")
        elif Path(file).suffix in (".cu", ".cuh"):
            compile_mirrors(tmp_path, folder / file, kinds)
        else:
            path = folder / file
            text = "".join(x.read_text("utf-8") for x in source_closure(path))
            compile_host(tmp_path, kinds, path, text)


def kinds_of(declarations):
    """Return structures by name, but those with members that Python never sets."""
    kinds = {}
    for name in declarations.names:
        with suppress(ValueError):
            kinds[name] = declarations.kind(name)
    return kinds


SOURCES = sorted([*ROOT.rglob("*.c"), *ROOT.rglob("*.cu")])


@pytest.mark.parametrize("source", SOURCES, ids=lambda x: f"{x.parent.name}/{x.name}")
def test_structures_are_read_as_a_compiler_reads_them(source, tmp_path):
    """And constants that Python has, too."""
    definitions = variants(source)[0]
    declarations = Declarations(source, definitions, TEXTS.get(source.name))
    files = [path.name for path in source_closure(source)]
    files.append(f"{source.parent.name}/{source.name}")
    wanted = [x for file in files for x in MORE.get(file, ())]
    for name, kind in kinds_of(declarations).items():
        if members(kind):  # of those without, C++ says that they take a byte
            wanted += checks(kind, name, source.name, " ".join(members(kind)))
    if source.suffix == ".cu":
        with compiling_kernels():
            compile_kernels(tmp_path, source, source, wanted)
        return
    made = probe(tmp_path / "probe.c", source, wanted, "_Static_assert")
    words = [f"-D{name}={value}" for name, value in definitions.items()]
    command = [*compiler.compiler_command(), *compiler.FLAGS, "-fsyntax-only"]
    subprocess.run([*command, *words, str(made)], check=True)


ENGINES = [x for x in SOURCES if x.is_relative_to(ROOT / "engines/cuda")]


@pytest.mark.thorough
@pytest.mark.parametrize("source", ENGINES, ids=lambda x: x.name)
def test_a_structure_serves_all_variants(source):
    """Engines read them without definitions, once for all kernels; but Edge.

    Those that edges which lead one way need have more members at their ends.
    """
    some = {pair: each for each in variants(source) for pair in each.items()}
    plain = kinds_of(Declarations(source, {}))
    for definitions in some.values():
        if "DIRECTED" in definitions:
            whole = Declarations(source, definitions).kind("Params")._fields_
            known = Declarations(source, {}).kind("Params")._fields_
            assert whole[: len(known)] == known
            continue
        kinds = kinds_of(Declarations(source, definitions))
        common = set(plain) & set(kinds) - {"Edge"}
        assert {x: plain[x] for x in common} == {x: kinds[x] for x in common}


DECLARED = """
#include "inner.h"
#ifndef WORD
#define WORD uint32_t
#endif
#define WIDE (sizes + 2)   /* of all */
enum { NONE, sizes = 3 };
typedef struct { int a; } unused;
typedef struct {
    WORD small, *at[2];            // two pointers
    const inner *const below;
    inner one, few[WIDE];
#if defined(MORE) && MORE >= 2
    double more;
#elif defined(MORE)
    float more;
#else
    char none;
#endif
    int (*ask)(void);
    long long last [2] [1 << 1];
} outer;
"""


@pytest.mark.parametrize("macros", [{}, {"WORD": "uint64_t", "MORE": 1}, {"MORE": 2}])
def test_declarations(tmp_path, macros):
    (tmp_path / "inner.h").write_text("typedef struct { char c; uint16_t x; } inner;")
    source = tmp_path / "outer.c"
    source.write_text(DECLARED)
    kind = Declarations(source, macros).kind("outer")
    word = ctypes.c_uint64 if "WORD" in macros else ctypes.c_uint32
    fields = dict(kind._fields_)
    inner = fields["one"]
    assert inner._fields_ == [("c", ctypes.c_char), ("x", ctypes.c_uint16)]
    more = {0: ("none", "char"), 1: ("more", "float"), 2: ("more", "double")}
    name, what = more[macros.get("MORE", 0)]
    assert fields == {
        "small": word,
        "at": ctypes.c_void_p * 2,
        "below": ctypes.c_void_p,
        "one": inner,
        "few": inner * 5,
        name: getattr(ctypes, f"c_{what}"),
        "ask": ASK,
        "last": ctypes.c_longlong * 2 * 2,
    }
    assert [x for x, _ in kind._fields_] == list(fields)


def test_a_header_declares_one_class_for_all_that_include_it(tmp_path):
    (tmp_path / "inner.h").write_text("typedef struct { char c; uint16_t x; } inner;")
    kinds = []
    for k in range(2):
        source = tmp_path / f"outer{k}.c"
        source.write_text(DECLARED)
        kinds.append(Declarations(source, {"MORE": k + 1}))
    assert len({x.kind("inner") for x in kinds}) == 1
    assert len({x.kind("outer") for x in kinds}) == 2
    outer = kinds[0].kind("outer")(one=kinds[1].kind("inner")(x=7))
    assert outer.one.x == 7


def test_records_take_arrays_and_keep_them(tmp_path):
    (tmp_path / "inner.h").write_text("typedef struct { void *p; int k; } inner;")
    source = tmp_path / "outer.c"
    source.write_text(DECLARED)
    kind = Declarations(source, {}).kind("outer")
    array, device = np.arange(4), SimpleNamespace(data=SimpleNamespace(ptr=64))
    record = kind(small=7, at=[array, None], below=device, one={"p": array, "k": 3})
    assert (record.small, record.below, record.one.k) == (7, 64, 3)
    assert [*record.at] == [array.ctypes.data, None]
    assert record.one.p == array.ctypes.data
    assert record.held["one.p"] is record.held["at"][0] is array
    other = Declarations(source, {}).kind("inner")  # another class, of one layout
    record.set(one=other(p=array, k=9))
    assert (record.one.p, record.one.k) == (array.ctypes.data, 9)
    assert record.held["one"].held["p"] is array
    inside = record.one
    inside.set(p=device)
    assert (record.one.p, inside.held["p"]) == (64, device)
    record.set(below=None, small=8)
    assert (record.small, record.below) == (8, None)
    with pytest.raises(ValueError, match="contiguous"):
        record.set(below=array[::2])
    with pytest.raises(AttributeError, match="beneath"):
        record.set(beneath=None)
    with pytest.raises(KeyError):
        Declarations(source, {}).kind("another")


def test_a_layout_that_differs_is_told(tmp_path):
    class Owner(ctypes.Structure):
        _fields_ = (("number", ctypes.c_uint32), ("part", ctypes.c_uint32))

    source = next(x for x in SOURCES if x.name == "seen.cu")
    assert Declarations(source, variants(source)[0]).kind("Owner")
    wanted = checks(Owner, "Owner", source.name, "number part")
    try:
        nvrtc.bindings()
        with pytest.raises(KernelRefused, match=r"__builtin_offsetof\(Owner, number\)"):
            compile_kernels(tmp_path, source, source, wanted)
    except DeviceMissing as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(("dtype", "tag"), [(np.uint32, 0), (np.uint64, 1)])
def test_an_array_of_either_width_has_it_in_its_address(tmp_path, dtype, tag):
    source = tmp_path / "uints.c"
    source.write_text("struct Uints { const void *at; }; struct P { Uints row; };")
    kind, array = Declarations(source, {}).kind("P"), np.arange(4).astype(dtype)
    record = kind(row=array)
    assert record.row.at == int(uints(array)) == array.ctypes.data + tag
    assert record.held["row"] is array
    record.set(row=None)
    assert record.row.at is None
    with pytest.raises(ValueError, match="items of 2 bytes, not 4 or 8"):
        record.set(row=array.astype(np.uint16))
    with pytest.raises(ValueError, match="contiguous"):
        record.set(row=array[::2])
