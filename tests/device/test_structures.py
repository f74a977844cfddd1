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
from pathlib import Path

import pytest
from device_problems import device_problem

import distbfs
from distbfs.device import compiler, nvrtc
from distbfs.device.nvrtc import KernelRefused
from distbfs.device.nvshmem import nvshmem
from distbfs.device.sources import source_closure, variants
from distbfs.engines.cuda.pan import search as pan
from distbfs.engines.cuda.papers.bfs4k import search as bfs4k
from distbfs.engines.cuda.papers.xbfs import search as paper
from distbfs.engines.cuda.xbfs import search as fast
from distbfs.engines.cuda.xbfs import shared
from distbfs.errors import DeviceMissing, ResourceError
from distbfs.multisearch import (
    bits,
    cuda_bits,
    cuda_program,
    domain_members,
    domain_paths,
    domain_share,
)
from distbfs.validation import states

ROOT = Path(distbfs.__file__).parent
MIRRORS = re.compile(r"``(\w+)``\)? in ([\w.]+\w)")
COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
NUMBERED = re.compile(r"(\w+?)(\d+)")
PROGRAM = cuda_program.program_of(device_problem("betweenness"))
TEXTS = {"multi.cu": {cuda_program.HEADER: PROGRAM.text}}  # in the place of a file
MACROS = {  # of files that are not kernels
    "part.c": {"OFFSET": "uint32_t", "VERTEX": "int32_t", "NN_COLUMN": "uint64_t"},
    "bits_search.h": {"WIDTH": 1, "OFFSET": "uint32_t"},
}
RENAMED = {
    **{
        (file, f"{graph}_{what}"): f"{rows}.{what}"
        for k, graph in enumerate(pan.SUBGRAPHS)
        for file, rows in (("part.cuh", f"rows[{k}]"), ("part.c", graph))
        for what in ("offsets", "columns")
    },
    **{("part.c", f"{graph}_seen"): f"{graph}.seen" for graph in pan.SUBGRAPHS},
    ("multi.cuh", "from_row"): "from",
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
        f"sizeof(Control) == {bfs4k.CONTROL_BYTES}",
        f"sizeof(Record) == {8 * (len(bfs4k.RECORD) + len(bfs4k.COUNTS) + 1)}",
    ],
    "paper_state.cuh": [
        f"THREADS == {paper.THREADS}",
        f"sizeof(Record) == {8 * len(paper.RECORD)}",
    ],
    "part.cuh": [
        f"THREADS == {pan.THREADS} && PULL_BLOCKS == {pan.BLOCKS['pull']}",
        f"COUNT_BITS == {pan.ENTRIES_BITS} && COUNTS == {pan.COUNTS}",
        f"FIRST == {pan.FIRST} && BOX_STEP == {pan.BOX_STEP}",
    ],
    "search.cuh": [
        f"sizeof(Control) <= {fast.CONTROL_BYTES}",
        f"__builtin_offsetof(Control, highest) == {fast.HIGHEST_AT}",
    ],
    "domain.cuh": [
        f"sizeof(Message) == {shared.MESSAGE_BYTES}",
        f"sizeof(Mailbox) == {shared.MAILBOX_BYTES}",
        f"__builtin_offsetof(Mailbox, failed) == {shared.FAILED_AT}",
    ],
    "bits.cuh": [f"sizeof(Control) == {cuda_bits.CONTROL_BYTES}"],
    "bits_domain.cuh": [
        f"MOST_PARTS == {domain_members.MOST_PARTS} && TURNS == {domain_share.TURNS}",
        f"sizeof(Tally) == {8 * domain_share.TALLY_WORDS}",
    ],
    "bits_paths.cu": [
        f"MOST_PARTS == {domain_members.MOST_PARTS} && ITEM == {domain_paths.ITEM}",
        f"THREADS == {cuda_bits.THREADS}",
    ],
    "cuda.cu": [
        f"32 >> ALONE_SHIFT == {states.WIDTHS[0]} && ALONE_CODE == {states.DEEP_CODE}",
        f"TUPLES == {states.TUPLES_PER_THREAD}",
    ],
    "bits_search.h": [f"sizeof(bit_record) == {bits.RECORD.itemsize}"],
}


