"""Searches by method ``fast`` that went wrong, told together."""

import os
import sys

import numpy as np
import pytest
from fast_graphs import cut, fault, wanted_levels

from distbfs.engines.base import WHOLE
from distbfs.errors import ResourceError


class Faults:
    """Searches that went wrong, told together."""

    def __init__(self):
        self.lines = []

    def look(self, made, search, root, name, *, records=False, until=WHOLE, **settings):
        """Search and check; return the result."""
        told = {"in_ids": search.in_ids, "records": records, "until": until, **settings}
        case = f"{name}, root {root}, {told}"
        try:
            found = search.search(root, records=records, until=until)
        except ResourceError as error:
            end_of_device(f"{case}: {error}")
        form = {
            "in_ids": search.in_ids,
            "levels": settings.get("levels", True) or records,
            "parents": settings.get("parents", True),
            "until": until,
        }
        said = fault(made, root, found, **form)
        if said is None and records:
            said = records_fault(made, root, found, until)
        if said is not None:
            self.lines.append(f"{case}: {said}")
        return found

    def tell(self):
        if self.lines:
            pytest.fail(
                "\n".join([f"{len(self.lines)} wrong", *self.lines[:12]]), False
            )


def end_of_device(said):
    """Stop: after a fault of the device this process can search no more.

    A worker of pytest-xdist is replaced by another one.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        print(f"{said}\n", file=sys.__stderr__, end="", flush=True)
        os._exit(70)
    pytest.exit(said, returncode=70)


def records_fault(made, root, found, until):
    """Return what is wrong with the records of a search, or None."""
    level = cut(wanted_levels(made, root), until)
    degrees = made.source.degrees
    sizes = np.bincount(level[level >= 0]).tolist()
    told = [r.found for r in found.records]
    empty = len(told) + 1 - len(sizes)  # the last levels: a mark and a pull at most
    if not 0 <= empty <= 2 or told != sizes[1:] + [0] * empty:
        return f"records found {told[:9]}, not {sizes[1:10]}"
    sizes += [0, 0]
    together = until.targets is not None
    inside = made.searched(together=together)
    hung = np.bincount(level[~inside & (level > 0)], minlength=len(told) + 1).tolist()
    pruned = [r.extra["pruned"] for r in found.records]
    if pruned != hung[1 : len(told) + 1]:
        return f"records pruned {pruned[:9]}, not {hung[1:10]}"
    level = np.where(inside, level, len(sizes) + 9)
    for depth, r in enumerate(found.records):
        if r.direction == "trees":
            continue
        if not r.seconds > 0:
            return f"level {depth + 1} took {r.seconds} seconds"
        if r.direction.startswith("push"):
            edges = int(degrees[level == depth].sum())
            frontier = int((level == depth).sum())
            if (r.frontier, r.checks) != (frontier, edges):
                return (
                    f"level {depth + 1}, {r.direction}: frontier {r.frontier} and "
                    f"checks {r.checks}, not {frontier} and {edges}"
                )
        else:
            least = int((level == depth + 1).sum())
            look = inside & ((level > depth) | (level < 0))
            # trees are not in order of degree: a first edge is looked at 7 times, say
            most = int(degrees[look].sum()) + 6 * together * int(look.sum())
            if not least <= r.checks <= most:
                return (
                    f"level {depth + 1}, {r.direction}: {r.checks} checks, allowed "
                    f"{least} to {most}"
                )
    return None
