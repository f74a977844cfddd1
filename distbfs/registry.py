"""Names of the interchangeable parts; each is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from distbfs.errors import UsageError

ENGINES = {
    "reference": "distbfs.engines.reference:ReferenceEngine",
    "openmp": "distbfs.engines.openmp.engine:OpenMPEngine",
    "xbfs": "distbfs.engines.cuda.xbfs:XbfsEngine",
}
EXCHANGES = {
    "solo": "distbfs.exchange.solo:SoloExchange",
    "host": "distbfs.exchange.host:HostExchange",
    "nccl": "distbfs.exchange.nccl:NcclExchange",
    "cuda_aware": "distbfs.exchange.cuda_aware:CudaAwareExchange",
    "p2p": "distbfs.exchange.p2p:P2pExchange",
}
FAMILIES = {
    "kronecker": "distbfs.generate.kronecker:Kronecker",
    "uniform": "distbfs.generate.uniform:Uniform",
    "road": "distbfs.generate.road:Road",
}
READERS = {
    "matrix-market": "distbfs.formats.matrix_market:MatrixMarketReader",
    "edge-list": "distbfs.formats.edge_list:EdgeListReader",
    "dimacs": "distbfs.formats.dimacs:DimacsReader",
    "gap-sg": "distbfs.formats.gap_sg:GapReader",
    "graph500-int64": "distbfs.formats.packed:Int64Reader",
    "graph500-packed": "distbfs.formats.packed:PackedReader",
    "metis": "distbfs.formats.metis:MetisReader",
    "numpy": "distbfs.formats.numpy_pairs:NumpyReader",
}


def lookup(table: dict[str, str], kind: str, name: str) -> Any:
    """Return the object registered as ``name``; UsageError names the allowed set."""
    if name not in table:
        allowed = ", ".join(sorted(table))
        raise UsageError(f"unknown {kind} '{name}'; allowed: {allowed}")
    module, _, attribute = table[name].partition(":")
    return getattr(import_module(module), attribute)
