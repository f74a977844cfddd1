"""What the answers of a test file depend on: its closure, and this machine.

The closure: what the file imports of tests/ and of the package, also in functions or by
a text that names it, what these import, and the files beside any of them, as kernels
with their headers; of all these the code, without comments.  Where commands are
started, it has the whole package.  A file that starts other processes or reads files of
the tree, by itself or by a module of tests/, depends on the whole tree.
"""

import math
import os
import platform
import re
import shutil
import subprocess
from collections import defaultdict
from functools import cached_property
from hashlib import blake2b
from importlib.machinery import SourceFileLoader
from importlib.metadata import distributions
from pathlib import Path
from types import CodeType

import pytest

from distbfs import _HOMES, registry
from distbfs.device.compiler import processor
from distbfs.device.sources import closure_code

ROOT = Path(__file__).resolve().parents[1]
TABLES = {x: y for x, y in vars(registry).items() if x.isupper() and type(y) is dict}
KERNELS = {".c", ".h", ".cpp", ".hpp", ".cu", ".cuh"}
MODULE = re.compile(r"(distbfs(?:\.\w+)*\.?)(?::\w+)?")
WHOLE_PACKAGE = re.compile(r"^\s*import distbfs\b", re.MULTILINE)
HELPER = re.compile(
    r"(?:^\s*(?:from|import) |\bimport_module\(\")(?!distbfs)\.*([\w.]+)", re.MULTILINE
)
PATHS = re.compile(r"^sys\.path.*$", re.MULTILINE)
# what starts processes, reads files of the tree, or imports what has no name here
TREE = re.compile(
    r"\b(\w*subprocess\w*|Popen|multiprocessing|executable|posix_spawn|pytester)\b"
    r"|\bos\.(system|exec|spawn)|\b(__file__|getsource\w*|runpy|pkgutil)\b"
    r"|\bimport_module\([^\"]"
    r"|^from distbfs\.\w+ import .*\b(portable|provenance|trials)\b",
    re.MULTILINE,
)
# these start compilers, look for devices, import all modules, read what they import
BOUNDED = {
    *("tests/conftest.py", "tests/closures.py", "tests/cuda_modules.py"),
    *("tests/gpu/conftest.py", "tests/engines/emulated/conftest.py"),
    *("tests/engines/emulated/emulated_device.py", "tests/validation/test_validate.py"),
    "tests/validation/test_cuda_on_host.py",
}
# these start commands, which depend on the whole package, and what puts faults in them
COMMANDS = {
    *("tests/cli/commands.py", "tests/cli/held_ranks.py", "tests/faults/launching.py"),
    *("tests/warm.py", "tests/warm_client.py"),
}
FAULTS = "tests/faults/injected/sitecustomize.py"
CODE = (
    *("co_code", "co_exceptiontable", "co_name", "co_names", "co_varnames"),
    *("co_freevars", "co_cellvars", "co_flags", "co_argcount"),
    *("co_posonlyargcount", "co_kwonlyargcount"),
)
PROGRAMS = ("cc", "gcc", "g++", "c++", "mpiexec", "nvidia-smi", "chromium", "nginx")
VARIABLES = re.compile(r"CI|CC|(DISTBFS|CUDA|OMP|HYPOTHESIS)_\w+")


def digest(*parts):
    total = blake2b(digest_size=12)
    for part in parts:
        total.update(part if isinstance(part, bytes) else str(part).encode())
        total.update(b"\0")
    return total.hexdigest()


def environment():
    """Return a digest of what answers depend on beside the tree."""
    programs = [Path(x).resolve() for x in map(shutil.which, PROGRAMS) if x]
    return digest(
        *(platform.python_version(), os.cpu_count(), processor()),
        *sorted(f"{x.name} {x.version}" for x in distributions()),
        *((x, x.stat().st_size) for x in programs),
        *sorted(x for x in os.environ.items() if VARIABLES.fullmatch(x[0])),
    )


def codes_of(code):
    """Yield a code object and all within it."""
    yield code
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from codes_of(value)


def parts_of(code):
    """Return what a code object does, without lines; sets are in no order."""
    parts = [getattr(code, x, b"") for x in CODE]
    for value in code.co_consts:
        if not isinstance(value, CodeType):
            unordered = isinstance(value, frozenset)
            parts.append(sorted(map(repr, value)) if unordered else repr(value))
    return parts


