"""Lines are read alike by C and by Python."""

import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from distbfs.formats.lines import LARGEST_ID, LineRules
from formats.reading import WAYS
from formats.test_records import outcome

RULES = [
    LineRules(separator=","),
    LineRules(base=1, separator="\t"),
    LineRules(most_u=20, most_v=20),
    LineRules(base=1, most_u=12, most_v=7, quotes=False, comments="%", fields=2),
    LineRules(base=1, quotes=False, comments="%", fields=3),
    LineRules(base=1, quotes=False, comments="%", fields=4),
    LineRules(base=1, quotes=False, comments="%", fields=3, loops=False),
    LineRules(loops=False, separator=";"),
    LineRules(loops=False),
    LineRules(canonical=True),
    LineRules(lead="a", places=(1, 2), quotes=False, comments="c", fields=4, base=1),
]

PIECES = [
    *("0", "1", "7", "12", "007", "19", "20", "21", "123456789012345678"),
    *(str(LARGEST_ID - 1), str(LARGEST_ID), str(LARGEST_ID + 1), str(2**64), "9" * 30),
    *("0" * 25 + "3", "-1", "-", "+2", "1.5", "1e3", "nan", "x", "é", "\v"),
    *(" ", " ", "\t", ",", ",", ", ", " ,", "  ", ",,", ";", " ; ", "\t\t", '"'),
    *("\r", "\r\n", "\n", "\n", "#", "%", "# c", "%%", "1 2\n", "3,4\n", "5\t6 7\r\n"),
    *("a", "a ", "c", "a 1 2 3\n", " a 4 5 6\n", "a\t7 8 9\r\n"),
]

GOOD = ["1 2\n", "3\t4\r\n", "  5 6\n", "# 7 8\n", "% 9\n", "\n", " \t\r\n", "10 11 \n"]
GOOD += ["1,2\n", "7 , 8,9 x\n", "1 2 0.5\n", "3 4 nan \r\n", "2 2 1 1\n", "0 0\n"]
GOOD += ["1;2\n", "7 ;\t8;9 x\n", "1\t2\n", " 3 \t 4\t\r\n", "1\t2\tx y\n", "1;2;;\n"]
GOOD += ["a 1 2 3\n", "a\t 4 5 6\r\n", "c x\n"]


def by_lines(text, rules, declared):
    """What a plain loop over lines without quotes gives.

    Pairs, words, lines, lines with more than two columns; or the line of the fault.
    """
    pairs, extra, lead = [], 0, bool(rules.lead)
    for number, line in enumerate(text[:-1].split("\n"), 1):
        words = re.findall("[^ \t]+", line.rstrip("\r"))
        if not words or words[0][0] in rules.comments:
            continue
        if rules.separator != " ":
            parts = line.rstrip("\r").split(rules.separator)
            words = [part.strip(" \t") for part in parts]
        ids = [x for x in words[lead : 2 + lead] if re.fullmatch("[0-9]+", x)]
        if (
            len(pairs) == declared
            or (lead and words[0] != rules.lead)
            or len(ids) < 2
            or (rules.canonical and any(str(int(x)) != x for x in ids))
            or not rules.base <= int(ids[0]) <= rules.most_u
            or not rules.base <= int(ids[1]) <= rules.most_v
            or (not rules.loops and int(ids[0]) == int(ids[1]))
            or (rules.fields and len(words) != rules.fields)
            or "\r" in line.rstrip("\r")
        ):
            return number
        pairs.append([int(x) - rules.base for x in ids])
        extra += len(list(filter(None, words))) > 2 + lead
    if declared is not None and len(pairs) < declared:
        return number
    return pairs, None, number + 1, extra


