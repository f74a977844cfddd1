"""``--energy`` on CPUs, whose counters a folder stands for."""

import numpy as np
import pytest
from commands import here

from distbfs.cli import measures as cli_energy
from distbfs.device import rapl


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    monkeypatch.setattr(cli_energy, "SECONDS", 0.01)
    monkeypatch.setattr(rapl, "PERIOD", 1000)  # no look but the first and the last


@pytest.fixture
def counter(tmp_path, monkeypatch):
    """A package that takes 2 J at every look."""
    zone = tmp_path / "intel-rapl:0"
    zone.mkdir()
    (zone / "name").write_text("package-0")
    (zone / "max_energy_range_uj").write_text(str(1 << 40))
    (zone / "energy_uj").write_text("7")
    real = rapl.Zone.look

    def look(self):
        real(self)
        (zone / "energy_uj").write_text(str(self.last + 2_000_000))

    monkeypatch.setattr(rapl.Zone, "look", look)
    monkeypatch.setattr(rapl, "FOLDER", tmp_path)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("energy") / "graph"
    assert here("generate", "kronecker", "-s", 8, "-o", path).code == 0
    return path


def check(energy, searches, edges):
    assert energy["gpus"] == []
    assert energy["searches"] % searches == 0
    assert energy["edges"] * searches == edges * energy["searches"]
    assert energy["cpu"]["joules"] == pytest.approx(2.0)
    each = energy["cpu"]["joules_per_search"]
    assert each == pytest.approx(2 / energy["searches"])
    assert "not a Green Graph500 figure" in energy["cpu"]["note"]


def test_bfs(store, counter):
    words = ("bfs", store, "--engine", "reference", "-s", 1, "-s", 2, "--energy")
    values = here(*words, "--json").values
    check(values["energy"], 2, sum(x["nedge"] for x in values["searches"]))
    text = here(*words).out
    assert "CPU energy: 2 J in " in text
    assert "this is of CPU packages alone (RAPL), not a Green Graph500" in text
    assert "energy" not in here(*words[:-1], "--json").values


def test_graph500(counter):
    words = ("graph500", "--scale", 6, "--roots", 3, "--engine", "reference")
    values = here(*words, "--energy", "--json").values
    assert values["energy"]["searches"] % 3 == 0
    assert values["energy"]["cpu"]["joules"] == pytest.approx(2.0)
    text = here(*words, "--energy").out
    assert "# energy 1: " in text
    assert "CPU energy: 2 J in " in text


def test_compare(store, counter):
    words = ("compare", store, "--engines", "reference,openmp", "--sources", 2)
    values = here(*words, "--repeats", 1, "--energy", "--json").values
    for engine in values["engines"]:
        check(engine["energy"], 2, int(np.sum(values["nedge"])))
        assert engine["joules"] == engine["energy"]["cpu"]["joules_per_search"] > 0
    text = here(*words, "--repeats", 1, "--energy").out
    assert text.count("CPU energy: 2 J in") == 2
    assert "J a search" in text


def test_no_counter_is_said_and_gives_no_number(store, tmp_path, monkeypatch):
    monkeypatch.setattr(rapl, "FOLDER", tmp_path / "none")
    words = ("bfs", store, "--engine", "reference", "-s", 1, "--energy")
    report = here(*words, "--json").values["energy"]
    assert "cpu" not in report
    assert "gpu" not in report
    text = here(*words).out
    assert f"no energy figure: no RAPL: {tmp_path / 'none'}: No such file" in text
