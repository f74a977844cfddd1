"""``distbfs doctor``: works wherever reference works, and says what is missing."""

import importlib.metadata
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from commands import DISTBFS, here, on
from launching import clean_environment, needs_mpi, run, run_ranks

import distbfs
from distbfs.cli import trials as probing
from distbfs.cli.doctor import engine_fields, link_fields, problems_of
from distbfs.device import nvrtc, portable
from distbfs.device.nvshmem import Nvshmem
from distbfs.errors import CompilerMissing, DeviceMissing
from distbfs.ranks.world import SoloWorld
from distbfs.registry import ENGINES

ROOT = Path(distbfs.__file__).parent
SOURCES = {str(path.relative_to(ROOT)) for path in ROOT.rglob("*.c")}
NO_C11 = """\
#!/bin/sh
case "$*" in
*.c*) echo "error: unsupported option '-std=gnu11'" >&2; exit 1;;
esac
echo "toy compiler 1.0"
"""


def doctor(**env):
    """Run doctor as JSON in a process of its own."""
    done = run([*DISTBFS, "doctor", "--json"], env=env)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


def packages(folder, **sources):
    """Return variables that put packages before those that are installed."""
    for name, text in sources.items():
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(text)
    path = [str(folder), clean_environment()["PYTHONPATH"]]
    return {"PYTHONPATH": os.pathsep.join(path)}