def structures():
    """Return all structures of the package, also those that are made when needed."""
    for module in pkgutil.walk_packages(distbfs.__path__, "distbfs."):
        if module.name.endswith(("__main__", "service.connection")):  # needs uvicorn
            continue
        importlib.import_module(module.name)
    found, waiting = [bits.structure(1)], [ctypes.Structure]
    job, end = PROGRAM.job()
    found += [job, end, job._fields_[1][1]]
    while waiting:
        for kind in waiting.pop().__subclasses__():
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
    own = [name for name, *_ in kind.__dict__["_fields_"]]
    inherited = [] if kind.__base__ is ctypes.Structure else members(kind.__base__)
    return inherited + own


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
EACH = {" ".join(names): kind for kind, names in reversed(KINDS.items())}


def kernel_file(path):
    """Return a kernel file that includes a header, or is it; first those beside it."""
    sources = sorted(ROOT.rglob("*.cu"), key=lambda x: (x.parent != path.parent, x))
    return next(x for x in sources if path in source_closure(x))


def probe(path, include, conditions, check):
    """Write a file that includes another and says what must hold; return its path."""
    lines = [f'#include "{include}"', *(f'{check}({x}, "{x}");' for x in conditions)]
    path.write_text("\n".join(lines) + "\n")
    return path


def compile_kernels(folder, kind):
    """Compile what must hold of a structure of kernels."""
    name, file = KINDS[kind]
    path = near(kind, file)
    source = kernel_file(path)
    texts = TEXTS.get(source.name, {})
    if file in texts:  # which has its place in that file alone
        path = source
    known = [x.read_text(encoding="utf-8") for x in source_closure(path)]
    text = "".join([*known, *texts.values()])
    conditions = [*checks(kind, name, file, text), *MORE.get(file, ())]
    made = probe(folder / "probe.cu", path, conditions, "static_assert")
    linked = nvshmem() if source.name == "between_loop.cu" else None
    nvrtc.compile_source(made, "sm_90", variants(source)[0], texts, linked)


def compile_host(folder, kind, include, text, *options):
    """Compile what must hold of a structure of C; options: of the compiler besides."""
    name, file = KINDS[kind]
    conditions = [*checks(kind, name, file, text), *MORE.get(file, ())]
    made = probe(folder / "probe.c", include, conditions, "_Static_assert")
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
    assert len(EACH) >= 40


@pytest.mark.parametrize("which", EACH)
def test_layout(which, tmp_path):
    kind = EACH[which]
    file = KINDS[kind][1]
    try:
        if file == "cuda.h":
            compile_host(tmp_path, kind, driver_header(), "")
        elif file == "nvshmem_types.h":
            home = nvshmem().includes[0]
            types = home / "device_host" / file
            cpp = ("-xc++", "-std=c++17", "-D_Static_assert=static_assert")
            compile_host(tmp_path, kind, types, "", *cpp, f"-I{home}")
        elif Path(file).suffix in (".cu", ".cuh"):
            nvrtc.bindings()
            compile_kernels(tmp_path, kind)
        else:
            path = near(kind, file)
            text = "".join(x.read_text("utf-8") for x in source_closure(path))
            compile_host(tmp_path, kind, path, text)
    except KernelRefused as error:
        pytest.fail(error.log)
    except ResourceError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))


def test_a_layout_that_differs_is_told(tmp_path):
    class Goal(ctypes.Structure):
        """``Goal`` in goal.cuh."""

        __module__ = "distbfs.engines.cuda.common.goal"
        _fields_ = (
            ("targets", ctypes.c_void_p),
            ("last", ctypes.c_int32),
            ("count", ctypes.c_uint32),
        )

    text = near(Goal, "goal.cuh").read_text(encoding="utf-8")
    told = list(checks(Goal, "Goal", "goal.cuh", text))
    assert "__builtin_offsetof(Goal, last) == 8" in told  # where it has `count`
    KINDS[Goal] = mirrored(Goal)
    try:
        nvrtc.bindings()
        with pytest.raises(
            KernelRefused, match=r"__builtin_offsetof\(Goal, last\) == 8"
        ):
            compile_kernels(tmp_path, Goal)
    except DeviceMissing as error:
        pytest.skip(str(error))
    finally:
        del KINDS[Goal]
