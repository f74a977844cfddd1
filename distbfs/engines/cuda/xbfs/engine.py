"""The engine for CUDA devices: whole searches in one launch on each device.

One device runs method ``fast`` (search.py); several that map each other's memory run it
together (domain.py); between domains they search level by level (between.py).  XBFS as
published is engine ``xbfs-paper``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from distbfs.build.cuda.kernels import OF_GRAPHS
from distbfs.device import cuda, reached, take
from distbfs.device.nvrtc import Wanted
from distbfs.device.sources import serving
from distbfs.engines.base import Engine
from distbfs.engines.cuda.xbfs.arrays import KERNELS, Arrays
from distbfs.engines.cuda.xbfs.between import BetweenSearch
from distbfs.engines.cuda.xbfs.limits import one_way
from distbfs.engines.cuda.xbfs.memory import (
    member_search_bytes,
    search_bytes,
    share_bytes,
)
from distbfs.engines.cuda.xbfs.search import FastSearch
from distbfs.engines.cuda.xbfs.search_table import LISTS
from distbfs.engines.cuda.xbfs.shared import MOST_PARTS, SharedMemory, connect_devices
from distbfs.errors import UsageError
from distbfs.exchange.peer_memory import PeerGroup
from distbfs.options import MEMORY_OPTIONS
from distbfs.partition.share import Share, ShareCounts, whole_counts
from distbfs.plan import pull_shares
from distbfs.store import cuda_files
from distbfs.types import World

FEW = 4 << 20  # vertices whose results are likely to fit shared memory


def likely_kernels(n: int, *, in_ids: bool, directed: bool = False) -> Iterator[Wanted]:
    """Yield kernels, with definitions, that one device uses for n vertices."""
    source = KERNELS / "search.cu"
    exact: dict[str, str | int] = {"OFFSET": "u32", "IN_IDS": int(in_ids)}
    exact["DIRECTED"] = int(directed)
    needs = dict.fromkeys(("COUNT", "SPLIT", "MASKED"), False)
    few = ("AT_ONCE", "FEW_TREES") if n <= FEW else ()
    usual = few or ("WINDOWS",)
    forms = [(*usual, "PLAIN"), usual]
    if not directed:
        forms.append((*few, "PLAIN", "NEAR"))
    for may in forms:
        yield source, dict(serving(source, exact, needs, may))
    yield KERNELS / "prepare.cu", {}
    yield take.SOURCE, {}
    yield reached.SOURCE, {}
    if in_ids:
        words = {"ID": "u32", "NAME": "u32"}
        yield KERNELS / "results.cu", {"IN_IDS": 1, **words}


def common_kernels() -> list[Wanted]:
    """Return the bytes that one device needs to read a graph and search it once."""
    made: list[Wanted] = [*OF_GRAPHS, (cuda_files.KERNELS, {})]
    for n in (FEW, FEW + 1):
        made += [x for x in likely_kernels(n, in_ids=True) if x not in made]
    return made


class XbfsEngine(Engine):
    """Has directions auto, push and pull; internal_ids; between domains, stepwise."""

    name = "xbfs"
    methods = ("fast",)
    takes = ("stepwise", "internal_ids", *MEMORY_OPTIONS)
    needless = ("uniquify",)  # a vertex is sent once
    on_device = whole_graphs = domains = sets = masks = directed = True
    devices = MOST_PARTS

    def on_graph(self, graph: Share) -> FastSearch:
        """Prepare the searches of a graph in device memory."""
        o = self.options
        if o.stepwise:
            raise UsageError(
                "stepwise is for searches between domains and on CPUs; engine xbfs "
                "searches a graph on one device in one launch"
            )
        counts = (graph.n, graph.active, graph.m, graph.at_least)
        need = self.search_bytes(whole_counts(*counts, directed=graph.directed))
        cuda.require(need, f"a search by method {self.method} of {graph.n} vertices")
        return FastSearch(
            graph,
            parents=o.parents,
            levels=o.levels,
            in_ids=not o.internal_ids,
            direction=o.direction,
        )

    def likely(self, n: int, *, directed: bool = False) -> Iterator[Wanted]:
        """Yield kernels, with definitions, that one device uses for n vertices."""
        in_ids = not self.options.internal_ids
        return likely_kernels(n, in_ids=in_ids, directed=directed)

    def search_bytes(self, share: ShareCounts) -> int:
        """Return the bytes of searches of a share."""
        o, at_least = self.options, share.at_least
        form: dict[str, Any] = {
            "listed": int(at_least[2 : 2 + LISTS].sum()),
            "parents": o.parents,
            "levels": o.levels,
            "multiprocessors": cuda.multiprocessors(),
            "bare": share.directed,
        }
        if share.outer_edges is not None:
            return sum(share_bytes(share, **form).values())
        counts, push = (share.local, share.active, share.m), o.direction == "push"
        form["in_ids"] = not o.internal_ids
        if share.whole:
            return search_bytes(*counts, queue=share.active if push else None, **form)
        pruned = o.direction != "pull" and not share.directed
        return member_search_bytes(
            share.layout.n,
            *counts,
            share.devices,
            push_only=push,
            several=int(at_least[2]) if pruned else None,
            **form,
        )

    def of_shares(
        self,
        inner: Sequence[Share],
        world: World,
        group: PeerGroup | None = None,
    ) -> list[BetweenSearch]:
        """Prepare searches by id, level by level, of a domain's shares (collective).

        world: the ranks that have devices of the domain
        group: the devices, if there are several; keep it as long as the searches
        """
        shared = []
        for share in inner:
            what = f"a search of part {share.index}"
            with share.ids.device, cuda.memory_of(what):
                shared.append(self._shared(share))
        if group is not None:
            connect_devices(world, group, shared)
        searches = []
        for share, memory in zip(inner, shared, strict=True):
            with share.ids.device, cuda.memory_of(f"a search of part {share.index}"):
                searches.append(BetweenSearch(share, memory))
        return searches

    def _shared(self, share: Share) -> SharedMemory:
        """Return the memory of a device that the others of its domain may map."""
        direction, domain = self.options.direction, share.domain
        arrays = Arrays(
            share,
            in_ids=True,
            parents=self.options.parents,
            levels=self.options.levels,
            overrides=one_way(direction),
            pruned=direction != "pull",
        )
        if domain.devices == 1:
            arrays.cut_ranges()
            arrays.set_limits(domain.edges, arrays.mean_next, pull_shares.BETWEEN)
        return SharedMemory(arrays, share, share.normals)
