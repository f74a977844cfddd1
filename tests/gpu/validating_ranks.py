"""Ranks that validate results together on their devices; see the test.

mpiexec -n 2 python tests/gpu/validating_ranks.py uneven host chosen

Verdicts on planted faults are compared with the host's.  Values pass through the host
for "host" and "uneven", whose ranks may share devices; "chosen" is what link_between
chooses.
"""

import sys
from functools import partial
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE.parents[1]), str(HERE.parent), str(HERE)]

from graphs import kronecker, random_tuples  # noqa: E402
from validation.test_cuda_on_host import holds, planted  # noqa: E402
from validation.test_validate import search  # noqa: E402

from distbfs.device import cuda  # noqa: E402
from distbfs.exchange.device_choice import take_devices  # noqa: E402
from distbfs.exchange.nccl_link import link_between  # noqa: E402
from distbfs.exchange.peer_memory import on_device  # noqa: E402
from distbfs.generate.cuda import device_tuples  # noqa: E402
from distbfs.ranks.world import SoloWorld, run_guarded, start  # noqa: E402
from distbfs.validation.cuda import validate_on_devices  # noqa: E402
from distbfs.validation.cuda_device import ResultShard, ValidationSeat  # noqa: E402
from distbfs.validation.faults import Asked  # noqa: E402
from distbfs.validation.host import validate  # noqa: E402
from distbfs.validation.kept import KeptEnds  # noqa: E402

GRAPHS = {
    "kronecker": kronecker(13),
    "sparse": random_tuples(40_000, 50_000, seed=8),
}
FIELDS = ("errors", "valid", "nedge", "reached", "depth")


def devices_of(world, how):
    """The devices of this rank; "uneven": rank 0 has all, others the last of them."""
    devices = take_devices(world, share=how == "uneven")
    if how != "uneven":
        return devices
    count = cuda.cupy().cuda.runtime.getDeviceCount()
    return [count - 1] if world.rank else list(range(count))


def check(world, devices, link):
    """Compare verdicts on planted faults; tuples are kept for one graph at a time."""
    for name, source in GRAPHS.items():
        root = int(source.u[0])
        case = source, root, *search(source.n, source.u, source.v, root)
        kept, wrong = [KeptEnds() for _ in devices], 0
        for kind, *faulty in planted(*case, seed=23):
            of, at, level, parent = faulty
            if of is not source or not (holds(level, np.int32) and holds(parent, "i4")):
                continue
            for parents in (parent, None):
                result = of, at, level, parents
                verdict = told(world, devices, link, kept, *result)
                wanted = validate(SoloWorld(), *result, threads=1)
                for field in FIELDS:
                    ours, theirs = getattr(verdict, field), getattr(wanted, field)
                    assert ours == theirs, (name, kind, field, ours, theirs)
                wrong += not wanted.valid
        assert wrong > 10, wrong


def told(world, devices, link, kept, source, root, level, parent):
    """The verdict of all devices, which have two parts each, and one of them three."""
    counts = [len(x) for x in world.allgather(np.array(devices))]
    first, total = sum(counts[: world.rank]), sum(counts)
    parts, seats = 2 * total + 1, []
    for place, device in enumerate(devices):
        with on_device(device):
            own = range(first + place, parts, total)
            shards = [shard(part, parts, level, parent) for part in own]
            tuples = device_tuples(source)
        seats.append(
            ValidationSeat(tuples, shards, partial(on_device, device), kept[place])
        )
    has = Asked(levels=True, parents=parent is not None, directed=False)
    known = (source.n, parts, root, has)
    return validate_on_devices(world, seats, *known, chunk=20_000, link=link)


def shard(part, parts, level, parent):
    """The results of a part, on the current device."""
    cp = cuda.cupy()
    own = None if parent is None else cp.asarray(parent[part::parts].astype(np.int32))
    return ResultShard(part, cp.asarray(level[part::parts].astype(np.int32)), own)


def main():
    """Do what the command line says."""
    world = start(grace=1)
    for how in sys.argv[1:]:
        devices = devices_of(world, how)
        link = link_between(world, devices) if how == "chosen" else None
        check(world, devices, link)
        if world.rank == 0:
            print(f"{how} is right: {type(link).__name__}", flush=True)


if __name__ == "__main__":
    raise SystemExit(run_guarded(None, main))
