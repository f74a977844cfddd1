"""Memory of all devices by NVSHMEM, with another library in its place."""

import ctypes
import gc
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from worlds import on_ranks

from distbfs.device import cuda, programs
from distbfs.device import nvshmem as files
from distbfs.device.nvshmem import CUBIN, Linking, Nvshmem, nvshmem
from distbfs.errors import DeviceMissing, LaunchError, OutOfMemory
from distbfs.exchange import symmetric
from distbfs.exchange.symmetric import (
    InitAttributes,
    NvshmemMemory,
    UniqueId,
    nvshmem_problem,
    version_of,
)
from distbfs.ranks.world import SoloWorld
from distbfs.search.domains import choose_exchange

FREE = 3 << 30


class Library:
    """What NvshmemMemory calls of ``libnvshmem_host.so``, of one rank."""

    def __init__(self, fails=()):
        self.fails, self.begun, self.taken, self.modules = fails, [], [], []
        self.nvshmem_malloc = partial(self.malloc)  # which takes types

    def nvshmemx_get_uniqueid(self, unique):
        unique._obj.internal = b"of rank 0"
        return int("unique" in self.fails)

    def nvshmemx_hostlib_init_attr(self, flags, attributes):
        asked = attributes._obj
        unique = asked.arguments.unique_id
        self.begun.append((flags.value, unique.id[0].internal, unique.rank))
        assert asked.version == version_of(InitAttributes)
        return 7 * ("init" in self.fails)

    def malloc(self, size):
        if "malloc" in self.fails:
            return 0
        self.taken.append(np.full(size, 5, np.uint8))
        return self.taken[-1].ctypes.data

    def nvshmemx_cumodule_init(self, handle):
        self.modules.append(handle.value)
        return 0


class Devices:
    """CuPy's memory, on the host."""

    def __init__(self):
        self.cuda = SimpleNamespace(
            Device=lambda: 0,
            UnownedMemory=lambda at, size, owner: (at, size),
            MemoryPointer=lambda memory, offset: memory,
            runtime=SimpleNamespace(memGetInfo=lambda: (FREE, FREE)),
            get_current_stream=lambda: SimpleNamespace(synchronize=lambda: None),
        )

    def ndarray(self, shape, dtype, memory):
        at, size = memory
        assert shape[0] <= size
        held = (ctypes.c_char * shape[0]).from_address(at)
        return np.frombuffer(held, dtype).view(Weak)


class Weak(np.ndarray):
    """An array that may be referred to weakly."""


@pytest.fixture
def libraries(monkeypatch, tmp_path):
    """Libraries that ranks load, in turn."""
    loaded, devices = [], Devices()

    def load(_):
        loaded.append(Library(loaded.fails))
        return loaded[-1]

    class Loaded(list):
        fails = ()

    loaded = Loaded()
    monkeypatch.setattr(symmetric.ctypes, "CDLL", load)
    monkeypatch.setattr(symmetric, "nvshmem", lambda: SimpleNamespace(host="host"))
    monkeypatch.setattr(symmetric, "_heaps", {})
    monkeypatch.setattr(cuda, "cupy", lambda: devices)
    monkeypatch.setattr(cuda, "release", lambda: None)
    monkeypatch.setenv("NVSHMEM_DISABLE_NVLS", "0")
    monkeypatch.delenv("NVSHMEM_REMOTE_TRANSPORT", raising=False)
    return loaded


def test_all_ranks_begin_with_the_id_of_the_first(libraries, monkeypatch):
    on_ranks(3, NvshmemMemory)
    begun = [one for library in libraries for one in library.begun]
    assert sorted(begun) == [(8, b"of rank 0", rank) for rank in range(3)]
    assert symmetric.os.environ["NVSHMEM_DISABLE_NVLS"] == "0"  # a user's stays
    assert symmetric.os.environ["NVSHMEM_REMOTE_TRANSPORT"] == "none"


def test_memory_is_used_again_when_its_array_is_gone(libraries):
    memory = NvshmemMemory(SoloWorld())
    first = memory.allocate(1000, "some")
    assert not first.any()
    second = memory.allocate(500, "more")
    first[:], place = 1, first.ctypes.data
    del first
    gc.collect()
    third = NvshmemMemory(SoloWorld()).allocate(900, "again")
    assert third.ctypes.data == place
    assert not third.any()
    assert len(libraries) == 1
    assert [len(x) for x in libraries[0].taken] == [1000, 500]
    assert second.ctypes.data != place


