"""Problems as CUDA: what is compiled, and how errors of the user's text are told."""

import os
from importlib import import_module

import numpy as np
import pytest
from device_problems import PROBLEMS, device_problem

from distbfs import registry
from distbfs.device import cuda, nvrtc, portable
from distbfs.errors import DeviceMissing, UsageError
from distbfs.multisearch.cuda_program import HEADER, SOURCE, literal, program_of
from distbfs.multisearch.problem import Problem, State

DEFINITIONS = {"LEVEL": "u8", "LEVELS": 1, "EDGES": 0, "THREADS": 1024}


@pytest.fixture(autouse=True)
def _compiler(monkeypatch, tmp_path):
    """Skip without NVRTC, but never where changes are checked."""
    monkeypatch.setenv("DISTBFS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cuda, "architecture", lambda: "sm_90")
    try:
        nvrtc.bindings()
    except DeviceMissing as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))


def compiled(problem, arch="sm_90", **more):
    texts = {HEADER: program_of(problem).text}
    return nvrtc.compile_source(SOURCE, arch, DEFINITIONS | more, texts)


def every_problem():
    """Problems as CUDA text: those of the tests, and all that applications have."""
    homes = {home.partition(":")[0] for home in registry.APPS.values()}
    values = [x for home in sorted(homes) for x in vars(import_module(home)).values()]
    own = [x for x in values if isinstance(x, Problem) and x.cuda]
    assert own
    return {x.name: x for x in [*PROBLEMS.values(), *own]}


@pytest.mark.thorough
@pytest.mark.parametrize("arch", portable.ARCHITECTURES)
@pytest.mark.parametrize("problem", every_problem().values(), ids=lambda x: x.name)
def test_problems_compile(problem, arch):
    """With types that are narrow on some devices, and wide on the others."""
    wide = {"LEVEL": "u32", "EDGES": 1, "THREADS": 256}
    some = wide if portable.ARCHITECTURES.index(arch) % 2 else {}
    assert compiled(problem, arch, **some)[:4] == b"\x7fELF"


def test_levels_are_kept_where_they_are_read():
    assert program_of(device_problem("betweenness")).levels
    assert not program_of(device_problem("closeness")).levels
    silent = Problem("p", cuda="// level\nvoid init(Search &s) { /* level */ }")
    assert not program_of(silent).levels


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "\nvoid init(Search &s) {\n    s.sgma[0] = 1;\n}\n",
            r"problem 'p', line 3: .*no member \"sgma\".*: 's\.sgma\[0\] = 1;'",
        ),
        ("void post(Search &s) { nowhere(); }", r"line 1: identifier \"nowhere\" is"),
        ("void prior(Search &s) {\n", r"problem 'p': 1 times '{' and 0 times '}'$"),
        (
            "void visit_vertex(Search &s) {}",
            r"problem 'p': .*; expected functions: visit_vertex\(Search",
        ),
        (
            "void end(Search &s) {\n  s.each(1,\n   [&](int a, int b) { });\n}",
            r"problem 'p', line [123]: ",
        ),
    ],
)
def test_errors_show_the_line_of_the_user(text, said):
    with pytest.raises(UsageError, match=said) as caught:
        program_of(Problem("p", cuda=text)).module(**DEFINITIONS)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_the_text_is_part_of_the_key():
    one = {HEADER: program_of(device_problem("khop")).text}
    other = {HEADER: program_of(device_problem("closeness")).text}
    names = {nvrtc.name_of(SOURCE, "sm_90", DEFINITIONS, x) for x in (one, other, {})}
    assert len(names) == 3


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("dtype", "fill", "wanted"),
    [
        ("int8", -1, "(i8)(-1ll)"),
        ("uint64", 2**63, f"(u64)({2**63}ull)"),
        ("float64", 0.1, "(f64)(0x1.999999999999ap-4)"),
        ("float32", float("-inf"), "(f32)(-1.0 / 0.0)"),
        ("float32", float("nan"), "(f32)(0.0 / 0.0)"),
    ],
)
def test_fill_values(dtype, fill, wanted):
    assert literal(State("x", dtype, "pair", fill=fill)) == wanted
    text = "void init(Search &s) { s.x[0] = s.y; }"
    states = (
        State("x", dtype, "pair", fill),
        State("y", np.dtype(dtype).name, "search"),
    )
    assert compiled(Problem("p", states, cuda=text))
