"""The table of mutations fits the tree, and what its script makes of a run."""

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    yield importlib.import_module("mutations")
    for name in ("mutations", "mutation_table"):
        sys.modules.pop(name, None)


def test_every_mutation_can_be_made_and_names_its_tests(script):
    faults = [why for x in script.MUTATIONS if (why := script.fits(x, ROOT))]
    assert faults == []
    names = [mutation.name for mutation in script.MUTATIONS]
    assert len(names) == len(set(names)) >= 45


def test_a_mutation_that_does_not_fit_is_named(script, tmp_path):
    def why(**changed):
        fields = {"name": "x", "file": "a.py", "before": "one", "after": "two"}
        fields |= {"breaks": "it", "tests": ("t.py::test_it",), **changed}
        return script.fits(script.Mutation(**fields), tmp_path)

    assert why() == "x: no file a.py"
    (tmp_path / "a.py").write_text("one one three\n")
    assert why() == "x: a.py has its text 2 times, not once"
    assert why(before="three", after="three") == "x: it changes nothing"
    assert why(before="three") == "x: no file t.py"
    (tmp_path / "t.py").write_text("def test_other(): pass\n")
    assert why(before="three") == "x: no test t.py::test_it"
    (tmp_path / "t.py").write_text("def test_it(a): pass\n")
    assert why(before="three", tests=("t.py::test_it[1]",)) == ""


@pytest.mark.parametrize(
    ("code", "test", "text", "wanted"),
    [
        (0, "", "3 passed", ("lives", "")),
        (1, "t.py::test_it", "FAILED t.py::test_it", ("killed", "t.py::test_it")),
        (None, "", "", ("killed", "a run of more than 9 s")),
        (-11, "", "", ("killed", "signal SIGSEGV")),
        (1, "t.py::a", "x.cpp:3: error: no y", ("broken", "x.cpp:3: error: no y")),
        (5, "", "no tests ran", ("broken", "pytest: no tests ran")),
    ],
)
def test_verdicts(script, code, test, text, wanted):
    assert script.judge(script.Run(code, test, 3, 1.0, text), 9.0) == wanted


@pytest.mark.slow
def test_one_that_lives_ends_with_1_and_broken_tests_with_2(
    script, tmp_path, monkeypatch, capsys
):
    (tmp_path / "a.py").write_text("def one(): return 1\n\n\ndef two(): return 2\n")
    (tmp_path / "t.py").write_text(
        "import a\n\n\ndef test_one():\n    assert a.one() == 1\n\n\n"
        "def test_wrong():\n    assert a.one() == 2\n"
    )

    def copy(target):
        target.mkdir()
        for name in ("a.py", "t.py"):
            (target / name).write_text((tmp_path / name).read_text())

    def mutation(name, before, test="test_one"):
        tests = (f"t.py::{test}",)
        return script.Mutation(name, "a.py", before, "return 3", "a value", tests)

    monkeypatch.setattr(script, "ROOT", tmp_path)
    monkeypatch.setattr(script, "copy_tree", copy)
    table = [mutation("killed", "return 1"), mutation("lives", "return 2")]
    table.append(mutation("wrong", "return 2", "test_wrong"))
    monkeypatch.setattr(script, "MUTATIONS", table)
    report = tmp_path / "report.json"
    assert script.main(["killed", "--json", str(report)]) == 0
    assert "t.py::test_one" in report.read_text()
    assert script.main(["killed", "lives", "--jobs", "2"]) == 1
    assert "lives   lives" in capsys.readouterr().out
    assert script.main(["wrong"]) == 2
    assert "fail without a mutation" in capsys.readouterr().err
    assert script.main(["none"]) == 2
    assert script.main(["--list"]) == 0