@pytest.fixture(scope="module", autouse=True)
def asked_once():
    """MPI tells the same each time: here a process of its own asks it once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probing, "ask_mpi", cache(probing.ask_mpi))
        yield


@pytest.fixture(scope="module")
def values():
    return here("doctor", "--json").values


def test_software(values):
    assert values["distbfs"] == distbfs.__version__
    assert values["python"] == sys.version.split()[0]
    for name in ("numpy", "h5py", "click", "rich", "xxhash"):
        assert values["packages"][name] == importlib.metadata.version(name)
    assert values["packages"]["HDF5"]


def test_engines_and_kernels(values):
    assert set(values["engines"]) == set(ENGINES)
    assert values["engines"]["reference"] == "works"
    [host] = values["hosts"]
    assert host["cores"] == len(os.sched_getaffinity(0))
    assert host["threads"] >= 1
    assert host["memory"] > 1 << 28
    if host["compiler"]:
        assert set(host["kernels"]) == SOURCES
        assert set(host["kernels"].values()) == {"ok"}
        assert values["engines"]["openmp"] == "works"
        assert Path(host["cache"]).is_dir()


def test_text():
    done = here("doctor")
    assert (done.code, done.err) == (0, "")
    for text in ("Python", "numpy", "HDF5", "engines           reference", "threads"):
        assert text in done.out
    assert done.out.rstrip().splitlines()[-1].startswith(("no problems", "problem: "))


@needs_mpi
def test_mpi_alone(values):
    mpi = values["mpi"]
    assert mpi["mpi4py"] == importlib.metadata.version("mpi4py")
    assert mpi["library"].startswith(("MPICH", "Open MPI", "Intel", "MVAPICH"))
    assert mpi["device_pointers"] in ("yes", "not proven")
    assert (mpi["launcher"], mpi["ranks"]) == (None, 1)
    assert values["links"] is None


@needs_mpi
def test_two_ranks_print_once():
    done = on(2, "doctor", "--json")
    values = done.values
    assert done.err == ""
    assert values["mpi"]["ranks"] == 2
    assert values["mpi"]["launcher"]
    assert sum(values["mpi"]["hosts"].values()) == 2
    assert len(values["hosts"]) == 1
    assert values["mpi"]["device_pointers_basis"] != "MPI was not queried"
    assert values["links"]["exchange"]


def test_without_mpi4py(tmp_path):
    env = packages(tmp_path, mpi4py="raise ImportError('not here')")
    values = doctor(**env)
    assert values["mpi"]["library"] is None
    assert values["mpi"]["device_pointers"] == "not proven"
    [problem] = [line for line in values["problems"] if "mpi4py" in line]
    assert "not here" in problem
    assert "pip install '.[mpi]'" in problem


def test_mpi4py_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    facts = probing.mpi_facts(SoloWorld())
    assert facts["mpi4py"] is None
    assert facts["problem"].startswith("mpi4py is not installed")
    out = here("doctor").out
    assert "not installed" in out
    assert "pip install '.[mpi]'" in out


def test_mpi_that_crashes(tmp_path):
    crash = (
        "import os, sys\nprint('no fabric', file=sys.stderr, flush=True)\nos.abort()"
    )
    values = doctor(**packages(tmp_path, mpi4py=crash))
    [problem] = [line for line in values["problems"] if "mpi4py" in line]
    assert "no fabric" in problem


@needs_mpi
def test_ranks_without_mpi4py(tmp_path):
    env = packages(tmp_path, mpi4py="raise ImportError('not here')")
    done = run_ranks(2, [*DISTBFS, "doctor", "--json"], env=env)
    assert done.returncode == 0
    values = json.loads(done.stdout)
    assert "started 2 ranks, but mpi4py cannot be used" in values["problems"][0]


class Mpi:
    """An MPI library with an answer; the C library has no MPIX function."""

    __file__ = "/nowhere/libmpi.so"

    def __init__(self, kinds):
        self.COMM_WORLD = self
        self.kinds = kinds

    def Get_info(self):
        return self

    def Get(self, key):
        assert key == "mpi_memory_alloc_kinds"
        return self.kinds

    def Free(self):
        pass

    def get_vendor(self):
        return "Toy MPI", (1, 0)


class Cupy(ModuleType):
    """A CuPy that sees some devices."""

    __version__ = "99.1"

    def __init__(self, count):
        super().__init__("cupy")
        self.cuda = self.runtime = self
        self.count = count

    def getDeviceCount(self):
        return self.count

    def getDeviceProperties(self, index):
        return {"name": b"Toy %d" % index, "totalGlobalMem": 3 << 30}


@pytest.mark.parametrize(
    ("kinds", "answer"),
    [
        ("mpi,system,cuda:device", "yes"),
        ("mpi,system", "not proven"),
        (None, "not proven"),
    ],
)
def test_device_pointers(kinds, answer):
    facts = probing.library_facts(Mpi(kinds))
    assert facts["device_pointers"] == answer
    assert ("does not report" in facts["device_pointers_basis"]) == (answer != "yes")


def test_without_compiler():
    values = doctor(DISTBFS_CC="none")
    [host] = values["hosts"]
    assert host["compiler"] is None
    assert values["engines"]["reference"] == "works"
    assert "DISTBFS_CC is 'none'" in values["engines"]["openmp"]
    [problem] = [line for line in values["problems"] if "compiler" in line]
    assert "install gcc or clang" in problem


@pytest.mark.thorough
def test_compiler_without_openmp(tmp_path):
    toy = tmp_path / "toycc"
    toy.write_text(NO_C11)
    toy.chmod(0o755)
    values = doctor(DISTBFS_CC=str(toy), DISTBFS_CACHE=str(tmp_path / "cache"))
    [host] = values["hosts"]
    assert host["compiler_version"] == "toy compiler 1.0"
    assert all("unsupported option" in said for said in host["kernels"].values())
    kernels = [line for line in values["problems"] if "kernels do not compile" in line]
    assert len(kernels) == 1
    assert values["engines"]["reference"] == "works"


def test_a_kernel_that_does_not_load_is_named(monkeypatch):
    load = probing.cc.load

    def broken(source, **definitions):
        if source.name == "fast.c":
            raise CompilerMissing("cc cannot compile fast.c: error: no")
        return load(source, **definitions)

    monkeypatch.setattr(probing.cc, "load", broken)
    facts = probing.compiler_facts()
    assert facts["kernels"]["engines/openmp/fast.c"].endswith("error: no")
    assert facts["problems"][0].startswith(
        f"1 of {len(SOURCES)} kernels do not compile"
    )


def test_reference_that_fails_is_the_exit_code(monkeypatch):
    trial = probing.trial_levels

    def broken(name, parts):
        if name == "reference":
            raise ValueError("all wrong")
        return trial(name, parts)

    monkeypatch.setattr(probing, "trial_levels", broken)
    done = here("doctor")
    assert done.code == 1
    assert "problem: engine reference: ValueError: all wrong" in done.out


def test_an_engine_with_other_levels_is_a_problem(monkeypatch):
    trial = probing.trial_levels

    def wrong(name, parts):
        return trial(name, parts) + (name == "openmp")

    monkeypatch.setattr(probing, "trial_levels", wrong)
    done = here("doctor")
    assert done.code == 0
    assert "problem: engine openmp: finds other levels than reference" in done.out


def test_no_device():
    facts = probing.cuda_facts()
    assert (facts["cupy"], facts["devices"], facts["problems"]) == (None, [], [])
    assert facts["said"].startswith("no CUDA")
    assert facts["said"] in here("doctor").out


def test_driver_without_cupy(tmp_path, monkeypatch):
    def missing():
        raise DeviceMissing("no CUDA: cupy is not installed; pip install it")

    monkeypatch.setattr(probing, "NVIDIA", tmp_path)
    assert probing.cuda_facts()["problems"] == []
    monkeypatch.setattr(probing.cuda, "cupy", missing)
    facts = probing.cuda_facts()
    assert facts["problems"] == [f"there is an NVIDIA driver, but {facts['said']}"]


def test_cupy(monkeypatch):
    monkeypatch.setattr(probing.cuda, "cupy", lambda: Cupy(2))
    facts = probing.cuda_facts()
    assert (facts["cupy"], facts["said"]) == ("99.1", "")
    assert [one["name"] for one in facts["devices"]] == ["Toy 0", "Toy 1"]
    assert "Toy 1, 3.0 GiB" in here("doctor").out


# CUDA kernels


def has_nvrtc():
    try:
        nvrtc.bindings()
    except DeviceMissing:
        return False
    return True


needs_nvrtc = pytest.mark.skipif(not has_nvrtc(), reason="NVRTC is not installed")
WITHOUT = {"cupy": "raise ImportError('not here')"}


@pytest.fixture
def kernels(monkeypatch, tmp_path):
    """A package of one good kernel file with two variants, and a cache of its own."""
    root = tmp_path / "package"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "good.cu").write_text(
        "// variants: A=1 B=2 | A=3 B=4\n"
        'extern "C" __global__ void f(int *x) { *x = A + B; }\n'
    )
    monkeypatch.setattr(probing.distbfs, "__file__", str(root / "__init__.py"))
    monkeypatch.setenv("DISTBFS_CACHE", str(tmp_path / "cache"))
    return root


@pytest.mark.thorough
@needs_nvrtc
def test_kernels_compile_for_all_architectures(kernels, tmp_path):
    done = here("doctor", "--compile", "all", "--compile", "sm_90")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        f"2 of 2 kernels compile for {arch}" for arch in portable.ARCHITECTURES
    ]
    assert len(list((tmp_path / "cache").glob("*.cubin"))) == 6


@pytest.mark.thorough
@needs_nvrtc
def test_a_kernel_that_does_not_compile(kernels):
    (kernels / "bad.cu").write_text("int x = nowhere;\nint y = never;\n")
    done = here("doctor", "--compile", "sm_80")
    assert (done.code, done.err) == (1, "")
    [line] = done.out.splitlines()
    assert line.startswith("2 of 3 kernels compile for sm_80; the first error: NVRTC")
    assert line.endswith('bad.cu(1): error: identifier "nowhere" is undefined')


@pytest.mark.thorough
@needs_nvrtc
def test_compilations_as_json(kernels):
    values = here("doctor", "--compile", "sm_90", "--json").values
    names = ["sub/good.cu A=1 B=2", "sub/good.cu A=3 B=4"]
    assert values["kernels"] == {"sm_90": dict.fromkeys(names, "ok")}
    assert values["nvrtc"].count(".") == 1


@pytest.mark.thorough
@needs_nvrtc
def test_kernels_that_are_linked(kernels, monkeypatch):
    """They are compiled with NVSHMEM, and left out without it."""
    (kernels / "put.cu").write_text("#include <device/nvshmem_defines.h>\n")

    def missing():
        raise DeviceMissing("no NVSHMEM; install it")

    monkeypatch.setattr(probing.nvshmem, "nvshmem", missing)
    done = here("doctor", "--compile", "sm_90")
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        "2 of 2 kernels compile for sm_90; put.cu is left out: no NVSHMEM; install it\n"
    )
    libraries = {}

    def threads(cores, _):  # they see patches
        return ThreadPoolExecutor(cores)

    def cubin(source, arch, variant, library):
        libraries[source.name] = library

    monkeypatch.setattr(probing.nvshmem, "nvshmem", lambda: "NVSHMEM")
    monkeypatch.setattr(probing.nvrtc, "cubin", cubin)
    monkeypatch.setattr(probing, "ProcessPoolExecutor", threads)
    done = here("doctor", "--compile", "sm_90")
    assert done.out == "3 of 3 kernels compile for sm_90\n"
    assert libraries == {"good.cu": None, "put.cu": "NVSHMEM"}


@pytest.mark.thorough  # others see the compilation, and that one rank prints
@needs_nvrtc
@needs_mpi
def test_two_ranks_print_compilations_once():
    done = on(2, "doctor", "--compile", "sm_42")
    assert (done.code, done.err) == (1, "")
    [line] = done.out.splitlines()
    assert line.startswith("0 of ")
    assert "kernels compile for sm_42; the first error: NVRTC cannot" in line


def test_compile_without_nvrtc(tmp_path):
    env = packages(tmp_path, **WITHOUT)
    done = run([*DISTBFS, "doctor", "--compile", "sm_90"], env=env)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("distbfs: no NVRTC: not here; pip install")
    assert done.stderr.count("\n") == 1


@needs_mpi
def test_compile_without_nvrtc_on_two_ranks(tmp_path):
    env = packages(tmp_path, **WITHOUT)
    done = run_ranks(2, [*DISTBFS, "doctor", "--compile", "all"], env=env)
    assert done.returncode == 3
    assert done.said.count("no NVRTC: not here") == 1


@pytest.mark.parametrize("arch", ["sm90", "90", "sm_", "sm_90;", "ALL", "banana"])
def test_architectures_that_are_refused(arch):
    refusal = here("doctor", "--compile", arch).refusal
    assert f"--compile is '{arch}'; allowed: all, or one as sm_90" in refusal


def test_version_of_nvrtc(monkeypatch):
    done = here("doctor")
    version = probing.cuda_facts()["nvrtc"]
    assert (version is not None) == has_nvrtc()
    [line] = [x for x in done.out.splitlines() if x.startswith("NVRTC")]
    assert line.split() == ["NVRTC", version or "none"]


def line_of_nvshmem():
    [line] = [x for x in here("doctor").out.splitlines() if x.startswith("NVSHMEM")]
    return line.removeprefix("NVSHMEM").strip()


def test_version_of_nvshmem(monkeypatch, tmp_path):
    """It is that of the headers; a folder stands for those of the wheel."""
    files = Nvshmem(tmp_path, tmp_path, (tmp_path,), tmp_path)
    monkeypatch.setattr(probing.nvshmem, "nvshmem", lambda: files)
    assert line_of_nvshmem() == "version unknown"
    (tmp_path / "non_abi").mkdir()
    (tmp_path / "non_abi" / "nvshmem_version.h").write_text(
        "#define NVSHMEM_VENDOR_MAJOR_VERSION 3\n"
        "#define NVSHMEM_VENDOR_MINOR_VERSION 14\n"
        "#define NVSHMEM_VENDOR_PATCH_VERSION 15\n"
        "#define NVSHMEM_VENDOR_PACKAGE_VERSION 9\n"
    )
    assert line_of_nvshmem() == "3.14.15"
    assert probing.cuda_facts()["nvshmem"] == "3.14.15"


def test_version_of_nvshmem_that_is_installed():
    """Where its wheel is, and what goes with it, the headers have the same version."""
    facts = probing.cuda_facts()
    if facts["nvshmem"] is None:
        pytest.skip(facts["nvshmem_said"])
    wheels = [probing.version_of(f"nvidia-nvshmem-cu{x}") for x in (13, 12)]
    assert any((wheel or "").startswith(facts["nvshmem"]) for wheel in wheels)


@pytest.mark.parametrize("devices", [0, 1])
def test_without_nvshmem(monkeypatch, devices):
    """With a device the line says why; it is no problem, since none is needed."""

    def missing():
        raise DeviceMissing("no NVSHMEM; install it")

    if devices:
        monkeypatch.setattr(probing.cuda, "cupy", lambda: Cupy(devices))
    monkeypatch.setattr(probing.nvshmem, "nvshmem", missing)
    assert line_of_nvshmem() == ("no NVSHMEM; install it" if devices else "none")
    facts = probing.cuda_facts()
    assert (facts["nvshmem"], facts["problems"]) == (None, [])


def test_an_engine_without_device_is_no_problem():
    """Where there is no device, nobody misses an engine that needs one."""

    def host(*devices):
        cuda = {"devices": list(devices), "problems": []}
        return {"host": "here", "kernels": {"a.c": "ok"}, "problems": [], "cuda": cuda}

    said = {"reference": "works", "cuda": "no CUDA device: no driver"}
    assert problems_of([host()], said) == []
    assert problems_of([host("Toy")], said) == ["engine cuda: " + said["cuda"]]
    said["cuda"] = "finds other levels than reference"
    assert problems_of([host()], said) == ["engine cuda: " + said["cuda"]]


def test_a_reason_is_told_once():
    said = dict.fromkeys(("xbfs", "pan"), "no CUDA device: no driver")
    shown = engine_fields({"reference": "works", **said, "openmp": "works"})
    assert shown == {
        "engines": "reference, openmp",
        "not usable": "xbfs, pan: need a CUDA device",
    }
    assert engine_fields({"openmp": "works"}) == {"engines": "openmp"}
    cuda = {"devices": ["Toy"], "problems": []}
    host = {"host": "here", "kernels": {"a.c": "ok"}, "problems": ["x"], "cuda": cuda}
    bad = {"xbfs": "broken", "b": "odd", "pan": "broken", "openmp": "works"}
    expected = ["x", "engine xbfs, pan: broken", "engine b: odd"]
    assert problems_of([host], bad) == expected


def test_nothing_advises_an_index_that_has_no_distbfs():
    for path in ROOT.rglob("*.py"):
        assert "install 'distbfs[" not in path.read_text(), path


def test_refused():
    assert "No such option '--cure'" in here("doctor", "--cure").refusal


def test_links_in_words():
    links = {
        "domains": "domains of 2 devices",
        "exchange": "nccl",
        "reason": "every rank has a device",
    }
    assert link_fields(links) == {
        "domains": "domains of 2 devices",
        "exchange": "nccl: every rank has a device",
    }
