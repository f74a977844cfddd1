"""Energy by a stand-in for NVML and a folder in the place of /sys/class/powercap."""

import sys
import threading
import time
from dataclasses import asdict
from types import ModuleType, SimpleNamespace

import pytest

from distbfs.device import nvml, rapl
from distbfs.device.energy import measured
from distbfs.errors import DeviceMissing
from distbfs.report.energy import energy_figures, energy_lines, joined

MINE, OTHER = "GPU-1", "GPU-2"


class FakeNvml(ModuleType):
    """Two GPUs of 100 and 200 W; the second has no counter.

    Its clock goes on by 10 ms when the power of the first one is read.
    """

    class NVMLError(Exception):
        pass

    def __init__(self):
        super().__init__("pynvml")
        self.now = 0.0
        self.broken = self.asleep = False

    def nvmlInit(self):
        if self.broken:
            raise self.NVMLError("Driver Not Loaded")

    def nvmlDeviceGetHandleByUUID(self, uuid):
        if uuid not in (MINE, OTHER):
            raise self.NVMLError("Not Found")
        return uuid

    def nvmlDeviceGetName(self, handle):
        return f"card {handle}".encode()

    def watts(self, handle):
        return 100 if handle == MINE else 200

    def nvmlDeviceGetTotalEnergyConsumption(self, handle):
        if handle == OTHER:
            raise self.NVMLError("Not Supported")
        return int(self.now * 1e3 * self.watts(handle))

    def nvmlDeviceGetPowerUsage(self, handle):
        if self.asleep:
            raise self.NVMLError("Not Supported")
        self.now += 0.01 * (handle == MINE)
        return 1000 * self.watts(handle)


@pytest.fixture
def fake(monkeypatch):
    made = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", made)
    clock = SimpleNamespace(perf_counter=lambda: made.now)
    monkeypatch.setattr(nvml, "time", clock)
    monkeypatch.setattr(nvml, "PERIOD", 0.001)
    return made


@pytest.fixture
def powercap(tmp_path):
    """One package with its cores and memory."""
    for name, kind, value in (
        ("intel-rapl:0", "package-0", 900_000),
        ("intel-rapl:0:0", "core", 5),
        ("intel-rapl:0:1", "dram", 10),
        ("dtpm", "other", 1),
    ):
        zone = tmp_path / name
        zone.mkdir()
        (zone / "name").write_text(kind + "\n")
        (zone / "energy_uj").write_text(f"{value}\n")
        (zone / "max_energy_range_uj").write_text("999999\n")
    return tmp_path


def test_counter_and_power_of_two_gpus(fake):
    with measured([MINE, OTHER]) as energy:
        while fake.now < 0.5:
            time.sleep(0.001)
    mine, other = energy.gpus
    assert (mine.uuid, mine.name, other.name) == (MINE, "card GPU-1", "card GPU-2")
    assert mine.samples >= 50
    # both are of the same moments, but for the first reading
    assert mine.counter_joules == pytest.approx(100 * fake.now)
    assert mine.sampled_joules == pytest.approx(100 * (fake.now - 0.01))
    assert other.counter_joules is None
    assert other.joules == other.sampled_joules
    assert other.sampled_joules == pytest.approx(2 * mine.sampled_joules)
    assert energy.missing == []
    assert energy.cpus == []


def test_no_power(fake):
    fake.asleep = True
    with measured([MINE]) as energy:
        pass
    assert energy.gpus[0].sampled_joules is None
    assert energy.gpus[0].joules == energy.gpus[0].counter_joules >= 0


def test_the_thread_ends_when_the_block_fails(fake):
    before = threading.active_count()
    with pytest.raises(KeyError), measured([MINE]) as energy:
        raise KeyError
    assert threading.active_count() == before
    assert len(energy.gpus) == 1


def test_integral():
    assert nvml.integral([]) is nvml.integral([(1.0, 5.0)]) is None
    assert nvml.integral([(0.0, 100.0), (0.5, 200.0), (2.0, 0.0)]) == 75 + 150


