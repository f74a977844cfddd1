"""Sums over distances from each vertex: closeness, harmonic, eccentricity."""

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
