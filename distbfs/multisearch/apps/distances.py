"""What closeness, harmonic centrality and eccentricity need of each vertex's search."""

from distbfs.multisearch.problem import Problem, State

PROBLEM = Problem(
    "distances",
    (
        State("reached", "int64", "search"),
        State("distance", "int64", "search"),
        State("harmonic", "float64", "search"),
        State("depth", "int64", "search"),
    ),
    bits=True,
)
