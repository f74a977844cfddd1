"""What is launched again is a CUDA graph."""

import pytest

from distbfs.search.runners.streamed import Replays


class Graph:
    def __init__(self, stream, items):
        self.stream, self.items = stream, items

    def launch(self, stream):
        assert stream is self.stream
        stream.done += [f"{x} again" for x in self.items]


class Stream:
    """Notes what runs on it; what is captured does not run."""

    def __init__(self):
        self.done, self.captured = [], None

    def run(self, what):
        (self.done if self.captured is None else self.captured).append(what)

    def begin_capture(self):
        assert self.captured is None
        self.captured = []

    def end_capture(self):
        items, self.captured = self.captured, None
        return Graph(self, items)


def test_launches_are_captured_once():
    stream = Stream()
    replays = Replays(stream)
    for _ in range(3):
        replays("level", 1, lambda: stream.run("a"))
    replays("level", 2, lambda: stream.run("b"))
    assert stream.done == ["a", "a again", "a again", "b"]
    assert replays.begun(1)
    assert not replays.begun(1)
    assert not replays.begun(3)
    replays.capture("other", 2, lambda: stream.run("c"))
    replays.capture("level", 2, lambda: stream.run("d"))
    replays("other", 2, lambda: stream.run("e"))
    replays("level", 2, lambda: stream.run("f"))
    assert stream.done[4:] == ["c again", "b again"]


def test_what_no_later_search_has_is_not_kept():
    stream = Stream()
    for replays, form in ((Replays(stream), None), (Replays(None), 1)):
        replays("level", form, lambda: stream.run("a"))
        replays("level", form, lambda: stream.run("b"))
        assert not replays.begun(form)
    assert stream.done == ["a", "b"] * 2


def test_an_error_ends_the_capture():
    stream = Stream()
    replays, calls = Replays(stream), []

    def launch():
        calls.append(stream.captured is not None)
        if stream.captured is not None:
            raise RuntimeError("no memory")

    for _ in range(2):
        with pytest.raises(RuntimeError, match="no memory"):
            replays("level", 1, launch)
    assert stream.captured is None
    assert calls == [False, True] * 2
