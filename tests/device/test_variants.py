"""Kernel files list the variants that Python loads: no others, and none less.

Every call of ``Module``, and of ``cc.load`` with macros, is found in the package's
syntax tree, and LOADS says which files it loads and what each macro may be, from what
the caller is made of.
"""

import ast
from functools import cache
from itertools import product
from pathlib import Path

import pytest

import distbfs
from distbfs.device.sources import serving, variants
from distbfs.engines.openmp.paths import TYPES
from distbfs.engines.openmp.whole import BOTH_ENDS, METHODS, source_of
from distbfs.multisearch.bits import WIDTHS
from distbfs.multisearch.cuda_bits import LANES
from distbfs.multisearch.cuda_problems import BLOCK_THREADS
from distbfs.multisearch.cuda_problems import LEVEL_TYPES as BLOCK_LEVELS
from distbfs.multisearch.domain_paths import WIDTHS as PATH_WIDTHS
from distbfs.validation.cuda import LEVEL_TYPES, PARENT_TYPES

ROOT = Path(distbfs.__file__).parent
SOURCES = {
    str(x.relative_to(ROOT)): x
    for x in sorted(ROOT.rglob("*.c*"))
    if x.suffix in (".c", ".cu")
}
PAPERS = "engines/cuda/papers"
WIDTH, FLAG = {"OFFSET": ("u32", "u64")}, (0, 1)
C_WIDTH = {"OFFSET": ("uint32_t", "uint64_t")}
IDS = {"ID": ("u32", "u64")}
ITEMS = tuple(f"u{bits}" for bits in (8, 16, 32))
COUNTED = {**WIDTH, "COUNT": FLAG}
BETWEEN = {**COUNTED, "IN_IDS": (1,), "SEVERAL": (0, 1)}
LOOP = {**WIDTH, "IN_IDS": (1,), "SEVERAL": (0, 1)}
BLOCKS = {"THREADS": BLOCK_THREADS}
PLAIN = {"COUNT": (0,), "IN_IDS": FLAG, "SPLIT": (0,), "PLAIN": (1,)}
FEW = {"OFFSET": ("u32",), "COUNT": (0,), "SPLIT": (0,), "AT_ONCE": (1,)}
FEW_FORMS = [
    {**FEW, "IN_IDS": (0,), "FEW_TREES": (1,)},
    {**FEW, "IN_IDS": (1,), "FEW_TREES": FLAG},
]
WINDOWED = [
    {"OFFSET": ("u32",), "COUNT": (0,), "IN_IDS": (1,), "SPLIT": (0,)},
    {**PLAIN, "OFFSET": ("u32",)},
]
NARROW = {"OFFSET": ("u32",), "SPLIT": (0,), "MASKED": (1,)}
COUNTING = [
    {**NARROW, "COUNT": (1,), "IN_IDS": FLAG},
    {**NARROW, "COUNT": (1,), "IN_IDS": FLAG, "OFFSET": ("u64",), "SPLIT": (1,)},
]
MASKED = [{**NARROW, "COUNT": (0,), "IN_IDS": (1,)}, *COUNTING]
ONE_WAY = [
    {**WIDTH, "COUNT": (0,), "IN_IDS": FLAG, "SPLIT": (0,)},
    {"OFFSET": ("u64",), "COUNT": (0,), "IN_IDS": (1,), "SPLIT": (1,)},
    *COUNTING,
    *(
        {**PLAIN, "OFFSET": ("u32",), "IN_IDS": (1,), **more}
        for more in ({}, {"AT_ONCE": (1,), "FEW_TREES": (1,)}, {"WINDOWS": (1,)})
    ),
]
ONE_WAY = [{**form, "DIRECTED": (1,)} for form in ONE_WAY]
LARGE = {"OFFSET": ("u64",), "DIRECTED": (1,)}
SPLIT = {"OFFSET": ("u64",), "SPLIT": (1,)}
ONE_WAY_DOMAIN = [
    {**LARGE, "COUNT": (0,), "IN_IDS": FLAG, "SPLIT": (0,)},
    {**LARGE, "COUNT": (0,), "IN_IDS": (1,), "SPLIT": (1,)},
    {**LARGE, "COUNT": (1,), "IN_IDS": FLAG, "SPLIT": (1,), "MASKED": (1,)},
]


def shortened(names):
    """Types of NumPy as kernels name them."""
    return tuple(name.replace("int", "i") for name in names)


