"""The search for the best knobs, with given times."""

from dataclasses import replace

import pytest

from distbfs.benchmark.sweep import VALUES, names_of, sweep_knobs
from distbfs.errors import UsageError
from distbfs.options import Knobs

START = Knobs(4, 0.0, 16, 1, 1, 1024, 10, True)


def measure_of(best):
    """Seconds grow with every knob that is not as the best has it."""

    def seconds(knobs):
        return 1.0 + sum(getattr(knobs, k) != v for k, v in best.as_dict().items())

    return lambda a, b: (seconds(a), seconds(b))


def test_every_knob_is_found():
    wanted = Knobs(32, 0.15, 64, 2, 4, 128, 0, False)
    best, trials = sweep_knobs(START, list(VALUES), measure_of(wanted))
    assert best == wanted
    assert len(trials) == sum(len(values) - 1 for values in VALUES.values())
    assert {trial.knob for trial in trials} == set(VALUES)


def test_others_stay_as_they_are():
    wanted = Knobs(32, 0.15, 64, 2, 4, 128, 0, False)
    best, trials = sweep_knobs(START, ["k4"], measure_of(wanted))
    assert best == replace(START, k4=2)
    assert [trial.value for trial in trials] == [0, 2, 4]


def test_it_ends_when_the_time_is_over():
    left = iter([True, True, False])
    best, trials = sweep_knobs(
        START, list(VALUES), measure_of(START), lambda: next(left, False)
    )
    assert len(trials) == 2
    assert best == START


def test_names():
    assert names_of("all") == list(VALUES)
    assert names_of("k4,k1") == ["k4", "k1"]
    with pytest.raises(UsageError, match="knob 'k9'; allowed: all, or some of ext, k1"):
        names_of("k1,k9")
    for name, values in VALUES.items():
        for value in values:
            Knobs(**{name: value})
