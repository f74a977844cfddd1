"""CUDA kernels: every file compiles without a device; the cache goes by content."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from covering import covering
from launching import clean_environment

import distbfs
from distbfs.device import nvrtc, portable
from distbfs.device.nvshmem import is_linked, nvshmem
from distbfs.device.sources import variants
from distbfs.errors import DeviceMissing
from distbfs.timing import COMPILING

ROOT = Path(distbfs.__file__).parent
SOURCES = sorted(ROOT.rglob("*.cu"))


def chosen(path, arch):
    """Return the variants to compile for an architecture.

    Any two values go together on sm_90, each is there on the others; of linked kernels,
    whose headers take seconds, each is there on sm_90, and one on the others.  The
    first one has the fewest parts.
    """
    linked, sm_90 = is_linked(path), arch == "sm_90"
    every = covering(variants(path), 2 if sm_90 and not linked else 1)
    every.sort(key=lambda variant: [*variant.values()].count("1"))
    return every[:1] if linked and not sm_90 else every


COMPILED = [
    pytest.param(
        *(path, definitions, arch, number > 0 or arch != "sm_90" or is_linked(path)),
        marks=[] if number == 0 and arch == "sm_90" else [pytest.mark.thorough],
        id="-".join([str(path.relative_to(ROOT)), *words, arch]),
    )
    for path in SOURCES
    for arch in portable.ARCHITECTURES
    for number, definitions in enumerate(chosen(path, arch))
    for words in [[f"{name}={value}" for name, value in definitions.items()]]
]
QUICK = ("--Ofast-compile=max",)  # optimises little: takes a quarter of the time
KERNEL = """
#include "number.cuh"
extern "C" __global__ void answer(int *out) { *out = NUMBER + MORE; }
"""


@pytest.fixture(autouse=True)
def _compiler(monkeypatch, tmp_path):
    """Skip without NVRTC, but never where changes are checked."""
    monkeypatch.setenv("DISTBFS_CACHE", str(tmp_path / "cache"))
    try:
        nvrtc.bindings()
    except DeviceMissing as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))


@pytest.fixture
def source(tmp_path):
    """A kernel file that includes a header and needs a definition."""
    (tmp_path / "number.cuh").write_text("#define NUMBER 40\n")
    path = tmp_path / "kernel.cu"
    path.write_text(KERNEL)
    return path


def cubins(folder):
    return sorted(folder.glob("*.cubin"))


def test_there_are_kernels():
    assert len(SOURCES) >= 3


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """Options of a compilation that is quick; none where this NVRTC knows none."""
    path = tmp_path_factory.mktemp("quick") / "empty.cu"
    path.write_text("")
    try:
        nvrtc.bindings()
    except DeviceMissing:
        return ()  # no test compiles
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nvrtc, "OPTIONS", (*nvrtc.OPTIONS, *QUICK))
        try:
            nvrtc.compile_source(path, "sm_90")
        except nvrtc.KernelRefused:
            return ()
    return QUICK


@pytest.mark.parametrize(("path", "definitions", "arch", "quickly"), COMPILED)
def test_every_kernel_compiles(path, definitions, arch, quickly, quick, monkeypatch):
    """One variant as it is used, others quickly; into the cache of the user."""
    monkeypatch.undo()
    if quickly:
        monkeypatch.setattr(nvrtc, "OPTIONS", (*nvrtc.OPTIONS, *quick))
    library = nvshmem_or_skip() if is_linked(path) else None
    code = nvrtc.cubin(path, arch, definitions, library=library)
    assert code[:4] == b"\x7fELF"


def nvshmem_or_skip():
    """Return the files of NVSHMEM; skip without them, but not in CI."""
    try:
        return nvshmem()
    except DeviceMissing as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", [{}]),
        ("// kernels and variants: many\n", [{}]),
        ("int x; // variants: A=1\n", [{}]),
        ("// variants: A=1\n", [{"A": "1"}]),
        ("// first\n  //variants:  A=x B=y|A=z \n", [{"A": "x", "B": "y"}, {"A": "z"}]),
        ("// variants: A=x | \n", [{"A": "x"}, {}]),
        (
            "// variants: A=x,y B=1,2 | A=z\n",
            [
                *({"A": a, "B": b} for a in ("x", "y") for b in ("1", "2")),
                {"A": "z"},
            ],
        ),
        ("/* kernels\n * variants: A=x\n */\n", [{"A": "x"}]),
        ("/* variants: A=x | A=y */\n", [{"A": "x"}, {"A": "y"}]),
        ("// variants: A=uint32_t\n// variants: B=1\n", [{"A": "uint32_t"}]),
    ],
)
def test_variants(tmp_path, text, wanted):
    path = tmp_path / "kernel.cu"
    path.write_text(text)
    assert variants(path) == wanted


@pytest.mark.parametrize(
    "words", ["A", "A=1 B", "1A=2", "A= 1", "A=1 | B", "A=1,", "A=,1"]
)
def test_variants_that_cannot_be_read(tmp_path, words):
    path = tmp_path / "kernel.cu"
    path.write_text(f"// variants: {words}\n")
    wanted = r"kernel\.cu: .* is not of the form A=x,y B=z"
    with pytest.raises(ValueError, match=wanted):
        variants(path)


def key(source, arch, definitions, texts=nvrtc.NO_TEXTS):
    return nvrtc.content_key(nvrtc.name_of(source, arch, definitions, texts))


def test_every_input_changes_the_key(source, tmp_path, monkeypatch):
    keys = [key(source, "sm_90", {"MORE": 2})]
    assert key(source, "sm_90", {"MORE": 2}) == keys[0]
    keys.append(key(source, "sm_80", {"MORE": 2}))
    keys.append(key(source, "sm_90", {"MORE": 3}))
    keys.append(key(source, "sm_90", {"MORE": 2, "LESS": 1}))
    source.write_text(KERNEL + "struct More;\n")
    keys.append(key(source, "sm_90", {"MORE": 2}))
    (tmp_path / "number.cuh").write_text("#define NUMBER 41\n")
    keys.append(key(source, "sm_90", {"MORE": 2}))
    monkeypatch.setattr(nvrtc, "OPTIONS", (*nvrtc.OPTIONS, "--use_fast_math"))
    keys.append(key(source, "sm_90", {"MORE": 2}))
    version = SimpleNamespace(getVersion=lambda: (99, 0))
    monkeypatch.setattr(nvrtc, "bindings", lambda: version)
    keys.append(key(source, "sm_90", {"MORE": 2}))
    assert len(set(keys)) == len(keys)


def test_comments_do_not_change_it(source, tmp_path):
    texts = {"more.cuh": "#define A 1\n"}
    before = key(source, "sm_90", {"MORE": 2}, texts)
    source.write_text(f"// more\n{KERNEL}")
    (tmp_path / "number.cuh").write_text("#define NUMBER 40 // more\n")
    texts["more.cuh"] = "/* more */\n#define A 1\n"
    assert key(source, "sm_90", {"MORE": 2}, texts) == before
    texts["more.cuh"] = "#define A 2\n"
    assert key(source, "sm_90", {"MORE": 2}, texts) != before


def test_a_changed_header_is_compiled_anew(source, tmp_path):
    first = nvrtc.cubin(source, "sm_90", {"MORE": 2})
    (tmp_path / "number.cuh").write_text("#define NUMBER 50\n")
    assert nvrtc.cubin(source, "sm_90", {"MORE": 2}) != first
    assert len(cubins(tmp_path / "cache")) == 2


def test_what_is_in_the_cache_is_not_compiled(source, tmp_path, monkeypatch):
    first = nvrtc.cubin(source, "sm_90", {"MORE": 2})
    monkeypatch.setattr(nvrtc, "compile_source", lambda *_: pytest.fail("again"))
    assert nvrtc.cubin(source, "sm_90", {"MORE": 2}) == first


def test_what_others_may_write_to_is_compiled_anew(source, tmp_path):
    code = nvrtc.cubin(source, "sm_90", {"MORE": 2})
    (kept,) = cubins(tmp_path / "cache")
    kept.write_bytes(b"planted")
    kept.chmod(0o666)
    assert nvrtc.cubin(source, "sm_90", {"MORE": 2}) == code == kept.read_bytes()


def test_headers_in_other_folders(tmp_path):
    """A header finds those beside it, and folders may be reached by links."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "one.cuh").write_text('#include "two.cuh"\n')
    (tmp_path / "sub" / "two.cuh").write_text("#define TWO 2\n")
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "real" / "kernel.cu").write_text(
        '#include "../sub/one.cuh"\n'
        'extern "C" __global__ void two(int *out) { *out = TWO; }\n'
    )
    for folder in ("real", "link"):
        assert nvrtc.compile_source(tmp_path / folder / "kernel.cu", "sm_90")