VALUES = {"LEVEL": shortened(LEVEL_TYPES)}
# of each Python file, call by call: files and values of macros, one or several of both
LOADS = {
    "build/cuda/kernels.py": [
        ("build/cuda", ("graph.cu",), {}),
        ("build/cuda", ("keys.cu",), {}),
    ],
    "build/cuda/keys.py": [("build/cuda", ("parts.cu",), IDS)],
    "build/cuda/shares.py": [("build/cuda", ("shares.cu",), IDS)],
    "build/cuda/seen.py": [("build/cuda", ("seen.cu",), {})],
    "build/cuda/inner.py": [("build/cuda", ("inner.cu",), {})],
    "device/rates.py": [("device", ("rates.cu",), {})],
    "device/programs.py": [("device", ("reached.cu", "take.cu"), {})],
    "engines/cuda/common/graph_engine.py": [("engines/cuda/common", ("ids.cu",), {})],
    "engines/cuda/common/host_loop.py": [
        (
            PAPERS,
            (
                *("baselines/edge_parallel.cu", "baselines/harish.cu"),
                *("baselines/virtual_warp.cu", "cs406/frontier.cu", "cs406/layer.cu"),
            ),
            {},
        )
    ],
    "engines/cuda/common/paths.py": [
        (
            "engines/cuda/common",
            ("paths.cu",),
            {"WIDTH": PATH_WIDTHS, "VALUE": ("f64",)},
            {"WIDTH": (1,), "VALUE": ("u64", "f64")},
        )
    ],
    "engines/cuda/pan/search.py": [
        (
            "engines/cuda/pan",
            ("search.cu",),
            {**WIDTH, "VERTEX": ("int", "i64")},
        )
    ],
    "engines/cuda/papers/bfs4k/search.py": [
        (f"{PAPERS}/bfs4k", ("bfs4k.cu",), {**COUNTED, "CLAIM": FLAG})
    ],
    "engines/cuda/papers/xbfs/search.py": [(f"{PAPERS}/xbfs", ("paper.cu",), {})],
    "engines/cuda/xbfs/arrays.py": [
        ("engines/cuda/xbfs", ("prepare.cu",), {}),
        (
            "engines/cuda/xbfs",
            ("results.cu",),
            {"IN_IDS": (1,), "ID": ("u32",), "NAME": ("u32",)},
            {"IN_IDS": (1,), "ID": ("u64",), "NAME": ("u32", "u64")},
        ),
    ],
    "engines/cuda/xbfs/lookups.py": [("engines/cuda/xbfs", ("lookups.cu",), {})],
    "engines/cuda/xbfs/share_search.py": [  # one call for both
        (
            "engines/cuda/xbfs",
            ("domain.cu",),
            {"OFFSET": ("u32",), "COUNT": (0,), "IN_IDS": FLAG, "SPLIT": (0,)},
            {"OFFSET": ("u64",), "COUNT": (0,), "IN_IDS": (1,), "SPLIT": FLAG},
            *MASKED,
            {**PLAIN, **WIDTH},
            *ONE_WAY_DOMAIN,
        ),
        (
            "engines/cuda/xbfs",
            ("search.cu",),
            {"OFFSET": ("u32",), "COUNT": (0,), "IN_IDS": FLAG, "SPLIT": (0,)},
            {"OFFSET": ("u64",), "COUNT": (0,), "IN_IDS": (1,), "SPLIT": FLAG},
            *MASKED,
            FEW_FORMS[1],
            *({**form, "PLAIN": (1,)} for form in FEW_FORMS),
            {**PLAIN, **WIDTH},
            *({**form, "WINDOWS": (1,)} for form in WINDOWED),
            *({**form, "PLAIN": (1,), "NEAR": (1,)} for form in FEW_FORMS),
            {**PLAIN, "OFFSET": ("u32",), "NEAR": (1,)},
            *ONE_WAY,
        ),
    ],
    "engines/cuda/xbfs/between_share.py": [
        (
            "engines/cuda/xbfs",
            ("between.cu",),
            {**BETWEEN, "COUNT": (0,), "SPLIT": (0,)},
            {**BETWEEN, **SPLIT, "COUNT": (0,)},
            {**BETWEEN, "COUNT": (1,), **NARROW},
            {**BETWEEN, **SPLIT, "COUNT": (1,), "MASKED": (1,)},
            {**BETWEEN, **LARGE, "COUNT": (0,), "SPLIT": (0,)},
            {**BETWEEN, **LARGE, **SPLIT, "COUNT": (1,), "MASKED": (1,)},
        )
    ],
    "engines/cuda/xbfs/between_loop.py": [
        (
            "engines/cuda/xbfs",
            ("between_loop.cu",),
            {**LOOP, "SPLIT": (0,)},
            {**LOOP, "OFFSET": ("u64",), "SPLIT": (1,)},
            {**LOOP, **NARROW},
            {**LOOP, "OFFSET": ("u64",), "SPLIT": (1,), "MASKED": (1,)},
            {**LOOP, **LARGE, "SPLIT": (0,)},
            {**LOOP, **LARGE, **SPLIT, "MASKED": (1,)},
        )
    ],
    "engines/cuda/xbfs/cluster.py": [
        ("engines/cuda/xbfs", ("cluster.cu",), {"MASKED": FLAG})
    ],
    "engines/openmp/paths.py": [
        (
            "engines/openmp",
            ("paths.c",),
            {**C_WIDTH, "COUNT": (TYPES["uint64"],), "EXACT": (1,)},
            {**C_WIDTH, "COUNT": (TYPES["float64"],), "EXACT": (0,)},
        )
    ],
    "engines/openmp/part.py": [
        (
            "engines/openmp",
            ("part.c",),
            {**C_WIDTH, "VERTEX": ("int32_t", "int64_t"), "MASKED": FLAG},
        )
    ],
    "engines/openmp/whole.py": [
        (
            "engines/openmp",
            tuple({source_of(name).name for name in (*METHODS, BOTH_ENDS)}),
            {**C_WIDTH, "MASKED": FLAG},
        )
    ],
    "exchange/nccl.py": [("exchange", ("reduce.cu",), {})],
    "generate/cuda.py": [
        ("generate", ("kronecker.cu", "uniform.cu"), IDS),
        ("generate", ("permuted.cu",), IDS),
    ],
    "graph/trees.py": [
        ("graph", ("trees.c",), {"OFFSET": ("uint64_t",)}),
        ("graph", ("trees.c",), C_WIDTH),
    ],
    "store/owned_rows.py": [("store", ("owned_rows.c",), C_WIDTH)],
    "multisearch/bits.py": [("multisearch", ("bits.c",), {"WIDTH": WIDTHS, **C_WIDTH})],
    "multisearch/lookups.py": [("multisearch", ("lookups.c",), C_WIDTH)],
    "multisearch/cuda_meet.py": [
        (
            "multisearch",
            ("bits_meet.cu",),
            {"PIECES": (1,)},
        )
    ],
    "multisearch/cuda_program.py": [
        (
            "multisearch",
            ("multi.cu",),
            # the levels that a search keeps, for edges and for those who read them
            {**BLOCKS, "LEVELS": (1,), "LEVEL": tuple(BLOCK_LEVELS), "EDGES": FLAG},
            {**BLOCKS, "LEVELS": (0,), "LEVEL": ("u8",), "EDGES": (0,)},
        )
    ],
    "multisearch/domain_share.py": [
        ("multisearch", ("bits_domain.cu",), {"PIECES": LANES, "SPLIT": FLAG}),
        ("multisearch", ("bits_levels.cu",), {"LEVEL": ITEMS}),
        ("multisearch", ("bits.cu",), {"PIECES": LANES}),
    ],
    "multisearch/outer_bits.py": [
        ("multisearch", ("bits_outer.cu",), {"PIECES": LANES})
    ],
    "store/cuda_files.py": [("store", ("cuda_rows.cu",), {})],
    "validation/cuda_device.py": [
        (
            "validation",
            ("cuda.cu",),
            {**VALUES, "PARENT": shortened(PARENT_TYPES), "ID": ("u32",)},
            {**VALUES, "PARENT": ("i64",), "ID": ("u64",)},
        )
    ],
}


