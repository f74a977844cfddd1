"""Puts the helpers of ``tests/faults`` on the import path: they start real ranks."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "faults"))
