"""Plots from result files."""

import json
import sys

import pytest

from distbfs.benchmark import compare_plots
from distbfs.errors import LibraryMissing, UsageError
from distbfs.report import plots

VALUES = {
    "graph": {"title": "kronecker 20", "vertices": 1 << 20, "edges": 15_500_000},
    "baseline": "openmp",
    "engines": [
        {"engine": "openmp", "median_seconds": 0.002, "speedup": 1.0},
        {"engine": "reference", "median_seconds": 0.4, "speedup": 0.005},
    ],
}
HEADS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.mark.thorough
@pytest.mark.parametrize("kind", plots.KINDS)
def test_bars_from_a_result_file(kind, tmp_path):
    pytest.importorskip("matplotlib")
    windows = "matplotlib.pyplot" in sys.modules  # other libraries may ask for it
    (tmp_path / "result.json").write_text(json.dumps(VALUES))
    path = tmp_path / f"bars{kind}"
    plots.check_target(path)
    values = json.loads((tmp_path / "result.json").read_text())
    compare_plots.draw_panels(values, path)
    assert path.read_bytes().startswith(HEADS[kind])
    assert ("matplotlib.pyplot" in sys.modules) == windows


def test_a_file_that_cannot_be_written(tmp_path):
    pytest.importorskip("matplotlib")
    (tmp_path / "bars.png").mkdir()
    with pytest.raises(UsageError, match=r"bars\.png is a folder; give the name"):
        compare_plots.draw_panels(VALUES, tmp_path / "bars.png")


@pytest.fixture
def drawn(monkeypatch):
    """The figure that is drawn, in place of a file."""
    pytest.importorskip("matplotlib")
    figures = []
    for module in (plots, compare_plots):
        monkeypatch.setattr(module, "write", lambda figure, _: figures.append(figure))
    return figures


def survey(degrees, sizes):
    return {
        "store": "some/where/web",
        "vertices": 9,
        "edges": 10,
        "directed": False,
        "degrees": {"degree": list(degrees), "vertices": list(degrees.values())},
        "components": {
            "count": sum(sizes.values()),
            "largest": sorted(sizes)[::-1],
            "size": list(sizes),
            "components": list(sizes.values()),
        },
        "diameter": {"at_least": 3, "searches": 2},
    }


def boxes(figure):
    """Return the places of the labels on each axis, as they are drawn."""
    agg = pytest.importorskip("matplotlib.backends.backend_agg")
    agg.FigureCanvasAgg(figure).draw()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            labels = [*axis.get_ticklabels(), *axis.get_ticklabels(minor=True)]
            shown = [x for x in labels if x.get_text() and x.get_visible()]
            yield [x.get_window_extent() for x in shown]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "degrees", [{1: 2, 2: 5, 3: 3, 4: 1}, {7: 9}, {1: 10**6, 40_000: 3}, {0: 3}]
)
def test_labels_of_a_survey_do_not_touch(drawn, degrees):
    plots.draw_survey(survey(degrees, {1: 4, 5: 1}), "x.png")
    for row in boxes(drawn[0]):
        for k, one in enumerate(row):
            assert not any(one.overlaps(other) for other in row[k + 1 :])


def test_small_counts_are_all_labelled(drawn):
    plots.draw_survey(survey({1: 2, 2: 5, 3: 3, 4: 1}, {9: 1}), "x.png")
    [axes] = drawn[0].axes
    for axis, most in ((axes.xaxis, 4), (axes.yaxis, 5)):
        list(boxes(drawn[0]))  # which draws the labels
        low, high = axis.get_view_interval()
        ticks = [x for x in axis.get_major_ticks() if low <= x.get_loc() <= high]
        words = {x.label1.get_text() for x in ticks}
        assert {str(k) for k in range(1, most + 1)} <= words
        assert all(word.isdecimal() for word in words)


