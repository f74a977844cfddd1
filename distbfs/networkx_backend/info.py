"""The description that NetworkX reads before it loads the backend."""

from __future__ import annotations

from typing import Any

URL = "https://networkx.org/documentation/stable/reference/backends.html"
ORDERED = "Order and parents are those of NetworkX; one thread searches."
LEVELS = "The fastest engine of the machine searches."
PATHS = f"Only without weights.  {ORDERED}"
MANY = "Only without weights.  Many searches share one traversal."
COMPONENTS = "Components are found by hooking and pointer jumping."
MEASURE = f"{MANY}  Not with e or usebounds."

FUNCTIONS = {
    "all_pairs_shortest_path": ORDERED,
    "all_pairs_shortest_path_length": ORDERED,
    "ancestors": LEVELS,
    "average_shortest_path_length": MANY,
    "betweenness_centrality": MANY,
    "bfs_edges": f"{ORDERED}  Not with sort_neighbors.",
    "bfs_layers": ORDERED,
    "bfs_predecessors": f"{ORDERED}  Not with sort_neighbors.",
    "bfs_successors": f"{ORDERED}  Not with sort_neighbors.",
    "bfs_tree": f"{ORDERED}  Not with sort_neighbors.",
    "bidirectional_shortest_path": ORDERED,
    "center": MEASURE,
    "closeness_centrality": MANY,
    "connected_components": COMPONENTS,
    "descendants": LEVELS,
    "descendants_at_distance": ORDERED,
    "diameter": MEASURE,
    "eccentricity": f"{MANY}  Not with sp.",
    "generic_bfs_edges": f"{ORDERED}  Not with neighbors.",
    "harmonic_centrality": MANY,
    "has_path": LEVELS,
    "is_bipartite": "By the components of a graph of twice the size.",
    "is_connected": LEVELS,
    "is_strongly_connected": LEVELS,
    "is_weakly_connected": COMPONENTS,
    "multi_source_dijkstra_path": PATHS,
    "multi_source_dijkstra_path_length": PATHS,
    "periphery": MEASURE,
    "radius": MEASURE,
    "shortest_path": PATHS,
    "shortest_path_length": PATHS,
    "single_source_shortest_path": ORDERED,
    "single_source_shortest_path_length": ORDERED,
    "single_target_shortest_path": ORDERED,
    "single_target_shortest_path_length": ORDERED,
    "weakly_connected_components": COMPONENTS,
}


def get_info() -> dict[str, Any]:
    """Return the description for the entry point ``networkx.backend_info``."""
    return {
        "backend_name": "distbfs",
        "project": "distbfs",
        "package": "distbfs",
        "url": URL,
        "short_summary": "Breadth-first search on CPUs and GPUs.",
        "functions": {
            name: {"additional_docs": text} for name, text in FUNCTIONS.items()
        },
    }
