"""Records are read alike by C and by Python, and words numbered alike."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from distbfs.device import cc
from distbfs.errors import InputError
from distbfs.formats import pairs as reading
from distbfs.formats import word_table
from distbfs.formats.ids import TextIds
from distbfs.formats.lines import LARGEST_ID, LineFault, LineRules
from distbfs.formats.new_ids import Numbers, Words, number_anew
from distbfs.formats.text import TextFile
from distbfs.formats.word_table import WordTable, split
from formats.reading import compiling

pytestmark = pytest.mark.skipif(
    cc.load_or_none(reading.SOURCE) is None, reason="no C compiler"
)
FUZZ = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)

RECORDS = LineRules()
BROKEN = [  # what is not UTF-8
    *(b"\xff", b"\x80", b"\xc2", b"\xc3A", b"\xc0\x80", b"\xc1\xbf", b"\xe0\x9f\xbf"),
    *(b"\xe2\x82", b"\xe2\x82A", b"\xed\xa0\x80", b"\xf0\x8f\xbf\xbf", b"\xf0\x90\x80"),
    *(b"\xf0\x90A\x80", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80"),
]
PIECES = [
    *(b"a", b"b", b"bc", b"7", b"12", b"007", b"-1", b"x y", b"a_long_name_of_20_b."),
    *(b" ", b" ", b"\t", b"\t", b",", b",", b";", b", ", b" \t ", b",,"),
    *(b'"', b'"', b'""', b'"a, b"', b'"a;b"', b'"x ""y"""', b'"\n"', b'"\t"', b'" "'),
    *(b"\n", b"\n", b"\r\n", b"\r", b"# c\n", b"%", b"#", b"\n\n", b"\v", b"\x01"),
    *(
        "é".encode(),
        "漢😀".encode(),
        b"\xff",
        b"\xed\xa0\x80",
        b"\xc0\x80",
        b"\xf4\x90",
    ),
    *(b"\xe0\x9f\x80", b"\xf0\x8f\x80\x80", b"\xe2\x82", b"\x7f", b"\xc2\x80"),
    *(str(LARGEST_ID).encode(), str(LARGEST_ID + 1).encode(), b"n" * 1024, b"n" * 1025),
]
GOOD = [
    *(b"a{}b\n", b"a{}b{}c\r\n", b'"a"{}"b{}c"\n', b'"x ""y"""{}z\n', b" a {} b {} \n"),
    *(b'a{}b{}"n\nm"{}1\n', b"# x{}y\n", b"\n", b"12{}13\n", b'"12"{}13{}""\n'),
    *(b'12{}7{}"x"\n', b"1{}2{}{}\n", b'1{}2{}"\r\n"\n', b"\t\r\n", b'"1"{}"2" \n'),
    *("é{}ß\n".encode(), b"a\tb{}c\n", b'5" x{}y\n', b"1{}2{}3{}4\n", b"{}1{}2\n"),
]
SEPARATORS = [" ", ",", "\t", ";"]


def contents(separator):
    gap = separator.encode()
    good = st.sampled_from([x.replace(b"{}", gap) for x in GOOD])
    pieces = st.sampled_from(PIECES)
    return st.tuples(
        st.lists(good, max_size=12).map(b"".join),
        st.lists(pieces, max_size=7).map(b"".join),
        st.lists(good, max_size=4).map(b"".join),
    ).map(b"".join)


CASES = st.sampled_from(SEPARATORS).flatmap(
    lambda x: st.tuples(st.just(x), contents(x))
)


def outcome(path, rules, block, compiled, text=False, declared=None):
    """Return pairs, words by number, lines, extra; or the error."""
    pairs = []
    with compiling(compiled), TextFile(path, block) as file:
        words = Words() if text else None
        try:
            for piece in reading.read_pairs(file, rules, declared, words):
                assert len(piece)
                pairs += piece.tolist()
        except InputError as fault:
            return str(fault)  # pairs before it are handed over in other pieces
        if text:
            ids, ranks = words.ranked()
            names = ids.names(np.arange(ids.count))
            words = [names[k] for k in ranks.tolist()]
        return pairs, words, file.line, file.extra


@FUZZ
@given(
    CASES,
    st.sampled_from([(0, 1), (1, 0), (2, 0), (1, 3), (0, 0)]),
    st.booleans(),
    st.sampled_from(
        [RECORDS, replace(RECORDS, canonical=True, most_v=12), LineRules(base=1)]
    ),
    st.sampled_from([1, 5, 64, 1 << 20]),
)
@example((" ", b'a\tb\n"c\nd" e\tf\n'), (0, 1), True, RECORDS, 64)
@example((" ", b'a "b\tc"\n'), (0, 1), True, RECORDS, 64)
@example((" ", b'1 "x\ny" 2\t3\n'), (2, 0), True, RECORDS, 64)
@example((",", b"a,b,c,d\nx,y,z\n"), (0, 3), True, RECORDS, 64)
@example((",", b"a\n"), (0, 0), True, RECORDS, 64)
@example((",", b'"' + b'""' * 9000 + b'",y\n'), (0, 1), True, RECORDS, 64)
@example((",", (b'"' + b'""' * 500 + b'",y\n') * 64), (0, 1), True, RECORDS, 1 << 20)
@example((",", b'a,\t"b"\n'), (0, 1), True, RECORDS, 64)
@example((",", b'" ""b""",c\n'), (0, 1), True, RECORDS, 64)
@example((",", b'"x ""y"" ""z""",z\n'), (0, 0), True, RECORDS, 64)
@example((",", b'a,"\t""b"""\n'), (0, 1), True, RECORDS, 64)
@example((",", b'a,b,"c\nd'), (0, 1), True, RECORDS, 1)
@example(
    (",", b'"' + b'""' * 511 + b'x",y\n' + b'"' + b'""' * 513 + b'",y\n'),
    (0, 1),
    True,
    RECORDS,
    64,
)
@example((",", b'"' + b"x" * 140000 + b'",y\n'), (0, 1), True, RECORDS, 64)
@example((",", b"a,b," + b"x" * 110000 + b"\nc,d\n"), (0, 1), True, RECORDS, 64)
@example((",", b"a,b," + b"x" * 140000 + b"\nc,d\n"), (0, 1), True, RECORDS, 64)
def test_c_reads_what_python_reads(scratch, case, columns, text, rules, block):
    separator, body = case
    scratch.write_bytes(body)
    rules = replace(rules, separator=separator, places=columns)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(word_table, "FEW_WORDS", 1)
        ways = [
            outcome(scratch, rules, block, compiled, text) for compiled in (True, False)
        ]
    assert ways[0] == ways[1]


