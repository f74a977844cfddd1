"""The cores that quotas of control groups leave."""

import os

import pytest

from distbfs.device import cc, control_groups


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """Make this process a member of /job/step; files are written by the test."""
    monkeypatch.setattr(control_groups, "CGROUP", tmp_path)
    monkeypatch.setattr(control_groups, "MEMBERSHIP", tmp_path / "cgroup")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)

    def write(controllers, **files):
        member = f"7:memory:/job\n3:{controllers}:/job/step\n"
        (tmp_path / "cgroup").write_text(member)
        for name, text in files.items():
            place, _, file = name.rpartition("__")
            folder = tmp_path / controllers / place.replace("_", "/")
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"cpu.{file}").write_text(f"{text}\n")
        return control_groups.usable_cores()

    return write


@pytest.mark.parametrize(
    ("quota", "cores"),
    [("max 100000", 8), ("250000 100000", 2), ("50000 100000", 1), ("1600000 1", 8)],
)
def test_quotas_of_one_tree(groups, quota, cores):
    assert groups("", job_step__max=quota) == cores
    assert cc.thread_count() == cores
    assert cc.thread_count(5) == 5


def test_the_smallest_quota_up_to_the_root_counts(groups):
    assert groups("", job__max="300000 100000", job_step__max="max 100000") == 3


@pytest.mark.parametrize(("quota", "cores"), [(-1, 8), (400000, 4)])
def test_quotas_of_a_controller(groups, quota, cores):
    files = {"job_step__cfs_quota_us": quota, "job_step__cfs_period_us": 100000}
    assert groups("cpu,cpuacct", **files) == cores


def test_without_groups(groups):
    assert groups("") == 8
    control_groups.MEMBERSHIP.unlink()
    assert control_groups.usable_cores() == 8
