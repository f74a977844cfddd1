"""Damaged files of stores: refused, or they make no difference, by host and device.

The device is a CUDA device where there is one, else the CPU that emulates it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from distbfs.device import cuda
from distbfs.errors import DeviceMissing, StoreError
from distbfs.store import schema
from distbfs.store.cuda_graph import graph_of_store
from distbfs.store.cuda_part import part_of_store
from distbfs.store.hdf5 import open_store
from distbfs.types import SUBGRAPHS
from trials.checker import equal
from trials.emulated import device
from trials.stores import make_store
from trials.trial import Trial

TIMES = 25  # that files of a store are damaged, each time anew
MOST = 400  # vertices
LIBRARY_VERSION = ("v110", "v110")
REFUSED = "refused"


def run(trial: Trial) -> None:
    """Damage the files of a store; compare what is read with what was there."""
    emulated = lent()
    _, folder, _ = make_store(trial, most=MOST)
    ways = {"host": on_host, "device": on_device}
    if not open_store(folder).manifest.directed:
        ways["parts on a device"] = parts_on_device
    whole = {name: way(folder) for name, way in ways.items()}
    for _ in range(TIMES):
        path = trial.choose(*sorted(folder.iterdir()))
        intact = path.read_bytes()
        how = trial.choose(*DAMAGES)
        trial.note(f"{path.name}: {how.__name__} after {trial.searches} looks")
        how(trial, path)
        outcomes = {name: outcome(way, folder) for name, way in ways.items()}
        path.unlink(missing_ok=True)
        path.write_bytes(intact)

        def look(outcomes: dict[str, Any] = outcomes) -> None:
            for name, arrays in outcomes.items():
                if arrays != REFUSED:
                    compare(arrays, whole[name], name)
            refused = [name for name, arrays in outcomes.items() if arrays == REFUSED]
            equal(
                "refusal", len(refused) in (0, len(outcomes)), True, f"{refused} alone"
            )

        trial.check(look)
    if emulated is not None:
        emulated.check("the trial")


def lent() -> Any:
    """Return the emulated device; None if there is a real one."""
    try:
        cuda.cupy()
    except DeviceMissing:
        return device()
    return None


def outcome(way: Callable[[Path], dict[str, Any]], folder: Path) -> Any:
    """Return what is read of a store by name, REFUSED where that is refused.

    A refusal is one line; any other error is the trial's.
    """
    try:
        return way(folder)
    except StoreError as error:
        equal("refusal", "\n" in str(error), False, f"lines of {error!r}")
        return REFUSED


def on_host(folder: Path) -> dict[str, Any]:
    """Return all that a host reads of a store."""
    store = open_store(folder)
    arrays: dict[str, Any] = {"manifest": store.manifest.to_json()}
    ids = store.load_ids()
    arrays |= {} if ids is None else ids.arrays()
    for index in range(store.manifest.parts):
        part = schema.part_arrays(store.load_part(index))
        arrays |= {f"{name} of {index}": array for name, array in part.items()}
    return arrays


def on_device(folder: Path) -> dict[str, Any]:
    """Return the graph of a store on a device, and what the host knows of it."""
    store = open_store(folder)
    store.load_ids()
    graph = graph_of_store(store)
    plain = {"source": repr(graph.source), "seconds": None}
    values = vars(graph) | plain
    for side in ("out", "into"):
        rows = vars(values.pop(side))
        values |= {f"{name} of {side}": x for name, x in rows.items()}
    return {name: x.get() if hasattr(x, "get") else x for name, x in values.items()}


def parts_on_device(folder: Path) -> dict[str, Any]:
    """Return the parts of a store on a device, and what the host knows of it."""
    store = open_store(folder)
    store.load_ids()
    arrays: dict[str, Any] = {"manifest": store.manifest.to_json()}
    for index in range(store.manifest.parts):
        part = part_of_store(store, index)
        arrays[f"delegates of {index}"] = part.delegates
        for name in ("vertices", "numbers", "tuple_degrees"):
            arrays[f"{name} of {index}"] = getattr(part, name).get()
        for name in SUBGRAPHS:
            rows = getattr(part, name)
            arrays[f"{name} of {index}"] = rows.columns.get()
            arrays[f"offsets of {name} of {index}"] = rows.offsets.get()
    return arrays


def compare(actual: dict[str, Any], expected: dict[str, Any], where: str) -> None:
    """Raise Wrong unless all values are the same."""
    equal("damage", sorted(actual), sorted(expected), f"names, by the {where}")
    for name, value in expected.items():
        same = np.array_equal(actual[name], value)
        equal("damage", same, True, f"{name} is as in the intact store, by the {where}")


def flip(trial: Trial, path: Path) -> None:
    """Turn some bits round."""
    data = bytearray(path.read_bytes())
    for _ in range(trial.choose(1, 1, 1, 2, 9)):
        data[trial.below(len(data))] ^= 1 << trial.below(8)
    path.write_bytes(data)


def span(trial: Trial, size: int) -> slice:
    """Return some bytes that follow each other."""
    start = trial.below(size)
    length = 1 + trial.below(trial.choose(1, 8, 64, 512, 4096, size))
    return slice(start, min(start + length, size))


def overwrite(trial: Trial, path: Path) -> None:
    """Write zeros, ones, noise, or other bytes of the file over some bytes."""
    data = bytearray(path.read_bytes())
    at = span(trial, len(data))
    count, start = at.stop - at.start, trial.below(len(data))
    kinds = (bytes(count), b"\xff" * count, trial.rng.bytes(count), data[start:])
    text = trial.choose(*kinds)[:count]
    data[at.start : at.start + len(text)] = text
    path.write_bytes(data)


def truncate(trial: Trial, path: Path) -> None:
    """Cut the file off, in half of all cases to its old length."""
    data = path.read_bytes()
    kept = data[: trial.below(len(data))]
    path.write_bytes(kept.ljust(len(data), b"\0") if trial.chance(0.5) else kept)


def shift(trial: Trial, path: Path) -> None:
    """Take out some bytes, or put some in; in half of all cases the length stays."""
    data = path.read_bytes()
    at = span(trial, len(data))
    more = trial.rng.bytes(at.stop - at.start) if trial.chance(0.5) else b""
    moved = data[: at.start] + more + data[at.start if more else at.stop :]
    if trial.chance(0.5):
        moved = moved[: len(data)].ljust(len(data), b"\0")
    path.write_bytes(moved)


def rewrite(trial: Trial, path: Path) -> None:
    """Write another value into an array, with the right checksum of HDF5.

    The manifest has no digest of its own: bits of it are flipped.
    """
    if path.name == schema.MANIFEST_NAME:
        flip(trial, path)
        return
    arrays: list[Any] = []
    with h5py.File(path, "r+", libver=LIBRARY_VERSION) as file:
        file.visititems(lambda _, x: arrays.append(x) if hasattr(x, "size") else None)
        array = trial.choose(*[x for x in arrays if x.size] or [None])
        if array is None:
            return
        value = array[place := trial.below(array.size)]
        most = np.iinfo(array.dtype)
        array[place] = trial.choose(0, value ^ 1, most.max, most.min)


def remove(_: Trial, path: Path) -> None:
    """Remove the file."""
    path.unlink()


def exchange(trial: Trial, path: Path) -> None:
    """Put another file of the store in its place."""
    path.write_bytes(trial.choose(*sorted(path.parent.iterdir())).read_bytes())


DAMAGES = (
    *(flip, flip, flip, flip, overwrite, overwrite, overwrite, truncate, shift),
    *(rewrite, rewrite, remove, exchange),
)
