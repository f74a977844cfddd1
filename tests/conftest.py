"""Puts folders on the import path that all rooms share.

This one, for ``worlds`` and ``graphs``, and ``tests/faults``, which starts real ranks.
"""

import gc
import os
import sys
from importlib import import_module
from pathlib import Path

import pytest
import tiers
import unchanged

from distbfs import device, exchange, multisearch
from distbfs.registry import LaterModule

sys.path.append(str(Path(__file__).resolve().parent / "faults"))

# There may be more ranks than cores: those of MPICH sleep where they wait for others,
# as Open MPI's yield by themselves.  Inherited by all ranks that a test starts.
os.environ.update(
    MPIR_CVAR_CH4_PROGRESS_THROTTLE="1",
    MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT="100",
    MPIR_CVAR_ENABLE_HEAVY_YIELD="1",
)

# Nothing here multiplies matrices, and each process would start and spin threads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
gc.set_threshold(20_000, 20, 50)  # a twentieth of the time went to collections

# Tests replace names in modules of CUDA: in these, not in what stands for them.
for package in (device, exchange, multisearch):
    for name, value in [*vars(package).items()]:
        if isinstance(value, LaterModule):
            import_module(f"{package.__name__}.{name}")


def pytest_addoption(parser):
    tiers.add_options(parser)
    unchanged.add_option(parser)


def pytest_configure(config):
    unchanged.configure(config)


def pytest_report_header(config):
    return tiers.header(config)


def pytest_terminal_summary(terminalreporter, exitstatus, config):
    """Say after failures which cases there were: nobody has looked at the header."""
    if exitstatus and (line := tiers.header(config)):
        terminalreporter.write_line(line)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node, ids):
    """Say how many tests there are once one of the processes knows."""
    if node.gateway.id == "gw0":
        node.config.pluginmanager.get_plugin("terminalreporter").write_line(
            f"{len(ids)} tests"
        )


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc):
    yield
    tiers.choose(metafunc)


def pytest_collection_modifyitems(config, items):
    """Let slow tests begin first: none is left for one process alone at the end."""
    tiers.leave_out(config, items)
    unchanged.leave_out(config, items)
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_collection_finish():
    """Leave what all tests share out of collections of garbage, which tests ask for."""
    gc.collect()
    gc.freeze()
