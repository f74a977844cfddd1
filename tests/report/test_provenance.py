"""What stands beside figures so that they can be repeated."""

import json

import pytest

from distbfs.report import provenance


@pytest.fixture(autouse=True)
def no_commit_given(monkeypatch):
    monkeypatch.delenv("DISTBFS_COMMIT", raising=False)


def test_what_is_told():
    facts = provenance.provenance(["distbfs", "compare", "my graph"], device=False)
    assert facts["command"] == "distbfs compare 'my graph'"
    assert set(facts) == {"command", "date", "commit", "versions", "machine"}
    assert json.loads(json.dumps(facts)) == facts


def test_a_commit_that_is_given(monkeypatch):
    monkeypatch.setenv("DISTBFS_COMMIT", "abc")
    assert provenance.commit() == "abc"


def test_another_repository_is_not_ours(monkeypatch, tmp_path):
    monkeypatch.setattr(provenance.distbfs, "__file__", str(tmp_path / "a" / "x.py"))
    assert provenance.commit() is None


def test_the_driver_in_a_text(monkeypatch, tmp_path):
    path = tmp_path / "version"
    path.write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Tue\n")
    monkeypatch.setattr(provenance, "DRIVER", path)
    assert provenance.driver_version() == "580.159.04"
    monkeypatch.setattr(provenance, "DRIVER", tmp_path / "none")
    assert provenance.driver_version() is None
