"""The reference: docstrings whose examples run, and pages that leave out no name."""

import ast
import doctest
import inspect
import re
from dataclasses import fields
from functools import partial
from importlib import import_module
from pathlib import Path
from types import FunctionType

import pytest

import distbfs
from distbfs.device import cuda
from distbfs.errors import DeviceMissing, ServiceError
from distbfs.generate.families import declared
from distbfs.multisearch import base, problem
from distbfs.multisearch.base import Results
from distbfs.networkx_backend.info import FUNCTIONS
from distbfs.options import Knobs
from distbfs.partition.part import INTO
from distbfs.ranks import launcher
from distbfs.registry import (
    ENGINES,
    EXCHANGES,
    FAMILIES,
    READERS,
    SEARCHERS,
    WRITERS,
    lookup,
)
from distbfs.service.client import Client
from distbfs.service.limits import Limits
from distbfs.service.operations import OPERATIONS
from distbfs.store import schema

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "docs" / "reference"
MODULES = [
    "distbfs",
    "distbfs.errors",
    "distbfs.graph.predicate",
    "distbfs.multisearch.base",
    "distbfs.multisearch.library",
    "distbfs.multisearch.problem",
    "distbfs.search.breadth_first",
    "distbfs.search.components",
    "distbfs.search.edge_table",
    "distbfs.search.frames",
    "distbfs.search.graph",
    "distbfs.search.open",
    "distbfs.search.result",
    "distbfs.search.result_arrays",
    "distbfs.search.session",
    "distbfs.search.view",
]
WITHOUT_EXAMPLE = {
    *("Graph.from_cupy", "Graph.to_igraph"),  # a device, a library of peers
    "Client.shutdown",  # the last words
}


def public():
    """Return (name, object) of what the package exports, and of its members."""
    things = {name: getattr(distbfs, name) for name in distbfs.__all__}
    things |= {kind.__name__: kind for kind in (Client, Results)}
    members = {
        f"{name}.{member}": value
        for name, thing in things.items()
        if inspect.isclass(thing)
        for kind in inspect.getmro(thing)[::-1]
        for member, value in vars(kind).items()
        if kind.__module__.startswith("distbfs") and not member.startswith("_")
        if isinstance(value, (property, classmethod, FunctionType))
    }
    return sorted({**things, **members}.items())


@pytest.fixture(autouse=True)
def no_device(monkeypatch):
    """Examples say the same on every machine."""

    def missing():
        raise DeviceMissing("no CUDA device: hidden by a test; use another machine")

    monkeypatch.setattr(cuda, "cupy", missing)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("module", MODULES)
