"""Joules per GPU, per search and per edge, from the meters of all ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from distbfs.device.energy import CPU_ONLY, GPU_ONLY
from distbfs.report.tables import shown

# by kind of meter: what it measures, and the figures of a device with their words
METERS = {
    "gpu": (
        GPU_ONLY,
        {"counter_joules": " by counter", "sampled_joules": " by power, sampled"},
    ),
    "cpu": (CPU_ONLY, {"joules": ""}),
}


def joined(values: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Join the figures of all ranks; a GPU that several ranks share counts once."""
    gpus: dict[str, Any] = {}
    for rank in values:
        for gpu in rank["gpus"]:
            gpus.setdefault(gpu["uuid"], gpu)
    missing = dict.fromkeys(line for rank in values for line in rank["missing"])
    return {
        "seconds": max((rank["seconds"] for rank in values), default=0.0),
        "gpus": list(gpus.values()),
        "cpus": [cpu for rank in values for cpu in rank["cpus"]],
        "missing": list(missing),
    }


def energy_figures(
    values: Mapping[str, Any], searches: int, edges: int
) -> dict[str, Any]:
    """Return the energy of a run, in total, per search and per edge.

    searches: number of searches made during the measurement
    edges: number of edges that all of them traversed, as TEPS counts them

    A total is given only if all of its parts are known.
    """
    figures: dict[str, Any] = {**values, "searches": searches, "edges": edges}
    for kind, (note, ways) in METERS.items():
        each = values[f"{kind}s"]
        if not each:
            continue
        totals: dict[str, Any] = {"note": note}
        for way in ways:
            parts = [meter[way] for meter in each]
            if any(part is None for part in parts):
                continue
            total = sum(parts)
            totals[way] = total
            totals[f"{way}_per_search"] = total / searches if searches else None
            totals[f"{way}_per_edge"] = total / edges if edges else None
        figures[kind] = totals
    return figures


def energy_lines(figures: Mapping[str, Any]) -> list[str]:
    """Return the figures as lines of text."""
    lines = []
    count, seconds = figures["searches"], figures["seconds"]
    for kind, (_, ways) in METERS.items():
        totals = figures.get(kind)
        if totals is None:
            continue
        for way, by in ways.items():
            if way not in totals:
                continue
            per_edge = totals[f"{way}_per_edge"]
            edge = "" if per_edge is None else f", {shown(per_edge * 1e9)} nJ/edge"
            lines.append(
                f"{kind.upper()} energy{by}: {shown(totals[way])} J in "
                f"{shown(seconds)} s, {count} searches: "
                f"{shown(totals[f'{way}_per_search'])} J/search{edge}"
            )
        lines.append(f"this is {totals['note']}")
    for gpu in figures["gpus"] if len(figures["gpus"]) > 1 else []:
        parts = (("counter", "counter_joules"), ("power", "sampled_joules"))
        words_of = [f"{w} {shown(gpu[k])} J" for w, k in parts if gpu[k] is not None]
        lines.append(f"{gpu['name']} {gpu['uuid']}: {', '.join(words_of)}")
    lines += [f"no energy figure: {line}" for line in figures["missing"]]
    return lines


def joules_of(figures: Mapping[str, Any]) -> float | None:
    """Return the joules per search: of GPUs by counter or power, else of CPUs."""
    every = [(kind, way) for kind, (_, ways) in METERS.items() for way in ways]
    per_search = (figures.get(kind, {}).get(f"{way}_per_search") for kind, way in every)
    return next((joules for joules in per_search if joules), None)
