"""The applications as problems for a CUDA device; their texts are apps/*.cuh.

State that an application of the same name has on the CPU has the same name here.
"""

from __future__ import annotations

from pathlib import Path

from distbfs.errors import UsageError
from distbfs.multisearch.problem import Problem, State

TEXTS = Path(__file__).parent / "apps"
STATES: dict[str, tuple[State, ...]] = {
    "betweenness": (
        State("value", "float64", "vertex"),
        State("sigma", "float64", "pair", result=False),
        State("delta", "float64", "pair", result=False),
    ),
    "closeness": (
        State("reached", "uint32", "search"),
        State("far", "uint64", "search"),
    ),
    "eccentricity": (
        State("eccentricity", "int32", "search"),
        State("reached", "uint32", "search"),
    ),
    "khop": (
        State("count", "uint32", "search"),
        State("hops", "uint32", "search", result=False),
    ),
    "paths": (State("deepest", "uint32", "search"),),
    "reachability": (State("reached", "uint8", "pair"),),
}
BITS = ("closeness", "eccentricity", "khop", "paths", "reachability")


def cuda_text(name: str) -> str:
    """Return the CUDA functions of an application."""
    if name not in STATES:
        raise UsageError(f"application '{name}'; allowed: {', '.join(STATES)}")
    return (TEXTS / f"{name}.cuh").read_text(encoding="utf-8")


def device_problem(name: str, hops: int = 0) -> Problem:
    """Return an application; hops: how far "khop" counts."""
    text = cuda_text(name)
    states = tuple(
        State(s.name, s.dtype, s.per, hops, s.result) if s.name == "hops" else s
        for s in STATES[name]
    )
    return Problem(name, states, {}, text, name in BITS)
