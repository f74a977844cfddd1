"""What the tests of formats share."""

import pytest


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("formats") / "file"
