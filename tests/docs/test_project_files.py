"""Files for contributors agree with the package and with each other."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pages

import distbfs

ROOT = Path(__file__).resolve().parents[2]
NOTES = [sys.executable, str(ROOT / "scripts" / "release_notes.py")]


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_citation_names_this_version():
    version = re.search(r"^version: (\S+)$", text_of("CITATION.cff"), re.MULTILINE)
    assert version[1] == distbfs.__version__


def test_the_citation_has_the_address_of_the_package():
    [cited] = re.findall(r"(?m)^repository-code: (\S+)$", text_of("CITATION.cff"))
    assert f'Repository = "{cited}"' in text_of("pyproject.toml")


def test_release_notes_are_sections_of_the_changelog():
    versions = re.findall(r"^## (\S+)", text_of("CHANGELOG.md"), re.MULTILINE)
    assert distbfs.__version__ in versions
    lines = 0
    for version in versions:
        done = subprocess.run([*NOTES, version], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout in text_of("CHANGELOG.md")
        lines += done.stdout.count("\n")
        assert not re.search("^#", done.stdout, re.MULTILINE)
    others = re.findall(r"^(?!#).*\S", text_of("CHANGELOG.md"), re.MULTILINE)
    assert lines >= len(others)  # nothing stands outside of sections
    done = subprocess.run([*NOTES, "9.9"], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


def test_ci_hooks_and_sessions_run_the_same_checks():
    hosted, run = text_of(".github/workflows/ci.yml"), text_of(".ci/run")
    assert re.findall(r"- run: (.*)", hosted) == [".ci/run"]
    hooks = re.findall(r"entry: (.*)", text_of(".pre-commit-config.yaml"))
    asked = [hook.replace(" --force-exclude", "") for hook in hooks]
    assert asked == ["ruff check", "ruff format", "mypy"]
    for command in asked:
        assert f".venv/bin/{command}" in run
    sessions = text_of("noxfile.py")
    for command in ("ruff", "mypy", "sphinx-build", "pytest", "mpiexec"):
        assert f'"{command}"' in sessions


def test_hosted_ci_checks_links():
    [command] = re.findall(r"- run: (.*)", text_of(".github/workflows/links.yml"))
    [session] = re.findall(r"nox -s (\w+)$", command)
    body = text_of("noxfile.py").partition(f"def {session}(")[2].partition("@nox")[0]
    assert '"linkcheck"' in body


def test_hosted_tests_run_on_every_python_that_the_package_names():
    named = re.findall(r"Python :: (3\.\d+)", text_of("pyproject.toml"))
    hosted = text_of(".github/workflows/pythons.yml")
    matrix = re.search(r"python: \[(.*)\]", hosted)[1]
    assert [x.strip(' "') for x in matrix.split(",")] == named
    assert re.findall(r"- run: (.*)", hosted) == ["scripts/test"]
    first, last = named[0], named[-1]
    for page in ("README.md", "CONTRIBUTING.md", "docs/howto/install.md"):
        assert f"Python {first} to {last}" in text_of(page), page


MOST_LINES = 300  # of a page


def test_pages_are_no_longer_than_one_reads():
    lengths = {
        str(page.relative_to(ROOT)): text_of(page.relative_to(ROOT)).count("\n")
        for page in pages.documents()
    }
    assert {page: n for page, n in lengths.items() if n > MOST_LINES} == {}


def test_pages_of_contributors_name_files_that_exist():
    folders = [ROOT / name for name in ("distbfs", "scripts", "tests")]
    every = [path.parts for folder in folders for path in folder.rglob("*.*")]
    ends = {"/".join(parts[-k:]) for parts in every for k in range(1, 8)}
    for page in sorted((ROOT / "docs" / "contributing").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        named = re.findall(r"`([a-z_/.]+\.(?:py|cuh?|[ch]pp|c|h|json|sh))`", text)
        assert [path for path in named if path not in ends] == [], page


def measured(name):
    return json.loads(text_of(f"scripts/results/{name}.json"))


def test_rates_of_the_first_pages_are_those_of_result_files():
    four = measured("graph500_28_4")
    [one] = [
        variant
        for row in measured("bench_gpu")["rows"]
        for variant in row["variants"]
        if row["row"] == "kron25"
        if (variant["method"], variant["result"]) == ("fast", "ids")
    ]
    gteps = (one["harmonic_mean_GTEPS"], four["harmonic_mean_TEPS"] / 1e9)
    peers = measured("compare_peers_16")["engines"]
    times = {peer["engine"]: peer["median_seconds"] for peer in peers}
    for page in ("README.md", "docs/index.md", "docs/explanation/figures.md"):
        text = text_of(page)
        for rate in gteps:
            assert f"{rate:,.0f}" in text, (page, rate)
    for page in ("README.md", "docs/explanation/figures.md"):
        for name, seconds in times.items():
            over = seconds / times["openmp"]
            shown = f"{over:.2g}" if over < 100 else f"{over:.0f}"
            assert name == "openmp" or f"| {shown} |" in text_of(page), (page, name)


def test_real_graphs_of_the_page_are_those_of_the_result_file():
    rows = {row["graph"]: row for row in measured("real_cpu")["rows"]}
    text = text_of("docs/explanation/figures.md")
    for name, row in rows.items():
        [line] = re.findall(rf"^\| {name}: .*$", text, re.M)
        times = [cell.strip() for cell in line.split("|")[5:-1]]
        assert times == [f"{over:.2g}" for over in row["over"].values()], name
    lost = [row for row in rows.values() if min(row["over"].values()) < 1]
    assert f"**{len(lost)} of {len(rows)}**" in text


def test_links_of_contributor_files_lead_somewhere():
    for name in ("CONTRIBUTING.md", "SECURITY.md"):
        text = text_of(name)
        for path in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (ROOT / path).exists(), path
        for path in re.findall(r"`((?:docs|scripts|tests|docker)/[\w./-]+)`", text):
            assert (ROOT / path).exists(), path
