"""What is launched again is a CUDA graph."""

from contextlib import nullcontext

import pytest

from distbfs.search.runners.streamed import Replays


class Graph:
    def __init__(self, stream, items):
        self.stream, self.items = stream, items

    def upload(self, stream):
        stream.done.append("upload")

    def launch(self, stream):
        assert stream is self.stream
        stream.done += [f"{x} again" for x in self.items]


class Stream(nullcontext):
    """Notes what runs on it; what is captured does not run."""

    def __init__(self):
        super().__init__()
        self.done, self.captured = [], None

    def run(self, what):
        (self.done if self.captured is None else self.captured).append(what)

    def begin_capture(self):
        assert self.captured is None
        self.captured = []

    def end_capture(self):
        items, self.captured = self.captured, None
        return Graph(self, items)


def test_what_was_captured_is_launched_as_a_graph():
    stream = Stream()
    replays = Replays(stream)
    replays("level", 1, lambda: stream.run("a"))
    replays.capture(("level", 1), lambda: stream.run("a"))
    replays.capture(("level", 1), lambda: stream.run("b"))
    replays.capture(("other", 2), lambda: stream.run("c"))
    for kind, form in (("level", 1), ("level", 2), ("other", 2)):
        replays(kind, form, lambda: stream.run("d"))
    assert stream.done == ["a", "upload", "upload", "a again", "d", "c again"]


def test_what_was_launched_twice_is_captured_now_and_then():
    stream = Stream()
    replays = Replays(stream)
    for _ in range(2):
        replays("once", 1, lambda: stream.run("a"))
        replays.capture_one()
        replays.forget()
    replays("level", 2, lambda: stream.run("b"))
    assert stream.done == ["a", "a", "upload", "b"]
    replays("once", 1, lambda: stream.run("c"))
    assert stream.done[4:] == ["a again"]
    for _ in range(2):
        replays("level", 2, lambda: stream.run("b"))
    replays.capture_one()  # it would take more than its share of the time
    replays("level", 2, lambda: stream.run("b"))
    assert stream.done[5:] == ["b"] * 3
    replays.searched = 1e9
    replays.capture_one()
    replays("level", 2, lambda: stream.run("c"))
    assert stream.done[8:] == ["upload", "b again"]


def test_what_no_later_search_has_is_not_kept():
    stream = Stream()
    for replays, form in ((Replays(stream), None), (Replays(None), 1)):
        for _ in range(3):
            replays("level", form, lambda: stream.run("a"))
            replays.capture_one()
    assert stream.done == ["a"] * 6


def test_an_error_ends_the_capture():
    stream = Stream()
    replays = Replays(stream)

    def launch():
        raise RuntimeError("no memory")

    for _ in range(2):
        with pytest.raises(RuntimeError, match="no memory"):
            replays.capture(("level", 1), launch)
        assert stream.captured is None
    replays("level", 1, lambda: stream.run("a"))
    assert stream.done == ["a"]
