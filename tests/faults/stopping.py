"""A program that searches until it is asked to stop; says how it ended.

``stopping.py NAME [stuck]``: every rank writes NAME.RANK when it is ready.
"""

import sys
import time
from pathlib import Path

from distbfs.ranks import world as worlds
from distbfs.ranks.signals import StopFlag

name = sys.argv[1]


def command() -> int:
    """Search until asked to stop."""
    world = worlds.start()
    with StopFlag() as stop:
        Path(f"{name}.{world.rank}").touch()
        searches = 0
        while not stop.agreed(world):
            time.sleep(0.05)
            searches += 1
        if sys.argv[2:] == ["stuck"]:
            if world.rank == 0:
                print("first", flush=True)
                time.sleep(120)
            world.barrier()  # in C, where no Python handler runs
    world.barrier()
    if world.rank == 0:
        print("stopped after a search" if searches else "no search", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(worlds.run_guarded(None, command))
