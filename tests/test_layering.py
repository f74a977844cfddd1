"""The house over its syntax tree: who imports whom, and that importing does nothing.

Every import counts: at the top, in a function, for type checking.
"""

import ast
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import distbfs
from distbfs import registry

ROOT = Path(distbfs.__file__).parent
LEAVES = (
    *("errors", "types", "registry", "options", "timing", "progress", "leftovers"),
    *("distinct", "interrupts", "locks"),
)
ROOMS = (
    *("device", "ranks", "generate", "formats", "graph", "partition", "exchange"),
    *("plan", "build", "store", "engines", "search", "multisearch", "report"),
    *("validation", "benchmark", "service", "networkx_backend", "cli"),
)
FILES = sorted(ROOT.rglob("*.py"))
HARDWARE = {"cupy", "cupyx", "cuda", "mpi4py", "numba", "pynvml", "torch"}
TABLES = {
    name: table
    for name, table in vars(registry).items()
    if name.isupper() and isinstance(table, dict)
}


def name_of(path):
    """Return the dotted name of a source file."""
    parts = [ROOT.name, *path.relative_to(ROOT).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in FILES}


def imports_of(node, package):
    """Return the modules that one statement names."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = node.module or ""
    if node.level:
        kept = package.split(".")[: len(package.split(".")) - node.level + 1]
        base = ".".join([*kept, base]).rstrip(".")
    inner = [f"{base}.{alias.name}" for alias in node.names]
    return [name if name in MODULES else base for name in inner]


@cache
def every_import(path):
    """Return (module, line) of all imports of a file."""
    name = name_of(path)
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        (module, node.lineno)
        for node in ast.walk(tree)
        for module in imports_of(node, package)
    ]


def place_of(module):
    """Return how far down the house a module stands; leaves stand at 0."""
    _, _, inside = module.partition(".")
    room = inside.partition(".")[0]
    if room in ("", *LEAVES):
        return 0
    if room in ("__main__", "entry"):
        return len(ROOMS) + 1
    assert room in ROOMS, f"{module} is in no room of the house"
    return 1 + ROOMS.index(room)


def runs_on_import(tree):
    """Yield the statements that run when a module is imported."""
    waiting = list(tree.body)
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            waiting.extend(node.orelse)
            continue
        waiting.extend(ast.iter_child_nodes(node))


def test_a_room_imports_only_what_stands_above():
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {module}"
        for path in FILES
        for module, line in every_import(path)
        if module.partition(".")[0] == ROOT.name
        and place_of(module) > place_of(name_of(path))
    ]
    assert not wrong


def circles(imports):
    """Return the sets of modules that import each other, by way of others or not."""
    seen: dict[str, set[str]] = {}
    for module in imports:
        reached, waiting = set(), [module]
        while waiting:
            new = imports[waiting.pop()] - reached
            reached |= new
            waiting += new
        seen[module] = reached
    each = {x: {y for y in seen[x] if x in seen[y]} for x in seen if x in seen[x]}
    return sorted({tuple(sorted(circle)) for circle in each.values()})


def test_no_modules_import_each_other():
    own = {x: {name for name, _ in every_import(MODULES[x])} for x in MODULES}
    assert not circles({x: names & MODULES.keys() - {x} for x, names in own.items()})
    by_way = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set(), "e": {"a"}}
    assert circles(by_way) == [("a", "b", "c")]


def test_hardware_libraries_wait_for_a_call():
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in FILES
        for node in runs_on_import(ast.parse(path.read_text(encoding="utf-8")))
        for name in imports_of(node, "")
        if name.partition(".")[0] in HARDWARE
    ]
    assert not wrong


def test_the_walk_sees_what_it_should():
    tree = ast.parse(
        "import a\n"
        "if TYPE_CHECKING:\n    import b\nelse:\n    import c\n"
        "class X:\n    import d\n    def f(self):\n        import e\n"
        "try:\n    import f\nexcept ImportError:\n    from . import g\n"
    )
    imports = [
        name for node in runs_on_import(tree) for name in imports_of(node, "p.q")
    ]
    assert sorted(imports) == ["a", "c", "d", "f", "p.q"]
    relative = ast.parse("from ..graph import csr").body[0]
    assert imports_of(relative, "distbfs.engines") == ["distbfs.graph.csr"]


NO_NAMES = {"found", "told", "given"}  # of what a variable holds


def variables_of(path):
    """Return the names of variables and arguments in the functions of a file."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    functions = [x for x in nodes if isinstance(x, (ast.FunctionDef, ast.Lambda))]
    inside = [x for function in functions for x in ast.walk(function)]
    names = {x.id for x in inside if isinstance(x, ast.Name)}
    return names | {x.arg for x in inside if isinstance(x, ast.arg)}


