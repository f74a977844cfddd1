"""A device that is the CPU: NumPy for CuPy, and kernels that are run by the emulator.

Arrays lie between guard bytes; those near them are looked at after each launch, all
when an array goes or a test ends.  Memory that is not asked for as zeros holds garbage.
"""

import ctypes
import hashlib
import re
import shutil
import subprocess
import tempfile
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from importlib import import_module
from itertools import count
from pathlib import Path
from threading import Lock, get_ident, local
from types import SimpleNamespace

import numpy as np

from distbfs.device import nvrtc
from distbfs.device.cache import cache_folder, exclusive
from distbfs.device.sources import code_of, source_closure, variants
from distbfs.engines.cuda.papers.xbfs import search as paper
from distbfs.engines.cuda.xbfs import between_params
from distbfs.search import choose as choosing
from distbfs.search import domain as resident_driver
from distbfs.search import shared_tuples

# themselves, not what stands for them until they are used
cuda, programs = map(import_module, ("distbfs.device.cuda", "distbfs.device.programs"))

HERE = Path(__file__).parent
GUARD, ALIGNED, GUARDED, GARBAGE = 4096, 512, 0xC5, 0xA5
blocks_for = cuda.blocks_for
NEAR = 512  # bytes of a guard that are looked at after each launch
ARRAYS = 1 << 12  # that there may be at once
SECONDS = 60  # that a launch may take
FLAGS = ("-std=c++17", "-fPIC", "-w", "-pthread", "-fno-strict-aliasing")
FLAGS += ("-shared", "-Wl,-Bsymbolic")
# of kernels, which tests run for a short time, and of what runs them
QUICK, OPTIMISED = "-Og", "-O2"
NVSHMEM = re.compile(r"#include <device/nvshmem\w*\.h>")
ELSEWHERE = re.compile(r'#include "(?:\.\./)+(?:\w+/)*')
FULL, SMALL = 1024, 64  # threads of a block
# not of bfs4k.cuh, whose line goes on: tests of its knobs count its threads
BLOCK = re.compile(rf"#define THREADS {FULL}\n#define WARPS (?:32|\(THREADS / 32\))\n")
SMALL_BLOCK = f"#define THREADS {SMALL}\n#define WARPS {SMALL // 32}\n"
DYNAMIC = re.compile(r"extern __shared__ uint4 dynamic\[\];")
KERNEL = re.compile(r"__global__\s+void(?:\s+__launch_bounds__\([^)]*\))?\s+(\w+)\(")


def compiler():
    return shutil.which("g++") or shutil.which("c++")


