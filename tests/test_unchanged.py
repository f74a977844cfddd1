"""Tests that passed with the same content are left out, where a run asks for it."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import closures
import pytest
import unchanged
from closures import Tree

ROOT = Path(__file__).resolve().parents[1]
FILES = {
    "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-p no:cacheprovider'\n",
    "distbfs/__init__.py": "",
    "distbfs/top.py": "def function():\n    from distbfs import inner\n",
    "distbfs/inner.py": "SIZE = 3\n",
    "distbfs/inner.cu": '#include "inner.cuh"\n',
    "distbfs/inner.cuh": "int size;\n",
    "distbfs/data/page.html": "<p>\n",
    "distbfs/room/__init__.py": "",
    "distbfs/room/other.py": "ORDER = 3\n",
    "docs/page.md": "text\n",
    "tests/conftest.py": "import pytest\n",
    "tests/helper.py": "from distbfs.top import function\n",
    "tests/here/test_top.py": "from helper import function\n",
    "tests/test_other.py": "NAME = 'distbfs.room.other:ORDER'\n",
    "tests/test_tree.py": "import subprocess\n",
}
ALL = {"top", "other", "tree"}


@pytest.fixture(scope="module")
def changing(tmp_path_factory):
    """A tree that tests change one after the other, and its keys."""
    tree = made(tmp_path_factory.mktemp("tree"))
    keys = Tree(tree).keys()
    assert Tree(tree).keys() == keys
    return tree, keys


@pytest.fixture
def tree(tmp_path):
    """A folder with a tree of a few files, in git."""
    return made(tmp_path)


def made(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / ".gitignore").write_text("__pycache__\n")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "text", "changed"),
    [
        ("distbfs/inner.cuh", "// a comment\n", {"tree"}),
        ("distbfs/inner.cuh", "int more;\n", {"top", "tree"}),
        ("distbfs/inner.cu", "int more;\n", {"top", "tree"}),
        ("distbfs/inner.py", "# a comment\n", {"tree"}),
        ("distbfs/inner.py", "SIZE = 4\n", {"top", "tree"}),
        ("distbfs/inner.py", "SIZE += SIZE\n", {"top", "tree"}),
        ("distbfs/data/page.html", "<p>\n", {"top", "tree"}),
        ("distbfs/room/other.py", "SIZE = 4\n", {"other", "tree"}),
        ("distbfs/room/other.c", "int new;\n", {"other", "tree"}),
        ("distbfs/room/new.py", "SIZE = 4\n", {"tree"}),
        ("tests/helper.py", "SIZE = 4\n", {"top", "tree"}),
        ("tests/here/conftest.py", "SIZE = 4\n", {"top", "tree"}),
        ("tests/here/test_top.py", "def test(): pass\n", {"top", "tree"}),
        ("tests/conftest.py", "SIZE = 4\n", ALL),
        ("docs/page.md", "more\n", {"tree"}),
        ("pyproject.toml", "# a comment\n", ALL),
    ],
)
def test_keys_change_with_the_closure(changing, name, text, changed):
    tree, keys = changing
    before = dict(keys)
    with (tree / name).open("a") as file:
        file.write(text)
    after = Tree(tree).keys()
    keys.update(after)
    differ = {re.search(r"test_(\w+)", x)[1] for x in before if before[x] != after[x]}
    assert differ == changed


def test_sets_are_in_no_order():
    """Those of texts have another in each process."""
    parts = [
        closures.parts_of(compile(f"1 in {values}", "", "exec"))
        for values in ("{0, 8}", "{8, 0}", "{0, 9}")
    ]
    assert parts[0] == parts[1] != parts[2]


def test_keys_change_with_the_machine(tree, monkeypatch):
    before = Tree(tree).keys()
    monkeypatch.setenv("DISTBFS_CC", "none")
    assert not {*before.values()} & {*Tree(tree).keys().values()}


@pytest.fixture(scope="module")
def here():
    return Tree(ROOT)


def test_all_imports_are_in_closures(here):
    """As the syntax tree has them; of two rooms."""
    names = [x for x in here.modules if re.match(r"distbfs\.(search|exchange)\.", x)]
    assert len(names) > 50
    for name in names:
        needs, nodes = here.node(here.modules[name])[1], []
        nodes = ast.walk(ast.parse(here.modules[name].read_text()))
        for node in nodes:
            if isinstance(node, ast.ImportFrom):
                inner = {f"{node.module}.{x.name}" for x in node.names}
                wanted = inner & here.modules.keys() or {node.module}
                assert {here.modules[x] for x in wanted & here.modules.keys()} <= needs


@pytest.mark.parametrize(
    ("names", "texts", "held", "module"),
    [
        ({"ENGINES"}, (), (), "engines.cuda.pan.engine"),
        ({"distbfs"}, (), {"bfs"}, "search.breadth_first"),
        ({"distbfs.device"}, (), {"cuda"}, "device.cuda"),
        ({"distbfs", "cuda_bits"}, (), {"multisearch"}, "multisearch.cuda_bits"),
        ((), {"distbfs.exchange.nccl_link.nccl_problem"}, (), "exchange.nccl_link"),
        ((), {"distbfs.search.open:open"}, (), "search.open"),
        ((), {"distbfs.cli.options."}, (), "cli.options.bfs"),
    ],
)
def test_named_modules(here, names, texts, held, module):
    files = here.named({*names}, {*texts}, {*held})
    assert here.modules[f"distbfs.{module}"] in files


@pytest.mark.parametrize(
    ("test", "bounded", "names"),
    [
        ("engines/test_whole_graphs", True, ["distbfs/engines/cuda/xbfs/engine.py"]),
        ("engines/emulated/test_until", True, ["tests/engines/emulated/conftest.py"]),
        ("report/test_scripts", False, []),
        ("cli/test_bfs", False, []),
        ("cli/test_info", True, ["distbfs/__main__.py", closures.FAULTS]),
        ("benchmark/test_libraries", True, ["distbfs/networkx_backend/info.py"]),
        ("plan/test_search_time", False, []),
        ("test_layering", False, []),
    ],
)
def test_closures_of_these_tests(here, test, bounded, names):
    closure = here.closure(ROOT / f"tests/{test}.py")
    assert bounded == (ROOT not in closure)
    assert {ROOT / name for name in names} <= closure.keys()


OUTCOMES = {  # of the phases of tests
    "passes": ["passed"] * 3,
    "skipped": ["passed", "skipped", "passed"],
    "fails": ["passed", "failed", "passed"],
    "ends_ill": ["passed", "passed", "failed"],
    "interrupted": ["passed", "passed"],
}


def run(path, tests, changed=0.0):
    """Run tests, {file: names}, and return which a next run leaves out."""
    known = SimpleNamespace(
        keys=lambda: {name: f"key of {name}" for name in tests},
        last_change=lambda: changed,
    )
    passed = unchanged.Passed(known, path)
    for file, names in tests.items():
        for name in names:
            for outcome in OUTCOMES[name]:
                report = SimpleNamespace(nodeid=f"{file}::{name}", outcome=outcome)
                passed.pytest_runtest_logreport(report)
    passed.pytest_sessionfinish(SimpleNamespace(), 0)
    assert bool(passed.problem) == bool(changed)
    nodeids = [f"{file}::{name}" for file, names in tests.items() for name in names]
    items, gone = [SimpleNamespace(nodeid=x) for x in nodeids], []

    def deselected(items):
        gone.extend(items)

    config = SimpleNamespace(
        option=SimpleNamespace(leave_out_unchanged=True),
        workerinput={"passed": unchanged.Passed(known, path).before},
        workeroutput={},
        pluginmanager=SimpleNamespace(get_plugin=lambda _: None),
        hook=SimpleNamespace(pytest_deselected=deselected),
    )
    unchanged.leave_out(config, items)
    assert len(items) + len(gone) == len(nodeids)
    assert config.workeroutput["left_out"][0] == len(gone)
    return {x.nodeid for x in gone}


def test_what_passed_is_left_out(tmp_path):
    tests = {"a.py": ["passes", "skipped", "interrupted"], "b.py": ["passes"]}
    assert run(tmp_path / "list", tests) == {"a.py::passes", "b.py::passes"}
    assert run(tmp_path / "list", {"a.py": []}) == set()
    assert run(tmp_path / "list", {**tests, "b.py": []}) == {"a.py::passes"}


@pytest.mark.parametrize("failure", ["fails", "ends_ill"])
def test_files_with_failures_are_run_again(tmp_path, failure):
    tests = {"a.py": ["passes", failure], "b.py": ["passes"]}
    assert run(tmp_path / "list", tests) == {"b.py::passes"}


def test_changes_during_a_run(tmp_path):
    assert not run(tmp_path / "list", {"a.py": ["passes"]}, changed=float("inf"))


def test_unsound_lists_are_empty(tmp_path):
    path = tmp_path / "list"
    path.write_text("{")
    assert unchanged.load(path) == {}
    path.write_text("{}")
    path.chmod(0o666)
    assert unchanged.load(path) == {}
    assert not path.exists()


def test_old_keys_are_dropped(tmp_path, monkeypatch):
    monkeypatch.setattr(unchanged, "MOST", 2)
    for name in ("a.py", "b.py", "a.py", "c.py"):
        run(tmp_path / "list", {name: ["passes"]})
    assert {*unchanged.load(tmp_path / "list")} == {"key of a.py", "key of c.py"}


def test_refusals(tmp_path):
    for quick, message in ((False, "needs --quick"), (True, "without --with-mpi")):
        option = {"leave_out_unchanged": True, "quick": quick, "with_mpi": True}
        with pytest.raises(pytest.UsageError, match=message):
            unchanged.configure(SimpleNamespace(option=SimpleNamespace(**option)))
    done = subprocess.run(
        [ROOT / "scripts" / "test", "--all", "-x", unchanged.OPTION],
        capture_output=True,
        text=True,
        env={"VENV": str(tmp_path / "none"), "PATH": os.environ["PATH"]},
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("scripts/test: --all has all cases")


TESTS = """
import os, pytest

def test_passes():
    pass

@pytest.mark.parametrize("k", range(3))
def test_each(k):
    assert not os.environ["WRONG"]
"""


@pytest.mark.thorough
def test_runs(tree, monkeypatch):
    """One by itself, then by two processes."""
    for name in ("conftest", "tiers", "covering", "unchanged", "closures"):
        text = (ROOT / "tests" / f"{name}.py").read_text()
        (tree / "tests" / f"{name}.py").write_text(text)
    (tree / "tests" / "test_it.py").write_text(TESTS)
    (tree / "distbfs").rename(tree / "package")  # the one of this tree is tested
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("DISTBFS_CACHE", str(tree / ".git" / "cache"))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "xdist.plugin")
    command = [sys.executable, "-m", "pytest", "tests/test_it.py", "--quick"]
    for processes, wrong, tests in ((0, "1", 0), (0, "", 0), (2, "", 4)):
        monkeypatch.setenv("WRONG", wrong)
        done = subprocess.run(
            [*command, unchanged.OPTION, "-n", str(processes)],
            cwd=tree,
            capture_output=True,
            text=True,
        )
        assert done.returncode == bool(wrong), done.stdout + done.stderr
        assert f"same content: {tests} tests of {min(tests, 1)} files" in done.stdout
