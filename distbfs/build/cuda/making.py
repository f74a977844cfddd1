"""The choice between all edge tuples made on every device, and a share on each.

The seconds of a pass are estimated from counts. If a device makes all tuples, it also
tests which of them its parts keep; if it makes a share, it sorts fewer tuples by
device, sends them, and receives those it keeps.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import numpy as np

from distbfs.build.cuda.shares import rounds_of
from distbfs.generate.cuda import id_type, seconds_a_tuple
from distbfs.types import TupleSource

Making: TypeAlias = Literal["all", "share"]

ALL: Final = "all"
SHARE: Final = "share"
IN_WORDS: dict[Making, str] = {
    ALL: "each device made all of them",
    SHARE: "each device made a share and sent the tuples to the devices that keep them",
}
# seconds a tuple; for making them see generate/cuda.py
LOOK = 4e-11  # by kernels that make keys; scale 29 on one H200, bench_gpu_scale29.json
SORT = 1e-10  # count and fill boxes; assumed
# bytes a second
COPY = 2e10  # to a device from others of its process; assumed, by PCIe
SEND = 2e9  # from a rank to others by host memory; Allreduce on one host reaches 3e9
# seconds; assumed
ROUND = 1e-4  # per round
BOX = 1e-5  # per box of a round


def chosen(source: TupleSource, devices: int, ranks: int) -> Making:
    """Return the faster choice for a pass, ``ALL`` or ``SHARE``; the same on all ranks.

    devices: number of devices of all ranks
    """
    if devices == 1:
        return ALL
    id_bytes = np.dtype(id_type(source.n)).itemsize
    rounds, make = rounds_of(source.tuples, devices), seconds_a_tuple(source)
    seconds = pass_seconds(source.tuples, id_bytes, devices, ranks, rounds, make)
    # mutant: SHARE if seconds[SHARE] < seconds[ALL] else ALL -> ALL
    #   : emulated/test_shares::test_what_is_chosen
    return SHARE if seconds[SHARE] < seconds[ALL] else ALL


def pass_seconds(
    tuples: int,
    id_bytes: int,
    devices: int,
    ranks: int,
    rounds: int,
    make: float,
) -> dict[Making, float]:
    """Estimate the seconds of a pass over all tuples for each choice.

    devices: number of devices of all ranks; rounds: number of rounds that send shares;
    make: seconds to make a tuple
    """
    share = tuples / devices
    kept = 2 * share  # nearly all tuples have ends on two devices
    arriving = 2 * id_bytes * kept * (1 - 1 / devices)  # bytes a device
    sent = 2 * id_bytes * 2 * tuples / ranks * (1 - 1 / ranks)  # bytes a rank
    rest = rounds * (ROUND + BOX * devices)
    return {
        ALL: tuples * (make + LOOK),
        SHARE: share * (make + SORT)
        + kept * LOOK
        + arriving / COPY
        + sent / SEND
        + rest,
    }
