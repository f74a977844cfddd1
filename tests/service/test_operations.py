"""Every request is checked, or refused with a code and a line of text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from distbfs.errors import ServiceError
from distbfs.service.checker import Checker
from distbfs.service.encoding import encode
from distbfs.service.limits import Limits
from distbfs.service.operations import (
    OPERATIONS,
    PathAnswer,
    refusal,
)
from distbfs.service.vertex_names import Names

N = 50
LIMITS = Limits(ids=5, deadline=9.0)
CHECKER = Checker(Names(N), LIMITS)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=9), inner)
    ),
    max_leaves=9,
)
NAMES = sorted({name for op in OPERATIONS for name in OPERATIONS[op].fields} - {"id"})
LIKELY = st.fixed_dictionaries(
    {"op": st.sampled_from([*OPERATIONS, "x"]) | VALUES},
    optional={
        "id": st.integers() | VALUES,
        "deadline": st.floats(0, 10) | VALUES,
        **{
            name: st.integers(-1, N)
            | st.lists(st.integers(-1, N), max_size=7)
            | st.sampled_from(["inline", "summary", "npy", True])
            | VALUES
            for name in NAMES
        },
    },
)


def refused(line):
    with pytest.raises(ServiceError) as caught:
        CHECKER.check(line if isinstance(line, bytes) else json.dumps(line).encode())
    return caught.value


def holds(request):
    """Whether a request that passed is what the service relies on."""
    values = {
        name: value
        for name in request.operation.fields
        if (value := getattr(request, name)) is not UNSET
    }
    for name in ("source", "target"):
        if name in values:
            assert 0 <= values[name] < N
    for name in ("sources", "targets"):
        if name in values:
            assert 1 <= len(values[name]) <= LIMITS.ids
            assert all(type(x) is int and 0 <= x < N for x in values[name])
    if not request.operation.immediate:
        assert ("source" in values) != ("sources" in values)
    assert 0 < values.get("deadline", 1) <= LIMITS.deadline


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes(data):
    try:
        request = CHECKER.check(data)
    except ServiceError as error:
        what = refusal(error).error
        legible = what["code"] in ServiceError.CODES and encode(what)
    else:
        legible = True
        holds(request)
    assert legible


@given(LIKELY)
def test_anything_like_a_request(value):
    data = json.dumps(value).encode()
    try:
        request = CHECKER.check(data)
    except ServiceError as error:
        [line] = encode(refusal(error))
        answer = json.loads(line)
        assert answer["ok"] is False
        assert "\n" not in answer["error"]["message"]
        assert len(json.dumps(answer)) < 2000
        if type(value.get("id")) is int and abs(value["id"]) < 1 << 62:
            assert answer["id"] == value["id"]
    else:
        holds(request)


def outcome(data, op):
    try:
        return CHECKER.check(data, op)
    except ServiceError as error:
        return error.code, str(error), error.id


NEAR = st.sampled_from([-1, 0, 3, N - 1, N])
ODD = st.sampled_from([True, 3.0, 0.5, "3", None, 1 << 64])
SOME = st.lists(NEAR, max_size=7) | st.lists(NEAR | ODD, max_size=7) | ODD


@given(
    st.sampled_from(["distances", "path"]),
    st.fixed_dictionaries({"source": NEAR | ODD, "targets": SOME})
    | st.fixed_dictionaries({"sources": SOME, "targets": SOME})
    | st.fixed_dictionaries(
        {},
        optional={
            "source": NEAR,
            "sources": SOME,
            "targets": SOME,
            "target": NEAR | ODD,
            "id": st.sampled_from([1, "a", 1.5, "a" * 200]),
            "deadline": st.sampled_from([1, 100]),
            "arrays": st.sampled_from(["npy", "x"]),
            "more": NEAR,
        },
    ),
)
def test_small_requests_with_numbers_are_checked_as_all_are(op, fields):
    """A line names its operation; over HTTP the path does."""
    data = json.dumps({"op": op, **fields}).encode()
    assert outcome(data, None) == outcome(data, op)


ENDS, COUNTS = (-1, 0, N - 1, N), (0, 1, LIMITS.ids, LIMITS.ids + 1)


@pytest.mark.parametrize(
    "fields",
    [
        *({"source": end, "targets": [3]} for end in ENDS),
        *({"sources": [3, end], "targets": [3]} for end in ENDS),
        *({"source": 3, "targets": [end]} for end in ENDS),
        *({"sources": [3] * count, "targets": [3]} for count in COUNTS),
        *({"source": 3, "targets": [3] * count} for count in COUNTS),
    ],
)
def test_ends_of_what_is_allowed(fields):
    data = json.dumps({"op": "distances", **fields}).encode()
    assert outcome(data, None) == outcome(data, "distances")


def test_what_is_asked_for():
    data = b'{"id": 7, "op": "distances", "source": 0, "targets": [3, 9]}'
    made = CHECKER.check(data)
    assert (made.id, made.op, made.start) == (7, "distances", 0)
    assert made.targets == [3, 9]
    assert (made.arrays, made.deadline) == ("json", UNSET)
    whole = CHECKER.check(b'{"op": "bfs", "source": 1.0, "deadline": 2, "id": "a"}')
    assert (whole.id, whole.deadline) == ("a", 2)
    assert (whole.op, whole.start, whole.sources) == ("bfs", 1, UNSET)
    assert (whole.result, whole.parents) == ("inline", True)
    [line] = encode(PathAnswer(id=3, distance=-1, path=None))
    assert line == b'{"id":3,"ok":true,"distance":-1,"path":null}\n'


@pytest.mark.parametrize(
    ("line", "code", "text"),
    [
        (b"", "bad_request", "not JSON"),
        (b"[" * 100_000, "bad_request", "recursion depth"),
        (b"\xff", "bad_request", "not JSON"),
        (b"{", "bad_request", '; send, for example, {"op": "distances", "source": 0, '),
        (b"NaN", "bad_request", "JSON is malformed: invalid character (byte 0)"),
        (b"1" * 5000, "bad_request", "not JSON"),
        ([], "bad_request", "a request is a JSON object"),
        ({}, "bad_request", "a request lacks 'op'; allowed: bfs, distances"),
        ({"op": "x" * 500}, "unknown_op", "xxx..."),
        ({"op": "health", "x": 1}, "bad_request", 'health has no field "x"'),
        ({"op": "bfs"}, "bad_request", "bfs lacks 'source'"),
        ({"op": "bfs", "sources": []}, "bad_request", "at least one"),
        ({"op": "bfs", "source": 1, "sources": [2]}, "bad_request", "not both"),
        ({"op": "path", "sources": [0] * 6, "target": 1}, "too_large", "1 to 5"),
        ({"op": "bfs", "source": True}, "bad_request", "source is true; allowed: ver"),
        ({"op": "bfs", "source": 1.5}, "bad_request", "vertices 0 to 49"),
        ({"op": "bfs", "source": 50}, "bad_request", "source is 50"),
        ({"op": "bfs", "source": 1, "result": []}, "bad_request", "inline, summary"),
        ({"op": "bfs", "source": 1, "parents": 1}, "bad_request", "true, false"),
        ({"op": "bfs", "sources": [0] * 6}, "too_large", "allowed: 1 to 5"),
        ({"op": "bfs", "sources": [0, -1]}, "bad_request", "sources[1] is -1"),
        (
            {"op": "path", "deadline": 10, "source": 0, "target": 1},
            "bad_request",
            "9.0 s",
        ),
        ({"op": "health", "deadline": 1}, "bad_request", 'has no field "deadline"'),
        (
            {"op": "bfs", "source": 1, "result": "summary", "parents": False},
            "bad_request",
            "'parents' is not read with the result 'summary'; leave it out",
        ),
        (
            {"op": "bfs", "sources": [1], "result": "summary", "arrays": "npy"},
            "bad_request",
            "'arrays' is not read with the result 'summary'",
        ),
        (
            {"op": "distances", "source": 1},
            "bad_request",
            'send, for example, {"op": "distances", "source": 0, "targets": [1, 2]}',
        ),
        ({"op": "health", "id": []}, "bad_request", "id is []"),
        ({"op": "health", "id": "x" * 129}, "bad_request", "up to 128 characters"),
    ],
)
def test_what_is_refused(line, code, text):
    error = refused(line)
    assert error.code == code
    assert text in str(error)


def test_refusals_keep_the_id():
    assert refused({"id": 5, "op": "bfs"}).id == 5
    assert refused({"id": {}, "op": "bfs"}).id is None


def test_whole_numbers_may_be_written_as_fractions():
    made = CHECKER.check(b'{"op": "health", "id": 0.0}')
    assert (made.id, type(made.id)) == (0, int)
    made = CHECKER.check(b'{"op": "distances", "source": 3.0, "targets": [1e0]}')
    assert (made.start, made.targets) == (3, [1])
    assert CHECKER.check(b'{"op": "bfs", "source": 1, "deadline": 2.0}').deadline == 2


def test_sources_of_a_set_are_one_start():
    asked = b'{"op": "distances", "sources": [9, 1, 9], "targets": [3]}'
    assert CHECKER.check(asked).start == (1, 9)
    one = CHECKER.check(b'{"op": "path", "sources": [4, 4], "target": 3}')
    assert (one.op, one.start, one.target) == ("path", 4, 3)


def test_an_operation_of_a_route():
    """The path names it; the body may do so as well."""
    for body in (b'{"source": 1}', b'{"op": "bfs", "source": 1}'):
        made = CHECKER.check(body, "bfs")
        assert (made.op, made.start, made.result) == ("bfs", 1, "inline")
    with pytest.raises(ServiceError, match='op is "path"; allowed: bfs'):
        CHECKER.check(b'{"op": "path", "source": 1}', "bfs")
