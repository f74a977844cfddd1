"""The reference: docstrings whose examples run, and pages that leave out no name."""

import doctest
import inspect
import re
from importlib import import_module
from pathlib import Path
from types import FunctionType

import pytest

import distbfs
from distbfs.device import cuda
from distbfs.errors import DeviceMissing
from distbfs.multisearch.base import Results
from distbfs.service.client import Client

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
    "distbfs.search.edge_table",
    "distbfs.search.graph",
    "distbfs.search.open",
    "distbfs.search.result",
    "distbfs.search.result_paths",
    "distbfs.search.session",
    "distbfs.search.view",
]
WITHOUT_EXAMPLE = {"Graph.from_cupy", "Client.shutdown"}  # a device; the last words


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


@pytest.mark.parametrize(("name", "thing"), public())
def test_every_public_name_is_described(name, thing):
    """By a sentence; functions by their parameters and an example too."""
    function = getattr(thing, "__func__", thing)
    text = inspect.getdoc(function)
    assert re.match(r"[^\n]+[.:;]", text)
    if inspect.isroutine(function):
        given = inspect.signature(function).parameters.keys() - {"self", "cls"}
        heads = re.findall(r"^\S.*", section(text, "Parameters"), re.MULTILINE)
        named = {
            x.strip(" *") for head in heads for x in head.split(" :")[0].split(",")
        }
        assert named == given
        assert name in WITHOUT_EXAMPLE or ">>> " in section(text, "Examples")


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
    errors = [getattr(distbfs, name) for name in distbfs._ERRORS]
    assert table == {
        kind.__name__: (
            {base.__name__ for base in kind.__bases__} - {"Exception"},
            *([] if kind is distbfs.ServiceError else [str(kind.exit_code)]),
        )
        for kind in errors
    }
