"""Figures of a comparison from given times, and their table."""

import pytest

from distbfs.benchmark.compare_figures import (
    add_efficiency,
    add_limits,
    add_speedups,
    engine_figures,
    print_comparison,
)
from distbfs.errors import ValidationError


def two_engines():
    slow = {"engine": "slow", "checks": 20} | engine_figures(
        [[4, 5, 9], [2, 2, 2]], [8, 4]
    )
    fast = {"engine": "fast", "checks": 10} | engine_figures(
        [[1, 1, 1], [2, 2, 2]], [8, 4]
    )
    return [slow, fast]


def test_a_source_counts_by_its_median():
    figures = engine_figures([[4.0, 5.0, 9.0], [2.0, 1.0, 2.0]], [10, 4])
    assert figures["harmonic_mean_GTEPS"] == pytest.approx(2e-9)
    assert figures["median_seconds"] == 3
    assert figures["quartile_seconds"] == [2, 4.75]
    assert (figures["min_seconds"], figures["max_seconds"]) == (1, 9)
    assert figures["seconds"] == [[4, 5, 9], [2, 1, 2]]


def test_no_edges_give_no_rate():
    with pytest.raises(ValidationError):
        engine_figures([[1.0]], [0])


def test_speedups_are_ratios_of_medians():
    engines = two_engines()
    add_speedups(engines, "slow")
    assert [engine["speedup"] for engine in engines] == [1, 2]
    add_speedups(engines, "fast")
    assert [engine["speedup"] for engine in engines] == [0.5, 1]


def test_limits_are_of_the_counted_sources():
    engines = two_engines()
    add_limits(engines, {"slow": [0.5]})
    slow, fast = engines
    assert (slow["limit_seconds"], slow["over_limit"]) == (0.5, 10)
    assert (fast["limit_seconds"], fast["over_limit"]) == (None, None)


def test_the_table(capsys):
    engines = two_engines()
    add_speedups(engines, "slow")
    add_limits(engines, {"slow": [0.5]})
    print_comparison({"engines": engines})
    head, slow, fast = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["engine", "median", "ms"]
    assert slow.split() == [
        "slow",
        "3000",
        "2000",
        "-",
        "4750",
        "1.778e-09",
        "1",
        "20",
        "10",
    ]
    assert fast.split()[-1] == "-"


def test_efficiency_is_over_the_fewest_threads():
    times = {("a", 2): 4.0, ("a", 8): 2.0, ("b", 2): 1.0, ("c", None): 1.0}
    engines = [
        {"series": name, "threads": threads, "median_seconds": seconds}
        for (name, threads), seconds in times.items()
    ]
    add_efficiency(engines)
    assert [engine["efficiency"] for engine in engines] == [1, 0.5, None, None]


def test_columns_without_values_are_left_out(capsys):
    engines = two_engines()
    add_speedups(engines, "slow")
    add_limits(engines, {})
    engines[0] |= {"repeats": 7.0, "joules": 0.25}
    engines[1] |= {"checks": None}
    one = {"engines": engines, "graph": {"title": "g", "vertices": 3, "edges": 2}}
    print_comparison({"comparisons": [one, one]})
    title, head, slow, fast, *_ = capsys.readouterr().out.splitlines()
    assert title == "g: 3 vertices, 2 edges"
    assert "repeats" in head
    assert "J a search" in head
    assert "efficiency" not in head
    assert slow.split()[-3:] == ["7", "-", "0.25"]
    assert fast.split()[-4:] == ["-"] * 4
