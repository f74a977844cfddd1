"""One process without MPI; ``tests/mpi`` has the same fixture for several ranks."""

from __future__ import annotations

import pytest

from distbfs.ranks.world import SoloWorld


@pytest.fixture(scope="session")
def world() -> SoloWorld:
    """The only rank."""
    return SoloWorld()
