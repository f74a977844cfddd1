"""What of a source counts for cache keys: its code, by the compiler's own reading."""

import shutil
import subprocess
from pathlib import Path

import pytest

import distbfs
from distbfs.device.sources import closure_code, code_of, kernels

ROOT = Path(distbfs.__file__).parent
ENDINGS = (".c", ".h", ".cu", ".cuh")
FILES = sorted(x for x in ROOT.rglob("*") if x.suffix in ENDINGS)
COMMENTS = [
    "// a word",
    "// a longer\\\nword",
    "// it's a \"word",
    "// no /* begin",
    "/* a word */",
    "/* a\n * word */",
    "/* it's // a \"word */",
    "/**/",
]
SAME = [
    *[("int x;", f"int x; {x}") for x in COMMENTS],
    *[("int x;\nint y;", f"{x}\nint x;\n\n{x}\nint y;") for x in COMMENTS],
    ("int x;\nint y;", "int x;  \n\t\n\n  int y;\n"),
    ("int x = 1 / 2;", "int  x = 1\t/ 2; // half"),
    ("#define A 1 2\nint x;", "#define A 1 /* one\n and */ 2\nint x;"),
    ("#define A 1 \\\n 2\nint x;", "#define A 1 \\\n   /* two */ 2 // 2\nint x;"),
    ('char *x = "//"; int y;', 'char *x = "//"; /* a */ int y; // "'),
    ("char x = '\"';\nint y;", "char x = '\"'; // '\"\nint y;"),
    ("char x = '\\''; int y;", "char x = '\\''; /* ' */ int y;"),
    ('char *x = "\\"//"; int y;', 'char *x = "\\"//"; /* " */ int y;'),
    ("#include <a//b>\nint y;", "#include <a//b> // c\nint y;"),
]
OTHER = [
    *[("int x;", f"{x}\nint y;") for x in COMMENTS],
    *[(f"{x}\nint x;", f"{x}\nint y;") for x in COMMENTS],
    ('char *x = "// a";', 'char *x = "// b";'),
    ('char *x = "/* a */";', 'char *x = "/* b */";'),
    ('char *x = "a  b";', 'char *x = "a b";'),
    ('char *x = "\\"// a";', 'char *x = "\\"// b";'),
    ('char *x = "a\\\n// b";', 'char *x = "a\\\n// c";'),
    ('int x = \'"\'; char *y = "// a";', 'int x = \'"\'; char *y = "// b";'),
    ("int x = '/*'; int y; /* */", "int x = '/*'; int z; /* */"),
    ("/* a */ int x; /* b */", "/* a */ int y; /* b */"),
    ("#include <a//b>", "#include <a//c>"),
    ("int x;", "int/**/x;z"),
    ("intx;", "int/**/x;"),
    ("#define A x\ny", "#define A x y"),
    ("#define A x \\\n\ny", "#define A x \\\ny"),
    ("in\\\nt x;", "in\\\n t x;"),
    ("int x = 1'000; char y = '\"'; char *z = \"// a\";",) * 2,
    ('char *x = R"(// a\n)";',) * 2,
    ("#error it's // a",) * 2,
    ("// a\r\nint x;",) * 2,
    ("// a\\ \nint x;",) * 2,
    ("/\\\n/ a\nint x;",) * 2,
    ("int x; /* a",) * 2,
]


@pytest.mark.parametrize(("text", "other"), SAME)
def test_comments_do_not_count(text, other):
    assert code_of(other.encode()) == code_of(text.encode())


@pytest.mark.parametrize(("text", "other"), OTHER)
def test_code_counts(text, other):
    """Of one text twice: all of it counts, since its comments are not clear."""
    if text == other:
        assert code_of(text.encode()) == text.encode()
    else:
        assert code_of(other.encode()) != code_of(text.encode())


def tokens(text):
    """What the preprocessor reads, without comments."""
    command = ["gcc", "-fpreprocessed", "-dD", "-E", "-P", "-w", "-x", "c", "-"]
    done = subprocess.run(command, input=text, capture_output=True, check=True)
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
def test_no_code_is_lost():
    """Of all sources: the compiler reads the same without the comments."""
    texts = [path.read_bytes() for path in FILES]
    assert tokens(b"\n".join(map(code_of, texts))) == tokens(b"\n".join(texts))


def test_comments_of_every_source_are_clear():
    """No file counts as a whole, so that a comment would compile it anew."""
    assert len(FILES) > 100
    texts = {path: path.read_bytes() for path in FILES}
    changed = {path: text + b"// it's new\n" for path, text in texts.items()}
    assert not [x for x in FILES if code_of(changed[x]) != code_of(texts[x])]


def test_headers_count_by_name_and_code(tmp_path):
    source, header = tmp_path / "one.c", tmp_path / "one.h"
    source.write_text('#include "one.h"\nint x = ONE;\n')
    header.write_text("#define ONE 1\n")
    kept = closure_code(source)
    header.write_text("#define ONE 1 // 2\n")
    assert closure_code(source) == kept
    header.write_text("#define ONE 2\n")
    assert closure_code(source) != kept


def test_names_of_kernels(tmp_path):
    source = tmp_path / "some.cu"
    source.write_text(
        'extern "C" __global__ void one(int *x) {}\n'
        "__device__ void two() {}\n"
        'extern "C" __global__ void __launch_bounds__(WIDE, 1) three(\n    int x) {}\n'
    )
    assert kernels(source) == ["one", "three"]
