"""``bench_devices.py``: cells on CPUs for real, on devices with fake commands."""

import importlib
import json
import sys
from itertools import count
from pathlib import Path

import psutil
import pytest
from commands import environment
from launching import needs_mpi, run

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "bench_devices.py"
MODULES = ("bench_devices", "device_cells", "device_report", "figures")
H200 = {"count": 8, "memory_bytes": 150_109_880_320, "device": "NVIDIA H200"}
# A benchmark whose rate doubles with the devices, and what goes wrong with it.
FAKE = """
import json, os, signal, subprocess, sys, time
words = sys.argv[1:]
def of(name, usual):
    return words[words.index(name) + 1] if name in words else usual
scale, devices = int(of("--scale", 0)), int(of("--domain", of("--parts", 1)))
exchange = of("--exchange", "none")
roots = int(of("--roots", 0))
print("distbfs: engine xbfs (pretends)", file=sys.stderr)
def leave(code, text):
    print(text, file=sys.stderr)
    sys.exit(code)
if scale == 33:
    leave(2, "distbfs: positions have 32 bits")
if scale == 32 and "--skip-validation" not in words:
    leave(3, "distbfs: rank 0: validation: 9 GB are needed, 1 GB is free")
if (exchange, scale, devices) == ("host", 28, 4):
    leave(1, "distbfs: no results printed for invalid run: from root 3: rule 3")
if (exchange, scale, devices) == ("host", 28, 1):
    raise ValueError("something else")
if (exchange, scale, devices) == ("nvshmem", 28, 4):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(99)"])
    with open(os.environ["PIDS"], "w") as file:
        print(os.getpid(), child.pid, file=file)
    time.sleep(99)
if "--records" in words:
    kinds = ("masks", "normals", "questions", "answers", "parents")
    level = {"root": 1, "bytes_sent": dict.fromkeys(kinds, 8), "seconds": {}}
    with open(of("--records", ""), "w") as file:
        file.write((json.dumps(level) + "\\n") * 5)
looked = 0 if "--skip-validation" in words else int(of("--validate", roots))
search = {"time": 1e-3, "validate": -1.0}
searches = [search | ({"validate": 0.5} if k < looked else {}) for k in range(roots)]
times = ("median_time", "firstquartile_time", "thirdquartile_time")
print(json.dumps({
    "SCALE": scale, "NBFS": roots, "harmonic_mean_TEPS": 1e12 * devices,
    "harmonic_mean_TEPS_large": None,
    **dict.fromkeys(times, 1e-3), "construction_time": 1.0, "TH": None,
    "result": "levels and parents", "ids": "input", "searches": searches,
    "search": {"mode": "resident", "exchange": exchange},
}))
"""
# Another script, which writes a file, or ends with an error.
SCRIPT_OF_ITS_OWN = """
import pathlib, sys
if "--json" in sys.argv:
    path = pathlib.Path(sys.argv[sys.argv.index("--json") + 1])
else:
    path = pathlib.Path(sys.argv[sys.argv.index("--out") + 1]) / "x.json"
    path = path.with_name(pathlib.Path(sys.argv[0]).stem + ".json")
if "check_service" in sys.argv[0]:
    print("distbfs: the service has ended", file=sys.stderr)
    sys.exit(1)
path.write_text('{"rows": [1, 2]}')
"""
# A program of contract tests in which one exchange fails and one is refused.
CONTRACTS = """
import sys
for kind in sys.argv[2:]:
    if kind == "nccl-device":
        raise ValueError("nccl is wrong")
    if kind == "cuda_aware-device":
        print("distbfs: rank 0: it does not say so", file=sys.stderr)
        sys.exit(2)
    print(kind, "is right", flush=True)
"""


@pytest.fixture
def bench(monkeypatch, tmp_path):
    """The script in this process, on eight devices that are not there."""
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    module = importlib.import_module("bench_devices")
    for name in ("exchange_ranks.py", "searching_ranks.py"):
        path = tmp_path / "tests" / "gpu" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(CONTRACTS)
    lost = "def test_{}():\n    {}\n\n".format
    lost = lost("killed", "pass") + lost("full", "pass") + lost("other", "assert False")
    (tmp_path / "tests" / "gpu" / "test_searching_ranks.py").write_text(lost)
    (tmp_path / "fake.py").write_text(FAKE)
    for name in ("bench_store", "check_service", "bench_searches_devices"):
        (tmp_path / f"{name}.py").write_text(SCRIPT_OF_ITS_OWN)
    monkeypatch.setenv("PIDS", str(tmp_path / "pids"))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # those it starts
    fast = (sys.executable, "-S", "-E")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "DISTBFS", (*fast, str(tmp_path / "fake.py")))
    monkeypatch.setattr(module, "devices_here", lambda: dict(H200))
    monkeypatch.setattr(module, "launcher", lambda ranks, **_: [])
    monkeypatch.setattr(module, "GRACE", 0.3)
    monkeypatch.setattr(module, "SCRIPTS", tmp_path)
    monkeypatch.setattr(module, "machine_memory", lambda: (1 << 40, "physical"))
    yield module
    for name in MODULES:
        sys.modules.pop(name, None)