def test_variables_say_what_they_hold():
    used = {name_of(path): variables_of(path) & NO_NAMES for path in FILES}
    assert not {module: names for module, names in used.items() if names}


SHARED = {"Request"}  # of a session for devices, and of a client of the service


def test_one_name_is_one_type():
    """Structures of kernels aside, which are called as in their kernel's file."""
    modules: dict[str, list[str]] = {}
    for path in FILES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
                continue
            if "ctypes.Structure" not in map(ast.unparse, node.bases):
                modules.setdefault(node.name, []).append(name_of(path))
    several = {name: places for name, places in modules.items() if len(places) > 1}
    assert several.keys() == SHARED, several


ELSEWHERE = [  # words whose meaning is another room's
    *(("peer", room) for room in ("benchmark", "cli")),  # of a device
    *(("resident", room) for room in ("build", "exchange", "multisearch")),
    *(("threshold", room) for room in ("exchange", "engines")),  # TH, of delegates
    ("resident", "engines/cuda/xbfs"),  # a whole search in one launch
]
PIECES = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


@pytest.mark.parametrize(("word", "room"), ELSEWHERE)
def test_a_word_has_one_meaning(word, room):
    named = set()
    for path in sorted((ROOT / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [getattr(node, x, None) for x in ("id", "arg", "attr", "name")]
            texts = [x for x in names if isinstance(x, str)]
            named |= {x.lower() for text in texts for x in PIECES.findall(text)}
    assert not named & {word, f"{word}s"}


def test_the_checker_shares_nothing_with_what_it_checks():
    seen, waiting = set(), ["distbfs.validation.host"]
    while waiting:
        module = waiting.pop()
        if module in MODULES and module not in seen:
            seen.add(module)
            waiting.extend(name for name, _ in every_import(MODULES[module]))
    rooms = {module.split(".")[1] for module in seen if "." in module}
    assert "validation" in rooms
    assert not rooms & {"engines", "partition", "build", "store", "search", "graph"}


@pytest.mark.parametrize("table", TABLES)
def test_registered_names_exist(table):
    for name in TABLES[table]:
        registered = registry.lookup(TABLES[table], table, name)
        assert getattr(registered, "name", name) == name


def test_unknown_names_are_refused():
    with pytest.raises(
        registry.UsageError, match="unknown engine 'gpu'; allowed: bfs4k"
    ):
        registry.lookup(registry.ENGINES, "engine", "gpu")


IMPORT_ALL = """
import json, sys, threading
from importlib import import_module
before = threading.active_count()
for name in json.loads(sys.argv[1]):
    import_module(name)
roots = sorted({name.partition(".")[0] for name in sys.modules})
print(json.dumps([roots, threading.active_count() - before]))
"""


def test_nothing_happens_on_import(tmp_path):
    names = [name for name in MODULES if not name.endswith("__main__")]
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, json.dumps(names)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={
            "PYTHONPATH": str(ROOT.parent),
            "HOME": str(tmp_path),
            "DISTBFS_CC": "/none",
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    loaded, threads = json.loads(done.stdout)
    assert not HARDWARE & set(loaded)
    assert threads == 0
    assert not list(tmp_path.iterdir()), "an import wrote files"
