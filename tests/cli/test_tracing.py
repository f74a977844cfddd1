"""Traces of sessions on devices are shown as NVTX ranges too."""

from types import SimpleNamespace

import pytest

from distbfs.cli.measures import traced
from distbfs.device import cuda
from distbfs.ranks.world import SoloWorld
from distbfs.report.trace import read_trace


class Watched:
    """What a trace is given to."""

    def __init__(self, *devices):
        self.held = SimpleNamespace(devices=devices)

    def watch(self, trace):
        self.trace = trace


def alone():
    """Return a terminal of one rank."""
    return SimpleNamespace(world=SoloWorld())


def test_ranges_on_devices(tmp_path, monkeypatch):
    shown = []
    pair = (shown.append, lambda: shown.append("end"))
    monkeypatch.setattr(cuda, "ranges", lambda: pair)
    session = Watched(0)
    with traced(alone(), tmp_path / "t", session, None) as made:
        assert made is session.trace
        with made("search"), made("counts"):
            pass
    assert shown == ["search", "counts", "end", "end"]
    assert [span.name for span in made.spans] == ["counts", "search"]
    assert {x["name"] for x in read_trace(tmp_path / "t")} == {"search", "counts"}


def test_no_ranges_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(cuda, "ranges", lambda: 1 // 0)
    session = Watched()
    with traced(alone(), None, session, None) as made:
        assert made is None
    with traced(alone(), tmp_path / "t", session, None) as made, made("search"):
        pass
    assert len(made.spans) == 1


def test_nothing_is_written_where_searches_fail(tmp_path):
    with pytest.raises(KeyError), traced(alone(), tmp_path / "t", Watched(), None):
        raise KeyError
    assert not (tmp_path / "t").exists()
