"""Kernel files say what they do, over which data, and the shape of every pointer.

All of them are written in the words of one header, which nobody defines again.
"""

import re
from pathlib import Path

import distbfs
from distbfs.device.sources import source_closure

ROOT = Path(distbfs.__file__).parent
APART = "engines/cuda/xbfs/"  # search.cuh and domain.cuh say it for all files there
FILES = {
    name: path
    for path in sorted(ROOT.rglob("*.cu"))
    if not (name := str(path.relative_to(ROOT))).startswith(APART)
}
HEADERS = sorted(ROOT.rglob("*.cuh"))
BASE = ROOT / "engines" / "cuda" / "common" / "base.cuh"
OTHER_WORDS = re.compile(
    r"\bu?int\d+_t\b|\btypedef (?:un)?signed\b|\btypedef long\b|\basm\b"
    r"|^static __device__ __forceinline__|^#define (?:ALL|NONE|INLINE|DEVICE)\b",
    re.MULTILINE,
)
GUARD = re.compile(r"^#ifndef (\w+)\n#define \1$", re.MULTILINE)
DEFINED = re.compile(r"^(?:template <.*> )?INLINE [\w ]+?[ *]+(\w+)\(", re.MULTILINE)
WITHOUT_PAPER = {
    *("build/cuda/graph.cu", "build/cuda/keys.cu", "store/cuda_rows.cu"),
    *("build/cuda/shares.cu", "device/rates.cu", "engines/cuda/common/ids.cu"),
    *("build/cuda/seen.cu", "device/reached.cu"),
}
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
KERNEL = re.compile(
    r'extern "C" __global__ void\s+(?:__launch_bounds__\(.*?\)\s+)?(\w+)\(([^)]*)\)'
)
POINTER = re.compile(r"\*(?:__restrict__ )?(\w+)$")
BY_VALUE = re.compile(r"^const (\w+) \w+$")
MEMBER = re.compile(r"^ +(?:const )?\w+ \*(?:const \*)?(?:__restrict__ )?\w+")


def kernels(text):
    """Yield (name, parameters) of the kernels of a file."""
    for name, given in KERNEL.findall(text):
        yield name, [" ".join(x.split()) for x in given.split(",")]


def text_of(path):
    return path.read_text(encoding="utf-8")


def test_headers():
    """Method and data of every file; the paper, too, where it is not our own."""
    for file, path in FILES.items():
        head = COMMENT.match(text_of(path))[0]
        assert "Method" in head, file
        assert "Data" in head, file
        named = "ource" in head or "Rules: " in head
        assert named == (file not in WITHOUT_PAPER), file


def test_headers_begin_with_what_they_are():
    assert [x for x in HEADERS if not COMMENT.match(text_of(x))] == []


def test_guards_differ():
    """Files of several folders have one name; each can be included beside the other."""
    paths = [*HEADERS, *ROOT.rglob("*.h")]
    guards = [guard for x in paths for guard in GUARD.findall(text_of(x))]
    assert len({*guards}) == len(guards) > 40


def test_pointers_have_shapes():
    for file, path in FILES.items():
        text = text_of(path)
        said = " ".join(" ".join(COMMENT.findall(text)).replace("*", " ").split())
        for kernel, parameters in kernels(text):
            for parameter in parameters:
                if pointer := POINTER.search(parameter):
                    shape = rf"\b{pointer[1]}\b(?:, \w+)*:? \["
                    assert re.search(shape, said), f"{file}, {kernel}: {parameter}"


def test_members_have_shapes():
    """Those of structures that are arguments of kernels."""
    for file, path in FILES.items():
        files = [text_of(x) for x in source_closure(path)]
        named = {
            by_value[1]
            for _, parameters in kernels(files[0])
            for parameter in parameters
            if (by_value := BY_VALUE.match(parameter))
        }
        for name in named:
            form = rf"^struct {name}\b[^;{{]*\{{(.*?)^\}};"
            shared = rf"^typedef struct \{{([^}}]*)^\}} {name};"  # with C
            form = f"{form}|{shared}"
            bodies = [re.search(form, x, re.DOTALL | re.MULTILINE) for x in files]
            (body,) = [x[1] or x[2] for x in bodies if x]
            for line in filter(MEMBER.match, body.splitlines()):
                shape = re.search(r"/\*.*(\[|the same|as above)", line)
                assert shape, f"{file}, {name}: {line}"


def test_one_dialect():
    own = {*DEFINED.findall(text_of(BASE))}
    assert {"warp_scan", "warp_sum", "thread_of", "grid_sum", "bit_of"} <= own
    for path in [*ROOT.rglob("*.cu"), *HEADERS]:
        text = COMMENT.sub(" ", text_of(path))
        if path.suffix == ".cu":
            assert BASE in source_closure(path), path
        if path != BASE:
            assert not own.intersection(DEFINED.findall(text)), path
            if path.name not in ("ptx.cuh", "wire.cuh"):
                assert not OTHER_WORDS.search(text), path


def test_what_kernels_are_is_seen():
    text = text_of(FILES["build/cuda/parts.cu"])
    assert len(dict(kernels(text))) == text.count("__global__") > 10
