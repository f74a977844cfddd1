"""The measurement of searches on two devices runs, on devices that are the CPU."""

import json
import sys
from pathlib import Path

import pytest
import worlds
from graphs import kronecker
from test_between_kernels import StreamedThreads
from thread_peers import ThreadPeers
from worlds import on_ranks

from distbfs.device import cuda
from distbfs.errors import LaunchError, ValidationError
from distbfs.multisearch import domain_bits
from distbfs.ranks.world import SoloWorld
from distbfs.registry import EXCHANGES
from distbfs.search import choose as choosing
from distbfs.search import device_opening, domain_group

sys.path.append(str(Path(__file__).parents[3] / "scripts"))

import bench_searches_devices as script
import figures


def measured(device, monkeypatch, out, *words, ranks=2):
    """Run the script on ranks, which are threads."""
    monkeypatch.setattr(
        sys, "argv", ["bench", "--out", str(out), "--runs", "2", *words]
    )
    monkeypatch.setattr(figures, "provenance", lambda *_, **__: {})
    monkeypatch.setattr(script.many, "kronecker", lambda _: kronecker(8))
    runtime = cuda.cupy().cuda.runtime
    monkeypatch.setattr(runtime, "getDeviceCount", lambda: ranks, raising=False)
    monkeypatch.setattr("distbfs.exchange.peer_memory.peer_problem", lambda *_: "")
    monkeypatch.setattr(
        "distbfs.exchange.nccl_link.nccl_problem", lambda *_: "no NCCL here"
    )
    for module in (device_opening, domain_group):
        monkeypatch.setattr(module, "PeerGroup", ThreadPeers)
    exchange = f"{StreamedThreads.__module__}:{StreamedThreads.__name__}"
    monkeypatch.setitem(EXCHANGES, "host", exchange)

    def taken(world, **_):
        return [0] * (ranks if world.size == 1 else 1)

    def rank(world):
        world.finish = lambda: None
        device.of_rank.world = world
        script.main()

    device.one_rank = True
    monkeypatch.setattr(choosing, "take_devices", taken)
    monkeypatch.setattr(script, "start", lambda: device.of_rank.world)
    on_ranks(ranks, rank)
    return json.loads((out / "bench_searches_devices.json").read_text())


@pytest.mark.thorough
def test_ways(device, monkeypatch, tmp_path, capsys):
    ways = list(script.WAYS)
    words = ["--roots", "140", "--counts", "--ways", *ways]
    values = measured(device, monkeypatch, tmp_path, *words)
    rows = {row["way"]: row for row in values["rows"]}
    assert [name.replace(" ", "-") for name in rows] == ways
    for row in rows.values():
        assert row["least"] <= row["seconds"] <= row["most"]
        assert row["over one"] == rows["one"]["seconds"] / row["seconds"]
    assert "domain of ranks" in capsys.readouterr().out


def test_four_devices(device, monkeypatch, tmp_path):
    ways = ["one", "replicated", "domain", "domains"]
    words = ["--roots", "9", "--ways", *ways]
    values = measured(device, monkeypatch, tmp_path, *words, ranks=4)
    assert [row["way"] for row in values["rows"]] == ways
    assert (values["devices"], values["must"]) == (4, None)


@pytest.mark.thorough
def test_other_levels_and_ranks(device, monkeypatch, tmp_path):
    at = domain_bits.DomainBitSearches.levels_at

    def wrong(searches, *pairs):
        return at(searches, *pairs) + (searches.launched is None)

    monkeypatch.setattr(domain_bits.DomainBitSearches, "levels_at", wrong)
    monkeypatch.setattr(worlds, "PATIENCE", 1)  # of a rank that waits for the other
    with pytest.raises(ValidationError, match="other levels"):
        measured(device, monkeypatch, tmp_path, "--roots", "9", "--ways", "domains")
    monkeypatch.setattr(script, "start", SoloWorld)
    with pytest.raises(LaunchError, match="one rank; start as many as"):
        script.main()