def result(folder):
    return json.loads((folder / "bench_devices.json").read_text())


def named(rows):
    return {(x["shape"], x["scale"], x["way"]): x for x in rows}


@pytest.mark.thorough
def test_a_fault_loses_one_cell(bench, tmp_path, capsys):
    uses = ("scales", "weak", "domains", "strong", "largest", "shapes")
    words = ("--out", str(tmp_path), "--limit", "1.5", "--uses", *uses)
    assert bench.main((*words, "--budget", "2000")) == 1
    report = result(tmp_path)
    assert (report["form"], report["device"]["count"]) == ("devices", 8)
    assert report["skipped"] == []
    rows = named(report["rows"])
    states = {key: row["state"] for key, row in rows.items() if row["state"] != "done"}
    assert states == {
        ("1x1x8", 33, "resident"): "refused",
        ("1x2x4", 28, "host between domains of 4"): "failed",
        ("1x8x1", 28, "host between domains of 1"): "failed",
        ("1x2x4", 28, "nvshmem between domains of 4"): "stopped",
    }
    wrong = rows["1x2x4", 28, "host between domains of 4"]
    assert wrong["said"].endswith("root 3: rule 3")
    other = rows["1x8x1", 28, "host between domains of 1"]
    assert other["said"] == "ValueError: something else"
    for pid in map(int, (tmp_path / "pids").read_text().split()):
        ended = not psutil.pid_exists(pid)
        assert ended or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    best = rows["1x1x8", 29, "resident"]
    assert best["GTEPS"] == pytest.approx(8000)
    assert best["result"] == "levels and parents"
    assert best["validated"] >= 4
    assert "sent" not in best
    sent = rows["1x2x4", 28, "nccl between domains of 4"]["sent"]
    assert (sent["levels"], sent["bytes"]["masks"]) == (5, 40)
    err = capsys.readouterr().err
    assert "host between domains of 4: no results printed" in err


@pytest.mark.thorough
def test_what_the_cells_tell(bench, tmp_path):
    words = ("--out", str(tmp_path), "--limit", "1.5", "--uses", "weak", "largest")
    assert bench.main((*words, "--budget", "2000")) == 0
    report = result(tmp_path)
    assert [x["efficiency"] for x in report["told"]["weak"]["resident"]] == [1.0] * 4
    tried = [x for x in report["rows"] if "largest" in x["uses"]]
    assert [
        (x["scale"], x["validated"], x["state"]) for x in tried if "GTEPS" in x
    ] == [(32, 0, "done")]
    assert [(x["scale"], x["state"]) for x in tried] == [
        (33, "refused"),
        (32, "no memory"),
        (32, "done"),
    ]
    assert "validation: 9 GB are needed" in tried[1]["said"]
    top = report["told"]["largest"]
    assert (top["scale"], top["validated"], top["largest_validated"]) == (32, 0, 29)


def test_other_scripts(bench, tmp_path, capsys):
    words = ("--out", str(tmp_path), "--uses", "stores", "many")
    assert bench.main(words) == 1
    rows = {x["name"].split()[0]: x for x in result(tmp_path)["programs"]}
    assert rows["bench_store.py"]["result"] == {"rows": [1, 2]}
    assert rows["bench_searches_devices.py"]["result"] == {"rows": [1, 2]}
    failed = rows["check_service.py"]
    assert (failed["state"], "result" in failed) == ("exit code 1", False)
    assert failed["said"] == "the service has ended"
    assert "exit code 1; the service has ended" in capsys.readouterr().err


@pytest.mark.thorough
def test_contracts_go_on_after_one_that_is_wrong(bench, tmp_path, capsys):
    assert bench.main(("--out", str(tmp_path), "--uses", "contracts")) == 1
    report = result(tmp_path)["contracts"]
    first = report[0]
    assert (first["passed"], first["failed"], first["skipped"]) == (1, 1, 1)
    assert first["right"] == ["host-device"]
    assert first["not_run"] == ["cuda_aware-device"]
    assert "nccl-device: ValueError: nccl is wrong (exit code 1)" in first["said"]
    for row, words in zip(report[1:3], ("killed", "stalled or full"), strict=True):
        assert row["name"].startswith(f"test_searching_ranks.py -k {words}")
        assert [row[x] for x in ("passed", "failed", "stopped")] == [1, 0, 0]
    last = report[-1]  # the first again, on one rank
    assert sum(x["failed"] for x in report[1:]) == last["failed"] == 1
    assert "nccl is wrong" in capsys.readouterr().err


