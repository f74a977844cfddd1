"""Sessions over what a test holds: parts, tuples, a graph on a device."""

from types import SimpleNamespace

from distbfs.options import BuildOptions, SearchOptions
from distbfs.progress import unsaid
from distbfs.ranks.world import SoloWorld
from distbfs.search.choose import Request
from distbfs.search.holding import Source, held_parts, held_shares
from distbfs.search.open import open_source


def open_parts(world, parts, options, permutation=None, say=unsaid):
    """The session of parts in host memory (collective)."""
    held = held_parts(world, parts, permutation)
    first = parts[0]
    source = Source(first.layout.n, first.layout.parts, first.directed)
    return open_source(world, source, options, Request(), say=say, held=[held])


def parts_in_threads(world, parts, permutation=None):
    """What many searches of parts want of a session, whose ranks may be threads."""
    held = held_parts(world, parts, permutation)
    return SimpleNamespace(
        world=world,
        held=held,
        vertices=held.vertices,
        layout=parts[0].layout,
        options=SearchOptions.named(engine="openmp", threads=1),
        describe=dict,
        separated=None,
    )


def open_tuples(
    source,
    *,
    world=None,
    request=None,
    threshold=None,
    said=None,
    directed=False,
    **options,
):
    """The session of tuples (collective); engine auto where none is named."""
    world, request = world or SoloWorld(), request or Request()
    parts = request.parts or world.size
    build = BuildOptions(threshold=threshold, directed=directed)
    graph = Source(source.n, parts, directed, tuples=source, build=build)
    chosen = SearchOptions.named(**{"engine": "auto", **options})
    say = unsaid if said is None else said.append
    return open_source(world, graph, chosen, request, say=say)


def query_session(graph):
    """What a service's small queries ask of a session: a graph on the one device."""
    held = held_shares(SoloWorld(), graph.layout, [graph])
    vertices = held.vertices
    return SimpleNamespace(
        world=SoloWorld(),
        held=held,
        vertices=vertices,
        layout=vertices.layout,
        options=SimpleNamespace(engine="xbfs"),
        separated=None,
        at_close=[],
    )


def open_graph(graph, options):
    """The session of a graph on the one device of this process."""
    held = held_shares(SoloWorld(), graph.layout, [graph])
    source = Source(graph.n, 1, graph.directed)
    return open_source(SoloWorld(), source, options, Request(devices=1), held=[held])
