"""The wheel holds what it needs, and searches by it where no compiler is.

It is built from the source distribution, for the lowest level of the architecture alone
and by a compiler that does not optimise, which is quick.
"""

import json
import os
import platform
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from quick_compiler import quick_compiler

import distbfs
from distbfs.device import compiler, nvrtc, portable, sources
from distbfs.engines.cuda.xbfs.engine import common_kernels

pytest.importorskip("hatchling")
pytestmark = pytest.mark.slow
PACKAGE = Path(distbfs.__file__).parent
ROOT = PACKAGE.parent
LEVEL = (portable.levels() or ("none",))[-1]
SECONDS = 280
KERNELS = (".c", ".h", ".cu", ".cuh")


def run(*words, folder, **env):
    """Run a program of this Python in a folder; return how it ended."""
    return subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


def hatchling(target, folder, out, **env):
    words = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", out]
    return run(*words, folder=folder, **env)


def needed():
    """The files of the package, as a wheel names them."""
    files = [path for path in PACKAGE.rglob("*") if path.is_file()]
    names = {str(path.relative_to(ROOT)) for path in files if path.suffix != ".pyc"}
    return {name for name in names if not name.endswith(".so")}


def names_in(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """The source distribution, unpacked."""
    folder = tmp_path_factory.mktemp("sdist")
    done = hatchling("sdist", ROOT, folder)
    assert done.returncode == 0, done.stderr
    [archive] = folder.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        # the first releases of Python 3.10 and 3.11 have no filters
        safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        tar.extractall(folder, **safe)
    return folder / archive.name.removesuffix(".tar.gz")


@pytest.fixture(scope="module")
def wheel(unpacked):
    """A wheel as pip builds it, with kernels for one level."""
    if not portable.levels():
        pytest.skip("no kernels are built for this architecture")
    folder = unpacked.parent / "wheel"
    pip = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps"]
    done = run(
        *(*pip, "--no-index", "-w", folder, "."),
        folder=unpacked,
        DISTBFS_CC=quick_compiler(unpacked.parent),
        DISTBFS_PORTABLE=LEVEL,
    )
    assert done.returncode == 0, done.stderr
    [path] = folder.iterdir()
    return path


@pytest.fixture(scope="module")
def installed(wheel):
    """Where the wheel is installed, apart from this package."""
    target = wheel.parent.parent / "installed"
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index"]
    done = run(*pip, "--target", target, wheel, folder=target.parent)
    assert done.returncode == 0, done.stderr
    return target


def without_compiler(target, *words):
    """Run the command that was installed."""
    return run(
        *(target / "bin" / "distbfs", *words),
        folder=target,
        PYTHONPATH=str(target),
        DISTBFS_CC="/no/such/compiler",
        DISTBFS_CACHE=str(target / "cache"),
        CUDA_VISIBLE_DEVICES="-1",
    )


@pytest.mark.thorough
def test_the_wheel_holds_the_package(wheel):
    names = names_in(wheel)
    assert {Path(name).suffix for name in needed()} >= {*KERNELS, ".py", ".pyi"}
    assert needed() <= names
    rest = {name.partition("/")[0] for name in names - needed()}
    assert rest == {"distbfs", f"distbfs-{distbfs.__version__}.dist-info"}
    assert wheel.name.startswith(f"distbfs-{distbfs.__version__}-py3-none-")
    assert wheel.stem.endswith(f"_{platform.machine()}")


@pytest.mark.thorough
def test_the_wheel_holds_every_kernel_in_every_variant(wheel):
    wanted = {
        f"distbfs/_compiled/{portable.name_of(source, definitions, LEVEL)}"
        for source in PACKAGE.rglob("*.c")
        for definitions in sources.variants(source)
    }
    assert {name for name in names_in(wheel) if name.endswith(".so")} == wanted
    assert names_in(wheel) - needed() - wanted == {
        name for name in names_in(wheel) if ".dist-info/" in name
    }


fits = pytest.mark.skipif(
    LEVEL not in portable.levels_of(compiler.processor()),
    reason="this processor has no level",
)


@pytest.mark.thorough
@fits
def test_it_searches_without_a_compiler(installed):
    done = without_compiler(installed, "graph500", "--scale", "10", "--json")
    assert done.returncode == 0, done.stderr
    assert "engine openmp (fast)" in done.stderr
    assert json.loads(done.stdout)["engine"].startswith("openmp (fast)")
    assert not list((installed / "cache").glob("*.so"))


@pytest.mark.thorough
@fits
def test_doctor_names_the_kernels(installed):
    done = without_compiler(installed, "doctor")
    assert done.returncode == 0, done.stderr
    count = len(list(PACKAGE.rglob("*.c")))
    assert f"{count} of {count} portable, {LEVEL}: " in done.stdout
    assert re.search(r"^engines .*\bopenmp\b", done.stdout, re.MULTILINE)
    assert "compiler" not in done.stdout.partition("problem")[2]


def test_a_wheel_without_kernels(unpacked, tmp_path):
    """Nothing is compiled where nothing is asked for."""
    done = hatchling("wheel", unpacked, tmp_path)
    assert done.returncode == 0, done.stderr
    [path] = tmp_path.iterdir()
    assert path.name.endswith("-py3-none-any.whl")
    assert {x for x in names_in(path) if ".dist-info/" not in x} == needed()


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        ("all", "no C compiler: DISTBFS_CC is 'none'"),
        ("x86-64-v9", "allowed: all, none"),
    ],
)
def test_kernels_that_cannot_be_had(unpacked, tmp_path, levels, said):
    env = {"DISTBFS_CC": "none", "DISTBFS_PORTABLE": levels}
    done = hatchling("wheel", unpacked, tmp_path, **env)
    assert done.returncode != 0
    assert f"DISTBFS_PORTABLE is '{levels}'" in done.stderr + done.stdout
    assert said in done.stderr + done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.thorough
def test_machine_code_of_gpus(unpacked, tmp_path):
    """It is found by the kernels of the package, of any version of NVRTC."""
    pytest.importorskip("cupy")
    env = {"PYTHONPATH": str(unpacked), "DISTBFS_CUBINS": "sm_90"}
    done = hatchling("wheel", unpacked, tmp_path, **env)
    assert done.returncode == 0, done.stdout + done.stderr
    [path] = tmp_path.iterdir()
    assert path.name.endswith("-py3-none-any.whl")
    names = {x for x in names_in(path) if x.endswith(".cubin")}
    assert names == {
        f"distbfs/_compiled/{nvrtc.name_of(source, 'sm_90', definitions)}.cubin"
        for source, definitions in common_kernels()
    }


def test_machine_code_that_cannot_be_had(unpacked, tmp_path):
    done = hatchling("wheel", unpacked, tmp_path, DISTBFS_CUBINS="sm_9")
    assert done.returncode != 0
    said = "DISTBFS_CUBINS is 'sm_9'; allowed: all, none, sm_80, sm_90, sm_100"
    assert said in done.stderr + done.stdout
    assert list(tmp_path.iterdir()) == []
