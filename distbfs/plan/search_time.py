"""The time of a search by engine xbfs, predicted term by term from counts.

The terms are those of one device, in a domain of D devices, which is one of p:

    levels     L level, and L shared where D > 1: launching, directions, meetings inside
    looks      near / D / near_rate + far / D / far_rate, of ``plan.search_work``; edges
               between domains, questions and answers count as near
    publish    4 words (D-1) / D over the links inside a domain
    results    finish n / (p D): levels and parents in the input's ids
    if p > 1, between domains:
    meetings   L level of the exchange: counts of all, nearly empty boxes
    partners   each device, after the first, that receives messages on a level; in two
               hops (``exchange.relay``) only those of a row and a column of a grid
    hops       messages between hosts for which a level waits one after another
    wire       bytes of masks, vertices, questions, answers and parents over bandwidth
    counting   vertex for each vertex of the domain that is searched
    if edges lead one way:
    arcs       what such searches took more than those of the same tuples both ways
    if rows have tails in host memory:
    link       first lines of tails at VISITS a second, the lines that follow them at
               LINK bytes a second

``scripts/fit_model.py`` fits constants to runs; it writes them, and the names of the
runs, to ``fitted.json`` beside this file. Constants of networks between hosts are
assumed. Each constant says whether it is fitted or assumed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distbfs.graph.degrees import DegreeHistogram
from distbfs.options import check_choice
from distbfs.plan.search_work import SearchWork, expected_work
from distbfs.plan.threshold import ThresholdCost, weigh_thresholds

if TYPE_CHECKING:
    from typing_extensions import Self

FITTED = Path(__file__).with_name("fitted.json")
ASSUMED = "assumed"
BESIDE = "measured between two H200 of one host"  # results/bench_messages.json
ON_H200 = "measured on an H200"


class Constant(float):
    """A number, and the runs to which it was fitted, or how it was derived."""

    origin: str

    def __new__(cls, value: float, origin: str) -> Self:
        """Return a number with an origin."""
        made = super().__new__(cls, value)
        made.origin = origin
        return made


PEER = 395e9  # bytes a second of one H200 to another over NVLink, measured
WIDE_IDS = 1 << 32  # vertices from which on the parent of one takes 8 bytes, not 4
NARROW_RESULT, WIDE_RESULT = 8, 12  # bytes of a level and a parent; ``result_bytes``
HOP = Constant(5e-6, ASSUMED)  # seconds of a small message between hosts
SIGNALS = 3  # messages of a level that wait for each other: boxes, answers, counts
# seconds of a message to one more partner: of levels that hosts begin, and of others;
# launches of NCCL that are captured, as levels on streams are, were not measured
PARTNER = {"nccl": Constant(11.9e-6, BESIDE), "host": Constant(2.0e-6, BESIDE)}
STREAMED_PARTNER = {
    "nccl": Constant(2e-6, ASSUMED),
    "nvshmem": Constant(1.9e-9, BESIDE),
}
# times of searches of arcs over those of the same tuples both ways: by one domain, as
# measured on two devices; between domains
ARCS = Constant(1.27, ON_H200)
ARCS_BETWEEN = Constant(1.17, ON_H200)
LINK = Constant(51e9, ON_H200)  # bytes a second that kernels read of host memory
VISITS = Constant(37e6, ON_H200)  # lines a second that they read of it at random
LINE = 128  # bytes that a read of host memory brings
NETWORK = Constant(
    50e9, ASSUMED
)  # bytes a second of a device to other hosts: 400 Gbit/s
STEPWISE = "host"  # exchange whose levels, like those of many parts, hosts begin
TERMS = ("levels", "looks", "publish", "results")
BETWEEN = ("meetings", "partners", "hops", "wire", "counting")


@dataclass(frozen=True)
class DeviceConstants:
    """Constants of a device.

    level: seconds per level; shared: additional seconds in a domain of several devices
    near_rate, far_rate: looks per second, see ``SearchWork``
    finish: seconds per vertex to write its level and parent
    vertex: seconds per vertex that is searched, if there are several domains
    """

    name: str
    level: float
    shared: float
    near_rate: float
    far_rate: float
    finish: float
    vertex: float


@dataclass(frozen=True)
class ExchangeConstants:
    """Constants of an exchange between domains.

    level: seconds per level; bandwidth: bytes per second of a device
    hosts: whether the domains are on several hosts
    """

    name: str
    level: float
    bandwidth: float
    hosts: bool = False


DEVICE_CONSTANTS = tuple(x.name for x in fields(DeviceConstants) if x.name != "name")


@dataclass(frozen=True)
class PlannedLayout:
    """The distribution of a graph over domains and devices.

    domains: number p of domains; devices: number D of devices in each
    threshold: TH; it has no effect if p is 1
    streamed: whether devices, and not hosts, begin the levels
    relayed: whether vertices, questions and answers travel in two hops
    """

    domains: int
    devices: int
    threshold: int
    streamed: bool = True
    relayed: bool = False


@dataclass(frozen=True)
class LinkReads:
    """A device's reads of tails in host memory during a search.

    columns: number of columns read; lines: number of lines of LINE bytes that hold them
    visits: number of times that a tail is read, each beginning at a random line
    """

    columns: float
    lines: float
    visits: float

    @property
    def bytes(self) -> float:
        """Bytes that pass over the link."""
        return self.lines * LINE

    @property
    def seconds(self) -> float:
        """Seconds that the link takes for these reads."""
        return max(self.lines - self.visits, 0.0) * LINE / LINK + self.visits / VISITS

    @classmethod
    def of(cls, values: Mapping[str, float] | None) -> LinkReads | None:
        """Return the counts for values of ``as_dict``; None for None."""
        if values is None:
            return None
        return cls(*(values[item.name] for item in fields(cls)))

    def as_dict(self) -> dict[str, float]:
        """Return the counts as JSON values."""
        return vars(self) | {"bytes": self.bytes, "seconds": self.seconds}


@dataclass(frozen=True)
class SearchTime:
    """Predicted time of a search: seconds by term, and bytes a device sends, by kind.

    tuples: number of input tuples, all of which are counted
    link: a device's reads of host memory; None if all data are on devices
    arcs: factor of a directed graph; None for others
    """

    tuples: float
    work: SearchWork
    layout: PlannedLayout
    device: DeviceConstants
    exchange: ExchangeConstants | None
    bytes: Mapping[str, float]
    terms: Mapping[str, float]
    link: LinkReads | None = None
    arcs: Constant | None = None

    @property
    def seconds(self) -> float:
        """Seconds of a search, the sum of its terms."""
        return sum(self.terms.values())

    @property
    def teps(self) -> float:
        """Input tuples per second, as Graph500 counts them."""
        return self.tuples / max(self.seconds, math.ulp(0.0))

    def as_dict(self) -> dict[str, Any]:
        """Return the prediction as JSON values."""
        exchange = self.exchange
        return {
            "device": self.device.name,
            "exchange": None if exchange is None else exchange.name,
            "several_hosts": exchange is not None and exchange.hosts,
            "levels_begun_by": "devices" if self.layout.streamed else "hosts",
            "seconds": self.seconds,
            "GTEPS": self.teps / 1e9,
            "seconds_by_term": dict(self.terms),
            "bytes_of_a_device": dict(self.bytes),
            "work_of_a_domain": vars(self.work),
            "link_of_a_device": None if self.link is None else self.link.as_dict(),
            "constants": self.constants(),
        }

    def constants(self) -> dict[str, dict[str, Any]]:
        """Return value and origin of every constant that the time depends on."""
        exchange, streamed = self.exchange, self.layout.streamed
        used: dict[str, Any] = {x: getattr(self.device, x) for x in DEVICE_CONSTANTS}
        if exchange is None:
            used.pop("vertex")
        if self.layout.devices == 1:
            used.pop("shared")
        if self.link is not None:
            used |= {"link": LINK, "visits": VISITS}
        if self.arcs is not None:
            used["arcs"] = self.arcs
        if exchange is not None:
            used |= {"exchange_level": exchange.level, "bandwidth": exchange.bandwidth}
            used["partner"] = partner_of(exchange.name, streamed=streamed)
            if exchange.hosts:
                used["hop"] = HOP
        return {name: {"value": x, "origin": x.origin} for name, x in used.items()}


@cache
def load_constants(path: Path = FITTED) -> dict[str, Any]:
    """Return the fitted constants of the file, {"devices": …, "exchanges": …}."""
    values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return values


def device_of(name: str, constants: Mapping[str, Any] | None = None) -> DeviceConstants:
    """Return the constants of a device; UsageError for an unknown name."""
    every = (constants or load_constants())["devices"]
    check_choice("GPU", name, tuple(every))
    values = {x: Constant(**every[name][x]) for x in DEVICE_CONSTANTS}
    return DeviceConstants(name, **values)


def exchange_of(
    name: str,
    gpu: str,
    *,
    hosts: bool = False,
    bandwidth: float | None = None,
    streamed: bool = True,
    constants: Mapping[str, Any] | None = None,
) -> ExchangeConstants:
    """Return the constants of an exchange with a GPU; UsageError for an unknown name.

    hosts: whether the exchange is between hosts, at NETWORK bytes per second
    bandwidth: bytes per second to use in place of that rate
    streamed: whether devices, and not hosts, begin the levels
    """
    every = (constants or load_constants())["exchanges"]
    check_choice("exchange", name, tuple(every))
    wire = Constant(**every[name]["bandwidth"])
    level = Constant(**every[name if streamed else STEPWISE][f"level {gpu}"])
    if bandwidth is not None:
        wire = Constant(bandwidth, "given")
    elif hosts:
        wire = NETWORK
    if not streamed:
        level = Constant(level, f"from exchange {STEPWISE}")
    return ExchangeConstants(name, level, wire, hosts)


def partner_of(name: str, *, streamed: bool) -> Constant:
    """Return the seconds of a message to one more partner."""
    return (STREAMED_PARTNER if streamed else PARTNER)[name]


def result_bytes(n: int) -> int:
    """Return the bytes of a vertex's level and parent, of the largest types."""
    return WIDE_RESULT if n >= WIDE_IDS else NARROW_RESULT


