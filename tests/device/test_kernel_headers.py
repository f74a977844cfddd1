"""Kernel files say what they do, over which data, and the shape of every pointer.

All of them are written in the words of one header, which nobody defines again.
"""

import re
from pathlib import Path

import pytest

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
    "build/cuda/seen.cu",
    *("engines/cuda/papers/bfs4k/degrees.cu", "multisearch/multi_results.cu"),
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


@pytest.mark.parametrize("file", FILES)
def test_headers(file):
    """Method and data of every file; the paper, too, where it is not our own."""
    text = FILES[file].read_text(encoding="utf-8")
    head = COMMENT.match(text)[0]
    assert "Method" in head
    assert "Data" in head
    named = "ource" in head or "Rules: " in head
    assert named == (file not in WITHOUT_PAPER)


@pytest.mark.parametrize("path", HEADERS, ids=lambda x: str(x.relative_to(ROOT)))
def test_headers_begin_with_what_they_are(path):
    assert COMMENT.match(path.read_text(encoding="utf-8"))


def test_guards_differ():
    """Files of several folders have one name; each can be included beside the other."""
    paths = [*HEADERS, *ROOT.rglob("*.h")]
    texts = [x.read_text(encoding="utf-8") for x in paths]
    guards = [guard for text in texts for guard in GUARD.findall(text)]
    assert len({*guards}) == len(guards) > 40


@pytest.mark.parametrize("file", FILES)
def test_pointers_have_shapes(file):
    text = FILES[file].read_text(encoding="utf-8")
    said = " ".join(" ".join(COMMENT.findall(text)).replace("*", " ").split())
    for kernel, parameters in kernels(text):
        for parameter in parameters:
            if pointer := POINTER.search(parameter):
                shape = rf"\b{pointer[1]}\b(?:, \w+)*:? \["
                assert re.search(shape, said), f"{kernel}: {parameter}"


@pytest.mark.parametrize("file", FILES)
def test_members_have_shapes(file):
    """Those of structures that are arguments of kernels."""
    files = [x.read_text(encoding="utf-8") for x in source_closure(FILES[file])]
    named = {
        by_value[1]
        for _, parameters in kernels(files[0])
        for parameter in parameters
        if (by_value := BY_VALUE.match(parameter))
    }
    for name in named:
        form = rf"^struct {name}\b[^;{{]*\{{(.*?)^\}};"
        bodies = [re.search(form, x, re.DOTALL | re.MULTILINE) for x in files]
        (body,) = [x[1] for x in bodies if x]
        lines = body.splitlines()
        for line in lines:
            if MEMBER.match(line):
                assert re.search(r"/\*.*(\[|the same|as above)", line), (
                    f"{name}: {line}"
                )


@pytest.mark.parametrize(
    "path", [*ROOT.rglob("*.cu"), *HEADERS], ids=lambda x: str(x.relative_to(ROOT))
)
def test_one_dialect(path):
    text = COMMENT.sub(" ", path.read_text(encoding="utf-8"))
    own = {*DEFINED.findall(BASE.read_text(encoding="utf-8"))}
    assert {"warp_scan", "warp_sum", "thread_of", "grid_sum", "bit_of"} <= own
    if path.suffix == ".cu":
        assert BASE in source_closure(path)
    if path != BASE:
        assert not own.intersection(DEFINED.findall(text))
        if path.name not in ("ptx.cuh", "wire.cuh"):
            assert not OTHER_WORDS.search(text)


def test_what_kernels_are_is_seen():
    text = FILES["build/cuda/parts.cu"].read_text(encoding="utf-8")
    assert len(dict(kernels(text))) == text.count("__global__") > 10
