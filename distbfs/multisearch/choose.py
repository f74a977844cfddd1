"""The runners by name, and which one runs where nobody says."""

from __future__ import annotations

from distbfs.device import cuda
from distbfs.errors import CompilerMissing, DeviceMissing, UsageError
from distbfs.multisearch.base import Runner
from distbfs.partition.part import Part
from distbfs.registry import lookup

RUNNERS = {
    "reference": "distbfs.multisearch.arrays:ReferenceRunner",
    "openmp": "distbfs.multisearch.openmp:OpenMPRunner",
    "cuda": "distbfs.multisearch.cuda:CudaRunner",
}


def choose_runner(name: str, part: Part | None = None) -> tuple[Runner, str]:
    """Return a runner and why it was taken ("" where it was named).

    ``auto`` takes cuda where there is a device and the graph ``part`` is symmetric,
    else openmp, and reference where there is no C compiler.  Raises UsageError for an
    unknown name, ResourceError where the one that is named cannot run.
    """
    if name != "auto":
        named: Runner = lookup(RUNNERS, "engine", name)()
        return named, ""
    why = "the graph is directed"
    if part is None or not part.directed:
        try:
            cuda.cupy()
            first: Runner = lookup(RUNNERS, "engine", "cuda")()
            return first, "there is a CUDA device"
        except (DeviceMissing, UsageError) as error:
            why = str(error).partition(";")[0]
    try:
        second: Runner = lookup(RUNNERS, "engine", "openmp")()
    except CompilerMissing as error:
        third: Runner = lookup(RUNNERS, "engine", "reference")()
        return third, str(error)
    return second, why
