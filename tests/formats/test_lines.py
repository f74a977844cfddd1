"""The three ways to parse lines agree: line by line, by whole arrays, compiled."""

import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from distbfs.device import cc
from distbfs.formats import id_pairs as tokens
from distbfs.formats import lines
from distbfs.formats.lines import (
    LARGEST_ID,
    LineFault,
    LineRules,
    parse_compiled,
    parse_numpy,
    read_line,
)

LIBRARY = cc.load_or_none(lines.SOURCE)
needs_compiler = pytest.mark.skipif(LIBRARY is None, reason="no C compiler")

RULES = [
    LineRules(separator=b","),
    LineRules(base=1, separator=b"\t"),
    LineRules(most_u=20, most_v=20),
    LineRules(base=1, most_u=12, most_v=7, comments=b"%", fields=2),
    LineRules(base=1, comments=b"%", fields=3),
    LineRules(base=1, comments=b"%", fields=4),
    LineRules(base=1, comments=b"%", fields=3, loops=False),
    LineRules(loops=False, separator=b";"),
    LineRules(loops=False),
    LineRules(canonical=True),
]

PIECES = [
    *("0", "1", "7", "12", "007", "19", "20", "21", "123456789012345678"),
    *(str(LARGEST_ID - 1), str(LARGEST_ID), str(LARGEST_ID + 1), str(2**64), "9" * 30),
    *("0" * 25 + "3", "-1", "-", "+2", "1.5", "1e3", "nan", "x", "\x00", "é", "\v"),
    *(" ", " ", "\t", ",", ",", ", ", " ,", "  ", ",,", ";", " ; ", "\t\t", '"'),
    *("\r", "\r\n", "\n", "\n", "#", "%", "# c", "%%", "1 2\n", "3,4\n", "5\t6 7\r\n"),
]

GOOD = ["1 2\n", "3\t4\r\n", "  5 6\n", "# 7 8\n", "% 9\n", "\n", " \t\r\n", "10 11 \n"]
GOOD += ["1,2\n", "7 , 8,9 x\n", "1 2 0.5\n", "3 4 nan \r\n", "2 2 1 1\n", "0 0\n"]
GOOD += ["1;2\n", "7 ;\t8;9 x\n", "1\t2\n", " 3 \t 4\t\r\n", "1\t2\tx y\n", "1;2;;\n"]


def by_lines(text, rules, capacity):
    """What a plain loop over lines gives.

    Pairs, lines before a bad one, its offset, lines with more than two columns.
    """
    pairs, offset, extra = [], 0, 0
    gap = f"[ \t{rules.separator.decode()}]+"
    for number, line in enumerate(text[:-1].split(b"\n")):
        try:
            pair = read_line(line, rules)
        except LineFault:
            return pairs, number, offset, extra
        if pair is not None and len(pairs) == capacity:
            return pairs, number, offset, extra
        if pair is not None:
            pairs.append(pair)
            columns = re.split(gap.encode(), line.rstrip(b"\r"))
            extra += len([x for x in columns if x]) > 2
        offset += len(line) + 1
    return pairs, number + 1, -1, extra


def same(parsed, expected):
    pairs, count, bad, extra = expected
    assert [tuple(x) for x in parsed.pairs.tolist()] == pairs
    assert (parsed.lines, parsed.bad, parsed.extra) == (count, bad, extra)
    assert parsed.pairs.dtype == np.int64


@settings(max_examples=400, deadline=None)
@given(
    st.tuples(
        st.lists(st.sampled_from(GOOD), max_size=12).map("".join),
        st.lists(st.sampled_from(PIECES), max_size=9).map("".join),
        st.lists(st.sampled_from(GOOD), max_size=3).map("".join),
    ).map("".join),
    st.sampled_from(RULES),
    st.sampled_from([0, 2, 1000]),
)
@example("1 2\r3 4", RULES[0], 1000)
@example(",# 1\n", RULES[0], 1000)
@example("# ,,\n,\n", RULES[0], 1000)
@example("\n\n", RULES[0], 0)
@example("1 2 3 4", RULES[4], 1000)
@example("\r\r\n1 2", RULES[0], 1000)
@example("1 2 \r", RULES[3], 1000)
def test_all_ways_agree(text, rules, capacity):
    data = text.encode() + b"\n"
    expected = by_lines(data, rules, capacity)
    same(parse_numpy(data, rules, capacity), expected)
    if LIBRARY is not None:
        same(parse_compiled(LIBRARY, data, rules, capacity), expected)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 10**17)] * 2), min_size=1, max_size=40))
