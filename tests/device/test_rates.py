"""Rates of a CPU, with and without a compiler."""

import pytest

from distbfs.device import cc, rates


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(rates, "HOST_COPY_BYTES", 1 << 20)
    monkeypatch.setattr(rates, "HOST_TESTS", 1 << 12)
    monkeypatch.setattr(rates, "REPEATS", 2)


@pytest.mark.parametrize("compiler", [True, False], ids=["c", "numpy"])
@pytest.mark.parametrize("bits", [1, 1000, 1 << 20])
def test_rates_of_a_cpu(bits, compiler, monkeypatch):
    if not compiler:
        monkeypatch.setattr(cc, "load_or_none", lambda _: None)
    measured = rates.host_rates(bits, 1)
    assert measured.where == "cpu"
    assert measured.bits == max(bits, 32)
    assert 1e6 < measured.copy < 1e14
    assert 1e5 < measured.tests < 1e12
    assert measured.as_dict()["link"] is None


def test_the_best_of_the_repeats_after_one():
    times = iter([9.0, 3.0, 4.0, 1.0])
    assert rates.best(lambda: next(times)) == 3
