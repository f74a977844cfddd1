"""Checks that all kinds of world share: of reductions and of JSON-like objects."""

from __future__ import annotations

import json
from typing import Any, get_args

import numpy as np

from distbfs.errors import UsageError
from distbfs.options import check_choice
from distbfs.types import Array, Reduction

REDUCTIONS = get_args(Reduction)


def check_reduction(values: Array, op: str) -> Array:
    """Return a contiguous copy of an array; UsageError if ``op`` cannot reduce it."""
    check_choice("reduction", op, REDUCTIONS)
    kind = np.asarray(values).dtype.kind
    allowed = {"sum": "iuf", "or": "iub"}.get(op, "iufb")
    if kind not in allowed:
        dtype = np.asarray(values).dtype
        raise UsageError(f"reduction '{op}' does not take an array of {dtype}")
    return np.array(values, order="C", copy=True)


def json_text(value: Any) -> str:
    """Return a JSON-like object as text; raise UsageError for anything else."""
    try:
        return json.dumps(value)
    except (TypeError, ValueError) as error:
        raise UsageError(f"only JSON-like objects are broadcast: {error}") from error
