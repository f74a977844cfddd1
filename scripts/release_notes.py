"""Print the release notes of a version: its section of CHANGELOG.md.

    python scripts/release_notes.py 0.1.0

Exit code 2: there is no such section.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

CHANGELOG = Path(__file__).resolve().parents[1] / "CHANGELOG.md"
HEADING = re.compile(r"^## (\S+) \((\d{4}-\d\d-\d\d|unreleased)\)\n", re.MULTILINE)


def sections() -> dict[str, str]:
    """Return the text of the section of each version, the newest first."""
    _, *parts = HEADING.split(CHANGELOG.read_text(encoding="utf-8"))
    return {
        version: text.strip() + "\n"
        for version, text in zip(parts[::3], parts[2::3], strict=True)
    }


def main(words: list[str]) -> int:
    """Print the notes of the version that is named."""
    found = sections()
    if len(words) != 1 or words[0] not in found:
        allowed = ", ".join(found)
        print(f"release_notes: name one version; allowed: {allowed}", file=sys.stderr)
        return 2
    print(found[words[0]], end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
