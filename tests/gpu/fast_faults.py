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
        parents = settings.get("parents", True)
        form = {"in_ids": search.in_ids, "parents": parents, "until": until}
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
    for depth, r in enumerate(found.records):
        if not r.seconds > 0:
            return f"level {depth + 1} took {r.seconds} seconds"
        if r.direction.startswith("push"):
            edges = int(degrees[level == depth].sum())
            if (r.frontier, r.checks) != (sizes[depth], edges):
                return (
                    f"level {depth + 1}, {r.direction}: frontier {r.frontier} and "
                    f"checks {r.checks}, not {sizes[depth]} and {edges}"
                )
        else:
            most = int(degrees[(level > depth) | (level < 0)].sum())
            if not r.found <= r.checks <= most:
                return (
                    f"level {depth + 1}, {r.direction}: {r.checks} checks, allowed "
                    f"{r.found} to {most}"
                )
    return None
