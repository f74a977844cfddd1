"""``scripts/quickstart``: installs once, runs each time, says what comes next."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """\
#!/bin/sh
echo "$(basename "$0") $*" >> "$LOG"
"""


@pytest.fixture
def tree(tmp_path):
    """A tree with the script, and programs in its virtual environment that log."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts/quickstart", tmp_path / "scripts")
    (tmp_path / "pyproject.toml").write_text("name = 'one'")
    (tmp_path / ".venv/bin").mkdir(parents=True)
    for name in ("python", "mpiexec", "distbfs"):
        program = tmp_path / ".venv/bin" / name
        program.write_text(PROGRAM)
        program.chmod(0o755)
    return tmp_path


def quickstart(tree, *words):
    """Run the script; return what it ran and what it said."""
    log = tree / "log"
    log.write_text("")
    done = subprocess.run(
        [tree / "scripts/quickstart", *words],
        env={"PATH": os.environ["PATH"], "LOG": str(log)},
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return [line.split() for line in log.read_text().splitlines()], done.stderr


def test_nothing_is_installed_twice(tree):
    ran, said = quickstart(tree)
    assert [line[0] for line in ran] == ["python", "mpiexec"]
    assert ran[0][1:4] == ["-m", "pip", "install"]
    assert ran[1][-3:] == ["graph500", "--scale", "18"]
    assert "distbfs works" in said
    assert "distbfs bfs FILE --source ID" in said
    ran, said = quickstart(tree, "--scale", "9")
    assert [line[0] for line in ran] == ["mpiexec"]
    assert ran[0][-2:] == ["--scale", "9"]
    assert "installing" not in said


def test_what_it_needs_has_changed(tree):
    quickstart(tree)
    (tree / "pyproject.toml").write_text("name = 'two'")
    assert quickstart(tree)[0][0][0] == "python"
    (tree / ".venv/bin/distbfs").unlink()
    assert quickstart(tree)[0][0][0] == "python"