def test_usual_text_is_parsed_by_whole_arrays(pairs):
    text = "# c\n" + "".join(f"{a},{b}\r\n" for a, b in pairs)
    rules = LineRules(separator=b",")
    ids, extra = tokens.parse_regular(text.encode(), rules)
    assert [tuple(x) for x in ids.tolist()] == pairs
    assert extra == 0


@pytest.mark.parametrize("compiled", [pytest.param(True, marks=needs_compiler), False])
def test_large_text(compiled, monkeypatch):
    monkeypatch.setattr(tokens, "PIECE_BYTES", 100)
    monkeypatch.setattr(lines, "PIECE_BYTES", 100)
    pairs = np.random.default_rng(1).integers(0, 10**6, (5000, 2))
    rows = [f"{a} {b}\n" for a, b in pairs.tolist()]
    rows[1234] = "  \n" + rows[1234]
    text = "".join(rows).encode()

    def parse(text):
        if compiled:
            return parse_compiled(LIBRARY, text, LineRules(), 6000)
        return parse_numpy(text, LineRules(), 6000)

    good = parse(text)
    assert np.array_equal(good.pairs, pairs)
    assert (good.lines, good.bad) == (5001, -1)
    rows[4000] = "1 -2\n"
    text = "".join(rows).encode()
    wrong = parse(text)
    assert wrong.lines == 4001
    assert text[wrong.bad :].startswith(b"1 -2\n")
    assert len(wrong.pairs) == 4000


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("7", "one column, where two ids are expected"),
        ("7,", "an empty column"),
        ("7,,8", "an empty column"),
        (",7,8", "an empty column"),
        ("7,8 9", "'8 9' is not an id"),
        ("6 7,8", "'6 7' is not an id"),
        ('7,8,"x', "a quote"),
        ("-3 4", "a negative id '-3'"),
        ("4 -3", "a negative id '-3'"),
        ("4 1.5", "'1.5' is not an integer id"),
        ("1e3 4", "'1e3' is not an integer id"),
        ("+1 4", "'+1' is not an integer id"),
        ("4 NaN", "'NaN' is not an id"),
        ("a\x07b 4", "'a\\x07b' is not an id"),
        ("é 4", "'\\\\xc3\\\\xa9' is not an id"),
        ("1 9223372036854775808", "id '9223372036854775808' is above 2^63-1"),
        ("9" * 5000 + " 1", f"id '{'9' * 40}' is above 2^63-1"),
        ("1 2 3\r4", "a carriage return inside the line"),
    ],
)
def test_what_is_wrong_is_said(line, message):
    with pytest.raises(LineFault) as fault:
        read_line(line.encode(), LineRules(separator=b" ,"["," in line :][:1]))
    assert str(fault.value) == message


def test_limits_are_said():
    rules = LineRules(base=1, most_u=5, most_v=9, fields=3)
    assert read_line(b"5 9 -0.5", rules) == (4, 8)
    for line, message in (
        (b"0 1 1", "id 0 is out of range; allowed: 1 to 5"),
        (b"6 1 1", "id 6 is out of range; allowed: 1 to 5"),
        (b"5 10 1", "id 10 is out of range; allowed: 1 to 9"),
        (b"5 9", "2 columns, where 3 are expected"),
        (b"5 9 1 1", "4 columns, where 3 are expected"),
        (b"5,9 1", "'5,9' is not an id"),
    ):
        with pytest.raises(LineFault, match=message):
            read_line(line, rules)
    with pytest.raises(LineFault, match="allowed: 1 or more"):
        read_line(b"0 1", LineRules(base=1))
    assert read_line(str(LARGEST_ID).encode() + b" 0", LineRules()) == (LARGEST_ID, 0)
