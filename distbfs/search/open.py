"""The function that opens every session: it chooses the engine and loads the graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distbfs.errors import UsageError, WrongTypeError
from distbfs.options import BuildOptions, SearchOptions, type_name
from distbfs.progress import unsaid
from distbfs.ranks.mpi import MpiWorld
from distbfs.ranks.world import SoloWorld
from distbfs.search.choose import Request, Say, choose
from distbfs.search.held import Held
from distbfs.search.holding import OwnGraph, Source
from distbfs.search.opening import Opening
from distbfs.search.session import Session
from distbfs.search.store_names import StoreNames, VertexNames
from distbfs.store.hdf5 import open_store

if TYPE_CHECKING:
    from distbfs.store.hdf5 import Store
    from distbfs.types import EngineName, ExchangeName, TupleSource, World


def prepare(
    world: World,
    source: Source,
    options: SearchOptions,
    request: Request | None = None,
    *,
    say: Say = unsaid,
    held: Sequence[Held] = (),
    names: VertexNames | None = None,
) -> Opening:
    """Choose the engine for a graph, before anything is loaded (collective).

    held: the graph as another session holds it; if it suits the engine, it is used
    instead of loading
    """
    request = request or Request()
    if source.graph is not None and request.devices is None and request.domain is None:
        request = replace(request, one_device=True)
    choice = choose(world, options, source.n, request, directed=source.directed)
    auto = options.engine == "auto"
    return Opening(world, source, choice, request, auto, say, held, names)


def open_source(world: World, source: Source, *asked: Any, **named: Any) -> Session:
    """Load a graph to where it is searched and return its session (collective).

    Other arguments: see ``prepare``
    """
    return prepare(world, source, *asked, **named).open()


def open(  # noqa: A001
    source: str | Path | OwnGraph | Store | TupleSource,
    *,
    comm: Any = None,
    devices: int | Sequence[int] | None = None,
    engine: EngineName = "auto",
    exchange: ExchangeName = "auto",
    domain: int | None = None,
    parts: int | None = None,
    threshold: int | None = None,
    directed: bool = False,
    reverse: bool = False,
    first_id: int | None = None,
    **options: Any,
) -> Session:
    """Open a graph for many searches, on devices or CPUs, on one rank or many.

    Parameters
    ----------
    source : path_like, Graph, or edge tuples
        A folder with a store, a ``Graph``, or the tuples of a generator of
        ``distbfs.generate``.  Vertices of a store are named as in the file that it was
        converted from.
    comm : mpi4py.MPI.Comm, optional
        The ranks, all of which make this call; by default this process alone.
    devices : int or sequence of int, optional
        Number or indices of this rank's CUDA devices; by default all that are available
        to it.
    engine : str, default "auto"
        "auto" takes devices where every rank has one, else "openmp"; other values are
        those of ``distbfs bfs --engine``.
    exchange : {"auto", "host", "nccl", "nvshmem", "cuda_aware"}
        How domains exchange what they find.
    domain : int, optional
        Number of devices in a domain, by default as many devices of a host as map each
        other's memory; the last domain of a host may have fewer.
    parts : int, optional
        For edge tuples: number of parts, by default one per rank.
    threshold : int, optional
        For edge tuples: the degree above which vertices are delegates.  In a directed
        graph, degrees are sums of outgoing and incoming edges.
    directed : bool, default False
        For edge tuples: edges lead from u to v only.  Stores and graphs state this
        themselves.
    reverse : bool, default False
        Search a directed graph along reversed edges.  For a store, ``nedge`` then
        counts each edge once, however often it occurred in the input.
    first_id : {0, 1}, optional
        For a store whose vertices are numbers: the number of the first one; by default
        as in the file that it was converted from.
    **options
        Options of ``distbfs bfs`` with underscores, such as ``method``, ``threads``,
        ``direction``, ``stepwise``, ``mask_reduce``, ``device_memory`` (bytes), and
        those of the engine.

    Returns
    -------
    Session
        Use it in ``with``, or call ``close()``; ``why`` says what was chosen and why.

    Raises
    ------
    UsageError
        Options conflict, or one is outside its allowed set.
    WrongTypeError
        ``source`` is neither a path, a Graph nor edge tuples.
    StoreError, InputError
        The store or the tuples cannot be read.
    ResourceError
        Memory, a device or a compiler is missing.

    Examples
    --------
    >>> import distbfs
    >>> graph = distbfs.Graph.from_edges([0, 0, 1, 2], [1, 2, 3, 3])
    >>> with distbfs.open(graph, engine="reference") as session:
    ...     session.search(3, depth_limit=1).to_numpy()[0]
    array([-1,  1,  1,  0], dtype=int32)

    Tuples of a generator, in two parts with delegates above degree 8:

    >>> from distbfs.generate.kronecker import Kronecker
    >>> with distbfs.open(
    ...     Kronecker(8, seed=1), engine="reference", parts=2, threshold=8
    ... ) as session:
    ...     session.layout.parts, session.held.threshold
    (2, 8)
    """
    ranks = None if comm is None else MpiWorld(comm)
    world: World = ranks or SoloWorld()
    chosen = SearchOptions.named(engine=engine, exchange=exchange, **options)
    build = BuildOptions(threshold=threshold, threads=chosen.threads, directed=directed)
    made = source_of(source, world, parts, build)
    if reverse:
        made = made.reversed()
    if first_id is not None and made.store is None:
        raise UsageError("first_id is for stores; ids of a program begin at 0")
    separate = "threshold" if threshold is not None else "parts" if parts else ""
    request = Request(parts, separate, devices, domain)
    names: VertexNames | None = None
    if made.graph is not None and made.graph.nodes is not None:
        names = made.graph
    elif made.store is not None and (ids := made.store.load_ids(first_id)) is not None:
        names = StoreNames(ids)
    session = open_source(world, made, chosen, request, names=names)
    if ranks is not None:
        session.at_close.append(ranks.free)
    return session


def source_of(
    source: Any, world: World, parts: int | None, build: BuildOptions
) -> Source:
    """Return the source of a session for the graph that a program passes.

    build: options of building a graph from tuples. Raises WrongTypeError for anything
    but a store, a graph or tuples.
    """
    if build.directed and not hasattr(source, "chunks"):
        raise UsageError("directed is for edge tuples; stores and graphs state it")
    if isinstance(source, (str, Path)):
        source = open_store(Path(source))
    if hasattr(source, "manifest"):
        manifest = source.manifest
        if parts is not None or build.threshold is not None:
            raise UsageError("parts and threshold are settled by the store")
        return Source(manifest.n, manifest.parts, manifest.directed, store=source)
    if hasattr(source, "_session"):
        if world.size > 1:
            raise UsageError("a Graph is in the memory of one process; write a store")
        return Source(source.n, 1, source.directed, graph=source)
    if hasattr(source, "chunks"):
        return Source(
            source.n,
            parts or world.size,
            build.directed,
            tuples=source,
            build=build,
        )
    raise WrongTypeError(
        f"the source is of type {type_name(source)}; allowed: a folder with a store, a "
        "Graph, edge tuples"
    )
