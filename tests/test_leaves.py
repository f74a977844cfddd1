"""The small modules that everything stands on."""

from itertools import pairwise
from operator import attrgetter
from typing import Protocol

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distbfs import errors, timing, types
from distbfs.timing import Stopwatch
from distbfs.types import slice_bounds


@given(st.integers(0, 1 << 60), st.integers(1, 50))
def test_slices_cover_everything_evenly(total, pieces):
    bounds = [slice_bounds(total, pieces, k) for k in range(pieces)]
    assert bounds[0][0] == 0
    assert bounds[-1][1] == total
    assert all(a[1] == b[0] for a, b in pairwise(bounds))
    sizes = {stop - start for start, stop in bounds}
    assert max(sizes) - min(sizes) <= 1


def test_stopwatch_adds_up(monkeypatch):
    times = iter([1.0, 1.5, 2.0, 4.0, 5.0, 6.0])
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(times))
    clock = Stopwatch()
    with clock("a"):
        pass
    with clock("b"), pytest.raises(ValueError, match="x"), clock("a"):
        raise ValueError("x")
    assert clock.seconds == {"a": 1.5, "b": 4.0}
    assert clock.get("none") == 0


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (errors.DistbfsError, 1),
        (errors.ValidationError, 1),
        (errors.UsageError, 2),
        (errors.InputError, 2),
        (errors.StoreError, 2),
        (errors.LaunchError, 2),
        (errors.ResourceError, 3),
        (errors.CompilerMissing, 3),
    ],
)
def test_exit_codes(kind, code):
    assert issubclass(kind, errors.DistbfsError)
    assert kind("why").exit_code == code


def test_no_phase_counts_the_time_of_compiling(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(timing.time, "perf_counter", lambda: now[0])
    aside = timing.Aside()
    monkeypatch.setattr(timing, "COMPILING", aside)
    watch = timing.Stopwatch()
    with watch("build"):
        now[0] += 1
        with aside():
            now[0] += 10
            with aside():  # another thread
                now[0] += 100
                assert timing.clock() == 1
        now[0] += 2
    assert watch.get("build") == 3
    assert aside.seconds == 110


@pytest.mark.parametrize(
    ("protocol", "name"),
    [
        (types.DeviceArray, "ndarray"),
        (types.Device, "cuda.Device"),
        (types.DeviceMemory, "cuda.MemoryPointer"),
        (types.Stream, "cuda.Stream.null"),
        (types.Event, "cuda.Event"),
    ],
)
def test_arrays_of_devices_have_what_their_protocol_says(protocol, name):
    kind = attrgetter(name)(pytest.importorskip("cupy"))
    members = set(vars(protocol)) - set(vars(EmptyProtocol))
    assert members
    assert [member for member in sorted(members) if not hasattr(kind, member)] == []


class EmptyProtocol(Protocol):
    pass
