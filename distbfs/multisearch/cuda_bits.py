"""The common parts of bit-parallel traversals on CUDA devices.

Source: Then et al., The more the merrier, VLDB 2014.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from distbfs.device import cuda
from distbfs.engines.base import TAIL_COUNTS
from distbfs.engines.cuda.xbfs.share_search import LINE_BYTES
from distbfs.graph.device_graph import Tails
from distbfs.multisearch.base import check_sources
from distbfs.partition.share import Share
from distbfs.types import DeviceArray, Ids

KERNELS = Path(__file__).parent
SOURCE, LEVELS = KERNELS / "bits.cu", KERNELS / "bits_levels.cu"
SEARCHES = 128  # of a lane
LANES = (1, 2, 4)  # of a row
LARGEST = SEARCHES * LANES[-1]
THREADS = 1024
MARKS = 4
MORE_PLANES = 4  # added at a time
MORE_LEVELS = 64  # counted at first; doubled as needed
WIDE_DEGREE = 32  # degree from which a warp reads a row
HUB_DEGREE = 2048  # degree from which a block, or all, read a row
NO_LIMIT = 0xFFFFFFFF
RESERVE = 256 << 20


def level_dtype(deepest: int) -> np.dtype[Any]:
    """Return the narrowest dtype of levels: int8 to 126, int16 to 32767, else int32."""
    if deepest <= 126:
        return np.dtype(np.int8)
    return np.dtype(np.int16 if deepest <= 32767 else np.int32)


def check_ids(graph: Share, vertices: ArrayLike, what: str = "source") -> Ids:
    """Return ids as int64 [k]; raise UsageError about ``what`` if one is no vertex."""
    ids = np.asarray(vertices, dtype=np.int64).ravel()
    check_sources(ids, graph.n, what)
    return ids


class TailReads:
    """Reads of tails in host memory by a shared traversal (bits_tails.cuh).

    words: number of words in a row, each of 32 searches
    """

    def __init__(self, words: int) -> None:
        cp = cuda.cupy()
        self._reads, self._live = cp.zeros(2, np.uint64), cp.zeros(2 * words, np.uint32)

    def of(self, tails: Tails, columns: DeviceArray) -> dict[str, Any]:
        """Return the kernels' arguments of tails; columns: those on the device."""
        return {
            "tail_row": tails.offsets,
            "far": tails.from_column(columns.data.ptr),
            "tailed": tails.tailed,
            "kept": tails.kept,
            "reads": self._reads,
            "live": self._live,
        }

    def clear(self) -> None:
        """Reset the counts of reads."""
        stream = cuda.cupy().cuda.get_current_stream()
        for array in (self._reads, self._live):
            cuda.clear(array, stream)

    def counts(self) -> dict[str, int]:
        """Return the counts of tail reads, by the names in ``TAIL_COUNTS``."""
        columns, lines = self._reads.get().tolist()
        return dict(zip(TAIL_COUNTS, (columns, lines * LINE_BYTES), strict=True))