def test_without_nvml_there_is_no_figure(monkeypatch, fake):
    fake.broken = True
    with measured([MINE]) as energy:
        pass
    assert energy.gpus == []
    assert energy.missing == ["no NVML: Driver Not Loaded"]
    fake.broken = False
    with measured(["GPU-9"]) as energy:
        pass
    assert energy.missing == ["no NVML for GPU-9: Not Found"]
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with measured([MINE]) as energy:
        pass
    (line,) = energy.missing
    assert line.startswith("no NVML: nvidia-ml-py is not installed; pip install")
    figures = energy_figures(joined([asdict(energy)]), 3, 10)
    assert "gpu" not in figures
    assert energy_lines(figures) == [f"no energy figure: {line}"]


def test_rapl(powercap):
    with measured([], cpus=True, powercap=powercap) as energy:
        (powercap / "intel-rapl:0" / "energy_uj").write_text("950000")
        (powercap / "intel-rapl:0:1" / "energy_uj").write_text("1010")
        (powercap / "intel-rapl:0:0" / "energy_uj").write_text("9000")
    joules = {cpu.zone: cpu.joules for cpu in energy.cpus}
    assert joules == pytest.approx({"package-0": 0.05, "dram": 0.001})


def test_a_counter_that_goes_round(powercap):
    with measured([], cpus=True, powercap=powercap) as energy:
        (powercap / "intel-rapl:0" / "energy_uj").write_text("100000")
    assert energy.cpus[0].joules == pytest.approx(0.2)


def test_no_rapl(powercap, tmp_path, monkeypatch):
    with measured([], cpus=True, powercap=tmp_path / "none") as energy:
        pass
    assert energy.missing == [
        f"no RAPL: {tmp_path / 'none'}: No such file or directory"
    ]
    (tmp_path / "empty").mkdir()
    with pytest.raises(DeviceMissing, match="has no readable zone"):
        rapl.RaplMeter(tmp_path / "empty")

    def closed(zone):
        raise PermissionError(13, "Permission denied", "energy_uj")

    monkeypatch.setattr(rapl.Zone, "look", closed)
    with pytest.raises(DeviceMissing, match="energy_uj is readable by root only"):
        rapl.RaplMeter(powercap)


def gpu(uuid, counter, sampled):
    return {
        "uuid": uuid,
        "name": "card",
        "counter_joules": counter,
        "sampled_joules": sampled,
        "samples": 9,
    }


def test_figures_of_ranks():
    """Two ranks share a GPU, one has another; one host's CPUs."""
    ranks = [
        {
            "seconds": 2.0,
            "gpus": [gpu(MINE, 300.0, 290.0)],
            "cpus": [],
            "missing": ["a"],
        },
        {"seconds": 1.9, "gpus": [gpu(MINE, 299.0, 1.0)], "cpus": [], "missing": ["a"]},
        {
            "seconds": 1.8,
            "gpus": [gpu(OTHER, None, 110.0)],
            "cpus": [{"zone": "package-0", "joules": 50.0}],
            "missing": [],
        },
    ]
    figures = energy_figures(joined(ranks), searches=100, edges=4000)
    assert figures["seconds"] == 2.0
    assert figures["missing"] == ["a"]
    assert [one["uuid"] for one in figures["gpus"]] == [MINE, OTHER]
    of_gpus = figures["gpu"]
    assert "counter_joules" not in of_gpus, "one GPU has no counter"
    assert of_gpus["sampled_joules"] == 400
    assert of_gpus["sampled_joules_per_search"] == 4
    assert of_gpus["sampled_joules_per_edge"] == pytest.approx(0.1)
    assert "not a Green Graph500 figure" in of_gpus["note"]
    assert figures["cpu"]["joules_per_search"] == 0.5
    lines = energy_lines(figures)
    assert lines[0] == (
        "GPU energy by power, sampled: 400 J in 2 s, 100 searches: 4 J/search, "
        "1e+08 nJ/edge"
    )
    assert lines[1] == "this is of GPUs alone (NVML), not a Green Graph500 figure"
    assert "card GPU-2: power 110 J" in lines
    assert lines[-1] == "no energy figure: a"


def test_no_edges():
    values = {"seconds": 1.0, "gpus": [gpu(MINE, 3.0, None)], "cpus": [], "missing": []}
    of_gpus = energy_figures(values, 2, 0)["gpu"]
    assert of_gpus["counter_joules_per_edge"] is None
    assert of_gpus["counter_joules_per_search"] == 1.5
