"""Which cases of a parametrized test each tier has."""

from itertools import combinations, product
from types import SimpleNamespace

import pytest
import tiers

THOROUGH = SimpleNamespace(name="thorough")
LISTS = {"a": range(4), "b": "xyz", "c": [{}, None], "d": [1.5, 2.5], "e": [()]}


def calls_of(lists, marks=()):
    """The cases of a product, as pytest has them before they are collected."""
    calls = []
    for places in product(*(range(len(x)) for x in lists.values())):
        indices = dict(zip(lists, places, strict=True))
        params = {name: lists[name][k] for name, k in indices.items()}
        name = "-".join(map(str, places))
        calls.append(
            SimpleNamespace(id=name, params=params, indices=indices, marks=[*marks])
        )
    return calls


def chosen(calls, marker=None, fixtures=(), **options):
    options = SimpleNamespace(**{"quick": False, "slice": None, **options})
    test = SimpleNamespace(
        config=SimpleNamespace(option=options),
        fixturenames=fixtures,
        definition=SimpleNamespace(
            nodeid="test_it.py::test_some", get_closest_marker={marker: 1}.get
        ),
        _calls=[*calls],
    )
    tiers.choose(test)
    return [call.id for call in test._calls]


def groups(names, size):
    """The values that meet, by their places."""
    cases = [name.split("-") for name in names]
    return {g for case in cases for g in combinations(enumerate(case), size)}


def test_values_meet():
    calls = calls_of(LISTS)
    every, usual, quick = (
        [x.id for x in calls],
        chosen(calls),
        chosen(calls, quick=True),
    )
    assert groups(usual, 3) == groups(every, 3)
    assert groups(quick, 2) == groups(every, 2)
    assert 12 <= len(quick) < len(usual) < len(every) == 48


@pytest.mark.parametrize("lists", [{"a": range(4), "b": "xyz"}, {"a": range(9)}])
def test_each_value_of_few_parameters(lists):
    calls = calls_of({**lists, "c": [()]})
    every, quick = [x.id for x in calls], chosen(calls, quick=True)
    assert chosen(calls) == every
    assert groups(quick, 1) == groups(every, 1)
    assert len(quick) == max(map(len, lists.values()))
    assert chosen(calls, "pairs", quick=True) == every


def test_each_value_on_emulated_devices():
    calls = calls_of(LISTS)
    quick = chosen(calls, fixtures=["device"], quick=True)
    assert groups(quick, 1) == groups([x.id for x in calls], 1)
    assert len(quick) == max(map(len, LISTS.values()))
    pairs = chosen(calls, "pairs", ["device"], quick=True)
    assert pairs == chosen(calls, quick=True)


@pytest.mark.parametrize("fixtures", [[], ["device"]])
def test_slices_have_all(fixtures):
    calls = calls_of(LISTS)

    def with_slice(k):
        return chosen(calls, fixtures=fixtures, quick=True, slice=k)

    quick, slices = with_slice(None), [{*with_slice(k)} for k in range(tiers.SLICES)]
    assert set.union(*slices) == set(chosen(calls))
    assert set.intersection(*slices) == set(quick)
    rest = len(chosen(calls)) - len(quick)
    assert sum(len(x) - len(quick) for x in slices) == rest > 0


def test_thorough_cases_are_not_quick():
    calls = calls_of({"a": range(9)}) + calls_of({"a": range(9, 20)}, [THOROUGH])
    assert chosen(calls) == [x.id for x in calls]
    assert len(chosen(calls, quick=True)) == 9
    slices = [chosen(calls, quick=True, slice=k) for k in range(tiers.SLICES)]
    assert sum(len(x) - 9 for x in slices) == 11


def test_thorough_tests_are_in_their_slice():
    def left(marker, **options):
        options = SimpleNamespace(**{"quick": True, "slice": None, **options})
        gone = []

        def deselected(items):
            gone.extend(items)

        hook = SimpleNamespace(pytest_deselected=deselected)
        items = [
            SimpleNamespace(nodeid=f"test_it.py::{k}", get_closest_marker=marker)
            for k in range(20)
        ]
        tiers.leave_out(SimpleNamespace(option=options, hook=hook), items)
        assert len(items) + len(gone) == 20
        return {item.nodeid for item in items}

    assert len(left({"thorough": THOROUGH}.get, quick=False)) == 20
    assert len(left({}.get)) == 20
    assert not left({"thorough": THOROUGH}.get)
    slices = [left({"thorough": THOROUGH}.get, slice=k) for k in range(tiers.SLICES)]
    assert all(len(x) < 20 for x in slices)
    assert sum(map(len, slices)) == len(set.union(*slices)) == 20


@pytest.mark.parametrize("names", [["a"], ["a", "b"]])
def test_few_parameters_keep_all(names):
    calls = calls_of({name: LISTS[name] for name in names})
    assert chosen(calls) == [x.id for x in calls]
