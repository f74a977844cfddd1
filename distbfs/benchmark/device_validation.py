"""The validator of searches whose results are on devices."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from distbfs.device import cuda
from distbfs.exchange.nccl_link import link_between
from distbfs.generate.cuda import DeviceTuples, LentTuples, device_tuples
from distbfs.search.result import Result
from distbfs.search.session import Session
from distbfs.types import TupleSource
from distbfs.validation.cuda import validate_on_devices
from distbfs.validation.cuda_device import ResultShard, ValidationSeat
from distbfs.validation.faults import Asked, Validation
from distbfs.validation.kept import KeptEnds


def validation_on_devices(
    session: Session, source: TupleSource, *, directed: bool = False
) -> Callable[[Result], Validation]:
    """Return a validator that runs on all devices holding a share of the results.

    It keeps as many tuples on the devices as memory allows, unless ranks share devices
    or the tuples lie there already. Devices of several ranks copy from each other by
    NCCL if they have it, else through the host.

    directed: whether tuples lead only from their first end to their second
    """
    world, layout, shards = session.world, session.layout, session.vertices.shards
    places: dict[int, list[int]] = {}
    for place, shard in enumerate(shards):
        if shard.device is None:
            raise ValueError("validation on devices needs results in device memory")
        places.setdefault(shard.device, []).append(place)
    tuples: dict[int, DeviceTuples] = {}
    kept: dict[int, KeptEnds | None] = {}
    for device in places:
        with cuda.cupy().cuda.Device(device):
            tuples[device] = device_tuples(source)
        lent = isinstance(tuples[device], LentTuples)
        kept[device] = None if session.options.share_device or lent else KeptEnds()

    link = None
    if not session.options.share_device:
        link = link_between(world, list(places))

    def check(outcome: Result) -> Validation:
        arrays = outcome.shards
        seats = [
            ValidationSeat(
                tuples[device],
                [ResultShard(shards[place].index, *arrays[place]) for place in at],
                partial(cuda.cupy().cuda.Device, device),
                kept[device],
            )
            for device, at in places.items()
        ]
        return validate_on_devices(
            world,
            seats,
            layout.n,
            layout.parts,
            outcome.roots,
            Asked(outcome.has_levels, outcome.has_parents, directed),
            link=link,
        )

    return check
