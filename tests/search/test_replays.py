"""What is launched again is a CUDA graph."""

from contextlib import nullcontext

import pytest

from distbfs.search.runners.replays import Replays


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

    def record(self):
        self.done.append("record")
        return self

    def begin_capture(self):
        assert self.captured is None
        self.captured = []

    def end_capture(self):
        items, self.captured = self.captured, None
        return Graph(self, items)


def anywhere(_):
    return nullcontext()


def waited(stream):
    stream.done.append("wait")


def test_what_was_captured_is_launched_as_graphs():
    for streams in ([Stream()], [Stream(), Stream()]):
        current = []

        def here(place, current=current):
            current.append(place)
            return nullcontext()

        replays = Replays(streams, here, waited)

        def run(what, streams=streams):
            for stream in streams:
                stream.run(what)

        replays("level", 1, lambda: run("a"))
        replays.capture("level", 1, lambda: run("a"))
        replays.capture("level", 1, lambda: run("b"))
        replays.capture("other", 2, lambda: run("c"))
        current.clear()
        for kind, form in (("level", 1), ("level", 2), ("other", 2), ("level", None)):
            replays(kind, form, lambda: run("d"))
        landing = list(range(len(streams)))
        launching = landing if len(streams) > 1 else []
        assert current == [*launching, *landing, *launching, *landing]
        for stream in streams:
            done = ["a", "upload", "upload", "a again", "record", "wait", "d"]
            assert stream.done == [*done, "c again", "record", "wait", "d"]


def test_graphs_are_waited_for_once():
    """And only where one may run."""
    stream = Stream()
    replays = Replays([stream], anywhere, waited)
    replays.land()
    replays.capture("level", 1, lambda: stream.run("a"))
    replays.land()
    for _ in range(2):
        replays("level", 1, stream.begin_capture)
    replays.land()
    replays.land()
    assert stream.done == ["upload", "a again", "a again", "record", "wait"]


def test_captures_of_a_form_are_thought_of_once():
    replays = Replays([Stream()], anywhere, waited)
    assert [replays.lacks(form) for form in (1, 1, 2, 1)] == [True, False, True, False]
    assert not Replays((), anywhere, waited).lacks(1)


def test_captures_are_let_go_of():
    stream = Stream()
    replays = Replays([stream], anywhere, waited)
    replays.capture("level", 1, lambda: stream.run("a"))
    assert replays.lacks(1)
    replays.forget()
    assert replays.lacks(1)
    replays("level", 1, lambda: stream.run("b"))
    replays.capture("level", 1, lambda: stream.run("c"))
    replays("level", 1, lambda: stream.run("b"))
    assert stream.done == ["upload", "b", "upload", "c again"]


def test_an_error_ends_the_capture():
    streams = [Stream(), Stream()]
    replays = Replays(streams, anywhere, waited)

    def launch():
        raise RuntimeError("no memory")

    for _ in range(2):
        with pytest.raises(RuntimeError, match="no memory"):
            replays.capture("level", 1, launch)
        assert [stream.captured for stream in streams] == [None, None]
    replays("level", 1, lambda: streams[1].run("a"))
    assert [stream.done for stream in streams] == [[], ["a"]]