def test_two_headers_of_one_name(source, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "number.cuh").write_text("#define OTHER 1\n")
    (tmp_path / "sub" / "more.cuh").write_text('#include "number.cuh"\n')
    source.write_text(KERNEL + '#include "sub/more.cuh"\n')
    with pytest.raises(DeviceMissing, match=r"kernel\.cu includes two .*'number\.cuh'"):
        nvrtc.compile_source(source, "sm_90", {"MORE": 2})


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        (
            "kernel.cu",
            'extern "C" __global__ void f(int *a) { *a = nowhere; *a = never; }\n',
            r'kernel\.cu\(1\): error: identifier "nowhere" is undefined',
        ),
        ("number.cuh", "\n\nint broken = ;\n", r"number\.cuh\(3\): error: expected"),
        ("kernel.cu", '#include "lost.cuh"\n', r"cannot open .*\"lost\.cuh\""),
    ],
)
def test_errors_name_the_file_and_the_first_error(source, tmp_path, file, text, said):
    (tmp_path / file).write_text(text)
    what = rf"NVRTC cannot compile kernel\.cu for sm_90: .*{said}"
    with pytest.raises(DeviceMissing, match=what) as caught:
        nvrtc.cubin(source, "sm_90", {"MORE": 2})
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 3
    assert cubins(tmp_path / "cache") == []


