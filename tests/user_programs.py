"""What a type checker says of the program of a user, who has distbfs installed."""

import re
import subprocess
import sys
from pathlib import Path

import distbfs


def check_typed(program, folder):
    """Let mypy find errors in the lines that say ``# wrong``, and in no others."""
    file = folder / "program.py"
    file.write_text(program)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", str(file)],
        cwd=Path(distbfs.__file__).resolve().parents[1],
        capture_output=True,
        text=True,
    )
    wrong = [n for n, line in enumerate(program.splitlines(), 1) if "# wrong" in line]
    errors = re.findall(r"program\.py:(\d+): error", done.stdout)
    assert sorted({int(n) for n in errors}) == wrong, done.stdout + done.stderr