WITH_MACROS = ("cc.load", "cc.load_or_none", "programs.kernel_here")
SHARING = {"engines/cuda/xbfs/share_search.py": 2}  # files that one call loads


def calls_of(path):
    """Return the calls in a file that load kernels, from top to bottom."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = [
        (x, ast.unparse(x.func)) for x in ast.walk(tree) if isinstance(x, ast.Call)
    ]
    wanted = [
        x
        for x, name in names
        if name in ("programs.Module", "Module", "self._memory.module")
        or (name in WITH_MACROS and x.keywords)
    ]
    return sorted(wanted, key=lambda x: x.lineno)


@cache
def calls():
    """Return the calls of each Python file that has some."""
    return {
        str(path.relative_to(ROOT)): found
        for path in sorted(ROOT.rglob("*.py"))
        for found in [calls_of(path)]
        if found
        and path.name not in ("trials.py", "symmetric.py")  # take what is listed
    }


def as_set(variants):
    return {frozenset((key, str(x)) for key, x in v.items()) for v in variants}


def loaded():
    """Return the variants of each kernel file that the calls of LOADS ask for."""
    plain = {frozenset()}  # what cc.load takes without macros
    out = {name: set() for name in SOURCES}
    for calls in LOADS.values():
        for folder, files, *macros in calls:
            for file, values in product(files, macros):
                chosen = [
                    dict(zip(values, x, strict=True)) for x in product(*values.values())
                ]
                out[f"{folder}/{file}"] |= as_set(chosen)
    return {
        name: found or (plain if name.endswith(".c") else found)
        for name, found in out.items()
    }


def test_every_call_is_known():
    counts = {file: len(some) * SHARING.get(file, 1) for file, some in calls().items()}
    assert counts == {file: len(some) for file, some in LOADS.items()}


def test_calls_name_the_macros_of_the_table():
    """And their values, where a call says them itself."""
    for file, listed in LOADS.items():
        every = calls()[file] * SHARING.get(file, 1)
        for call, (_, _, *macros) in zip(every, listed, strict=True):
            compare_macros(call, macros, file)


def compare_macros(call, macros, file):
    """Compare the macros of one call with those that the table lists for it."""
    for keyword in call.keywords:
        if keyword.arg is None:  # handed through: cuda_problems.py names them
            continue
        said = keyword.value
        listed = {x for values in macros for x in values[keyword.arg]}
        if isinstance(said, ast.Constant):
            assert listed == {said.value}, file
        elif isinstance(said, ast.IfExp):
            values = {ast.literal_eval(x) for x in (said.body, said.orelse)}
            assert listed == values, file
        elif isinstance(said, ast.Call) and "word_of" in ast.unparse(said.func):
            assert listed == {"u32", "u64"}, file
    if all(keyword.arg for keyword in call.keywords):
        names = {x.arg for x in call.keywords}
        assert names == {k for v in macros for k in v}, file


def test_listed_is_what_is_loaded():
    by_calls = loaded()
    for file, path in SOURCES.items():
        listed = variants(path)
        assert as_set(listed) == by_calls[file], file
        assert len(as_set(listed)) == len(listed), file


SPECIAL = ("PLAIN", "AT_ONCE", "FEW_TREES", "WINDOWS")
GENERAL = ("COUNT", "SPLIT", "MASKED")


@pytest.mark.parametrize("name", ["search", "domain", "between", "between_loop"])
def test_each_variant_serves_what_only_it_can(name):
    source = SOURCES[f"engines/cuda/xbfs/{name}.cu"]
    for variant in variants(source):
        on = {macro for macro, value in variant.items() if value == "1"}
        exact = {x: y for x, y in variant.items() if x not in SPECIAL + GENERAL}
        exact.setdefault("DIRECTED", 0)
        needs = {macro: macro in on for macro in GENERAL}
        may = [macro for macro in SPECIAL if macro in on]
        assert dict(serving(source, exact, needs, may)) == variant
    with pytest.raises(LookupError, match=f"no variant of {name}.cu for "):
        serving(source, {"OFFSET": "u16"}, {})


def test_a_variant_that_serves_is_no_more_general_than_it_must_be(tmp_path):
    source = tmp_path / "some.cu"
    source.write_text("// variants: A=0,1 B=0 | A=1 B=1 | A=0 C=1 | A=0 C=1 D=1\n")
    for needs, may, wanted in (
        ((), (), {"A": "0", "B": "0"}),
        (("A",), (), {"A": "1", "B": "0"}),
        (("B",), (), {"A": "1", "B": "1"}),
        ((), ("C",), {"A": "0", "C": "1"}),
        ((), ("C", "D"), {"A": "0", "C": "1", "D": "1"}),
        (("A",), ("C", "D"), {"A": "1", "B": "0"}),
    ):
        needed = {macro: macro in needs for macro in "AB"}
        assert dict(serving(source, {}, needed, may)) == wanted
