"""Lines are cut alike however they arrive, and never held beyond the limit."""

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from distbfs.service.json_lines import LineEncoding
from distbfs.service.limits import Limits

LIMIT = 8


def cut(pieces, limit=LIMIT):
    limits = SimpleNamespace(line=limit, pipeline=Limits().pipeline)
    splitter = LineEncoding(SimpleNamespace(limits=limits))
    lines = []
    for piece in pieces:
        lines += splitter.feed(piece) if piece else []
        assert len(splitter._rest) <= limit + 1
    return lines + splitter.feed(b"")


def expected(data):
    lines = [None if len(x) > LIMIT else x for x in data.split(b"\n")]
    return [line for line in lines if line is None or line.strip()]


@given(
    st.lists(st.binary(max_size=12) | st.sampled_from([b"\n", b"ab\n", b"x" * 20])),
)
def test_any_cuts(pieces):
    assert cut(pieces) == expected(b"".join(pieces))


def test_a_long_line_is_told_once_at_its_end():
    assert cut([b"x" * 9, b"y" * 100, b"z\nab\n", b"c" * 8 + b"\n"]) == [
        None,
        b"ab",
        b"c" * 8,
    ]
    assert cut([b"  \n\r\n"]) == []
    assert cut([b" " * 9, b"ab", b"\n"]) == [None]
