"""A command as the CLI writes it: everything runs inside ``run_guarded``.

``guarded.py WHAT RANK``: what the rank does; the others work on for 30 s.
"""

import os
import sys
import time

import numpy as np

from distbfs.errors import UsageError, ValidationError
from distbfs.ranks import world as worlds

what, failing = sys.argv[1], int(sys.argv[2])
launched = int(os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK", "0")))


def command() -> int:
    """Do what the arguments say."""
    if what == "all-before-start" or (what == "before-start" and launched == failing):
        raise UsageError("threads is -1; allowed: 0 to 4096")
    world = worlds.start(grace=1)
    total = int(world.allreduce(np.ones(1, dtype=np.int64))[0])
    assert total == world.size
    if what == "good":
        if world.rank == failing:
            time.sleep(2)
            print("results of", world.size, flush=True)
        return 0
    if what == "all-return-1":
        return 1
    if world.rank == failing:
        if what == "validation":
            raise ValidationError("level 3 is wrong")
        if what == "exit-0":
            sys.exit(0)
        if what == "exit-text":
            sys.exit("no more")
        if what == "bug":
            return {}[what]
    end = time.monotonic() + 120
    while world.size > 1 and time.monotonic() < end:
        world.barrier()
    return 0


if __name__ == "__main__":
    sys.exit(worlds.run_guarded(None, command))
