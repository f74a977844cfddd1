"""Names of interchangeable parts of the package; each is imported on first use."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from distbfs.errors import LibraryMissing, UsageError

PAPERS = "distbfs.engines.cuda.papers"
APPLICATIONS = "distbfs.multisearch.apps"

ENGINES = {
    "reference": "distbfs.engines.reference:ReferenceEngine",
    "openmp": "distbfs.engines.openmp.engine:OpenMPEngine",
    "xbfs": "distbfs.engines.cuda.xbfs.engine:XbfsEngine",
    "xbfs-paper": f"{PAPERS}.xbfs.engine:XbfsPaperEngine",
    "pan": "distbfs.engines.cuda.pan.engine:PanEngine",
    "bfs4k": f"{PAPERS}.bfs4k.search:Bfs4kEngine",
    "layer": f"{PAPERS}.cs406.layer:LayerEngine",
    "frontier": f"{PAPERS}.cs406.frontier:FrontierEngine",
    "harish": f"{PAPERS}.baselines.harish:HarishEngine",
    "edge-parallel": f"{PAPERS}.baselines.edge_parallel:EdgeParallelEngine",
    "virtual-warp": f"{PAPERS}.baselines.virtual_warp:VirtualWarpEngine",
}
SEARCHERS = {  # of many searches
    "reference": "distbfs.multisearch.host_searchers:ReferenceSearcher",
    "openmp": "distbfs.multisearch.host_searchers:OpenMPSearcher",
    "xbfs": "distbfs.multisearch.cuda_searcher:CudaSearcher",
}
APPS = {  # of many searches
    "apsp": f"{APPLICATIONS}.paths:APP",
    "reachability": f"{APPLICATIONS}.reachability:APP",
    "betweenness": f"{APPLICATIONS}.betweenness:APP",
    "closeness": f"{APPLICATIONS}.closeness:APP",
    "harmonic": f"{APPLICATIONS}.harmonic:APP",
    "eccentricity": f"{APPLICATIONS}.eccentricity:APP",
    "centralities": f"{APPLICATIONS}.centralities:APP",
    "diameter": f"{APPLICATIONS}.diameter:APP",
    "khop": f"{APPLICATIONS}.khop:APP",
}
LIBRARIES = {
    "scipy": "distbfs.benchmark.libraries.scipy:ScipyLibrary",
    "networkx": "distbfs.benchmark.libraries.networkx:NetworkxLibrary",
    "igraph": "distbfs.benchmark.libraries.igraph:IgraphLibrary",
    "networkit": "distbfs.benchmark.libraries.networkit:NetworkitLibrary",
    "cugraph": "distbfs.benchmark.libraries.cugraph:CugraphLibrary",
}
EXCHANGES = {
    "host": "distbfs.exchange.host:HostExchange",
    "nccl": "distbfs.exchange.nccl:NcclExchange",
    "nvshmem": "distbfs.exchange.nvshmem:NvshmemExchange",
    "cuda_aware": "distbfs.exchange.cuda_aware:CudaAwareExchange",
}
FAMILIES = {
    "kronecker": "distbfs.generate.kronecker:Kronecker",
    "uniform": "distbfs.generate.uniform:Uniform",
    "road": "distbfs.generate.road:Road",
    "geometric": "distbfs.generate.geometric:Geometric",
    "triangulation": "distbfs.generate.triangulation:Triangulation",
    "small-world": "distbfs.generate.small_world:SmallWorld",
    "stencil": "distbfs.generate.stencil:Stencil",
    "chung-lu": "distbfs.generate.chung_lu:ChungLu",
    "forest-fire": "distbfs.generate.forest_fire:ForestFire",
    "rmat-er": "distbfs.generate.rmat:RmatER",
    "rmat-g": "distbfs.generate.rmat:RmatG",
    "rmat-b": "distbfs.generate.rmat:RmatB",
    "complete": "distbfs.generate.formula:Complete",
    "star": "distbfs.generate.formula:Star",
    "path": "distbfs.generate.formula:Path",
    "binary-tree": "distbfs.generate.formula:BinaryTree",
}
READERS = {
    "matrix-market": "distbfs.formats.matrix_market:MatrixMarketReader",
    "edge-list": "distbfs.formats.edge_list:EdgeListReader",
    "dimacs": "distbfs.formats.dimacs:DimacsReader",
    "galois": "distbfs.formats.galois:GaloisReader",
    "gap-sg": "distbfs.formats.gap_sg:GapReader",
    "graph500-int64": "distbfs.formats.packed:Int64Reader",
    "graph500-packed": "distbfs.formats.packed:PackedReader",
    "metis": "distbfs.formats.metis:MetisReader",
    "parquet": "distbfs.formats.parquet:ParquetReader",
    "arrow": "distbfs.formats.arrow:ArrowReader",
    "numpy": "distbfs.formats.numpy_pairs:NumpyReader",
}
WRITERS = {
    "edge-list": "distbfs.formats.edge_list:EdgeListWriter",
    "matrix-market": "distbfs.formats.matrix_market:MatrixMarketWriter",
    "gap-sg": "distbfs.formats.gap_sg:GapWriter",
    "parquet": "distbfs.formats.parquet:ParquetWriter",
}


class LaterModule:
    """A stand-in for a module, which is imported on first use.

    A package has it under the name of a CUDA module to which modules for hosts refer,
    so that these can be imported without CUDA.

    at_hand: attributes that need no import, by name
    """

    def __init__(self, name: str, **at_hand: Any) -> None:
        vars(self).update(_module=name, _at_hand=at_hand)

    def __getattr__(self, name: str) -> Any:
        if name in self._at_hand and self._module not in sys.modules:
            return self._at_hand[name]
        return getattr(import_module(self._module), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(import_module(self._module), name, value)


def optional(module: str, missing: str) -> Any:
    """Import a module; LibraryMissing, with a message, if it is not installed."""
    try:
        return import_module(module)
    except ImportError as error:
        raise LibraryMissing(missing) from error


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """Return a question that suggests a similar name, "" if there is none."""
    alike = [f"'{name}'" for name in get_close_matches(word, list(names))]
    return f"did you mean {' or '.join(alike)}?" if alike else ""


def lookup(table: dict[str, str], kind: str, name: str) -> Any:
    """Return the object registered as ``name``; UsageError names the allowed set."""
    if name not in table:
        unknown = f"unknown {kind} '{name}'; allowed: {', '.join(sorted(table))}"
        alike = did_you_mean(name, table)
        raise UsageError(f"{unknown}; {alike}" if alike else unknown)
    module, _, attribute = table[name].partition(":")
    return getattr(import_module(module), attribute)