def test_memory_is_new_where_one_rank_still_uses_its_own(libraries):
    def work(world):
        memory, kept = NvshmemMemory(world), []
        kept.append(memory.allocate(100, "some"))
        if world.rank:
            kept.clear()
            gc.collect()
        world.barrier()
        kept.append(memory.allocate(100, "more"))
        return len(memory._heap.blocks)

    assert on_ranks(2, work) == [2, 2]


@pytest.mark.parametrize(
    ("fails", "wanted"),
    [
        ("unique", "NVSHMEM does not start: .*nvshmemx_get_uniqueid: error 1"),
        ("init", "NVSHMEM does not start: .*nvshmemx_hostlib_init_attr: error 7"),
    ],
)
def test_a_library_that_does_not_start(libraries, fails, wanted):
    libraries.fails = (fails,)
    with pytest.raises(LaunchError, match=wanted):
        on_ranks(2, NvshmemMemory)


def test_memory_that_is_short(libraries):
    memory = NvshmemMemory(SoloWorld())
    with pytest.raises(OutOfMemory, match="boxes: 3221225472 bytes on each"):
        memory.allocate(FREE, "boxes")
    libraries[0].fails = ("malloc",)
    with pytest.raises(OutOfMemory, match="boxes: NVSHMEM does not allocate 8 bytes"):
        memory.allocate(8, "boxes")


def test_other_ranks_of_the_same_process_are_refused(libraries):
    NvshmemMemory(SoloWorld())
    with pytest.raises(LaunchError, match="NVSHMEM serves other ranks or devices"):
        on_ranks(2, NvshmemMemory)


def test_modules_stay_loaded(libraries, monkeypatch, tmp_path):
    """NVSHMEM writes to them when memory is added."""
    made = []

    def load(self, source, texts, library, **definitions):
        made.append((source, definitions))
        assert library.host == "host"
        self.loaded = SimpleNamespace(ptr=len(made))

    monkeypatch.setattr(programs.Module, "__init__", load)
    memory, source = NvshmemMemory(SoloWorld()), tmp_path / "kernel.cu"
    one = memory.module(source, OFFSET="u32")
    assert NvshmemMemory(SoloWorld()).module(source, OFFSET="u32") is one
    assert memory.module(source, OFFSET="u64") is not one
    assert libraries[0].modules == [1, 2]


def test_ids_are_as_long_as_those_of_the_library():
    assert ctypes.sizeof(UniqueId) == 128
    assert ctypes.sizeof(InitAttributes) == 144


def test_what_is_missing_is_said(monkeypatch):
    monkeypatch.setattr(files, "folders", lambda package: [])
    nvshmem.cache_clear()
    reason = "no NVSHMEM; pip install nvidia-nvshmem-cu13, or -cu12"
    assert nvshmem_problem(SoloWorld()) == reason
    wanted = ("nccl", f"exchange nccl: {reason}")
    assert choose_exchange(SoloWorld(), "nvshmem", [0]) == wanted
    nvshmem.cache_clear()


def test_files_are_found_where_wheels_have_them(monkeypatch, tmp_path):
    home, cu13, cupy = (tmp_path / x for x in ("nvshmem", "cu13", "cupy"))
    for path in (
        home / "lib" / "libnvshmem_host.so.3",
        home / "lib" / "libnvshmem_device.a",
        cu13 / "lib" / "libnvJitLink.so.13",
        cu13 / "include" / "cuda_runtime_api.h",
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"some")
    places = {"nvidia": [tmp_path], "nvidia.nvshmem": [home], "cupy": [cupy]}
    monkeypatch.setattr(files, "folders", places.__getitem__)
    nvshmem.cache_clear()
    found = nvshmem()
    nvshmem.cache_clear()
    assert found.host == home / "lib" / "libnvshmem_host.so.3"
    assert found.linker == cu13 / "lib" / "libnvJitLink.so.13"
    assert found.includes[:2] == (home / "include", cu13 / "include")
    assert f"-I{home / 'include'}" in found.options
    other = Nvshmem(found.host, cu13 / "other.a", found.includes, found.linker)
    other.device.write_bytes(b"longer")
    assert found.key != other.key


def test_what_the_linker_says_is_told():
    try:
        linker = nvshmem().linker
    except DeviceMissing as error:
        pytest.skip(str(error))
    linking = Linking(ctypes.CDLL(str(linker)), "sm_90")
    with pytest.raises(DeviceMissing, match=r"^nvJitLink: AddData failed \(\d+\): "):
        linking.add(CUBIN, b"no cubin", "kernels")
