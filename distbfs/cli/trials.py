"""The trials of ``distbfs doctor``: MPI, compiler and kernels, engines, CUDA devices.

No function raises an error if something is missing: its answer says so, and the line
``problem`` says what to install.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from functools import partial
from importlib import metadata
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any

import h5py
import numpy as np

import distbfs
from distbfs import registry
from distbfs.device import cache, cc, compiler, cuda, nvrtc, nvshmem, sources
from distbfs.device.control_groups import usable_cores
from distbfs.device.cupy_library import NVIDIA
from distbfs.errors import CompilerMissing, DeviceMissing, DistbfsError
from distbfs.exchange.cuda_aware import unproven
from distbfs.generate.kronecker import Kronecker
from distbfs.options import SearchOptions
from distbfs.plan.memory import machine_memory
from distbfs.ranks.launcher import find_launch
from distbfs.ranks.mpi import MpiWorld, library_name
from distbfs.ranks.world import Ranks, SoloWorld
from distbfs.search.choose import ONE_DEVICE_BELOW, Request, choose
from distbfs.search.domains import choose_exchange, described
from distbfs.search.holding import Source
from distbfs.search.open import open_source
from distbfs.types import Array

PACKAGES = ("numpy", "h5py", "click", "rich", "xxhash")
ASK_SECONDS = 30
TRIAL_SCALE = 8
TRIAL_PARTS = (1, 2)
GET_MPI = (
    "pip install '.[mpi]' for the MPI of this machine, '.[mpich]' for one from PyPI"
)
LEFT_OUT = "left out: "
GET_COMPILER = "install gcc or clang with OpenMP, or name one in DISTBFS_CC"
TELL = "from distbfs.cli.trials import tell_mpi; tell_mpi()"


def version_of(package: str) -> str | None:
    """Return the version of a package, None if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def software() -> dict[str, Any]:
    """Return the versions of Python and of the packages that are always needed."""
    return {
        "distbfs": distbfs.__version__,
        "python": platform.python_version(),
        "executable": sys.executable,
        "packages": {
            **{name: version_of(name) or "?" for name in PACKAGES},
            "HDF5": h5py.version.hdf5_version,
        },
    }


def library_facts(mpi: ModuleType) -> dict[str, Any]:
    """Return whether an initialised MPI takes device pointers, and why not."""
    why = unproven(mpi)
    answer, basis = ("not proven", why) if why else ("yes", "MPI reports it")
    return {"device_pointers": answer, "device_pointers_basis": basis}


def tell_mpi() -> None:
    """Start MPI in this process and print its facts as JSON, in the last line."""
    from mpi4py import MPI  # noqa: PLC0415

    facts = {"library": library_name(MPI), **library_facts(MPI)}
    print(json.dumps(facts), flush=True)  # noqa: T201


def ask_mpi() -> dict[str, Any]:
    """Return the facts that MPI gives in a process of its own, which may crash."""
    paths = os.pathsep.join(path for path in sys.path if path)
    try:
        done = subprocess.run(
            [sys.executable, "-c", TELL],
            capture_output=True,
            text=True,
            check=False,
            timeout=ASK_SECONDS,
            env={**os.environ, "PYTHONPATH": paths},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"problem": f"MPI does not start: {error}; {GET_MPI}"}
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"code {done.returncode}"])[-1]
        return {"problem": f"mpi4py cannot be used: {last}; {GET_MPI}"}
    facts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return facts


def mpi_facts(world: Ranks) -> dict[str, Any]:
    """Return mpi4py, the MPI library, the launcher and the ranks (rank 0 alone)."""
    launch = find_launch(os.environ)
    facts: dict[str, Any] = {
        "mpi4py": version_of("mpi4py"),
        "library": None,
        "device_pointers": "not proven",
        "device_pointers_basis": "MPI was not queried",
        "launcher": launch.name if launch else None,
        "ranks": world.size,
        "hosts": world.describe()["hosts"],
        "problem": None,
    }
    if isinstance(world, MpiWorld):
        facts["library"] = world.library
        return facts | library_facts(sys.modules["mpi4py.MPI"])
    if find_spec("mpi4py") is None:
        facts["mpi4py"] = None
        problem = f"mpi4py is not installed, so there is one rank only; {GET_MPI}"
        return facts | {"problem": problem}
    return facts if launch else facts | ask_mpi()


