"""A problem as a CUDA program: structures for its state, with its functions.

The functions are device functions; a problem may omit any of them. All threads of a
search's block call ``init``, ``prior``, ``post`` and ``end``, each of ``(Search &s)``;
``visit_vertex(Search &s, u32 u, u32 v)`` is called by one thread for each edge, and
``finalize(Whole &w)`` by all threads of a launch after all searches.

- ``s.index``, ``s.source``, ``s.n``, ``s.depth`` (the level of u; in end the deepest),
  ``s.size`` (vertices of that level), ``s.thread()`` of ``s.threads()``.
- State by its name: ``s.x`` a reference (per search), ``s.x[v]`` (per vertex, which all
  searches share, or per pair).  ``s.level[v]`` is v's level, ``UNREACHED`` without.
  Use ``atomicAdd`` and the like for state that several threads change.
- Vertices u, v are numbers, hubs first; ``s.id(v)`` is the id in the input,
  ``s.degree(v)`` the degree.
- In end: ``s.each(d, f)`` calls f(v) for the vertices of level d, ``s.each_sum(d, f,
  g)`` calls g(u, sum of f(u, v) over the edges of u) for each; all threads call them,
  and all have done so when they return.
- In finalize: ``w.x[i]`` per search, ``w.x[v]`` per vertex, ``w.k``, ``w.n``,
  ``w.thread()`` of ``w.threads()``.

Source: McLaughlin, Riedy, Bader 2015, Section III.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from distbfs.device import programs
from distbfs.device.nvrtc import KernelRefused
from distbfs.device.structures import Declarations
from distbfs.errors import UsageError
from distbfs.multisearch.problem import FUNCTIONS, Problem, State

SOURCE = Path(__file__).with_name("multi.cu")
HEADER = "problem.cuh"
TYPES = {
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
    "float32": "f32",
    "float64": "f64",
}
COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
SIGNATURES = {
    "visit_vertex": "visit_vertex(Search &s, u32 u, u32 v)",
    "finalize": "finalize(Whole &w)",
    **{name: f"{name}(Search &s)" for name in ("init", "prior", "post", "end")},
}
ERROR = r"\((\d+)\): (?:catastrophic )?error: (.*)"  # of NVRTC, after a file's name


@dataclass(frozen=True)
class Program:
    """The text of a problem, ready to be compiled.

    header: text that declares its state
    used: names of the functions that it defines; levels: whether they read ``s.level``
    """

    problem: Problem
    header: str
    used: frozenset[str]
    levels: bool

    @property
    def text(self) -> str:
        """The text that replaces problem.cuh."""
        return f'{self.header}#line 1 "{self.problem.name}"\n{self.problem.cuda}\n'

    @cached_property
    def structures(self) -> Declarations:
        """The arguments of kernels: ``Job`` of ``search``, ``End`` of ``finish``."""
        return Declarations(SOURCE, {}, {HEADER: self.header})

    def module(self, **definitions: str | int) -> programs.Module:
        """Compile the kernels; raise UsageError with the user's line on an error."""
        try:
            return programs.Module(SOURCE, {HEADER: self.text}, **definitions)
        except KernelRefused as error:
            raise self.refusal(error.log) or error from error

    def refusal(self, log: str) -> UsageError | None:
        """Convert errors in the user's text, by NVRTC's log; None if there are none."""
        problem, own = f"problem '{self.problem.name}'", re.escape(self.problem.name)
        error = re.search(rf'^"?{own}"?{ERROR}', log, re.MULTILINE)
        line = error and error[1]
        if error is None:
            error = re.search(rf"^\S+{ERROR}", log, re.MULTILINE)
            if error is None:
                return None
            above = re.search(rf'at line (\d+) of "?{own}\b', log[error.end() :])
            line = above and above[1]
        if line is not None:
            lines = dict(enumerate(self.problem.cuda.splitlines(), 1))
            text = lines.get(int(line), "").strip()
            return UsageError(f"{problem}, line {line}: {error[2]}: '{text}'")
        code = COMMENTS.sub(" ", self.problem.cuda)
        opened, closed = code.count("{"), code.count("}")
        if opened != closed:
            return UsageError(f"{problem}: {opened} times '{{' and {closed} times '}}'")
        wanted = ", ".join(SIGNATURES[x] for x in FUNCTIONS if x in self.used)
        return UsageError(f"{problem}: {error[2]}; expected functions: {wanted}")


