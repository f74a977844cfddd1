"""Mutations fit their lines and name tests, and what their script makes of a run."""

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# tests of a small tree, of which one parameter is left out of the quick tier
TESTS = """
import a, pytest

def test_one():
    assert a.one() == 1

@pytest.mark.parametrize("k", [0, pytest.param(3, marks=pytest.mark.thorough)])
def test_both(k):
    assert a.two() == a.one() + 1 or not k

def test_wrong():
    assert a.one() == 2
"""


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    yield importlib.import_module("mutations")
    sys.modules.pop("mutations")


@pytest.fixture
def tree(script, tmp_path, monkeypatch):
    """A function that writes a tree of one file of code, ``a``, beside some tests."""
    monkeypatch.setattr(script, "ROOT", tmp_path)
    for folder in ("tests/here", "tests/there"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "test_twice.py").write_text("def test_in_two(): pass\n")
    (tmp_path / "tests/here/test_it.py").write_text(TESTS)
    (tmp_path / "README.md").write_text("")

    def write(text, name="a.py"):
        (tmp_path / name).write_text(text)
        return script.mutations()

    def tracked():
        return sorted(
            str(x.relative_to(tmp_path)) for x in tmp_path.rglob("*") if x.is_file()
        )

    monkeypatch.setattr(script, "tracked", tracked)
    return write


def test_every_mutation_can_be_made_and_names_its_tests(script):
    every = script.mutations()
    assert [f"{x.name}: {x.fault}" for x in every if x.fault] == []
    assert len(every) >= 345


C = """
/* mutant: 2 -> 3 : test_it */
/* mutant: > 2 ->
 * : here/test_twice::test_in_two, test_both[0] */
if (n > 2) n -> x : y; /* more */
n = 2; /* mutant: = 2; -> : test_one */ \\
"""
PYTHON = """
    # mutant: n > 2 ->
    #   n < 3 : test_it
    if n > 2:  # more
        n = {1: n}  # mutant: 1: n -> 2 : 3 : test_one
"""


def test_the_line_is_that_of_the_comment_or_the_next_one(tree):
    first, second, third = tree(C, "a.c")
    here = "tests/here/"
    assert (first.name, first.before, first.after) == ("a.c:5", "2", "3")
    assert first.tests == (f"{here}test_it.py",)
    assert (second.name, second.before, second.after) == ("a.c:5", "> 2", "")
    both = (f"{here}test_twice.py::test_in_two", f"{here}test_it.py::test_both[0]")
    assert second.tests == both
    assert second.made(C) == C.replace("(n > 2)", "(n )")
    assert third.made(C) == C.replace("n = 2;", "n ")
    assert [x.fault for x in (first, second, third)] == ["", "", ""]


def test_comments_of_python(tree):
    first, second = tree(PYTHON)
    assert (first.name, second.name) == ("a.py:4", "a.py:5")
    assert (first.fault, second.fault) == ("", "")
    assert first.made(PYTHON) == PYTHON.replace("if n > 2", "if n < 3")
    assert second.made(PYTHON) == PYTHON.replace("{1: n}", "{2 : 3}")


@pytest.mark.parametrize(
    ("comment", "why"),
    [
        ("1 -> 2 : test_it", "does not have '1' once"),
        ("7 -> 8 : test_it", "does not have '7' once"),
        ("x -> x : test_it", "it changes nothing"),
        ("x -> y", "no 'OLD -> NEW : test'"),
        ("x to y : test_it", "no 'OLD -> NEW : test'"),
        ("x -> y : test_none", "0 tests have the name test_none, not one"),
        ("x -> y : test_it::test_two", "0 tests have the name test_it::test_two"),
        ("x -> y : test_twice", "2 tests have the name test_twice, not one"),
        ("x -> y : test_in_two", "2 tests have the name test_in_two, not one"),
        ("x -> y : test_it, test_on", "0 tests have the name test_on, not one"),
    ],
)
def test_a_mutation_that_does_not_fit_says_why(tree, comment, why):
    (mutation,) = tree(f"x = 11  # mutant: {comment}\n")
    assert why in mutation.fault
    assert mutation.name == "a.py:1"


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


@pytest.mark.thorough
@pytest.mark.slow
def test_states(script, tree, tmp_path, monkeypatch, capsys):
    helpers = ("conftest", "tiers", "covering", "unchanged", "closures")
    for name in (f"{x}.py" for x in helpers):
        text = (ROOT / "tests" / name).read_text()
        (tmp_path / "tests" / name).write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = thorough\n")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "xdist.plugin")
    tree(
        "def one(): return 1  # mutant: return -> 1 / 0 ; : test_both\n\n"
        "def two(): return 2  # mutant: 2 -> 3 : test_both\n\n"
        "# mutant: 4 -> 3 : test_both\n"
        "# mutant: 4 -> 3 : test_wrong\n"
        "def four(): return 4\n"
    )
    assert script.main(["--jobs", "2", "--json", str(tmp_path / "report.json")]) == 2
    out, err = capsys.readouterr()
    assert "1 killed, 1 not quick, 1 lives, 1 broken" in out
    assert "not quick a.py:3" in out
    assert (
        "test_wrong fail without a mutation: tests/here/test_it.py::test_wrong" in out
    )
    assert "broken" in err
    assert "test_it.py::test_both[3]" in (tmp_path / "report.json").read_text()


@pytest.mark.parametrize(
    ("states", "code"),
    [
        (["killed", "killed"], 0),
        (["killed", "not quick"], 1),
        (["lives", "killed"], 1),
        (["lives", "broken"], 2),
    ],
)
def test_exit_codes(script, tree, monkeypatch, states, code):
    tree("x = 1  # mutant: 1 -> 3 : test_one\n")
    rows = [{"state": state} for state in states]
    monkeypatch.setattr(script, "try_all", lambda chosen, jobs: rows)
    assert script.main(["a.py:1"]) == code
    assert script.main(["--list", "*.py:*"]) == 0
    assert script.main(["b.py:1"]) == 2


def test_what_cannot_be_made_is_not_run(script, tree, capsys):
    tree("x = 1  # mutant: 2 -> 3 : test_one\n")
    assert script.main([]) == 2
    assert "a.py:1: its line does not have '2' once" in capsys.readouterr().err
