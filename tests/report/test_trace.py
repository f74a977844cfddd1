"""Traces of ranks on one clock, as files and as figures."""

import pytest
from worlds import on_ranks

from distbfs.errors import InputError, UsageError
from distbfs.report import trace as traces
from distbfs.report.plots import draw_trace
from distbfs.report.trace import clock_offset, gather_trace, read_trace, write_trace
from distbfs.timing import Span, Trace

pytest.importorskip("matplotlib")


def trace_of(*spans):
    made = Trace()
    made.spans.extend(spans)
    return made


def gathered(hosts, spans_of):
    def work(world):
        return gather_trace(world, hosts, trace_of(*spans_of(world.rank)))

    return on_ranks(len(hosts), work)


def test_ranks_of_one_host_share_their_clock():
    def spans_of(rank):
        return [
            Span("search", 5.0 + rank, 7.0, {"root": 3}),
            Span("counts", 6.0, 6.5),
        ]

    whole, other = gathered(["a", "a"], spans_of)
    assert other is None
    events = [event for event in whole["traceEvents"] if event["ph"] == "X"]
    spans = [(e["pid"], e["name"], e["ts"], e["dur"]) for e in events]
    assert spans == [
        (0, "search", 0.0, 2e6),
        (0, "counts", 1e6, 5e5),
        (1, "search", 1e6, 1e6),
        (1, "counts", 1e6, 5e5),
    ]
    assert events[0]["args"] == {"root": 3}
    names = [e["args"]["name"] for e in whole["traceEvents"] if e["ph"] == "M"]
    assert names == ["rank 0 on a", "rank 1 on a"]


class Clock:
    """``time`` whose clock is ahead on one rank."""

    def __init__(self, ahead):
        self.ahead = ahead

    def perf_counter(self):
        return 100.0 + self.ahead


def test_the_clock_of_another_host_is_set(monkeypatch):
    """Every reading is 100 s; rank 1 tells its own with 40 s more."""

    class Ahead:
        def __init__(self, world):
            self.world = world
            self.rank, self.size = world.rank, world.size
            self.barrier = world.barrier

        def allgather(self, values):
            return self.world.allgather(values + 40.0 * self.rank)

    monkeypatch.setattr(traces, "time", Clock(0))
    offsets = on_ranks(2, lambda world: clock_offset(Ahead(world), ["a", "b"]))
    assert offsets == [0.0, 40.0]
    assert on_ranks(2, lambda world: clock_offset(Ahead(world), ["a", "a"])) == [0, 0]


def test_no_spans(tmp_path):
    [whole] = gathered(["a"], lambda _: [])
    write_trace(tmp_path / "t", whole)
    assert read_trace(tmp_path / "t") == []
    with pytest.raises(UsageError, match="nothing between"):
        draw_trace([], tmp_path / "t.png")


def test_figures(tmp_path):
    [whole, _] = gathered(
        ["a", "a"], lambda rank: [Span("search", 1, 2), Span("counts", 1.2, 1.4 + rank)]
    )
    file = tmp_path / "t.json"
    write_trace(file, whole)
    assert [path.name for path in tmp_path.iterdir()] == ["t.json"]
    for name in ("t.png", "t.svg"):
        draw_trace(read_trace(file), tmp_path / name)
        assert (tmp_path / name).stat().st_size > 5000
    text = (tmp_path / "t.svg").read_text()
    assert "<svg" in text
    draw_trace(read_trace(file), tmp_path / "part.png", 100, 500)
    with pytest.raises(UsageError, match="nothing between"):
        draw_trace(read_trace(file), tmp_path / "none.png", 5000)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"traceEvents": 3}', '{"traceEvents": [{"ph": "X"}]}', "\0"],
)
def test_other_files(tmp_path, text):
    (tmp_path / "t").write_text(text)
    with pytest.raises(InputError, match="not a trace that distbfs wrote"):
        read_trace(tmp_path / "t")
    with pytest.raises(InputError, match="No such file"):
        read_trace(tmp_path / "none")


def test_a_file_that_cannot_be_written(tmp_path):
    with pytest.raises(UsageError, match="t: "):
        write_trace(tmp_path / "none" / "t", {})