def test_components_of_one_size_are_told_in_words(drawn):
    plots.draw_survey(survey({4: 9}, {9: 1}), "x.png")
    plots.draw_survey(survey({1: 8}, {2: 4}), "x.png")
    plots.draw_survey(survey({1: 8}, {2: 3, 3: 1}), "x.png")
    titles = [figure.get_suptitle() for figure in drawn]
    assert [len(figure.axes) for figure in drawn] == [1, 1, 2]
    assert titles[0].splitlines() == [
        "web: 9 vertices, 10 edges",
        "one component; diameter at least 3",
    ]
    assert "4 components of 2 vertices each" in titles[1]
    assert "4 components, the largest of 3 vertices" in titles[2]


def compared(title, threads):
    """Return a comparison of two engines and a library."""
    rows = [("openmp", k, 4e-3 / k) for k in threads] + [("scipy", None, 6e-3)]
    return {
        "graph": {"title": title, "vertices": 9, "edges": 10},
        "baseline": "openmp",
        "engines": [
            {
                "engine": f"{name}:threads={k}" if len(threads) > 1 and k else name,
                "series": name,
                "threads": k,
                "median_seconds": seconds,
                "speedup": 4e-3 / seconds,
                "efficiency": 1.0 if k and len(threads) > 1 else None,
                "harmonic_mean_GTEPS": 1e-9 / seconds,
            }
            for name, k, seconds in rows
        ],
    }


def test_lines_over_threads(drawn):
    values = {"comparisons": [compared(x, (1, 2, 4)) for x in ("in/road", "web")]}
    compare_plots.draw_panels(values, "x.png", ("time", "speedup", "efficiency"))
    [figure] = drawn
    time, speedup, efficiency = figure.axes[:3]
    assert [axes.get_title("left") for axes in figure.axes[::3]] == [
        "road: 9 vertices, 10 edges",
        "web: 9 vertices, 10 edges",
    ]
    lines = [{x.get_label(): x for x in axes.lines} for axes in (time, speedup)]
    assert lines[0].keys() == {"openmp", "scipy"}
    assert set(lines[0]["scipy"].get_ydata()) == {6.0}
    assert lines[1].keys() == {"openmp", "ideal"}
    assert list(lines[1]["ideal"].get_ydata()) == [1, 2, 4]
    assert list(efficiency.lines[-1].get_ydata()) == [1, 1, 1]
    [legend] = figure.legends
    names = [x.get_text() for x in legend.get_texts()]
    assert sorted(names) == ["ideal", "openmp", "scipy"]


def test_bars_have_one_legend(drawn):
    values = {"comparisons": [compared(x, (2,)) for x in ("in/road", "web")]}
    compare_plots.draw_panels(values, "x.png", ("time", "speedup"))
    [figure] = drawn
    [legend] = figure.legends
    assert [x.get_text() for x in legend.get_texts()] == ["openmp", "scipy"]
    labels = [x.get_text() for x in figure.axes[0].get_xticklabels()]
    assert labels == ["road", "web"]
    assert figure.axes[1].get_ylabel() == "speed-up over openmp"


def test_bars_of_one_graph(drawn):
    compare_plots.draw_panels(VALUES, "x.png")
    time, speedup = drawn[0].axes
    assert [bar.get_height() for bar in time.patches] == [2.0, 400.0]
    assert [bar.get_height() for bar in speedup.patches] == [1.0, 0.005]
    assert time.get_ylabel() == "median time, ms"
    assert time.get_title("left") == "kronecker 20: 1048576 vertices, 15500000 edges"


def test_matplotlib_is_missing(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(LibraryMissing, match=r"pip install '\.\[plot\]'") as caught:
        plots.check_target(tmp_path / "x.png")
    assert caught.value.exit_code == 3


def test_lines_and_bars_differ_without_colours(drawn):
    several = [compared(x, (1, 2)) for x in ("road", "web")]
    for comparison in several:
        more = [x | {"series": "reference"} for x in comparison["engines"][:2]]
        comparison["engines"] += more
    compare_plots.draw_panels({"comparisons": several}, "x.png", ("time",))
    one = [compared(x, (1,)) for x in ("road", "web")]
    compare_plots.draw_panels({"comparisons": one}, "x.png", ("time",))
    lines = [x.get_marker() for x in drawn[0].axes[0].get_lines()][:2]
    bars = {x.patches[0].get_hatch() for x in drawn[1].axes[0].containers}
    assert len(set(lines)) == len(lines) == len(bars) == 2