@pytest.mark.parametrize("text", [True, False])
@pytest.mark.parametrize("separator", SEPARATORS)
def test_usual_records_need_no_python(scratch, separator, text, monkeypatch):
    """Quotes, long records, blanks and comments, many words, pieces of all sizes."""
    monkeypatch.setattr(reading, "Records", None)
    random = np.random.default_rng(3)
    rows = random.integers(0, 3000, (4000, 2)).tolist()
    notes = ["", '"', '"x', '"x', f'"{"y" * 60}']
    body = "# c\n\n"
    for k, (u, v) in enumerate(rows):
        note = notes[k % len(notes)]
        quoted = '"' if k % 3 and separator != "\t" else ""
        note = f'{separator}{note}{separator}z"' if note else ""
        if separator == " " and not note:
            body += "  "
        body += f"{quoted}{u}{quoted}{separator}{v}{note}\n" + "\r\n% d\n" * (
            k % 50 == 1
        )
    scratch.write_text(body)
    for block in (64, 1000, 1 << 20):
        rules = replace(RECORDS, separator=separator)
        pairs, words, line, extra = outcome(scratch, rules, block, True, text)
        if text:
            pairs = [[int(words[u]), int(words[v])] for u, v in pairs]
        assert pairs == rows
        assert line == body.count("\n") + 1
        assert extra == sum(bool(notes[k % len(notes)]) for k in range(len(rows)))


@FUZZ
@given(
    st.lists(st.binary(max_size=20) | st.text("ab\0", max_size=40).map(str.encode)),
    st.sampled_from([1, 1 << 10]),
)
@example([b"a" * k for k in range(40)], 1)
@example([b"a" + b"\0" * k for k in range(20)], 1)
@example([b"x" * 5000 + bytes([k]) for k in range(1, 9)], 1)
def test_any_bytes_are_numbered_and_sorted(words, few):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(word_table, "FEW_WORDS", few)
        table = WordTable()
        ends = np.cumsum([0, *map(len, words)])
        text = np.frombuffer(b"".join(words), np.uint8)
        numbers = table.number(text, ends[:-1], np.diff(ends))
    index = {}
    assert numbers.tolist() == [index.setdefault(x, len(index)) for x in words]
    assert table.count == len(index)
    for first in range(len(index) + 1):
        offsets, text = table.since(first)
        assert split(text, offsets) == list(index)[first:]
    ranks, offsets, text = table.ranked()
    rising = sorted(index)
    assert ranks.tolist() == [rising.index(x) for x in index]
    assert [text[a:b].tobytes() for a, b in pairwise(offsets)] == rising


@FUZZ
@given(
    st.lists(st.tuples(*[st.integers(0, LARGEST_ID) | st.integers(0, 9)] * 2)),
    st.booleans(),
)
def test_numbers_become_ranks(scratch, pairs, many):
    array = np.array(pairs * (1 + 50 * many), dtype=np.int64).reshape(-1, 2)
    numbers = Numbers()
    with scratch.open("wb") as out:
        for piece in np.array_split(array, 3):
            numbers.numbers(piece).tofile(out)
    ids = number_anew(scratch, numbers).ids.tolist()
    assert ids == sorted({*array.ravel().tolist()})
    made = np.fromfile(scratch, np.int64).tolist()
    assert [ids[k] for k in made] == array.ravel().tolist()


def test_words_that_cannot_be_ids():
    for word in (b"", b"\n", b"\x7f", b"a" * 1025, *BROKEN):
        after = b"\x80" if word in BROKEN else b"b"
        with pytest.raises(LineFault, match="id") as fault:
            Words().numbers_of([b"a", word, after])
        assert "\n" not in str(fault.value)


@given(st.lists(st.text(min_size=1), min_size=1, unique=True))
def test_names_by_one_decoding_are_those_of_each(names):
    ids = TextIds.of(sorted(x.encode("utf-8", "replace") for x in names))
    alone = [ids.names(np.array([k]))[0] for k in range(ids.count)]
    assert ids.names(np.arange(ids.count)) == alone
    broken = TextIds(np.array([0, 1, 3]), np.frombuffer(b"\xc3\xa9a", np.uint8))
    assert broken.names(np.arange(2)) == ["\ufffd", "\ufffda"]