class Kernels:
    """Libraries of kernel files, compiled at first use and cached by content.

    flags: of the compiler, where they may say how much it optimises
    small: blocks of FULL threads have SMALL, which is faster
    """

    def __init__(self, flags=FLAGS, *, small=False):
        self.flags, self.small = flags, small
        self.folder = cache_folder() / "emulated"
        self.folder.mkdir(exist_ok=True)
        self.found, self.locks = {}, {}

    def library(self, source, definitions, texts=None):
        """texts: headers by name, in the place of files"""
        given = sorted((texts or {}).items())
        key = (source, *sorted(definitions.items()), *given)
        with self.locks.setdefault(key, Lock()):  # ranks may be threads
            if key not in self.found:
                self.found[key] = self.compile(source, definitions, given)
            return self.found[key]

    def compile(self, source, definitions, texts):
        files, smaller = {}, False
        for path in source_closure(source.resolve()):
            assert path.name not in files, f"two files named {path.name}"
            text = ELSEWHERE.sub('#include "', path.read_text(encoding="utf-8"))
            text = NVSHMEM.sub('#include "nvshmem_on_cpu.hpp"', text)
            if self.small:
                text, cut = BLOCK.subn(SMALL_BLOCK, text)
                smaller = smaller or cut > 0
            files[path.name] = DYNAMIC.sub("uint4 *dynamic = EMULATED_DYNAMIC;", text)
        files.update(texts)
        names = [x for text in files.values() for x in KERNEL.findall(text)]
        for name in ("cuda_on_cpu.hpp", "ptx_on_cpu.hpp", "nvshmem_on_cpu.hpp"):
            files[name] = text_of(name)
        files["ptx.cuh"] = '#include "ptx_on_cpu.hpp"\n'
        code = ['#include "cuda_on_cpu.hpp"', f'#include "{source.name}"']
        code += [f"EMULATED_KERNEL({x})" for x in names]
        files["all.cpp"] = "\n".join(code) + "\n"
        macros = [f"-D{name}={value}" for name, value in sorted(definitions.items())]
        self.executor  # noqa: B018 - kernels call it
        library = ctypes.CDLL(self.built(source.stem, files, QUICK, macros))
        library.smaller = smaller
        return library

    def built(self, stem, files, level=OPTIMISED, macros=()):
        """Compile files by name, all.cpp with what it includes; return the library."""
        options = (level, *self.flags, *macros)
        lines = "-g" in options  # of the files are in the library
        read = {x: y if lines else code_of(y.encode()) for x, y in files.items()}
        content = repr((sorted(read.items()), options, compiler()))
        key = hashlib.blake2b(content.encode(), digest_size=16).hexdigest()
        target = self.folder / f"{stem}-{key}.so"
        with exclusive(self.folder / f"{key}.lock"):
            if not target.exists():
                build(files, options, target)
        return str(target)

    @cached_property
    def executor(self):
        """What runs kernels: one for all of them."""
        files = {"all.cpp": text_of("cuda_on_cpu.cpp")}
        files["cuda_on_cpu.hpp"] = text_of("cuda_on_cpu.hpp")
        return ctypes.CDLL(self.built("executor", files), ctypes.RTLD_GLOBAL)

    @cached_property
    def damaged(self):
        """The function of guards.cpp; nobody frees an array while it runs."""
        files = {"all.cpp": text_of("guards.cpp")}
        function = ctypes.PyDLL(self.built("guards", files)).damaged
        function.argtypes = [ctypes.c_void_p, *[ctypes.c_long] * 3]
        function.restype = ctypes.c_long
        return function

    def prepare(self, wanted):
        """Compile (source, definitions) at once, as far as they are not there."""
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda one: self.library(*one), wanted))


def text_of(name):
    return (HERE / name).read_text(encoding="utf-8")


def build(files, options, target):
    """Compile files (name -> text) to a target that is there whole or not at all."""
    with tempfile.TemporaryDirectory(dir=target.parent) as name:
        folder = Path(name)
        for file, text in files.items():
            (folder / file).write_text(text)
        command = [compiler(), *options, "-o", folder / "all.so"]
        subprocess.run([*command, folder / "all.cpp"], check=True)
        (folder / "all.so").rename(target)


ABOUT = {"device": "a CPU", "memory_bytes": 1 << 30, "driver": 13000, "cupy": "0"}


