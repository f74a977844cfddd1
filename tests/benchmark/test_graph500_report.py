import json
import re
from dataclasses import replace

import pytest

from distbfs.benchmark.graph500_report import (
    BenchmarkFigures,
    SearchFigures,
    as_json,
    as_text,
)
from distbfs.errors import ValidationError

FIGURES = BenchmarkFigures(
    scale=10,
    edgefactor=16,
    generation_seconds=0.0123456789,
    construction_seconds=0.5,
    processes=2,
    searches=[
        SearchFigures(3, 0.001, 16384, 0.01),
        SearchFigures(5, 0.002, 16384, 0.02),
        SearchFigures(9, 0.004, 16384, 0.03),
    ],
    engine="openmp",
    parts=2,
    threshold=64,
    versions={"distbfs": "0.1"},
    machine={"cores": 2},
)

# The lines of the reference code's printf calls, with the values put in by hand.
GOLDEN = """\
SCALE:                          10
edgefactor:                     16
NBFS:                           3
graph_generation:               0.0123457
num_mpi_processes:              2
construction_time:              0.5
bfs  min_time:                  0.001
bfs  firstquartile_time:        0.001
bfs  median_time:               0.002
bfs  thirdquartile_time:        0.004
bfs  max_time:                  0.004
bfs  mean_time:                 0.00233333
bfs  stddev_time:               0.00152753
min_nedge:                      16384
firstquartile_nedge:            16384
median_nedge:                   16384
thirdquartile_nedge:            16384
max_nedge:                      16384
mean_nedge:                     16384
stddev_nedge:                   0
bfs  min_TEPS:                  4.096e+06
bfs  firstquartile_TEPS:        4.096e+06
bfs  median_TEPS:               8.192e+06
bfs  thirdquartile_TEPS:        1.6384e+07
bfs  max_TEPS:                  1.6384e+07
bfs  harmonic_mean_TEPS:     !  7.02171e+06
bfs  harmonic_stddev_TEPS:      3.25042e+06
bfs  min_validate:              0.01
bfs  firstquartile_validate:    0.01
bfs  median_validate:           0.02
bfs  thirdquartile_validate:    0.03
bfs  max_validate:              0.03
bfs  mean_validate:             0.02
bfs  stddev_validate:           0.01
# engine:                       openmp
# parts:                        2
# TH:                           64
# result:                       levels and parents
# validated together:           1 of 3
# version distbfs:              0.1
"""


def test_text_is_that_of_the_reference_code():
    assert as_text(FIGURES) == GOLDEN


def test_values_begin_in_column_33():
    for line in as_text(FIGURES).splitlines():
        assert re.fullmatch(r"(# )?[^:]*:( *| +!  )", line[:32])
        assert line[32] != " "


def test_large_counts_keep_eleven_digits():
    searches = [replace(x, nedge=4294921166) for x in FIGURES.searches]
    text = as_text(replace(FIGURES, searches=searches))
    assert "median_nedge:                   4294921166\n" in text


def test_one_search_has_no_deviation():
    one = replace(FIGURES, searches=FIGURES.searches[:1])
    assert "bfs  stddev_time:               nan\n" in as_text(one)
    values = json.loads(json.dumps(as_json(one), allow_nan=False))
    assert values["stddev_time"] is None
    assert values["harmonic_stddev_TEPS"] is None


def test_json_has_the_names_of_the_specification():
    values = json.loads(json.dumps(as_json(FIGURES)))
    order = ["min", "firstquartile", "median", "thirdquartile", "max"]
    names = {f"{x}_{y}" for x in [*order, "mean", "stddev"] for y in ("time", "nedge")}
    names |= {f"{x}_TEPS" for x in [*order, "harmonic_mean", "harmonic_stddev"]}
    names |= {"SCALE", "edgefactor", "NBFS", "construction_time"}
    assert names <= set(values)
    assert values["SCALE"] == 10
    assert values["NBFS"] == 3
    assert values["median_time"] == 0.002
    assert values["TH"] == 64
    assert values["engine"] == "openmp"
    assert values["parts"] == 2
    assert values["machine"] == {"cores": 2}
    assert values["searches"][1]["root"] == 5
    assert values["searches"][1]["TEPS"] == pytest.approx(8.192e6)
    assert values["validated"] is True


def test_levels_only_and_skipped_validation_are_said():
    searches = [SearchFigures(1, 0.1, 10), SearchFigures(2, 0.1, 10)]
    figures = replace(FIGURES, searches=searches, parents=False, threshold=None)
    text = as_text(figures)
    assert "# result:                       levels only\n" in text
    assert "# validation:                   skipped: not an official result\n" in text
    assert "# TH:                           none\n" in text
    assert "bfs  min_validate:              -1\n" in text


def test_wall_time_beside_that_of_a_device():
    walls = (0.002, 0.003, 0.005)
    pairs = zip(FIGURES.searches, walls, strict=True)
    searches = [replace(x, wall_seconds=wall) for x, wall in pairs]
    figures = replace(FIGURES, searches=searches, internal_ids=True)
    lines = as_text(figures).splitlines()
    assert lines[:33] == GOLDEN.splitlines()[:33]
    rate = 3 * 16384 / sum(walls)
    line_of_wall = f"# harmonic_mean_TEPS by wall:   {rate:g}, by the host's clock"
    assert line_of_wall in lines
    [ids] = [line for line in lines if line.startswith("# ids: ")]
    assert ids[32:] == "results in internal ids, not those of the input"
    values = as_json(figures)
    assert values["harmonic_mean_TEPS_by_wall"] == pytest.approx(rate)
    assert [x["wall_time"] for x in values["searches"]] == list(walls)
    assert (values["ids"], as_json(FIGURES)["ids"]) == ("internal", "input")
    assert as_json(FIGURES)["harmonic_mean_TEPS_by_wall"] is None


def test_a_root_in_a_small_component_is_told():
    tiny = SearchFigures(7, 0.0001, 1, 0.01)
    figures = replace(FIGURES, searches=[*FIGURES.searches, tiny])
    rate = 3 * 16384 / 0.007
    line = f"1; {rate:g} harmonic_mean_TEPS of the others"
    assert f"# roots in small components:    {line}\n" in as_text(figures)
    values = as_json(figures)
    assert values["harmonic_mean_TEPS_large"] == pytest.approx(rate)
    assert values["harmonic_mean_TEPS"] == pytest.approx(4 / (0.007 / 16384 + 0.0001))
    assert "small components" not in as_text(FIGURES)
    assert as_json(FIGURES)["harmonic_mean_TEPS_large"] is None


def test_an_invalid_run_has_no_figures():
    wrong = replace(FIGURES.searches[1], valid=False, error="rule 3: 1 tuples")
    figures = replace(FIGURES, searches=[FIGURES.searches[0], wrong])
    for make in (as_text, as_json):
        with pytest.raises(ValidationError, match=r"1 of 2 .* root 5: rule 3"):
            make(figures)
