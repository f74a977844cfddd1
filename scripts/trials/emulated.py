"""The engines of CUDA, their kernels run by the CPU as the tests of engines do it."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import numpy as np

import distbfs
from distbfs.errors import UsageError
from distbfs.registry import ENGINES
from distbfs.search import choose as choosing
from distbfs.search.session import Session
from trials.checker import Truth
from trials.library import edges
from trials.sessions import Tuples, look_at
from trials.shapes import draw_graph
from trials.trial import ROOT, Trial

LENT = [0]  # devices, which are all the same one


@cache
def device() -> Any:
    """Put the emulator in the place of CUDA; the process keeps its kernels."""
    sys.path.append(str(ROOT / "tests" / "engines" / "emulated"))
    import pytest  # noqa: PLC0415
    from emulated_device import EmulatedDevice, Kernels  # noqa: PLC0415

    from distbfs.device import cuda  # noqa: PLC0415
    from distbfs.engines.cuda.pan import search as part  # noqa: PLC0415

    made, patch = EmulatedDevice(Kernels()), pytest.MonkeyPatch()
    made.install(patch)
    about = {"device": "a CPU", "memory_bytes": 1 << 30, "driver": 13000, "cupy": "0"}
    patch.setattr(cuda, "describe", lambda: about)
    patch.setattr(cuda, "uuids", lambda devices=None: ["GPU-0"] * len(devices or [0]))
    patch.setattr(part, "BLOCKS", dict.fromkeys(part.BLOCKS, 1))
    patch.setattr(choosing, "take_devices", lambda *_, **__: list(LENT))
    patch.setattr("distbfs.exchange.peer_memory.peer_problem", lambda *_: "")
    return made


def run(trial: Trial) -> None:
    """Search a small graph by engines that think they have devices."""
    emulated = device()
    truth = draw_graph(trial, least=1, most=trial.choose(12, 80, 600))
    ways = [on_one, on_one, in_domain, in_parts]
    for _ in range(1 + trial.below(3)):
        way = trial.choose(*ways)
        trial.note(way.__name__)
        try:
            session = way(trial, truth)
        except UsageError as error:
            trial.note(f"refused: {error}")
            continue
        look_at(trial, truth, np.arange(truth.n), session)
    emulated.check("the trial")


def on_one(trial: Trial, truth: Truth) -> Session:
    """Open the graph on one device, by any engine and method."""
    kinds = {x: choosing.kind_of(x) for x in ENGINES}
    names = [x for x, kind in kinds.items() if kind.on_device and kind.whole_graphs]
    name = trial.choose(*names)
    options = {"method": trial.choose(*kinds[name].methods)}
    options |= {"direction": trial.choose("auto", "push")}
    trial.note(f"{name}, {options}")
    LENT[:] = [0]
    graph, _ = edges(trial, truth)
    return distbfs.open(graph, engine=name, devices=1, **options)


def in_domain(trial: Trial, truth: Truth) -> Session:
    """Open the tuples on devices that are one domain, or a domain each."""
    count = 2 + trial.below(3)
    domain = trial.choose(count, 1)
    LENT[:] = [0] * count
    options = {
        "internal_ids": trial.chance(0.3),
        "direction": trial.choose("auto", "push"),
        "directed": truth.directed,
    }
    trial.note(f"{count} devices in domains of {domain}, {options}")
    return distbfs.open(Tuples(truth), engine="xbfs", domain=domain, **options)


def in_parts(trial: Trial, truth: Truth) -> Session:
    """Open degree-separated parts."""
    parts, threshold = 1 + trial.below(4), trial.choose(None, 0, 1, 2, 4, 16, 10**9)
    options = {"uniquify": trial.chance(0.5), "direction": trial.choose("auto", "push")}
    trial.note(f"{parts} parts, TH {threshold}, {options}")
    LENT[:] = [0]
    options |= {"parts": parts, "threshold": threshold, "directed": truth.directed}
    return distbfs.open(Tuples(truth), engine="pan", **options)
