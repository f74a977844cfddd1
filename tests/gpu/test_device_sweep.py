"""``distbfs sweep`` on a device."""

import json

import pytest

from distbfs.cli import main
from distbfs.ranks.world import run_guarded


@pytest.mark.parametrize("graph", [("--kronecker", 12), ("--road", 3000)])
def test_sweep(capsys, graph):
    words = ["sweep", *map(str, graph), "--knobs", "k1,k4", "--sources", "2", "--json"]
    assert run_guarded(None, lambda: main.run(words)) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["trials"]) == 5 + 3
    assert set(told["best"]) == set(told["auto"])
    assert told["best_seconds"] > 0
    assert told["complete"]
