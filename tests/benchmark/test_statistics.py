import math

import pytest

from distbfs.benchmark.statistics import rate_statistics, statistics
from distbfs.errors import ValidationError


def test_odd_number_of_values():
    s = statistics([5.0, 1.0, 3.0, 2.0, 4.0])
    assert (s["minimum"], s["firstquartile"], s["median"]) == (1.0, 2.0, 3.0)
    assert (s["thirdquartile"], s["maximum"], s["mean"]) == (4.0, 5.0, 3.0)
    assert s["stddev"] == pytest.approx(math.sqrt(2.5))


def test_even_number_of_values():
    """Quartiles of 8 values: the means of the 2nd and 3rd, and of the 6th and 7th."""
    s = statistics([8, 7, 6, 5, 4, 3, 2, 1])
    assert (s["firstquartile"], s["median"], s["thirdquartile"]) == (2.5, 4.5, 6.5)
    assert s["stddev"] == pytest.approx(math.sqrt(6.0))


def test_six_values_follow_the_index_rule():
    """(n-1)/4 = n/4 = 1, so the quartiles are values, not means."""
    s = statistics([1, 2, 4, 8, 16, 32])
    assert (s["firstquartile"], s["median"], s["thirdquartile"]) == (2.0, 6.0, 16.0)


def test_one_value_has_no_deviation():
    s = statistics([7.0])
    assert math.isnan(s.pop("stddev"))
    assert {*s.values()} == {7.0}
    assert math.isnan(rate_statistics([2.0], [1.0])["harmonic_stddev"])


def test_no_values():
    with pytest.raises(ValidationError):
        statistics([])


def test_rates():
    """Rates 1, 2 and 4: inverses 1, 1/2, 1/4 of mean 7/12 and variance 7/48."""
    r = rate_statistics([1, 4, 2], [1.0, 1.0, 1.0])
    assert (r["minimum"], r["median"], r["maximum"]) == (1.0, 2.0, 4.0)
    assert r["firstquartile"] == 1 / 1.0
    assert r["thirdquartile"] == 1 / 0.25
    assert r["harmonic_mean"] == pytest.approx(12 / 7)
    expected = math.sqrt(7 / 48) / ((7 / 12) ** 2 * math.sqrt(2))
    assert r["harmonic_stddev"] == pytest.approx(expected)


@pytest.mark.parametrize(("amounts", "seconds"), [([0], [1.0]), ([5], [0.0])])
def test_rates_need_time_and_edges(amounts, seconds):
    with pytest.raises(ValidationError):
        rate_statistics(amounts, seconds)
