"""The contracts of ``tests/mpi`` for one process, where MPI may be missing."""
# ruff: noqa: F403

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "mpi"))

from test_exchange_choice import *
from test_exchange_contract import *
from test_world_contract import *
