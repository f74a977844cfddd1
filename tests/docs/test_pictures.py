"""The pictures of the README are those that its script makes of the result files."""

import importlib.util

import pages
import pytest

spec = importlib.util.spec_from_file_location(
    "readme_pictures", pages.ROOT / "docs" / "pictures" / "readme.py"
)
pictures = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pictures)


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_a_picture_is_what_its_script_draws(name):
    path = pictures.FOLDER / f"{name}.svg"
    assert path.read_text(encoding="utf-8") == pictures.PICTURES[name]()
