"""What the emulator says of kernels that are wrong."""

import ctypes
from shutil import copy

import emulated_device
import numpy as np
import pytest
from emulated_device import Kernel, Kernels

WRONG = """
__global__ void wrong(const int *word, unsigned *out, int what) {
    const unsigned thread = threadIdx.x;
    if (what == 0) out[thread] = __shfl_xor_sync(~0u, thread, 1);
    if (what == 1 && thread == 3) while (true) emulated::to_others();
    if (what == 1) __syncthreads();
    if (what == 2 && thread == 5) __syncwarp();
    if (what == 2 && thread != 5) __ballot_sync(~0u, true);
    if (what == 3) while (__ldcg(word) == 0) {}
    if (what == 4) ((char *)EMULATED_DYNAMIC)[64] = 1;
    if (what == 5) __shfl_sync(1u, thread, 0);
    if (what == 6) out[128] = 1;
}
"""
SAID = [
    "",
    "threads wait for others that never come",
    "lanes of a warp meet at different builtins",
    "no end after the time allowed",
    "a write past the end of shared memory",
    "a warp builtin whose mask is not all lanes",
    "wrong wrote past an array of 512 bytes: 4 bytes, first 0",
]


@pytest.mark.thorough
@pytest.mark.parametrize("together", [0, 1])
@pytest.mark.parametrize("what", range(len(SAID)), ids=lambda k: SAID[k] or "nothing")
def test_faults(device, tmp_path, monkeypatch, what, together):
    monkeypatch.setattr(emulated_device, "SECONDS", 1)
    (tmp_path / "wrong.cu").write_text(WRONG)
    library = device.kernels.library(tmp_path / "wrong.cu", {})
    kernel = Kernel(device, library, "wrong")
    word = np.zeros(1, np.int32)
    out = device.allocate(128, np.uint32)
    held = [ctypes.c_void_p(x.ctypes.data) for x in (word, out)] + [ctypes.c_int(what)]
    pointers = [ctypes.addressof(x) for x in held]
    for _ in range(1 if what == 3 else 3):  # blocks are kept from launch to launch
        if not SAID[what]:
            kernel.run(pointers, 2, 128, 64, together, 0)
            assert out.tolist() == [k ^ 1 for k in range(128)]
            continue
        with pytest.raises((RuntimeError, AssertionError), match=SAID[what]):
            kernel.run(pointers, 2, 128, 64, together, 0)
        held[-1].value = 0
        if what < 6:
            kernel.run(pointers, 2, 128, 64, together, 0)
        held[-1].value = what
    device.arrays.clear()


@pytest.mark.parametrize("at", [-4096, -1, 512, 512 + 4095])
@pytest.mark.parametrize("gone", [False, True])
def test_writes_around_an_array(device, at, gone):
    """Far ones are seen at the end, also where the array is gone by then."""
    array = device.allocate(128, np.uint32)
    np.ctypeslib.as_array((ctypes.c_uint8 * 1).from_address(array.data.ptr + at))[0] = 0
    if gone:
        del array
    side = "before" if at < 0 else "past"
    who = "something" if gone else "the end"
    with pytest.raises(AssertionError, match=f"{who} wrote {side} an array of 512"):
        device.check("the end")
    device.arrays.clear()


@pytest.mark.parametrize("debugged", [False, True])
def test_comments_compile_nothing(kernels, tmp_path, monkeypatch, debugged):
    """But where the library holds line numbers."""
    made = kernels[True].executor._name
    monkeypatch.setattr(emulated_device, "build", lambda *x: copy(made, x[-1]))
    monkeypatch.setenv("DISTBFS_CACHE", str(tmp_path / "cache"))
    flags = (*emulated_device.FLAGS, "-O0", *(["-g"] if debugged else []))
    source, header = tmp_path / "one.cu", tmp_path / "one.cuh"
    source.write_text('#include "one.cuh"\n__global__ void one() { ONE; }\n')
    names = set()
    for text in ("0", "0 // of", "1"):
        header.write_text(f"#define ONE {text}\n")
        names.add(Kernels(flags).library(source, {})._name)
        assert len(names) == {"0": 1, "0 // of": 1 + debugged, "1": 2 + debugged}[text]


def test_files_of_one_name(device, tmp_path):
    """Of several folders are several kernels; one kernel includes no two of them."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        source = tmp_path / name / "search.cu"
        source.write_text(f"__global__ void {name}() {{}}\n")
        assert Kernel(device, device.kernels.library(source, {}), name)
    (tmp_path / "both.cu").write_text(
        '#include "one/search.cu"\n#include "two/search.cu"\n'
    )
    with pytest.raises(AssertionError, match=r"two files named search\.cu"):
        device.kernels.library(tmp_path / "both.cu", {})
