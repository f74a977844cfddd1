"""The limit of searches whose rows have tails: bytes over the link, by records."""

import numpy as np
import pytest
from graphs import kronecker
from test_split_rows import NOTHING, least_and_all

import distbfs
from distbfs.cli import comparison
from distbfs.cli.comparison import Entry
from distbfs.device import host_memory, rates
from distbfs.options import SearchOptions
from distbfs.search import device_holding

pytestmark = pytest.mark.usefixtures("device")
SOURCE = kronecker(10)


def test_the_link_is_measured_by_reads_of_all_of_a_buffer(monkeypatch):
    """An emulated launch takes a millisecond, whatever it does."""
    monkeypatch.setattr(rates, "LINK_BYTES", 1 << 16)
    sums, pinned = [], host_memory.pinned

    def filled(count, dtype, what):
        values = pinned(count, dtype, what)
        values[:] = np.arange(count)
        return values

    def watch(run):
        seconds = run()
        sums.append(seconds)
        return seconds

    monkeypatch.setattr(host_memory, "pinned", filled)
    monkeypatch.setattr(rates, "best", watch)
    cp = rates.cuda.cupy()
    zeros, totals = cp.zeros, []

    def noted(*arguments):
        totals.append(zeros(*arguments))
        return totals[-1]

    monkeypatch.setattr(cp, "zeros", noted)
    assert rates.link_rate() == pytest.approx((1 << 16) / 1e-3)
    assert sums == [1e-3]
    count = 1 << 14
    assert totals[-1].get().tolist() == [count * (count - 1) // 2]


@pytest.mark.thorough
def test_limits_count_what_searches_read_of_tails(monkeypatch):
    state = device_holding.Room
    monkeypatch.setattr(device_holding, "Room", lambda a, b, _: state(a, b, NOTHING))
    least, most = least_and_all(SOURCE)
    entries, roots = [], np.array([int(SOURCE.degrees.argmax()), 5])
    sizes = {"all": 2 * most, "some": least + (most - least) // 10}
    for label, size in sizes.items():
        entry = Entry(label, SearchOptions.named(engine="xbfs"))
        entry.session = distbfs.open(SOURCE, engine="xbfs", device_memory=size)
        entries.append(entry)
    reached = comparison.count_checks(entries, roots)
    whole, split = entries
    records = split.session.search(int(roots[0]), records=True).records
    assert split.counts["tail_bytes"][0] == sum(x["tail_bytes"] for x in records) > 0
    assert whole.counts["tail_bytes"] == [0, 0]
    asked = []

    def device_rates(bits, *, link):
        asked.append(link)
        about = {"copy": 1e9, "tests": 1e9, "link": 1e6 if link else None}
        return rates.Rates("cuda", bits=bits, **about)

    monkeypatch.setattr(comparison, "device_rates", device_rates)
    measured = comparison.measure_rates(entries, 1000)
    limits = comparison.limits_of(entries, measured, SOURCE.matrix.nnz, reached)
    alone = comparison.measure_rates([whole], 1000)
    assert asked == [True, False]
    for k, brought in enumerate(split.counts["tail_bytes"]):
        assert limits["some"][k] == pytest.approx(limits["all"][k] + brought / 1e6)
    assert comparison.limits_of([whole], alone, SOURCE.matrix.nnz, reached)
    for entry in entries:
        entry.session.close()