def test_contracts_that_there_is_no_time_for(bench, tmp_path, monkeypatch):
    args = bench.parse(("--out", str(tmp_path), "--budget", "5"))
    grid, device = bench.grid_of(args)
    run = bench.Bench(args, grid, device)
    row = run.contract(bench.cells.contracts(grid)[0])
    assert (row["passed"], row["skipped"], row["failed"]) == (0, 3, 0)
    assert row["said"][0] == "host-device: no time is left"


def test_no_time_no_cells(bench, tmp_path, capsys):
    assert bench.main(("--out", str(tmp_path), "--budget", "1")) == 0
    report = result(tmp_path)
    assert report["rows"] == report["contracts"] == []
    names = [x["name"] for x in report["skipped"]]
    assert names[0] == "1x1x8, scale 22, resident"
    assert "1x1x8, scale 33, resident" in names
    assert "skipped: 1x8x1, scale 29, resident: takes about" in capsys.readouterr().out


def test_the_least_important_are_left_out(bench, tmp_path, monkeypatch):
    monkeypatch.setattr(bench.cells.Budget, "learn", lambda *_, **__: None)
    clock, make = count(0, 3), bench.cells.Budget  # every look takes 3 s

    def budget(seconds, costs):
        return make(seconds, costs, lambda: float(next(clock)))

    monkeypatch.setattr(bench.cells, "Budget", budget)
    words = ("--out", str(tmp_path), "--budget", "100", "--uses", "weak", "shapes")
    bench.main((*words, "--limit", "1"))
    report = result(tmp_path)
    cells = bench.cells
    memory = H200["memory_bytes"], int(0.9 * (1 << 40))
    top = cells.largest_scale(8, *memory)
    grid = cells.Grid(8, 26, 28, top, 8, False, *memory, cells.SCALES)
    order = [x.name for x in bench.chosen(cells.plan(grid), ("weak", "shapes"))]
    ran = len(report["rows"])
    assert 2 < ran < len(order) - 2
    assert [x["name"] for x in report["skipped"]] == order[ran:]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--devices", "3"), "devices is '3'; allowed: 1, 2, 4, 8"),
        (("--roots", "0"), "--roots is 0"),
        (("--devices", "16"), "devices is 16; here are 8"),
    ],
)
def test_refused(bench, words, text):
    with pytest.raises(bench.UsageError, match=text):
        bench.main(words)


@pytest.mark.thorough
@needs_mpi
def test_cells_on_cpus(tmp_path):
    pytest.importorskip("matplotlib")
    words = ["--cpu", "--devices", "4", "--ranks", "2", "--weak", "5", "--strong", "6"]
    words += ["--top", "8", "--roots", "2", "--validate", "2"]
    words += ["--uses", "weak", "strong", "largest", "shapes"]
    words += ["--out", str(tmp_path)]
    done = run([sys.executable, str(SCRIPT), *words], 120, environment())
    assert done.returncode == 0, done.stderr
    report = result(tmp_path)
    assert report["skipped"] == []
    assert {"commit", "machine", "versions"} <= set(report)
    for row in report["rows"]:
        assert (row["state"], row["validated"], row["roots"]) == ("done", 2, 2)
        assert row["result"] == "levels and parents"
        assert row["exchange"] == "host"
    assert [x["shape"] for x in report["told"]["shapes"]] == ["1x1x4", "1x2x2"]
    assert report["told"]["largest"]["scale"] == 8
    assert (tmp_path / "bench_devices.png").read_bytes()[:4] == b"\x89PNG"
    drawn = [
        "--draw",
        str(tmp_path / "bench_devices.json"),
        "--out",
        str(tmp_path / "x"),
    ]
    assert run([sys.executable, str(SCRIPT), *drawn], 60, environment()).returncode == 0
    assert (tmp_path / "x" / "bench_devices.png").is_file()


def test_what_is_no_result_is_not_drawn():
    done = run([sys.executable, str(SCRIPT), "--draw", __file__], 60, environment())
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "no results of bench_devices.py" in done.stderr


def test_a_list_needs_no_device():
    words = ["--list", "--devices", "8", "--top", "32"]
    done = run([sys.executable, str(SCRIPT), *words], 60, environment())
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].endswith("s  1x1x8, scale 22, resident")
    assert "the largest scale of 32 to 32" in done.stdout
