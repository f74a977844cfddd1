"""Many searches at once: the abstraction, its runners, and applications of it.

Source: McLaughlin, Riedy, Bader 2015.
"""

from typing import TYPE_CHECKING

from distbfs.registry import LaterModule

if not TYPE_CHECKING:
    cuda_meet = LaterModule(f"{__name__}.cuda_meet")
    domain_bits = LaterModule(f"{__name__}.domain_bits")
    cuda_bits = LaterModule(f"{__name__}.cuda_bits")