def test_an_architecture_that_there_is_not(source):
    with pytest.raises(
        DeviceMissing, match=r"for sm_1: .*invalid value for --gpu-arch"
    ):
        nvrtc.compile_source(source, "sm_1", {"MORE": 2})


COMPILE = """
import sys
import threading
import time
from types import SimpleNamespace
from pathlib import Path
from distbfs.device import nvrtc
real = nvrtc.compile_source
def noted(*arguments):
    print("compiled", flush=True)
    return real(*arguments)
nvrtc.compile_source = noted
assert nvrtc.cubin(Path(sys.argv[1]), "sm_90", {"MORE": 2})[:4] == b"\\x7fELF"
"""


def test_processes_that_start_together_leave_one_file(source, tmp_path):
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", COMPILE, str(source)],
            env=clean_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    said = [run.communicate(timeout=120) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], said
    assert "".join(out for out, _ in said) == "compiled\n"
    left = sorted(path.suffix for path in (tmp_path / "cache").iterdir())
    assert left == [".cubin", ".lock"]


def test_what_a_wheel_brings_needs_no_nvrtc(source, tmp_path, monkeypatch):
    """It serves whichever NVRTC is there, or none, for the same code alone."""
    monkeypatch.setattr(portable, "FOLDER", tmp_path / "wheel")
    portable.FOLDER.mkdir()
    [brought] = nvrtc.build(portable.FOLDER, "sm_90", [(source, {"MORE": 2})])

    def none():
        raise DeviceMissing("no NVRTC")

    monkeypatch.setattr(nvrtc, "bindings", none)
    assert nvrtc.cubin(source, "sm_90", {"MORE": 2}) == brought.read_bytes()
    assert not (tmp_path / "cache").exists()
    for arch, definitions in (("sm_80", {"MORE": 2}), ("sm_90", {"MORE": 3})):
        with pytest.raises(DeviceMissing, match="no NVRTC"):
            nvrtc.cubin(source, arch, definitions)
    source.write_text(KERNEL + "struct More;\n")
    with pytest.raises(DeviceMissing, match="no NVRTC"):
        nvrtc.cubin(source, "sm_90", {"MORE": 2})


def test_what_is_compiled_ahead_is_waited_for(source, monkeypatch):
    """Once, and in no figure; a wrong one is told to who asks for it."""
    began, compiled = threading.Event(), []
    compile_source = nvrtc.compile_source

    def slowly(*arguments):
        compiled.append(threading.current_thread().name)
        if len(compiled) == 2:
            began.set()  # by both threads
        time.sleep(0.3)
        return compile_source(*arguments)

    monkeypatch.setattr(nvrtc, "compile_source", slowly)
    before = COMPILING.seconds
    nvrtc.ahead("sm_90", [(source, {"MORE": 2}), (source, {})])
    assert began.wait(30)
    assert COMPILING.seconds == before, "nobody waits yet"
    code = nvrtc.cubin(source, "sm_90", {"MORE": 2})
    assert code[:4] == b"\x7fELF"
    assert COMPILING.seconds > before
    with pytest.raises(nvrtc.KernelRefused, match="MORE"):
        nvrtc.cubin(source, "sm_90", {})
    assert compiled.count(nvrtc.AHEAD) == 2
    assert len(compiled) == 3, "the wrong one is tried again"
