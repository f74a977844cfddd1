"""Portable kernels: which serve, and when they do."""

import platform
import shutil

import pytest

from distbfs.device import cc, compiler, portable, sources
from distbfs.errors import CompilerMissing

SOURCE = "/* variants: MORE=2 */\nint answer(void) { return 40 + MORE; }\n"
CACHED = (compiler.compiler_command, compiler.compiler_version, cc._load)
FLAGS = {
    "x86-64-v2": "fpu cx16 lahf_lm pni popcnt sse4_1 sse4_2 ssse3",
    "x86-64-v3": "abm avx avx2 bmi1 bmi2 f16c fma movbe xsave",
    "x86-64-v4": "avx512f avx512bw avx512cd avx512dq avx512vl",
}
HERE = portable.levels_of(compiler.processor())
pytestmark = pytest.mark.skipif(not HERE, reason="no level fits this processor")


def forget():
    for function in CACHED:
        function.cache_clear()
    cc.PORTABLE_LEVELS.clear()


@pytest.fixture
def kernel(monkeypatch, tmp_path):
    """A kernel of a package whose wheel brought it for every level of this machine."""
    package = tmp_path / "package"
    package.mkdir()
    path = package / "kernel.c"
    path.write_text(SOURCE)
    monkeypatch.setattr(portable, "PACKAGE", package)
    monkeypatch.setattr(portable, "FOLDER", tmp_path / "wheel")
    portable.FOLDER.mkdir()
    portable.build(portable.FOLDER, portable.levels())
    monkeypatch.setenv("DISTBFS_CC", "none")
    monkeypatch.setenv("DISTBFS_CACHE", str(tmp_path / "cache"))
    forget()
    yield path
    forget()


def test_every_variant_and_level_has_a_library(kernel):
    levels = [path.name.partition("-")[2] for path in portable.FOLDER.iterdir()]
    assert len(levels) == len(portable.levels())
    assert len(sources.variants(kernel)) == 1
    for level in portable.levels():
        assert any(name.startswith(f"{level}-") for name in levels)


@pytest.mark.parametrize("compiler_name", ["none", "/no/such/compiler", "false"])
def test_without_a_compiler_that_works(kernel, monkeypatch, compiler_name):
    monkeypatch.setenv("DISTBFS_CC", compiler_name)
    kernel.write_text(f"/* one more */\n{SOURCE}")
    assert cc.load(kernel, MORE=2).answer() == 42
    assert cc.made_by() == f"portable, {HERE[0]}"


@pytest.mark.parametrize("other", ["", "CC"])
def test_without_a_compiler_that_was_named(kernel, monkeypatch, other):
    monkeypatch.delenv("DISTBFS_CC")
    if other:
        monkeypatch.setenv(other, "false")
    assert str(portable.FOLDER) in cc.load(kernel, MORE=2)._name


def test_a_compiler_that_is_named_comes_first(kernel, monkeypatch):
    monkeypatch.setenv("DISTBFS_CC", "cc")
    library = cc.load(kernel, MORE=2)
    assert library.answer() == 42
    assert str(portable.FOLDER) not in library._name
    assert cc.made_by() == compiler.compiler_version()


@pytest.mark.parametrize("change", ["source", "macro", "flags", "damage"])
def test_what_is_not_of_this_source_is_not_loaded(kernel, monkeypatch, change):
    more = 2
    if change == "source":
        kernel.write_text(SOURCE.replace("40", "50"))
    elif change == "macro":
        more = 3
    elif change == "flags":
        monkeypatch.setattr(compiler, "FLAGS", (*compiler.FLAGS, "-g"))
    else:
        for path in portable.FOLDER.iterdir():
            path.write_bytes(b"nothing")
    said = "cannot load kernel-" if change == "damage" else "DISTBFS_CC is 'none'"
    with pytest.raises(CompilerMissing, match=said):
        cc.load(kernel, MORE=more)
    assert cc.load_or_none(kernel, MORE=more) is None


@pytest.mark.skipif(len(HERE) < 2, reason="one level fits this processor")
def test_the_next_level_where_the_highest_is_missing(kernel):
    for path in portable.FOLDER.glob(f"kernel-{HERE[0]}-*"):
        path.unlink()
    assert cc.load(kernel, MORE=2).answer() == 42
    assert cc.made_by() == f"portable, {HERE[1]}"


@pytest.mark.parametrize("count", range(4))
def test_levels_of_processors(monkeypatch, count):
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    words = " ".join(list(FLAGS.values())[:count])
    text = f"flags\t\t: vme {words}\nmodel name\t: Some {FLAGS['x86-64-v4']}"
    assert portable.levels_of(text) == tuple(list(FLAGS)[:count][::-1])
    one_more = f"flags\t\t: vme {FLAGS['x86-64-v2']}\n{text}"
    assert portable.levels_of(one_more) == tuple(list(FLAGS)[: min(count, 1)])


def test_levels_of_other_machines(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert portable.levels_of("Features\t: fp asimd") == ("armv8-a",)
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert portable.levels() == portable.levels_of("isa\t: rv64imafdc") == ()


def test_a_kernel_that_does_not_compile(kernel, monkeypatch, tmp_path):
    monkeypatch.delenv("DISTBFS_CC")
    forget()
    kernel.write_text("int answer(void) { return nowhere; }\n")
    shutil.rmtree(portable.FOLDER)
    portable.FOLDER.mkdir()
    with pytest.raises(CompilerMissing, match=r"cannot compile kernel\.c: .*nowhere"):
        portable.build(portable.FOLDER, portable.levels())
    assert list(portable.FOLDER.iterdir()) == []
