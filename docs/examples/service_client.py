"""Ask a service over HTTPS, behind a proxy such as that of service_nginx.conf.

Run it with ``DISTBFS_TOKEN=$(cat token) python service_client.py URL SOURCE TARGET``,
where URL is https://graph.example.org.  When the service is busy it tries again.
"""

import os
import sys
import time
from collections.abc import Callable
from typing import TypeVar

import distbfs

Answer = TypeVar("Answer")
TRIES = 5


def patiently(ask: Callable[[], Answer]) -> Answer:
    """Return the answer to a request; ask a busy service again, later each time."""
    for tried in range(TRIES):
        try:
            return ask()
        except distbfs.ServiceError as error:
            if error.code != "busy" or tried == TRIES - 1:
                raise
            time.sleep(0.1 * 2**tried)
    raise AssertionError("the last try returns or raises")


def main(url: str, source: int, target: int) -> int:
    """Print the distance between two vertices, and a shortest path."""
    try:
        with distbfs.connect(url, token=os.environ.get("DISTBFS_TOKEN")) as client:
            facts = patiently(client.stats)
            print(f"a graph of {facts['graph']['vertices']} vertices")
            (distance,) = patiently(lambda: client.distances(source, [target]))
            print(f"{distance} hops from {source} to {target}")
            if distance >= 0:
                path = patiently(lambda: client.path(source, target))
                print("a way: " + " - ".join(map(str, path)))
    except distbfs.ServiceError as error:
        print(f"service_client: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