class Device:
    """The only device."""

    id = 0

    def __init__(self, capability="90"):
        self.compute_capability = capability

    def __int__(self):
        return 0

    def __eq__(self, other):
        return int(self) == int(other)

    def __hash__(self):
        return 0

    def use(self):
        pass

    def synchronize(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


class Memory:
    """Bytes as an array, freed after the callbacks of weak references to this object.

    NumPy 2.5 frees the bytes of an array before those of references to the array.
    """

    def __init__(self, size, fill):
        self.bytes = np.full(size, fill, np.uint8)
        self.__array_interface__ = self.bytes.__array_interface__


class DeviceArray(np.ndarray):
    """Looks like CuPy's where the package depends on it."""

    device = Device()

    @property
    def data(self):
        def clear(value, size, stream):
            self.view(np.uint8)[:size] = value

        at = self.__array_interface__["data"][0]
        return SimpleNamespace(ptr=at, memset_async=clear)

    def get(self, stream=None, out=None, blocking=True):
        if out is None:
            return np.array(self)
        out[...] = self
        return out

    def set(self, values, stream=None):
        self[...] = values


class Stream:
    """Everything runs at once, in the order of the calls."""

    ptr = 0
    done = True

    def __init__(self, non_blocking=False, priority=None):
        pass

    def record(self, event=None):
        return event or Event()

    def wait_event(self, event):
        pass

    def synchronize(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


Stream.null = Stream()


class Event:
    """Something that has happened."""

    done = True

    def __init__(self, disable_timing=False):
        pass

    def record(self, stream=None):
        pass

    def synchronize(self):
        pass


class EmulatedDevice:
    """What ``distbfs.device.cuda`` is for tests.

    multiprocessors, shared, capability: of the device; ahead, asked: kernels, with
    definitions, that were to be compiled ahead, and those that were used
    one_rank: has all devices of a domain, whose levels are begun one after the other
    of_rank.devices: how many the rank has that is this thread, where it is not one
    """

    def __init__(self, kernels):
        self.kernels = kernels
        self.multiprocessors, self.shared, self.capability = 2, 227 << 10, "90"
        self.ahead, self.asked = [], []
        self.arrays, self.begun = Guards(kernels), {}
        self.launches, self.one_rank, self.of_rank = 0, False, local()
        self.latest = {}  # by thread, what was begun last

    def install(self, monkeypatch):
        arrays = ArrayModule(self)
        device = self

        class Module:
            def __init__(self, source, texts=None, /, **definitions):
                device.asked.append((source, definitions))
                asked = {key: str(value) for key, value in definitions.items()}
                assert asked in variants(source), (source.name, asked)
                self.library = device.kernels.library(source, definitions, texts)

            def kernel(self, name):
                return Kernel(device, self.library, name)

        for name, value in {
            "cupy": lambda: arrays,
            "multiprocessors": lambda: self.multiprocessors,
            "blocks_for": lambda *some, most=0: blocks_for(*some, most=1),
            "shared_limit": lambda: self.shared,
            "free_bytes": lambda: 1 << 40,
            "available": lambda need: 1 << 40,
            "architecture": lambda: f"sm_{self.capability}",
            "release": lambda: None,
            "describe": lambda: ABOUT,
            "uuids": lambda devices=None: ["GPU-0"] * len(devices or [0]),
        }.items():
            monkeypatch.setattr(cuda, name, value)
        monkeypatch.setattr(programs, "Module", Module)
        monkeypatch.setattr(nvrtc, "ahead", lambda _, wanted: self.ahead.extend(wanted))
        if self.kernels.small:
            monkeypatch.setattr(between_params, "THREADS", SMALL)
        monkeypatch.setattr(choosing, "take_devices", lambda *_, **__: [0])
        monkeypatch.setattr(resident_driver, "Gate", Gate)
        monkeypatch.setattr(paper, "_resident_blocks", lambda kernel: 2)
        monkeypatch.setattr(shared_tuples, "foreign_array", at_address)

    def begin_together(self, kernel, arguments, form):
        """Run kernels of a rank's devices of a domain at once; wait at the last one.

        What follows one of them on its device runs after it.  Returns whether it is
        this that runs the kernel.
        """
        last = False
        if kernel.name == "results":  # of the device that has ended its search
            key, index = self.latest.get(get_ident(), (None, None))
        elif hasattr(arguments, "mailbox") and arguments.parts > 1:
            key, index = (arguments.mailbox[0], get_ident()), arguments.index
            parts = getattr(self.of_rank, "devices", arguments.parts)
            last = kernel.name in ("level", "end")
        else:
            return False
        begun = self.begun.get(key, {})
        if index not in begun and kernel.name not in ("level", "end"):
            return False
        self.begun[key], self.latest[get_ident()] = begun, (key, index)
        pool, calls = begun.setdefault(index, (ThreadPoolExecutor(1), []))
        held = type(arguments).from_buffer_copy(arguments)  # as it is now
        calls.append(pool.submit(kernel.run, [ctypes.addressof(held)], *form))
        calls[-1].held = held
        if last and len(begun) == min(arguments.parts, parts):
            for pool, calls in self.begun.pop(key).values():
                for one in calls:
                    one.result()
                pool.shutdown(wait=False)
        return True

    def allocate(self, shape, dtype, fill=GARBAGE):
        """Return an array between guards, its bytes set."""
        dtype = np.dtype(dtype)
        size = int(np.prod(shape)) * dtype.itemsize
        raw = np.asarray(Memory(size + 2 * GUARD + ALIGNED, GUARDED))
        start = GUARD + -(raw.ctypes.data + GUARD) % ALIGNED
        raw[start : start + size] = fill
        self.guard(raw, start, size)
        return raw[start : start + size].view(dtype).reshape(shape).view(DeviceArray)

    def guard(self, raw, start, size):
        """Remember an array, and what lies around it."""
        self.arrays.add(raw, start, size)

    def check(self, when, near=2 * GUARD):
        """Look for writes outside of arrays, not further from them than some bytes."""
        self.arrays.check(when, near)


class Guards:
    """Where nothing may be written: before and past each array that is not gone."""

    def __init__(self, kernels):
        self.damaged = kernels.damaged
        self.clear()

    def clear(self):
        """Forget all arrays."""
        self.held, self.free, self.new, self.fault = {}, [], count(), None
        self.places = np.zeros((ARRAYS, 2, 2), np.uint64)  # addresses and sizes
        self.table = self.places.ctypes.data

    def add(self, raw, start, size):
        try:
            row = self.free.pop()
        except IndexError:
            row = next(self.new)
        at, past = raw.ctypes.data, start + size
        self.held[row] = weakref.ref(raw.base, partial(self.gone, row)), size
        self.places[row] = (at, start), (at + past, len(raw) - past)

    def gone(self, row, _):
        self.look("something", row, 1, 2 * GUARD)
        self.places[row] = 0
        del self.held[row]
        self.free.append(row)

    @property
    def bytes(self):
        """Of all arrays, without what lies around them."""
        return sum(size for _, size in list(self.held.values()))

    def check(self, when, near):
        self.look(when, 0, len(self.held) + len(self.free), near)
        if self.fault is not None:
            raise AssertionError(self.fault)

    def look(self, when, row, rows, near):
        """Note the first fault at some rows."""
        at = self.table + row * self.places.strides[0]
        place = self.damaged(at, 2 * rows, GUARDED, near)
        if place < 0 or self.fault is not None:
            return
        row, past = row + place // 2, place % 2
        at, length = map(int, self.places[row, past])
        bad = np.flatnonzero(at_address(at, length, np.uint8) != GUARDED)
        self.fault = (
            f"{when} wrote {'past' if past else 'before'} an array of "
            f"{self.held[row][1]} bytes: {len(bad)} bytes, first {bad[0]}, of {length}"
        )


class ArrayModule:
    """NumPy in the place of CuPy."""

    def __init__(self, device):
        self._device = device
        self.cuda = SimpleNamespace(
            Device=lambda *_: Device(device.capability),
            memory=SimpleNamespace(OutOfMemoryError=MemoryError),
            get_current_stream=Stream,
            get_elapsed_time=lambda begin, end: 1.0,
            Stream=Stream,
            Event=Event,
            UnownedMemory=lambda at, size, owner, device: owner,
            MemoryPointer=lambda memory, offset: memory,
            alloc_pinned_memory=lambda size: bytearray(b"\xa5") * size,  # as it was
            runtime=SimpleNamespace(
                CUDARuntimeError=RuntimeError,
                getDeviceCount=lambda: 1,
                hostRegister=lambda *_: None,
                hostUnregister=lambda _: None,
                memcpy=lambda to, at, size, kind: ctypes.memmove(to, at, size),
                memcpyAsync=lambda to, at, size, *_: ctypes.memmove(to, at, size),
                memcpyDeviceToHost=2,
            ),
        )

    def __getattr__(self, name):
        found = getattr(np, name)
        if not callable(found) or isinstance(found, type):
            return found

        def call(*arguments, **options):
            result = found(*arguments, **options)
            if isinstance(result, np.ndarray):
                return self.asarray(result)
            return result

        return call

    def ndarray(self, shape, dtype, memory):
        return memory.view(DeviceArray)

    def empty(self, shape, dtype=np.float64):
        return self._device.allocate(shape, dtype)

    def zeros(self, shape, dtype=np.float64):
        return self._device.allocate(shape, dtype, fill=0)

    def full(self, shape, value, dtype):
        found = self.empty(shape, dtype)
        found[...] = value
        return found

    def asarray(self, values, dtype=None):
        values = np.asarray(values, dtype=dtype)
        found = self.empty(values.shape, values.dtype)
        found[...] = values
        return found


class Gate:
    """As ``gate.Gate``; what is launched begins at once."""

    def __init__(self, world):
        pass

    def hold(self):
        pass

    def open(self):
        pass

    def release(self):
        pass


class Kernel:
    """A kernel by name, as ``programs.Kernel``."""

    def __init__(self, device, library, name):
        self.device, self.name = device, name
        self.function = getattr(library, f"launch_{name}")
        self.smaller = library.smaller

    def set_attribute(self, number, value):
        pass

    def share_memory(self, blocks, shared):
        pass

    def attribute(self, number):
        return 32

    def run(self, pointers, grid, block, shared, together, cluster):
        device = self.device
        assert shared <= device.shared
        if self.smaller and block == FULL:
            block = SMALL
        message = ctypes.create_string_buffer(256)
        seed = device.launches
        device.launches += 1
        failed = self.function(
            (ctypes.c_void_p * len(pointers))(*pointers),
            *(grid, block, shared, together, max(cluster, 1), seed, SECONDS),
            message,
        )
        if failed:
            raise RuntimeError(f"{self.name}: {message.value.decode()}")
        device.check(self.name, NEAR)

    def __call__(self, grid, block, *arguments, shared=0):
        held = [
            np.array([x.data.ptr if isinstance(x, DeviceArray) else x], dtype)
            for x in arguments
            for dtype in [np.uint64 if isinstance(x, DeviceArray) else x.dtype]
        ]
        pointers = [x.ctypes.data for x in held]
        self.run(pointers, grid, block, shared, 0, 0)

    def prepare(
        self, arguments, grid, block, *, shared=0, cooperative=False, cluster=0
    ):
        return Launch(self, arguments, grid, block, shared, cooperative, cluster)


class Launch:
    """As ``programs.Launch``."""

    def __init__(self, kernel, arguments, grid, block, shared, cooperative, cluster):
        self.kernel, self.arguments = kernel, arguments
        together = int(cooperative or cluster > 1)
        self.form = grid, block, shared, together, cluster
        self.started = None

    def __call__(self, stream=0):
        device = self.kernel.device
        if not device.one_rank or not device.begin_together(
            self.kernel, self.arguments, self.form
        ):
            self.run()

    def run(self):
        self.kernel.run([ctypes.addressof(self.arguments)], *self.form)

    def record(self, before=(), then=None, back=None):
        self.recorded = before, then, None if back is None else back.launch()
        return self

    def set_arguments(self):
        pass

    def launch(self):
        """Run in a thread of its own, beside launches on other devices."""
        pool = ThreadPoolExecutor(1)
        self.started = pool.submit(self.spent, *self.recorded)
        pool.shutdown(wait=False)

    def ended(self):
        return self.started.done()

    def wait(self, word=None):
        try:
            if word is not None:
                word.watch(self.ended)
        finally:
            seconds = self.started.result()
            if word is not None:
                word.clear()
        return seconds

    def timed(self, before=(), then=None, back=None, word=None):
        self.record(before, then, back)
        if word is None or word.stop is None:
            return self.spent(*self.recorded)
        ask_once(word)
        self.launch()
        return self.wait(word)

    def spent(self, before, then, last):
        begin = time.perf_counter()
        for array, value in before:
            array.view(np.uint32)[...] = value & 0xFFFFFFFF
        self()
        if then is not None:
            then()
        if last is not None:
            last()
        return max(time.perf_counter() - begin, 1e-9)


def ask_once(word):
    """Ask before a launch, so that who says yes at once is heard at the first level."""
    turns = iter([False])
    word.watch(lambda: next(turns, True))


def at_address(address, count, dtype):
    """Memory of the emulated device, by its address."""
    size = count * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(address), dtype)
