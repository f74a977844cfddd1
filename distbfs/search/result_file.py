"""The result file of many searches; an interrupted run can resume it.

``OUT.h5`` holds ``sources`` int64 [k], ``level`` int32 [k, n] and ``parent`` int64 [k,
n], or one of both if only that was requested, in input ids; the attribute ``ids`` of
the file is "input".
Where a search began at several vertices, ``sources`` has the smallest of them, and all
those of search i are ``set_sources[set_bounds[i] : set_bounds[i + 1]]``, int64; both
exist if any search of the file began at several. ``paths`` [k, n], uint64 or float64,
holds numbers of shortest paths, if requested. If vertices have other ids in their input
file, the dataset ``ids`` [n], int64 or UTF-8 text, holds these: ``ids[v]`` is the id of
vertex v, for example of a vertex in ``sources`` or ``parent``.

While searches run, the file is called ``OUT.h5.partial``. All space is allocated at the
start and no metadata changes later: a row is written and synced, then its flag in
``done``, so a killed run leaves a valid file whose flagged rows are complete. A row is
contiguous, and rank 0 writes it from pieces of all ranks (``write_blocks``).
"""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import h5py
import numpy as np

from distbfs import leftovers
from distbfs.errors import (
    DiskFull,
    InputError,
    naming,
)
from distbfs.exchange.router import gather
from distbfs.formats.ids import IdMap
from distbfs.formats.writing import allocate, check_place, give_name
from distbfs.locks import file_lock
from distbfs.store.hdf5_file import new_file
from distbfs.types import Array, Ids, Root, slice_bounds

if TYPE_CHECKING:
    from typing_extensions import Self

    from distbfs.types import World

Datasets: TypeAlias = Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]]

KINDS: dict[str, np.dtype[Any]] = {
    "level": np.dtype("<i4"),
    "parent": np.dtype("<i8"),
}
ENDINGS = (".h5", ".hdf5")
PATHS = "paths"
AT_ONCE = 1 << 27  # most values that rank 0 gathers
IDENTITY = "graph"
IDS = "ids"
NAMES = "ids"
NAMES_AT_ONCE = 1 << 18
SUMMED = "summed"


def write_names(file: h5py.File, ids: IdMap) -> None:
    """Write the ids that the vertices have in their input file, in pieces."""
    kind = np.dtype("<i8") if ids.kind == "integer" else h5py.string_dtype()
    dataset = file.create_dataset(NAMES, (ids.count,), dtype=kind)
    for start in range(0, ids.count, NAMES_AT_ONCE):
        stop = min(start + NAMES_AT_ONCE, ids.count)
        dataset[start:stop] = ids.names(np.arange(start, stop, dtype=np.int64))


def arrays_of(sources: Sequence[Root] | Ids) -> dict[str, Ids]:
    """Return the datasets of the searches' sources."""
    each = [np.atleast_1d(np.asarray(root, dtype=np.int64)) for root in sources]
    sizes = [len(roots) for roots in each]
    arrays = {"sources": np.array([roots.min() for roots in each], dtype=np.int64)}
    if set(sizes) <= {1}:
        return arrays
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    return {**arrays, "set_bounds": bounds, "set_sources": np.concatenate(each)}