def link_facts(world: Ranks) -> dict[str, str | None]:
    """Choose the search of a large graph by all ranks (collective).

    The result has
    domains: which domains of devices, which read each other's memory, there are; None
    without devices
    exchange: the exchange between domains, or between ranks without devices
    reason: why they were chosen
    """
    options = SearchOptions(engine="auto")
    choice = choose(world, options, ONE_DEVICE_BELOW, Request())
    domains: str | None = "one domain"
    exchange, reason = choice.exchange, choice.why
    if choice.place == "host":
        exchange, why = choose_exchange(world, "auto")
        # the lines of the hosts tell why there is no device
        domains = None
        reason = why if reason.startswith("no CUDA") else f"{why}: {reason}"
    elif choice.placement is not None:
        domains = described(choice.placement.domains)
    return {"domains": domains, "exchange": exchange, "reason": reason}


def tried(attempt: Callable[[], Any]) -> tuple[Any, str]:
    """Call a function; return (result, ""), or (None, what is missing)."""
    try:
        return attempt(), ""
    except (CompilerMissing, DeviceMissing) as error:
        return None, str(error)


def compiler_facts() -> dict[str, Any]:
    """Return the C compiler and which kernels load, each with a reason.

    portable: the levels of the portable kernels that the wheel brought
    """
    name, missing = tried(compiler.find_compiler)
    facts: dict[str, Any] = {"compiler": name, "problems": []}
    if not missing:
        facts["compiler_version"] = compiler.compiler_version()
        facts["cache"] = str(cache.cache_folder())
    facts["kernels"] = said = kernel_trials()
    facts["portable"] = sorted(cc.PORTABLE_LEVELS)
    bad = [reason for reason in said.values() if reason != "ok"]
    if missing and len(bad) == len(said):
        facts["kernels"] = {}
        problem = f"{missing}; the engine is reference, which is slow: {GET_COMPILER}"
        facts["problems"].append(problem)
    elif bad:
        what = f"{len(bad)} of {len(said)} kernels do not compile, the first: {bad[0]}"
        facts["problems"].append(f"{what}; {GET_COMPILER}")
    return facts


def kernel_trials() -> dict[str, str]:
    """Load every C source of the package, compiled; return "ok" or the reason."""
    root = Path(distbfs.__file__).parent
    return {
        str(source.relative_to(root)): tried(
            partial(cc.load, source, **sources.variants(source)[0])
        )[1]
        or "ok"
        for source in sorted(root.rglob("*.c"))
    }


def nvrtc_version() -> str:
    """Return the version of NVRTC; DeviceMissing if it is missing."""
    major, minor = nvrtc.bindings().getVersion()
    return f"{major}.{minor}"


def compiled(
    source: Path,
    arch: str,
    variant: Mapping[str, str],
    library: nvshmem.Nvshmem | None,
) -> str:
    """Compile a kernel; return "ok" or the reason. The result is kept in the cache."""
    call = partial(nvrtc.cubin, source, arch, variant, library=library)
    return tried(call)[1] or "ok"


