"""The common parts of bit-parallel traversals on CUDA devices.

Source: Then et al., The more the merrier, VLDB 2014.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from distbfs.multisearch.base import check_sources
from distbfs.partition.share import Share
from distbfs.types import Ids

KERNELS = Path(__file__).parent
LEVELS = KERNELS / "bits_levels.cu"
SEARCHES = 128  # of a lane
LANES = (1, 2, 4)  # of a row
THREADS = 1024
MARKS = 4
MORE_PLANES = 4  # added at a time
MORE_LEVELS = 64  # counted at first; doubled as needed
WIDE_DEGREE = 32  # degree from which a warp pulls a row
HUB_DEGREE = 2048  # degree from which a block, or all, read a row
NO_LIMIT = 0xFFFFFFFF
RESERVE = 256 << 20


def check_ids(graph: Share, vertices: ArrayLike, what: str = "source") -> Ids:
    """Return ids as int64 [k]; raise UsageError about ``what`` if one is no vertex."""
    ids = np.asarray(vertices, dtype=np.int64).ravel()
    check_sources(ids, graph.n, what)
    return ids
