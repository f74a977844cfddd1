"""A table of arrays allocates what it counts, but for what is allocated later."""

import numpy as np

from distbfs.device.array_table import ArrayPlan, allocate, total_bytes


def test_what_is_allocated_is_what_was_counted():
    table = {
        "one": ArrayPlan(np.uint32, 7),
        "rows": ArrayPlan("f8", (3, 5)),
        "none": ArrayPlan(np.uint64, (4, 0, 2)),
        "two": [ArrayPlan(np.dtype("i2"), (3,))] * 2,
        "empty": [ArrayPlan(np.int8, 9)] * 0,
    }
    arrays = allocate(table, np.zeros)
    assert (arrays["one"].shape, arrays["rows"].shape) == ((7,), (3, 5))
    assert [x.shape for x in arrays["two"]] == [(3,), (3,)]
    assert "empty" not in arrays
    for name, plans in table.items():
        made = arrays.get(name, [])
        pairs = (
            zip(plans, made, strict=True)
            if isinstance(plans, list)
            else [(plans, made)]
        )
        for planned, array in pairs:
            assert array.dtype == np.dtype(planned.dtype)
            assert array.nbytes == planned.nbytes
    assert total_bytes(table) == 7 * 4 + 15 * 8 + 2 * 6
    later = table | {"more": [ArrayPlan(np.uint8, (2, 3), later=True)] * 4}
    assert allocate(later, np.zeros).keys() == arrays.keys()
    assert total_bytes(later) == total_bytes(table) + 24
