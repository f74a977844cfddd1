"""Traces of sessions on devices are shown as NVTX ranges too."""

from types import SimpleNamespace

from distbfs.device import cuda
from distbfs.terminal.trace_file import start_trace


class Watched:
    """What a trace is given to."""

    def __init__(self, *devices):
        self.held = SimpleNamespace(devices=devices)

    def watch(self, trace):
        self.trace = trace


def test_ranges_on_devices(tmp_path, monkeypatch):
    shown = []
    pair = (shown.append, lambda: shown.append("end"))
    monkeypatch.setattr(cuda, "ranges", lambda: pair)
    session = Watched(0)
    made = start_trace(tmp_path / "t", session)
    assert made is session.trace
    with made("search"), made("counts"):
        pass
    assert shown == ["search", "counts", "end", "end"]
    assert [span.name for span in made.spans] == ["counts", "search"]


def test_no_ranges_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(cuda, "ranges", lambda: 1 // 0)
    session = Watched()
    assert start_trace(None, session) is None
    made = start_trace(tmp_path / "t", session)
    with made("search"):
        pass
    assert len(made.spans) == 1
