"""The engines of CUDA, their kernels run by the CPU as the tests of engines do it."""

from __future__ import annotations

import shutil
import sys
import tempfile
from functools import cache
from multiprocessing import util
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.engines.base import on_device
from distbfs.errors import UsageError
from distbfs.options import SearchOptions
from distbfs.registry import ENGINES, lookup
from distbfs.search.open import kind_of
from trials.checker import check_search
from trials.library import edges
from trials.shapes import draw_graph
from trials.trial import ROOT, Trial


@cache
def device() -> Any:
    """Put the emulator in the place of CUDA; the process keeps its kernels."""
    sys.path.append(str(ROOT / "tests" / "engines" / "emulated"))
    import pytest  # noqa: PLC0415
    from emulated_device import EmulatedDevice, Kernels  # noqa: PLC0415

    folder = tempfile.mkdtemp(prefix="campaign-kernels-")
    util.Finalize(None, shutil.rmtree, (folder,), exitpriority=0)
    made, patch = EmulatedDevice(Kernels(Path(folder))), pytest.MonkeyPatch()
    made.install(patch)
    return made


def run(trial: Trial) -> None:
    """Search a small graph by engines that think they have a device."""
    emulated = device()
    truth = draw_graph(trial, least=1, most=trial.choose(12, 80, 600))
    graph, _ = edges(trial, truth)
    names = [x for x in ENGINES if on_device(kind_of(x)) and kind_of(x).alone]
    for _ in range(1 + trial.below(3)):
        name, parents = trial.choose(*names), trial.chance(0.8)
        kind = lookup(ENGINES, "engine", name)
        method, direction = trial.choose(*kind.methods), trial.choose("auto", "push")
        options = SearchOptions(name, method, parents=parents, direction=direction)
        trial.note(f"{options}")
        if truth.directed and not kind.directed:
            continue
        try:
            kind(options)
        except UsageError as error:
            trial.note(f"refused: {error}")
            continue
        engine = kind(options).whole(graph.part)
        for source in trial.vertices(truth.n, 3):
            found = engine.search(source)
            parent = None if found.parent is None else found.parent.astype(np.int64)
            check_search(truth, source, np.array(found.level), parent, parents=parents)
            trial.searches += 1
    emulated.check("the trial")
