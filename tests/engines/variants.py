"""Every engine with every method, from the registry."""

import pytest

from distbfs.engines.base import on_device
from distbfs.errors import ResourceError, UsageError
from distbfs.options import SearchOptions
from distbfs.registry import ENGINES, lookup


def marks_of(name):
    return [pytest.mark.gpu] if on_a_device(name) else []


def variants():
    """(engine, method) pairs for ``parametrize``."""
    return [
        pytest.param(name, method, id=f"{name}-{method}", marks=marks_of(name))
        for name in ENGINES
        if lookup(ENGINES, "engine", name).whole_graphs
        for method in lookup(ENGINES, "engine", name).methods
    ]


def ways(directions):
    """(engine, method, direction) triples, without those that an engine refuses."""
    found = []
    for variant in variants():
        for direction in directions:
            name, method = variant.values
            options = SearchOptions(engine=name, method=method, direction=direction)
            try:
                lookup(ENGINES, "engine", name)(options)
            except UsageError:
                continue
            except ResourceError:
                pass  # the test says why it is skipped
            found.append(pytest.param(name, method, direction, marks=marks_of(name)))
    return found


def on_a_device(name):
    """Whether an engine searches whole graphs in the memory of a device."""
    return on_device(lookup(ENGINES, "engine", name))


def make_engine(name, method="", **options):
    """An engine, or a skip where this machine has not what it needs."""
    factory = lookup(ENGINES, "engine", name)
    try:
        return factory(SearchOptions.named(engine=name, method=method, **options))
    except ResourceError as error:
        pytest.skip(str(error))