def check_state(state: State) -> None:
    """Raise UsageError if a checked state cannot be a member of a structure."""
    name = state.name
    if not name.isascii():
        raise UsageError(f"state '{name}' is not an ASCII name")
    if str(np.dtype(state.dtype)) not in TYPES:
        allowed = ", ".join(TYPES)
        raise UsageError(f"state '{name}' has dtype {state.dtype}; allowed: {allowed}")


def type_of(state: State) -> str:
    """Return the C++ type of a state's elements."""
    return TYPES[str(np.dtype(state.dtype))]


def literal(state: State) -> str:
    """Return the fill value of a state as a C++ literal."""
    if np.dtype(state.dtype).kind in "iu":
        whole = int(np.array(state.fill).astype(state.dtype))
        suffix = "ull" if np.dtype(state.dtype).kind == "u" else "ll"
        return f"({type_of(state)})({whole}{suffix})"
    value = float(state.fill)
    if math.isnan(value):
        return f"({type_of(state)})(0.0 / 0.0)"
    if math.isinf(value):
        return f"({type_of(state)})({'-' if value < 0 else ''}1.0 / 0.0)"
    return f"({type_of(state)})({value.hex()})"


def program_of(problem: Problem) -> Program:
    """Return the program of a problem's state and CUDA text.

    Raises UsageError for invalid state, or for a text without any of the functions.
    """
    for state in problem.state:
        check_state(state)
    code = COMMENTS.sub(" ", problem.cuda)
    used = frozenset(x for x in FUNCTIONS if re.search(rf"\b{x}\s*\(", code))
    if code.strip() and not used:
        allowed = ", ".join(FUNCTIONS)
        raise UsageError(
            f"problem '{problem.name}' has none of the functions {allowed}"
        )
    levels = re.search(r"\blevel\b", code) is not None
    return Program(problem, header(problem, used), used, levels)


def header(problem: Problem, used: frozenset[str]) -> str:
    """Return the declarations of a problem's state, which precede the user's text."""
    fields, members, whole = [], [], []
    search, finish, fill = ["Base()"], ["WholeBase()"], []
    for state in problem.state:
        name, kind = state.name, type_of(state)
        pointer = f"f.state_{name}"
        row = "at" if state.result else "blockIdx.x"
        own = {"search": "[i]", "vertex": "", "pair": f" + {row} * stride"}[state.per]
        fields.append(f"    {kind} *state_{name};")
        finish.append(f"{name}({pointer})")
        whole.append(f"    {kind} *{name};")
        members.append(f"    {kind} {'&' if state.per == 'search' else '*'}{name};")
        search.append(f"{name}({pointer}{own})")
        if state.per == "pair":
            fill.append(f"            this->{name}[v] = {literal(state)};")
    head = "    __device__ __forceinline__ "
    lines = [
        *(f"#define HAS_{name.upper()} {int(name in used)}" for name in FUNCTIONS),
        "struct Fields {\n    u64 unused;",
        *fields,
        "};\nstruct Search : Base {",
        *members,
        f"{head}Search(const Fields &f, u32 i, u64 at, u64 stride, u32 n)",
        f"        : {', '.join(search)} {{",
        "        for (u32 v = threadIdx.x; v < n; v += THREADS) {",
        *fill,
        "        }\n    }\n};\nstruct Whole : WholeBase {",
        *whole,
        f"{head}Whole(const Fields &f) : {', '.join(finish)} {{}}\n}};",
    ]
    return "\n".join(lines) + "\n"
