"""The data of a graph in the memory where it is searched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distbfs.exchange.base import Exchange
    from distbfs.partition.layout import Placement
    from distbfs.partition.part import Part
    from distbfs.partition.share import Share
    from distbfs.search.vertices import VertexMap


@dataclass(frozen=True)
class Separated:
    """Shares of domains on devices, and the exchange between domains.

    shares: one per device of this rank; placement: of the domains of all ranks;
    exchange: what searches use
    """

    shares: Sequence[Share]
    placement: Placement
    exchange: Exchange


@dataclass
class Held:
    """The data of a graph in the memory where it is searched, on this rank.

    parts: parts in host memory; device_parts: parts on devices; shares: the shares of
    devices in one domain. More than one engine may search each of them.
    devices: the CUDA devices of this rank that search
    edges: number of stored directed edges of this rank's share
    threshold: TH where there are delegates, else None
    generation_seconds, construction_seconds: times of this rank
    facts: JSON values for reports, by name
    """

    vertices: VertexMap
    parts: Sequence[Part] = ()
    device_parts: Sequence[Part] = ()
    shares: Sequence[Share] = ()
    devices: Sequence[int] = ()
    edges: int = 0
    threshold: int | None = None
    generation_seconds: float = 0.0
    construction_seconds: float = 0.0
    facts: dict[str, Any] = field(default_factory=dict)
