"""Puts this folder on the import path: the rooms share ``worlds`` and ``graphs``.

Threads of the kernels wait without spinning, as tests share few cores.
"""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
