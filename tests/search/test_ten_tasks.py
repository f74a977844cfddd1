"""Ten tasks for which others' pages show code: as short here, with the same answers.

The tasks are those of BFS, components and paths on the first pages of igraph, rustworkx
and cuGraph: their README files, tutorials and introductions.  Theirs run where the
library is installed; cuGraph's, which needs a GPU, only count.
"""

import importlib

import networkx as nx
import numpy as np
import pytest

import distbfs

KARATE = nx.karate_club_graph()
EDGES = [(u, v) for u, v in KARATE.edges]
ARCS = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 3), (5, 0)]


def listed(rows):
    return sorted(sorted(map(int, row)) for row in rows)


def members(labels):
    return listed(np.flatnonzero(labels == k) for k in np.unique(labels))


def paths(rows):
    return sorted([int(x) for x in row] for row in rows)


# how many vertices and edges each library says
SIZES = {
    "distbfs": lambda graph: (graph.num_vertices, graph.num_edges),
    "igraph": lambda graph: (graph.vcount(), graph.ecount()),
    "rustworkx": lambda graph: (graph.num_nodes(), graph.num_edges()),
}
# task: the call of each library, and a function of its answer to compare
TASKS = {
    "graph of edges": {
        "distbfs": "answer = distbfs.Graph.from_edges(edges)",
        "igraph": "answer = igraph.Graph(edges)",
        "rustworkx": """
answer = rustworkx.PyGraph()
answer.extend_from_edge_list(edges)""",
        "cugraph": """
answer = cugraph.Graph()
answer.from_cudf_edgelist(frame, source="src", destination="dst")""",
        "same": SIZES,
    },
    "graph of a file": {
        "distbfs": "answer = distbfs.Graph.from_file(path)",
        "igraph": "answer = igraph.Graph.Read_Edgelist(path, directed=False)",
        "rustworkx": "answer = rustworkx.PyGraph.read_edge_list(path)",
        "cugraph": """
frame = cudf.read_csv(path, names=["src", "dst"], dtype=["int32", "int32"])
answer = cugraph.Graph()
answer.from_cudf_edgelist(frame, source="src", destination="dst")""",
        "same": SIZES,
    },
    "breadth-first search": {
        "distbfs": "answer = distbfs.bfs(graph, 0).level",
        "igraph": "answer = graph.bfs(0)",
        "rustworkx": "answer = rustworkx.bfs_successors(graph, 0)",
        "cugraph": "answer = cugraph.bfs(graph, 0)",
        "same": {
            "distbfs": lambda level: np.bincount(level).tolist(),
            "igraph": lambda order: np.diff(order[1]).tolist(),
        },
    },
    "distances from a vertex": {
        "distbfs": "answer = distbfs.distances(graph, 0)",
        "igraph": "answer = graph.distances(0)[0]",
        "rustworkx": "answer = rustworkx.distance_matrix(graph)[0]",
        "cugraph": "answer = cugraph.shortest_path_length(graph, 0)",
        "same": dict.fromkeys(
            ("distbfs", "igraph", "rustworkx"), lambda hops: [int(x) for x in hops]
        ),
    },
    "a shortest path": {
        "distbfs": "answer = distbfs.shortest_path(graph, 16, 26)",
        "igraph": "answer = graph.get_shortest_path(16, 26)",
        "rustworkx": "answer = rustworkx.dijkstra_shortest_paths(graph, 16, 26)[26]",
        "cugraph": """
frame = cugraph.bfs(graph, 16)
answer = cugraph.utils.get_traversed_path_list(frame, 26)""",
        "same": dict.fromkeys(
            ("distbfs", "igraph", "rustworkx"),
            lambda path: (len(path), path[0], path[-1], nx.is_path(KARATE, path)),
        ),
    },
    "all shortest paths": {
        "distbfs": "answer = distbfs.bfs(graph, 0).all_paths_to(33)",
        "igraph": "answer = graph.get_all_shortest_paths(0, 33)",
        "rustworkx": "answer = rustworkx.all_shortest_paths(graph, 0, 33)",
        "same": dict.fromkeys(("distbfs", "igraph", "rustworkx"), paths),
    },
    "connected components": {
        "distbfs": "answer = distbfs.connected_components(graph)",
        "igraph": "answer = graph.connected_components()",
        "rustworkx": "answer = rustworkx.connected_components(graph)",
        "cugraph": "answer = cugraph.connected_components(graph)",
        "same": {"distbfs": members, "igraph": listed, "rustworkx": listed},
    },
    "strongly connected components": {
        "distbfs": 'answer = distbfs.connected_components(arcs, "strong")',
        "igraph": 'answer = arcs.connected_components(mode="strong")',
        "rustworkx": "answer = rustworkx.strongly_connected_components(arcs)",
        "cugraph": "answer = cugraph.strongly_connected_components(arcs)",
        "same": {"distbfs": members, "igraph": listed, "rustworkx": listed},
    },
    "diameter": {
        "distbfs": "answer = distbfs.diameter(graph)",
        "igraph": "answer = graph.diameter()",
        "rustworkx": "answer = int(rustworkx.distance_matrix(graph).max())",
        "same": dict.fromkeys(("distbfs", "igraph", "rustworkx"), int),
    },
    "neighbourhood of two steps": {
        "distbfs": "answer = distbfs.bfs(graph, 16, depth_limit=2).level >= 0",
        "igraph": "answer = graph.neighborhood(16, order=2)",
        "cugraph": "answer = cugraph.ego_graph(graph, 16, radius=2)",
        "same": {
            "distbfs": lambda near: np.flatnonzero(near).tolist(),
            "igraph": sorted,
        },
    },
}


@pytest.fixture
def names_for(tmp_path):
    """The names that the code of a library uses."""
    path = tmp_path / "karate.txt"
    path.write_text("".join(f"{u} {v}\n" for u, v in EDGES))

    def names(library):
        module = importlib.import_module(library)
        if library == "distbfs":
            graph = distbfs.Graph.from_edges(EDGES)
            arcs = distbfs.Graph.from_edges(ARCS, directed=True)
        elif library == "igraph":
            graph, arcs = module.Graph(EDGES), module.Graph(ARCS, directed=True)
        else:
            graph, arcs = module.PyGraph(), module.PyDiGraph()
            graph.extend_from_edge_list(EDGES)
            arcs.extend_from_edge_list(ARCS)
        known = {"edges": EDGES, "path": str(path), "graph": graph, "arcs": arcs}
        return {library: module, **known}

    return names


def lines(code):
    return len(code.strip().splitlines())


@pytest.mark.parametrize("task", TASKS)
def test_a_task_takes_no_more_lines_than_theirs(task):
    codes = {name: code for name, code in TASKS[task].items() if name != "same"}
    ours = codes.pop("distbfs")
    assert len(codes) >= 2
    assert lines(ours) <= min(map(lines, codes.values()))
    assert max(map(len, ours.splitlines())) <= 88


@pytest.mark.parametrize(
    ("task", "library"),
    [(task, name) for task in TASKS for name in [*TASKS[task]["same"]][1:]],
)
def test_a_task_has_their_answer(task, library, names_for):
    pytest.importorskip(library)
    answers, same = [], TASKS[task]["same"]
    for name in ("distbfs", library):
        names = names_for(name)
        exec(TASKS[task][name], names)
        answers.append(same[name](names["answer"]))
    assert answers[0] == answers[1]
