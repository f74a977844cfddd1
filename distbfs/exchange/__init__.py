"""Transfers between the parts of a run at the end of a level."""

from typing import TYPE_CHECKING

from distbfs.registry import LaterModule

if not TYPE_CHECKING:
    nccl_link = LaterModule(f"{__name__}.nccl_link")
    peer_memory = LaterModule(f"{__name__}.peer_memory")
    symmetric = LaterModule(f"{__name__}.symmetric")
