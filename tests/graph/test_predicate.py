"""Conditions on columns, beside the same comparisons of NumPy."""

import numpy as np
import pytest

from distbfs.errors import UsageError
from distbfs.formats.attributes import values_of_column
from distbfs.graph.predicate import Predicate

CONDITIONS = ["w <= 0.1", "w == 0.2", "w > -1", "w < 300", "w < 1e39", "w != 1e400"]
HUGE = ["w < 1" + "0" * 30, "w > -1" + "0" * 30, "w == 18446744073709551616"]
TYPES = ["f2", "f4", "f8", ">f4", "i1", "i8", "u1", "u8", "?"]


def held(where, column):
    kept = values_of_column("w", column)
    return Predicate(where).of({"w": kept}, len(column)).tolist()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_numbers_compare_in_the_type_of_the_column(dtype):
    last = 2 if dtype.startswith("u") else -1
    column = np.array([0.1, 0.2, 0.3, 1, 127, last]).astype(dtype)
    for where in CONDITIONS + (HUGE if dtype != "?" else []):
        assert held(where, column) == eval(where, {"w": column}).tolist(), where
    tenth = (column == 0.1) | (column == 1)
    assert held("w in (0.1, 1)", column) == tenth.tolist()


def test_text_of_numbers_that_no_column_holds():
    huge = "1" + "0" * 400
    assert held(f"w < {huge}", np.array([1, 2])) == [True, True]
    with pytest.raises(UsageError, match=r"is beyond 1\.8e308, the largest of w"):
        held(f"w not in (1, {huge})", np.array([1.0]))