class Tree:
    """The files of a tree that git does not ignore, each read once."""

    def __init__(self, root=ROOT):
        command = ["git", "ls-files", "-zco", "--exclude-standard"]
        done = subprocess.run(command, cwd=root, capture_output=True, check=False)
        names = sorted({x for x in done.stdout.decode().split("\0") if x})
        if not names:
            raise pytest.UsageError(f"git lists no files of {root}")
        self.root, self._nodes, self._beside = root, {}, {}
        self.files = [x for x in (root / name for name in names) if x.is_file()]
        self.modules, self.tests, self.scripts = (
            {},
            defaultdict(list),
            defaultdict(list),
        )
        for path in self.files:
            parts = path.relative_to(root).with_suffix("").parts
            if path.suffix == ".py" and parts[0] == "distbfs":
                name = ".".join(x for x in parts if x != "__init__")
                self.modules[name] = path
            elif path.suffix == ".py":
                folders = self.tests if parts[0] == "tests" else self.scripts
                folders[path.stem].append(path)
        code = {path.parent for path in self.files if path.suffix == ".py"} | {root}
        self._folders = defaultdict(list)  # what is beside Python, or in folders of it
        for path in self.files:
            if path.suffix != ".py":
                self._folders[next(x for x in path.parents if x in code)].append(path)

    def last_change(self):
        """Return when a file changed last, in seconds; infinity if one is gone."""
        try:
            return max(path.stat().st_mtime for path in self.files)
        except FileNotFoundError:
            return math.inf

    def keys(self):
        """Return the keys of all test files, by their paths in the tree."""
        about = environment(), (self.root / "pyproject.toml").read_bytes()
        files = [y for x, y in self.tests.items() if x.startswith("test_")]
        names = {y.relative_to(self.root).as_posix(): y for x in files for y in x}
        closures = {name: sorted(self.closure(y).values()) for name, y in names.items()}
        return {name: digest(*about, *values) for name, values in closures.items()}

    def closure(self, test):
        """Return digests by path of what a test file depends on; the root is all."""
        digests, waiting = {}, [test]
        while waiting:
            path = waiting.pop()
            if path not in digests:
                digests[path], others = self.node(path)
                if others is None:
                    return {test: digests[test], self.root: self.whole}
                waiting += others
        return digests

    @cached_property
    def whole(self):
        return digest(*(y for x in self.files for y in (x.name, x.read_bytes())))

    def node(self, path):
        """Return the digest of a Python file, and what it needs; None: the tree."""
        if path not in self._nodes:
            loader = SourceFileLoader(path.stem, str(path))  # reads compiled code
            codes = [*codes_of(loader.get_code(path.stem))]
            parts = [part for code in codes for part in parts_of(code)]
            beside = path.name != "__init__.py" and self.beside(path.parent)
            name = path.relative_to(self.root)
            self._nodes[path] = digest(name, *parts, beside), self.needs(path, codes)
        return self._nodes[path]

    def beside(self, folder):
        if folder not in self._beside:
            parts = []
            for path in self._folders[folder]:
                kernel = path.suffix in KERNELS
                read = closure_code if kernel else Path.read_bytes
                parts += [path.relative_to(folder), read(path)]
            self._beside[folder] = digest(*parts)
        return self._beside[folder]

    def needs(self, path, codes):
        """Return the files that a file imports or names; None: the whole tree."""
        text, inner = path.read_text(encoding="utf-8"), path.relative_to(self.root)
        names = {name for code in codes for name in code.co_names}
        values = [value for code in codes for value in code.co_consts]
        texts = {x for x in values if isinstance(x, str)}
        imported = {y for x in values if type(x) is tuple for y in x if type(y) is str}
        first, words = ["__init__.py"], set()
        if inner.parts[0] != "distbfs":
            name = inner.as_posix()
            bounded = {*BOUNDED, *COMMANDS, FAULTS}
            if name not in bounded and TREE.search(PATHS.sub("", text)):
                return None
            texts |= {*MODULE.findall(text)}
            first.append("conftest.py")
            words = {x.rpartition(".")[2] for x in HELPER.findall(text)}
            if name in COMMANDS:
                texts |= self.modules.keys()
                first.append(FAULTS)
        elif inner.as_posix() in ("distbfs/__init__.py", "distbfs/registry.py"):
            texts, names, imported = set(), names - TABLES.keys(), set()  # tables
        if "networkx" in names:  # which reads what its backends say of themselves
            first.append("distbfs/networkx_backend/info.py")
        held = imported | names if WHOLE_PACKAGE.search(text) else imported
        files = {x / y for x in path.parents for y in first}
        files = {x for x in files if x.is_relative_to(self.root) and x.is_file()}
        for word in words:  # a module of tests/, or else of scripts/
            files |= {*(self.tests.get(word) or self.scripts.get(word, ()))}
        return files | self.named(names, texts, held)

    def named(self, names, texts, held):
        """Return the files of modules; held: names of what is imported of modules."""
        all_names, modules = self.modules.keys(), set()
        for word in filter(None, map(MODULE.fullmatch, names | texts)):
            name = word[1].rstrip(".")
            while name and name not in all_names:
                name = name.rpartition(".")[0]
            modules.add(name)
            if word[1].endswith("."):
                modules |= {x for x in all_names if x.startswith(word[1])}
        inner = {f"{x}.{y}" for x in modules for y in held} & all_names
        modules |= inner | {f"{x}.{y}" for x in inner for y in names}
        if "distbfs" in modules:
            modules |= {_HOMES[x] for x in _HOMES.keys() & held}
        for table in TABLES.keys() & (names | held):
            modules |= {x.partition(":")[0] for x in TABLES[table].values()}
        return {self.modules[x] for x in modules & all_names}
