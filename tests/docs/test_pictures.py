"""The pictures of the README and of the pages are those that their scripts draw."""

import runpy
import sys
from xml.etree import ElementTree

import pages
import pytest

FOLDER = pages.ROOT / "docs" / "pictures"
sys.path.append(str(FOLDER))  # of svg.py
PICTURES = {
    name: draw
    for script in ("readme.py", "pages.py")
    for name, draw in runpy.run_path(str(FOLDER / script))["PICTURES"].items()
}


def test_each_picture_has_its_function():
    assert {path.stem for path in FOLDER.glob("*.svg")} == set(PICTURES)


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_what_its_script_draws(name):
    path = FOLDER / f"{name}.svg"
    assert path.read_text(encoding="utf-8") == PICTURES[name]()


@pytest.mark.parametrize("name", PICTURES)
def test_text_is_inside(name):
    """Text stays on the ground, at about 0.6 of its size a letter."""
    root = ElementTree.fromstring(PICTURES[name]())
    width, height = float(root.get("width")), float(root.get("height"))
    for text in root.iter("{http://www.w3.org/2000/svg}text"):
        size = float(text.get("font-size") or root.get("font-size"))
        length = 0.6 * size * len(text.text)
        x, y = float(text.get("x")), float(text.get("y"))
        left = (
            x
            - {"start": 0, "middle": length / 2, "end": length}[text.get("text-anchor")]
        )
        assert left >= 0, text.text
        assert left + length <= width, text.text
        assert 10 <= y <= height - 3, text.text
