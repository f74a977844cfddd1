"""A pytest plugin: counts the calls that NetworkX's tests make of our backend."""

import json
import os
from collections import Counter
from functools import wraps
from pathlib import Path

from distbfs.networkx_backend import backend
from distbfs.networkx_backend.info import FUNCTIONS

CALLS = Counter()


def counted(name, function):
    @wraps(function)
    def call(*args, **kwargs):
        CALLS[name] += 1
        return function(*args, **kwargs)

    return call


def pytest_configure():
    for name in FUNCTIONS:
        setattr(backend, name, counted(name, getattr(backend, name)))


def pytest_sessionfinish():
    Path(os.environ["BACKEND_CALLS"]).write_text(json.dumps(CALLS))
