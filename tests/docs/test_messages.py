"""Messages that docs/howto/troubleshooting.md explains are messages of the source."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/howto/troubleshooting.md"
LEAST = 40  # messages, so that a page without headings does not pass


@pytest.fixture(scope="module")
def texts():
    """All constants and fixed pieces of formatted text in the package."""
    found = set()
    for path in (ROOT / "distbfs").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return "\0".join(found)


def messages():
    return re.findall(r"^### `(.+)`$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def fixed_words(message):
    """The parts of a message between what varies, without punctuation at their ends."""
    parts = (part.strip(" ;:,'()") for part in message.split("…"))
    return [part for part in parts if re.search(r"\w", part)]


def test_there_are_messages_once_each():
    every = messages()
    assert len(every) >= LEAST
    assert len(set(every)) == len(every)


def test_messages_are_in_the_source(texts):
    for message in messages():
        words = fixed_words(message)
        assert any(len(part) >= 8 for part in words), f"nothing to find {message!r} by"
        assert [part for part in words if part not in texts] == [], message