def sent_bytes(cost: ThresholdCost, layout: PlannedLayout) -> dict[str, float]:
    """Return the bytes that a device sends in a search, by kind.

    If levels run on streams, a mask goes to every other domain, in pieces from the
    devices of its own; else it is reduced in slices, by every rank, one per device.
    """
    others, devices = layout.domains - 1, layout.devices
    mask = cost.mask_levels * cost.delegates / 8
    times = others / devices if layout.streamed else 2 * others / layout.domains
    sent = {name: size / devices for name, size in cost.bytes.items()}
    return sent | {"masks": mask * times}


def predict_search(
    histogram: DegreeHistogram,
    tuples: float,
    layout: PlannedLayout,
    device: DeviceConstants,
    exchange: ExchangeConstants | None = None,
    *,
    internal: bool = False,
    link: LinkReads | None = None,
    directed: bool = False,
) -> SearchTime:
    """Predict the time of a search; fast at any scale.

    histogram: degrees; in a directed graph, sums of those out and in
    exchange: constants of the exchange, needed if there are several domains
    internal: whether results stay in internal ids
    link: a device's reads of host memory, None if all data are on devices
    """
    domains, devices = layout.domains, layout.devices
    work = expected_work(histogram, domains, layout.threshold, devices)
    looks = work.near
    sent: dict[str, float] = {}
    outside: dict[str, float] = {}
    if domains > 1:
        if exchange is None:
            raise ValueError("several domains need an exchange")
        (cost,) = weigh_thresholds(histogram, domains, [layout.threshold])
        sent = sent_bytes(cost, layout)
        looks += (cost.pushed_edges + 3 * cost.questions + cost.items) / domains
        outside = _between(work, layout, device, exchange, sent)
    share = (devices - 1) / devices
    wide = result_bytes(histogram.n) / NARROW_RESULT
    vertices = 0 if internal else histogram.n / (domains * devices)
    terms = {
        "levels": work.levels * (device.level + device.shared * (devices > 1)),
        "looks": (looks / device.near_rate + work.far / device.far_rate) / devices,
        "publish": 4 * work.words * share / PEER,
        "results": device.finish * wide * vertices,
    }
    if link is not None:
        terms["link"] = link.seconds
    terms |= outside
    arcs = None
    if directed:
        arcs = ARCS_BETWEEN if domains > 1 else ARCS
        terms["arcs"] = (arcs - 1) * sum(terms.values())
    return SearchTime(tuples, work, layout, device, exchange, sent, terms, link, arcs)


def _between(
    work: SearchWork,
    layout: PlannedLayout,
    device: DeviceConstants,
    exchange: ExchangeConstants,
    sent: Mapping[str, float],
) -> dict[str, float]:
    """Return the seconds of each term that arises between domains."""
    shares = layout.domains * layout.devices
    others = shares - layout.devices
    partners = work.levels * others if layout.streamed else work.partners
    more = partners * (others - 1) / others
    rounds = 1.0 if layout.streamed else math.log2(shares)
    hops = SIGNALS * rounds * HOP * exchange.hosts
    crossing = sum(sent.values())
    if layout.relayed:
        more = min(more, work.levels * 2 * (math.sqrt(shares) - 1))
        crossing += crossing - sent["masks"]
        hops += HOP * exchange.hosts
    return {
        "meetings": work.levels * exchange.level,
        "partners": more * partner_of(exchange.name, streamed=layout.streamed),
        "hops": work.levels * hops,
        "wire": crossing / exchange.bandwidth,
        "counting": device.vertex * work.vertices / layout.devices,
    }