def kernel_compilations(arch: str) -> dict[str, str]:
    """Compile every CUDA source of the package; return "ok" or the reason.

    Each variant of a source is compiled, the longest sources first, in as many
    processes as there are cores: threads would wait for each other in NVRTC. If NVSHMEM
    is missing, the reason begins with LEFT_OUT.
    """
    root = Path(distbfs.__file__).parent
    files = sorted(root.rglob("*.cu"), key=lambda x: -len(sources.closure_code(x)))
    outcomes: dict[str, str | Future[str]] = {}
    pool = ProcessPoolExecutor(usable_cores(), get_context("spawn"))
    try:
        for source in files:
            library = None
            if nvshmem.is_linked(source):
                library, missing = tried(nvshmem.nvshmem)
                if missing:
                    outcomes[str(source.relative_to(root))] = f"{LEFT_OUT}{missing}"
                    continue
            for variant in sources.variants(source):
                words = [f"{key}={value}" for key, value in variant.items()]
                name = " ".join([str(source.relative_to(root)), *words])
                outcomes[name] = pool.submit(compiled, source, arch, variant, library)
        return {
            name: said if isinstance(said, str) else said.result()
            for name, said in sorted(outcomes.items())
        }
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def cuda_facts() -> dict[str, Any]:
    """Return the CUDA devices that CuPy sees, and the missing parts.

    nvshmem_said: the reason why there is no NVSHMEM, or ""
    """
    facts: dict[str, Any] = {"cupy": None, "devices": [], "problems": []}
    facts["nvrtc"], _ = tried(nvrtc_version)
    library, facts["nvshmem_said"] = tried(nvshmem.nvshmem)
    facts["nvshmem"] = library and library.version
    cupy, facts["said"] = tried(cuda.cupy)
    if cupy is not None:
        facts["cupy"], runtime = str(cupy.__version__), cupy.cuda.runtime
        for index in range(runtime.getDeviceCount()):
            properties = runtime.getDeviceProperties(index)
            name, size = properties["name"], int(properties["totalGlobalMem"])
            text = name.decode() if isinstance(name, bytes) else str(name)
            facts["devices"].append({"name": text, "memory": size})
    elif NVIDIA.exists() and "cupy" in facts["said"]:
        facts["problems"].append(f"there is an NVIDIA driver, but {facts['said']}")
    return facts


def host_facts(world: Ranks, threads: int) -> dict[str, Any]:
    """Return the facts about this host; one rank of each host calls this."""
    memory, kind = machine_memory()
    return {
        "host": world.hosts[world.rank],
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "cores": usable_cores(),
        "threads": threads,
        "memory": memory,
        "memory_limit": kind,
        **compiler_facts(),
        "cuda": cuda_facts(),
    }


def trial_parts(name: str) -> tuple[int, ...]:
    """Return the numbers of parts to try an engine with, among those it supports.

    An engine on a device searches the graph of one part, and, in place of several
    parts, a graph that is built on the device.
    """
    kind = registry.lookup(registry.ENGINES, "engine", name)
    return TRIAL_PARTS if kind.domains or kind.on_device else TRIAL_PARTS[:1]


def trial_levels(name: str, parts: int) -> Array:
    """Search a small graph in some parts with an engine; return levels int32 [n]."""
    tuples, options = Kronecker(TRIAL_SCALE), SearchOptions(engine=name, threads=2)
    source, request = Source(tuples.n, parts, tuples=tuples), Request(one_device=True)
    root = int(tuples.tuples_at(np.zeros(1, dtype=np.int64))[0][0])
    with open_source(SoloWorld(), source, options, request) as session:
        level: Array = session.search(root).to_numpy()[0].copy()
    return level


def engine_trials() -> dict[str, str]:
    """Return "works" or the reason for each engine; levels must be those of reference.

    The reference engine must find the same levels in every number of parts.
    """
    outcomes: dict[str, str] = {}
    expected: Array | None = None
    for name in sorted(registry.ENGINES, key=lambda name: name != "reference"):
        try:
            if ".cuda." in registry.ENGINES[name]:
                cuda.cupy()  # before the engine is imported
            levels = [trial_levels(name, parts) for parts in trial_parts(name)]
        except Exception as error:  # noqa: BLE001
            kind = (
                "" if isinstance(error, DistbfsError) else type(error).__name__ + ": "
            )
            outcomes[name] = kind + " ".join(str(error).split())
            continue
        expected = levels[0] if expected is None else expected
        same = all(np.array_equal(level, expected) for level in levels)
        outcomes[name] = "works" if same else "finds other levels than reference"
    return outcomes
