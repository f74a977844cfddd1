"""The chunks of a dataset, read from its file by several threads.

HDF5 locates the chunks, but would read and check them one after the other under one
lock. Chunks of a store hold plain values followed by a checksum, so threads can read
them directly to their place in memory; the caller checks the digest of all values.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import xxhash

from distbfs.errors import StoreError
from distbfs.store import schema
from distbfs.types import Array

THREADS = 8  # waiting for one file


def slices(
    dataset: h5py.Dataset,
    name: str,
    digest: str,
    place: Callable[[int, int], Array] | None = None,
) -> Iterator[tuple[int, Array]]:
    """Yield (start, values) for a dataset in slices of schema.SLICE_BYTES, in order.

    place: returns memory for the values start … stop-1, by default new arrays, which is
    yielded when filled, while the next slice is read. Raises OSError, and StoreError if
    the file ends inside a chunk or, at the end, if the digest differs.
    """
    size, step = dataset.size, schema.SLICE_BYTES // dataset.dtype.itemsize
    file, hasher = dataset.file.id.get_vfd_handle(), xxhash.xxh3_128()
    infos = places_of(dataset) if size else {}
    with ThreadPoolExecutor(THREADS) as pool:

        def begin(start: int) -> tuple[Array, list[Future[None]]]:
            stop = min(start + step, size)
            if place is None:
                values = np.empty(stop - start, dataset.dtype)
            else:
                values = place(start, stop)
            return values, [
                pool.submit(fill, file, name, at, piece)
                for at, piece in pieces(dataset, name, infos, start, values)
            ]

        ahead = [begin(0)] if size else []
        for start in range(0, size, step):
            values, reading = ahead.pop()
            if start + step < size:
                ahead.append(begin(start + step))
            for future in reading:
                future.result()
            hasher.update(values.view(np.uint8).data)
            yield start, values
    # mutant: hasher.hexdigest() != digest -> not hasher.hexdigest()
    #   : test_altered_with_a_right_checksum
    if hasher.hexdigest() != digest:
        raise StoreError(f"/{name} is altered: its digest is not the manifest's")


def places_of(dataset: h5py.Dataset) -> dict[int, Any]:
    """Return HDF5's record of each chunk, by its first element."""
    infos: dict[int, Any] = {}
    if hasattr(dataset.id, "chunk_iter"):  # one pass; by_coord scans from the first
        dataset.id.chunk_iter(lambda info: infos.update({info.chunk_offset[0]: info}))
        return infos
    [chunk] = dataset.chunks
    for start in range(0, dataset.size, chunk):
        infos[start] = dataset.id.get_chunk_info_by_coord((start,))
    return infos


def frame_digest(path: Path, datasets: Iterable[h5py.Dataset]) -> str:
    """Return the xxh3_128 of a file's bytes that are not values of its datasets, hex.

    Together with the digests of the datasets, it covers every byte of the file.
    """
    values = sorted(
        (info.byte_offset, item.dtype.itemsize * min(item.chunks[0], item.size - start))
        for item in datasets
        if item.chunks
        for start, info in places_of(item).items()
    )
    digest, at = xxhash.xxh3_128(), 0
    with path.open("rb") as file:
        for begin, length in [*values, (path.stat().st_size, 0)]:
            file.seek(at)
            digest.update(file.read(begin - at))
            at = begin + length
    return digest.hexdigest()


def pieces(
    dataset: h5py.Dataset,
    name: str,
    infos: dict[int, Any],
    start: int,
    values: Array,
) -> Iterator[tuple[int, Array]]:
    """Yield (place in the file, part of ``values``) for the chunks of a slice.

    infos: HDF5's records of all chunks, by first element; start: first element of the
    slice
    """
    [chunk] = dataset.chunks
    at = 0
    while at < len(values):
        skip = (start + at) % chunk
        piece = values[at : at + chunk - skip]
        info = infos.get(start + at - skip)
        place, end = skip * piece.itemsize, (skip + len(piece)) * piece.itemsize
        if (
            info is None
            or info.byte_offset is None
            or info.filter_mask
            or info.size < end
        ):
            raise StoreError(f"/{name} is altered: a chunk is not as it was written")
        yield info.byte_offset + place, piece
        at += len(piece)


def fill(file: int, name: str, place: int, piece: Array) -> None:
    """Read bytes of an open file into a contiguous array, from ``place`` on.

    Raises StoreError if the file is too short.
    """
    left = piece.view(np.uint8).data
    while left:
        count = os.preadv(file, [left], place)
        if count == 0:
            raise StoreError(f"/{name} is cut short")
        left, place = left[count:], place + count
