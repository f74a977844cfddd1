"""The committed pictures are those that docs/drawings.py makes of the result files."""

import importlib.util

import pages
import pytest

spec = importlib.util.spec_from_file_location(
    "drawings", pages.ROOT / "docs" / "drawings.py"
)
drawings = importlib.util.module_from_spec(spec)
spec.loader.exec_module(drawings)


@pytest.mark.parametrize("name", drawings.DRAWINGS)
def test_a_picture_is_what_its_script_draws(name):
    path = drawings.FOLDER / f"{name}.svg"
    assert path.read_text(encoding="utf-8") == drawings.DRAWINGS[name]()
