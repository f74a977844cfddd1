"""Files for contributors agree with the package and with each other."""

import re
import subprocess
import sys
from pathlib import Path

import distbfs

ROOT = Path(__file__).resolve().parents[2]
NOTES = [sys.executable, str(ROOT / "scripts" / "release_notes.py")]


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_citation_names_this_version():
    version = re.search(r"^version: (\S+)$", text_of("CITATION.cff"), re.MULTILINE)
    assert version[1] == distbfs.__version__


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


def test_links_of_contributor_files_lead_somewhere():
    for name in ("CONTRIBUTING.md", "SECURITY.md"):
        text = text_of(name)
        for path in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (ROOT / path).exists(), path
        for path in re.findall(r"`((?:docs|scripts|tests|docker)/[\w./-]+)`", text):
            assert (ROOT / path).exists(), path