class PartialFile:
    """The finished searches of a run that may be interrupted, written by one rank.

    A context manager.

    partial: the file's name while searches run
    starts: arrays that are written first, by name
    kinds: shape and dtype of one search's results, by name; the file has a row per
    search
    totals: the same for sums over finished searches; each sum is stored twice, so that
    one copy is intact whenever a run is killed
    identity: a text that identifies the graph and the kind of result
    ids: the vertices' ids in their input file, if these differ from 0 … n-1
    anew: how a user can start over, for messages
    """

    def __init__(
        self,
        partial: Path,
        starts: Mapping[str, Array],
        kinds: Datasets,
        identity: str,
        *,
        totals: Datasets | None = None,
        ids: IdMap | None = None,
        anew: str = "give --force to begin anew",
    ) -> None:
        self._partial, self._starts, self._identity = partial, dict(starts), identity
        self._kinds, self._names, self._anew = list(kinds), ids, anew
        self._totals = list(totals or {})
        self._datasets = {
            **{name: (x.shape, np.dtype("<i8")) for name, x in self._starts.items()},
            **kinds,
            "done": ((len(starts["sources"]),), np.dtype("u1")),
        }
        if totals:
            twice = {
                name: ((2, *shape), kind) for name, (shape, kind) in totals.items()
            }
            self._datasets |= {**twice, SUMMED: ((2,), np.dtype("<i8"))}
        self._file: h5py.File | None = None

    def open(self, *, force: bool) -> Array:
        """Create the file, or reopen that of an interrupted run of the same kind.

        Returns which rows are done, bool [k]. Raises InputError if the file belongs
        to another run, and DiskFull if the disk has no room; ``force`` replaces it.
        """
        damaged = (
            "is not an HDF5 file, or is damaged; allowed: the file of an interrupted "
            f"run; {self._anew}"
        )
        with naming(self._partial, otherwise=damaged):
            try:
                folder = os.open(self._partial.parent, os.O_RDONLY | os.O_CLOEXEC)
                with file_lock(folder):
                    if self._partial.exists() and not self._resume(force=force):
                        self._partial.unlink()
                    if self._file is None:
                        self._create()
                        self._file = h5py.File(self._partial, "r+")
            except BlockingIOError as error:
                what = f"{self._partial}: another run writes to it"
                raise InputError(what) from error
        return np.asarray(self._file["done"][:]) != 0

    def _resume(self, *, force: bool) -> bool:
        """Open the partial file; return False if it is unusable and may be replaced."""
        try:
            self._file = h5py.File(self._partial, "r+")
        except BlockingIOError:
            raise
        except OSError:
            if force:
                return False
            raise
        if self._fits(self._file):
            return True
        self.close()
        if force:
            return False
        raise InputError(
            f"{self._partial} is from another run: graph, sources or options differ; "
            f"{self._anew}"
        )

    def _create(self) -> None:
        need = (1 << 16) + sum(
            math.prod(shape) * kind.itemsize for shape, kind in self._datasets.values()
        )
        if self._names is not None:
            need += sum(array.nbytes for array in self._names.arrays().values())
        free = shutil.disk_usage(self._partial.parent).free
        if need > free:
            raise DiskFull(
                f"{self._partial}: needs {need} bytes, {free} are free on its disk"
            )
        making = self._partial.with_name(self._partial.name + ".new")
        making.unlink(missing_ok=True)  # of a run that was killed
        leftovers.note(making)
        try:
            self._write_new(making)
            allocate(making, making.stat().st_size)
            making.rename(self._partial)
        finally:
            making.unlink(missing_ok=True)
            leftovers.forget(making)

    def _write_new(self, path: Path) -> None:
        """Write a file with all datasets, and the values known already."""
        with new_file(path) as (file, _):
            file.attrs[IDENTITY] = self._identity
            file.attrs[IDS] = "input"
            early = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            early.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
            early.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
            for name, (shape, kind) in self._datasets.items():
                data = self._starts.get(name)
                file.create_dataset(name, shape, kind, data=data, dcpl=early.copy())
            file["done"][:] = 0
            if self._totals:
                file[SUMMED][:] = 0
            if self._names is not None:
                write_names(file, self._names)

    def _fits(self, file: h5py.File) -> bool:
        """Return whether a partial file has the same graph, sources and options."""
        names = {*self._datasets, *([] if self._names is None else [NAMES])}
        return (
            set(file) == names
            and all(
                (file[name].shape, file[name].dtype) == wanted
                for name, wanted in self._datasets.items()
            )
            and file.attrs.get(IDENTITY) == self._identity
            and file.attrs.get(IDS) == "input"
            and all(np.array_equal(file[x][:], y) for x, y in self._starts.items())
        )

    def _opened(self) -> h5py.File:
        if self._file is None:
            raise ValueError("the file is not open")
        return self._file

    def read(self, name: str) -> Array:
        """Return a result of all searches; rows that are not done are undefined."""
        return np.asarray(self._opened()[name][:])

    def write_rows(self, rows: slice, values: Mapping[str, Array]) -> None:
        """Write results of searches by name; mark them done once they are synced."""
        file = self._opened()
        with naming(self._partial):
            for name in self._kinds:
                file[name][rows] = values[name]
        self.mark(rows)

    def read_totals(self) -> tuple[int, dict[str, Array]]:
        """Return (number of searches in the totals, totals by name)."""
        file = self._opened()
        summed = file[SUMMED][:]
        which = int(summed.argmax())
        totals = {name: np.asarray(file[name][which]) for name in self._totals}
        return int(summed[which]), totals

    def write_totals(self, count: int, totals: Mapping[str, Array]) -> None:
        """Write the totals of the first ``count`` searches over the older ones."""
        file = self._opened()
        # mutant: int(file[SUMMED][:].argmin()) -> 0 : test_totals_are_stored_twice
        which = int(file[SUMMED][:].argmin())
        with naming(self._partial):
            for name in self._totals:
                file[name][which] = totals[name]
            self._sync()
            file[SUMMED][which] = count
            self._sync()

    def mark(self, rows: int | slice) -> None:
        """Mark searches as done once their results are synced."""
        file = self._opened()
        with naming(self._partial):
            if self._kinds:
                self._sync()
            file["done"][rows] = 1
            self._sync()

    def _sync(self) -> None:
        self._opened().flush()
        with self._partial.open("rb+") as handle:
            os.fsync(handle.fileno())

    def close(self) -> None:
        """Close the file; finished rows stay for a later run."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def partial_name(path: Path) -> Path:
    """Return the name of a result file while its searches run."""
    return path.parent / (path.name + ".partial")


class ResultFile(PartialFile):
    """A result file written by one rank, which also marks rows that all ranks wrote.

    A context manager.

    sources: for each search, the id of its source, or the ids of a set
    columns: number of vertices
    identity: a text that identifies the graph and the kind of result
    levels, parents: whether the file has them
    ids: the vertices' ids in their input file, if these differ from 0 … n-1
    paths: the dtype of numbers of shortest paths, "" without them
    """

    def __init__(
        self,
        path: Path,
        sources: Sequence[Root] | Ids,
        columns: int,
        identity: str,
        *,
        levels: bool = True,
        parents: bool = True,
        ids: IdMap | None = None,
        paths: str = "",
    ) -> None:
        wanted = {"level": levels, "parent": parents}
        kinds = {name: kind for name, kind in KINDS.items() if wanted[name]}
        if paths:
            kinds[PATHS] = np.dtype(paths)
        shape = (len(sources), columns)
        shaped = {name: (shape, kind) for name, kind in kinds.items()}
        starts = arrays_of(sources)
        super().__init__(partial_name(path), starts, shaped, identity, ids=ids)
        self.path, self._force = path, False

    def open(self, *, force: bool) -> Array:
        """Create the file, or reopen that of an interrupted run of the same kind.

        Returns which rows are done, bool [k]. Raises UsageError if the result
        already exists, InputError if the partial file belongs to another run, and
        DiskFull if the disk has no room; ``force`` replaces both files.
        """
        self._force = force
        check_place(self.path, force=force)
        return super().open(force=force)

    def put(self, name: str, row: int, first: int, values: Array) -> None:
        """Write some of a search's values, from vertex ``first`` on."""
        with naming(self._partial):
            self._opened()[name][row, first : first + len(values)] = values

    def finish(self) -> None:
        """Rename the complete file to its final name.

        Raises UsageError if another run finished first and ``force`` was not given;
        the file then keeps its partial name.
        """
        self.close()
        give_name(self._partial, self.path, force=self._force)


def write_blocks(
    world: World,
    result: ResultFile | None,
    row: int,
    columns: int,
    **blocks: Array | None,
) -> None:
    """Write a search from the blocks of all ranks, and mark it done (collective).

    result: the open file on rank 0, which gets a piece of each block at a time
    columns: number of vertices
    blocks: by the name of a result, values of this rank's vertices; None without them
    """
    firsts = [slice_bounds(columns, world.size, rank)[0] for rank in range(world.size)]
    step = max(AT_ONCE // world.size, 1)
    for name, block in blocks.items():
        if block is None:
            continue
        for begin in range(0, -(-columns // world.size), step):
            pieces = gather(world, block[begin : begin + step])
            if result is not None:
                for first, piece in zip(firsts, pieces, strict=True):
                    result.put(name, row, first + begin, piece)
    if result is not None:
        result.mark(row)
