"""The drawings beside docs/drawings/draw.py are what it writes."""

import runpy
from pathlib import Path
from xml.etree import ElementTree

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs/drawings"
DRAWINGS = runpy.run_path(str(FOLDER / "draw.py"))["DRAWINGS"]


def test_no_drawing_without_its_function():
    assert {path.stem for path in FOLDER.glob("*.svg")} == set(DRAWINGS)


@pytest.mark.parametrize("name", DRAWINGS)
def test_drawing_is_what_is_written(name):
    text = DRAWINGS[name]().text()
    assert (FOLDER / f"{name}.svg").read_text(encoding="utf-8") == text


@pytest.mark.parametrize("name", DRAWINGS)
def test_text_is_inside(name):
    """Text stays on the ground, at about 0.6 of its size a letter."""
    root = ElementTree.fromstring(DRAWINGS[name]().text())
    width, height = float(root.get("width")), float(root.get("height"))
    for text in root.iter("{http://www.w3.org/2000/svg}text"):
        length = 0.6 * float(text.get("font-size")) * len(text.text)
        x, y = float(text.get("x")), float(text.get("y"))
        left = x - (length / 2 if text.get("text-anchor") == "middle" else 0)
        assert left >= 0, text.text
        assert left + length <= width, text.text
        assert 10 <= y <= height - 3, text.text
