"""Every engine with every method, from the registry."""

import pytest

from distbfs.errors import ResourceError
from distbfs.options import SearchOptions
from distbfs.registry import ENGINES, lookup


def variants():
    """(engine, method) pairs for ``parametrize``."""
    return [
        pytest.param(name, method, id=f"{name}-{method}")
        for name in ENGINES
        for method in lookup(ENGINES, "engine", name).methods
    ]


def make_engine(name, method="", **options):
    """An engine, or a skip where this machine has not what it needs."""
    factory = lookup(ENGINES, "engine", name)
    try:
        return factory(SearchOptions(engine=name, method=method, **options))
    except ResourceError as error:
        pytest.skip(str(error))