def test_examples_in_docstrings(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = doctest.testmod(import_module(module))
    assert done.attempted
    assert not done.failed


def section(text, title):
    """Return the lines of a numpydoc section, "" where there is none."""
    after = re.split(rf"^{title}\n-+\n", text, maxsplit=1, flags=re.MULTILINE)[1:]
    return re.split(r"^\w[\w ]*\n-+\n", after[0], flags=re.M)[0] if after else ""


def test_every_public_name_is_described():
    """By a sentence; functions by their parameters and an example too."""
    for name, thing in public():
        function = getattr(thing, "__func__", thing)
        text = inspect.getdoc(function)
        assert re.match(r"[^\n]+[.:;]", text), name
        if inspect.isroutine(function):
            taken = inspect.signature(function).parameters.keys() - {"self", "cls"}
            heads = re.findall(r"^\S.*", section(text, "Parameters"), re.MULTILINE)
            named = {
                x.strip(" *") for head in heads for x in head.split(" :")[0].split(",")
            }
            assert named == taken, name
            example = ">>> " in section(text, "Examples")
            assert example or name in WITHOUT_EXAMPLE, name


def test_every_public_name_is_in_the_reference():
    page = (REFERENCE / "python.md").read_text(encoding="utf-8")
    listed = re.findall(
        r"^\.\. auto(?:class|exception|function):: ([\w.]+)", page, re.M
    )
    own = [name.removeprefix("distbfs.") for name in listed]
    assert [name for name in own if "." not in name and own.count(name) > 1] == []
    assert set(distbfs.__all__) == {name for name in own if "." not in name}
    rows = [line.split("|")[1:-1] for line in page.splitlines()]
    table = {
        name: (set(re.findall(r"`(\w+)`", bases)), *re.findall(r"\d", code))
        for names, bases, code in (row for row in rows if len(row) == 3)
        for name in re.findall(r"`(\w+)`", names)
    }
    errors = [
        getattr(distbfs, name)
        for name, home in distbfs._HOMES.items()
        if home == "distbfs.errors"
    ]
    assert table == {
        kind.__name__: (
            {base.__name__ for base in kind.__bases__} - {"Exception"},
            *([] if kind is distbfs.ServiceError else [str(kind.exit_code)]),
        )
        for kind in errors
    }


def page(name):
    return (REFERENCE / name).read_text(encoding="utf-8")


def table(text, *heads):
    """Return the rows of the first table with these heads, as lists of cells."""
    lines = iter(text.splitlines())
    for line in lines:
        if [*cells(line)[: len(heads)]] == [*heads]:
            next(lines)
            return [cells(row) for row in iter(partial(next, lines, ""), "")]
    raise AssertionError(f"no table of {heads}")


def cells(line):
    """Return the cells of a row, without the bars around them."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def codes(cell):
    """Return what stands in backticks."""
    return re.findall(r"`([^`\n]+)`", cell)


def test_every_dataset_of_a_store_is_in_the_reference():
    text = page("store.md")
    rows = table(text, "dataset", "dtype", "elements")
    listed = [name for row in rows for name in codes(row[0])]
    assert listed[-1] == "nn/attribute_NAME"
    into = {f"{x}/{y}" for x in INTO.values() for y in ("offsets", "columns")}
    assert {*listed[:-1]} == {*schema.DATASETS, *into}
    keys = {name for row in table(text, "key", "what it is") for name in codes(row[0])}
    assert {*schema.Manifest.__struct_fields__} < keys | {"created_by"}


def test_every_format_is_in_the_reference():
    rows = table(page("formats.md"), "`--format`", "what it is", "endings")
    assert {codes(row[0])[0] for row in rows} == READERS.keys()
    for name, _, endings, _, written, _ in rows:
        [kind] = codes(name)
        reader = lookup(READERS, "format", kind)
        assert {*codes(endings)} == {*reader.suffixes}
        assert ("✓" in written) == (kind in WRITERS)


def test_every_family_is_in_the_reference():
    text = page("generators.md")
    rows = table(text, "family", "what it is", "options")
    listed = {name: codes(row[2]) for row in rows for name in codes(row[0])}
    assert listed.keys() == FAMILIES.keys()
    every = set()
    for name, options in listed.items():
        taken = {f"--{x.name.replace('_', '-')}" for x in declared(name)[1]}
        assert taken == {*options}
        every |= taken
    described = [codes(row[0]) for row in table(text, "option", "what it sets")]
    assert {name for names in described for name in names} == every


def test_every_engine_and_exchange_is_in_the_reference():
    text = page("engines.md")
    rows = table(text, "engine", "methods", "runs on")
    listed = {name: row for row in rows for name in codes(row[0])}
    assert listed.keys() == ENGINES.keys()
    for name, (_, methods, _, directed, sets, views, _) in listed.items():
        kind = lookup(ENGINES, "engine", name)
        assert codes(methods) == [*kind.methods]
        marks = [bool(x) for x in (directed, sets, views)]
        assert marks == [kind.directed, kind.sets, kind.masks]
    runners = table(text[text.index("## Engines of many") :], "engine", "methods")
    assert {codes(row[0])[0]: codes(row[1]) for row in runners} == {
        name: [*lookup(SEARCHERS, "engine", name).methods] for name in SEARCHERS
    }
    exchanges = table(text, "`--exchange`")
    assert {codes(row[0])[0] for row in exchanges} == EXCHANGES.keys()
    knobs = table(text, "knob", "allowed")
    assert [codes(row[0])[0] for row in knobs] == [x.name for x in fields(Knobs)]


def test_every_operation_of_the_service_is_in_the_reference():
    rows = table(page("service.md"), "operation", "fields", "answer")
    listed = {name: codes(row[1]) for row in rows for name in codes(row[0])}
    common = {"id", "deadline"}
    assert {name: set(names) for name, names in listed.items()} == {
        name: set(OPERATIONS[name].fields) - common for name in OPERATIONS
    }
    own = {field.name for x in OPERATIONS.values() for field in x.own}
    described = table(page("service.md"), "field", "what it is")
    assert {name for row in described for name in codes(row[0])} == own
    limits = table(page("service.md"), "option", "what it limits", "default")
    usual = {codes(row[0])[0]: float(row[2].split()[0]) for row in limits}
    names = {"line": "max_line", "ids": "max_ids", "inline": "max_inline"}
    names |= {"binary": "max_binary"}
    assert usual == {
        f"--{names.get(x.name, x.name).replace('_', '-')}": x.default
        for x in fields(Limits)
        if x.name not in {"pipeline", "patience"}
    }


def test_every_error_code_of_the_service_is_in_the_reference():
    rows = table(page("exit_codes.md"), "code", "meaning", "exit code")
    stated = {codes(row[0])[0]: (int(row[2]), int(row[3] or 0)) for row in rows}
    assert stated == ServiceError.CODES


LISTS = ("launcher.py", "interrupts.py")  # of variables


def test_every_environment_variable_is_in_the_reference():
    """Names that are given to os.environ, as constants or as constants of a module."""
    rows = [line for line in page("environment.md").splitlines() if line[:1] == "|"]
    listed = {name for row in rows for name in codes(row)}
    read = {*launcher.PMI_VARIABLES}
    for path in Path(distbfs.__file__).parent.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        constants = {
            node.targets[0].id: node.value.value
            for node in tree.body
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and isinstance(node.value, ast.Constant)
        }
        for node in ast.walk(tree):
            text = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if isinstance(node, ast.Subscript) and "environ" in ast.unparse(node.value):
                key = node.slice
            elif re.fullmatch(r"(os\.)?(environ\.(get|pop|setdefault)|getenv)", text):
                key = node.args[0]
            elif path.name in ("launcher.py", "interrupts.py") and isinstance(
                node, ast.Constant
            ):
                key = node
            else:
                continue
            name = key.value if isinstance(key, ast.Constant) else constants.get(key.id)
            if isinstance(name, str) and re.fullmatch(
                r"[A-Z][A-Z0-9]*_[A-Z0-9_]+|CC", name
            ):
                read.add(name)
    assert {"DISTBFS_CACHE", "DISTBFS_TOKEN", "CC", "PMIX_RANK"} < read
    assert read <= listed, sorted(read - listed)


def test_every_function_of_networkx_is_in_the_reference():
    rows = table(page("networkx.md"), "function")
    assert {codes(row[0])[0] for row in rows} == FUNCTIONS.keys()


def test_the_contract_of_problems_is_in_the_reference():
    text = page("problems.md")
    rows = table(text, "function", "when")
    assert [codes(row[0])[0] for row in rows] == [*problem.FUNCTIONS]
    states = table(text, "name", "per")
    listed = {codes(row[0])[0]: row[1] for row in states}
    assert listed == {name: per for name, (per, _) in base.KEPT.items()}