@settings(max_examples=150, deadline=None)
@given(
    st.tuples(
        st.lists(st.sampled_from(GOOD), max_size=12).map("".join),
        st.lists(st.sampled_from(PIECES), max_size=9).map("".join),
        st.lists(st.sampled_from(GOOD), max_size=3).map("".join),
    ).map("".join),
    st.sampled_from(RULES),
    st.sampled_from([None, 0, 2]),
    st.sampled_from([1, 7, 1000]),
)
@example("1 2\r3 4", RULES[0], None, 7)
@example(",# 1\n", RULES[0], None, 7)
@example("# ,,\n,\n", RULES[0], None, 7)
@example("\n\n", RULES[0], 0, 7)
@example("1 2 3 4", RULES[4], None, 7)
@example("\r\r\n1 2", RULES[0], None, 7)
@example("1 2 \r", RULES[3], None, 7)
@example("\r#1 2\n", RULES[0], 2, 1)
def test_all_ways_agree(scratch, text, rules, declared, block):
    scratch.write_text(text + "\n", newline="\n")
    answers = [
        outcome(scratch, rules, block, compiled, declared=declared) for compiled in WAYS
    ]
    assert all(answer == answers[0] for answer in answers)
    if '"' not in text:
        expected, answer = by_lines(text + "\n", rules, declared), answers[0]
        if isinstance(expected, int):
            assert answer.startswith(f"{scratch}:{expected}: ")
        else:
            assert answer == expected


@pytest.mark.parametrize("compiled", WAYS)
def test_large_text(scratch, compiled):
    pairs = np.random.default_rng(1).integers(0, 10**6, (5000, 2)).tolist()
    rows = [f"{a} {b}\n" for a, b in pairs]
    rows[1234] = "  \n" + rows[1234]
    scratch.write_text("".join(rows))
    answer = outcome(scratch, LineRules(), 100, compiled)
    assert answer == (pairs, None, 5002, 0)
    rows[4000] = "1 -2\n"
    scratch.write_text("".join(rows))
    answer = outcome(scratch, LineRules(), 100, compiled)
    assert answer == f"{scratch}:4002: a negative id '-2'"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("7", "one column, where two ids are expected"),
        ("7,", "an empty column"),
        ("7,,8", "an empty column"),
        (",7,8", "an empty column"),
        ("7,8 9", "'8 9' is not an id"),
        ("6 7,8", "'6 7' is not an id"),
        ('7,8,"x', "a quote that does not end"),
        ('7,8,"x"y', "a quoted column continues after its closing quote"),
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
def test_what_is_wrong_is_said(scratch, line, message):
    rules = LineRules(separator=" ,"["," in line])
    assert refusal(scratch, line, rules) == message


def refusal(scratch, line, rules):
    """Return what both ways say of a line."""
    scratch.write_text(line, newline="\n")
    answers = {outcome(scratch, rules, 99, compiled) for compiled in WAYS}
    (answer,) = answers
    return answer.removeprefix(f"{scratch}:1: ")


def test_limits_are_said(scratch):
    rules = LineRules(base=1, most_u=5, most_v=9, fields=3)
    scratch.write_text("5 9 -0.5\n")
    assert outcome(scratch, rules, 99, False) == ([[4, 8]], None, 2, 1)
    for line, message in (
        ("0 1 1", "id 0 is out of range; allowed: 1 to 5"),
        ("6 1 1", "id 6 is out of range; allowed: 1 to 5"),
        ("5 10 1", "id 10 is out of range; allowed: 1 to 9"),
        ("5 9", "2 columns, where 3 are expected"),
        ("5 9 1 1", "4 columns, where 3 are expected"),
        ("5,9 1", "'5,9' is not an id"),
    ):
        assert refusal(scratch, line, rules) == message
    said = refusal(scratch, "0 1", LineRules(base=1))
    assert said == "id 0 is out of range; allowed: 1 or more"
    scratch.write_text(f"{LARGEST_ID} 0")
    largest = [[LARGEST_ID, 0]]
    assert outcome(scratch, LineRules(), 99, True) == (largest, None, 2, 0)
