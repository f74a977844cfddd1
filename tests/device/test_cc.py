"""Kernels are compiled once per content, by whoever comes first, or refused by name."""

import ctypes
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from launching import clean_environment

from distbfs.device import cc, compiler, sources
from distbfs.errors import CompilerMissing

SOURCE = '#include "number.h"\nint answer(void) { return NUMBER + MORE; }\n'
CACHED = (
    *(compiler.compiler_command, compiler.compiler_version, compiler.processor),
    cc._load,
)


def forget():
    for function in CACHED:
        function.cache_clear()


@pytest.fixture(autouse=True)
def fresh(monkeypatch, tmp_path):
    """A cache folder of its own, and nothing remembered before or after."""
    monkeypatch.setenv("DISTBFS_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("DISTBFS_CC", raising=False)
    monkeypatch.delenv("CC", raising=False)
    forget()
    yield
    forget()


@pytest.fixture
def source(tmp_path):
    (tmp_path / "number.h").write_text("#define NUMBER 40\n")
    path = tmp_path / "kernel.c"
    path.write_text(SOURCE)
    return path


def libraries(folder):
    return sorted(folder.glob("*.so"))


def test_compiles_and_runs(source, tmp_path):
    assert cc.load(source, MORE=2).answer() == 42
    assert len(libraries(tmp_path / "cache")) == 1


def test_the_second_load_compiles_nothing(source, tmp_path, monkeypatch):
    cc.load(source, MORE=2)
    before = {p: p.stat().st_mtime_ns for p in libraries(tmp_path / "cache")}
    forget()
    monkeypatch.setattr(
        compiler, "compile_to", lambda *_: pytest.fail("compiled again")
    )
    assert cc.load(source, MORE=2).answer() == 42
    assert {p: p.stat().st_mtime_ns for p in libraries(tmp_path / "cache")} == before


def test_every_input_changes_the_key(source, tmp_path, monkeypatch):
    keys = [compiler.content_key(source, {"MORE": 2})]
    assert compiler.content_key(source, {"MORE": 2}) == keys[0]
    keys.append(compiler.content_key(source, {"MORE": 3}))
    keys.append(compiler.content_key(source, {"MORE": 2, "LESS": 1}))
    source.write_text(SOURCE + "int more;\n")
    keys.append(compiler.content_key(source, {"MORE": 2}))
    (tmp_path / "number.h").write_text("#define NUMBER 41\n")
    keys.append(compiler.content_key(source, {"MORE": 2}))
    monkeypatch.setattr(compiler, "FLAGS", (*compiler.FLAGS, "-g"))
    keys.append(compiler.content_key(source, {"MORE": 2}))
    monkeypatch.setattr(compiler, "compiler_version", lambda: "another compiler")
    keys.append(compiler.content_key(source, {"MORE": 2}))
    monkeypatch.setattr(compiler, "processor", lambda: "another processor")
    keys.append(compiler.content_key(source, {"MORE": 2}))
    assert len(set(keys)) == len(keys)


def test_comments_do_not_change_it(source, tmp_path):
    key = compiler.content_key(source, {"MORE": 2})
    source.write_text(f"/* more */\n{SOURCE}")
    (tmp_path / "number.h").write_text("#define NUMBER 40 // more\n")
    assert compiler.content_key(source, {"MORE": 2}) == key


def test_the_order_of_definitions_does_not(source):
    assert compiler.content_key(source, {"A": 1, "B": 2}) == compiler.content_key(
        source, {"B": 2, "A": 1}
    )
    assert cc.load(source, MORE=2, A=1) is cc.load(source, A=1, MORE=2)


def test_a_changed_header_gives_a_new_library(source, tmp_path):
    assert cc.load(source, MORE=2).answer() == 42
    (tmp_path / "number.h").write_text("#define NUMBER 50\n")
    forget()
    assert cc.load(source, MORE=2).answer() == 52
    assert cc.load(source, MORE=3).answer() == 53
    assert len(libraries(tmp_path / "cache")) == 3


def test_headers_of_headers_are_seen(source, tmp_path):
    (tmp_path / "number.h").write_text('#include "sub/deep.h"\n#include "number.h"\n')
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "deep.h").write_text("#pragma once\n#define NUMBER 1\n")
    names = [path.name for path in sources.source_closure(source)]
    assert names == ["kernel.c", "number.h", "deep.h"]
    key = compiler.content_key(source, {})
    (tmp_path / "sub" / "deep.h").write_text("#define NUMBER 2\n")
    assert compiler.content_key(source, {}) != key


COMPILE = """
import sys
from pathlib import Path
from distbfs.device import cc, compiler, sources
real = compiler.compile_to
def noted(*arguments):
    print("compiled", flush=True)
    real(*arguments)
compiler.compile_to = noted
assert cc.load(Path(sys.argv[1]), MORE=2).answer() == 42
"""


def test_processes_that_start_together_compile_once(source, tmp_path):
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", COMPILE, str(source)],
            env=clean_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(5)
    ]
    said = [run.communicate(timeout=120) for run in runs]
    assert [run.returncode for run in runs] == [0] * 5, said
    assert "".join(out for out, _ in said) == "compiled\n"
    left = {path.suffix for path in (tmp_path / "cache").iterdir()}
    assert left == {".so", ".lock"}
    assert len(libraries(tmp_path / "cache")) == 1


def test_an_unfinished_library_is_never_seen(source, tmp_path, monkeypatch):
    """What the compiler writes has another name until it is complete."""
    seen = []
    real = subprocess.run

    def run(command, **options):
        if "-o" in command:
            seen.append(Path(command[command.index("-o") + 1]).name)
        return real(command, **options)

    monkeypatch.setattr(subprocess, "run", run)
    cc.load(source, MORE=2)
    final = [path.name for path in libraries(tmp_path / "cache")]
    assert len(seen) == 1
    assert seen[0] not in final
    assert final[0].startswith("kernel-")


@pytest.mark.parametrize("name", ["DISTBFS_CC", "CC"])
@pytest.mark.parametrize("value", ["none", "/no/such/compiler", "no-such-compiler"])
def test_no_compiler(source, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    with pytest.raises(CompilerMissing, match=f"no C compiler.*{value}") as caught:
        cc.load(source, MORE=2)
    assert caught.value.exit_code == 3
    assert cc.load_or_none(source, MORE=2) is None


def test_distbfs_cc_comes_before_cc(monkeypatch):
    monkeypatch.setenv("CC", "/no/such/compiler")
    monkeypatch.setenv("DISTBFS_CC", "cc")
    assert Path(compiler.find_compiler()).name == "cc"


def test_no_compiler_on_the_path(source, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(
        CompilerMissing, match="no C compiler: cc, gcc, clang not found"
    ):
        cc.load(source, MORE=2)


def test_errors_of_the_source_are_named(source, tmp_path):
    source.write_text("int answer(void) { return nowhere; }\n")
    with pytest.raises(
        CompilerMissing, match=r"cannot compile kernel\.c: .*nowhere"
    ) as e:
        cc.load(source)
    assert "\n" not in str(e.value)
    assert cc.load_or_none(source) is None
    assert [p.suffix for p in (tmp_path / "cache").iterdir()] == [".lock"]


def test_a_header_that_is_missing_is_named(source, tmp_path):
    (tmp_path / "number.h").unlink()
    with pytest.raises(CompilerMissing, match=r"cannot compile kernel\.c: .*number\.h"):
        cc.load(source, MORE=2)


def test_a_compiler_that_fails_without_a_word(source, monkeypatch):
    monkeypatch.setenv("DISTBFS_CC", "false")
    with pytest.raises(
        CompilerMissing, match=r"false cannot compile kernel\.c: exit code 1"
    ):
        cc.load(source, MORE=2)


def test_a_compiler_that_does_not_know_the_processor(source, tmp_path, monkeypatch):
    """Without -march=native and -mcpu=native it is tried plainly."""
    script = tmp_path / "picky"
    script.write_text(
        '#!/bin/sh\nfor a in "$@"; do case $a in -m*=native) exit 1;; esac; done\n'
        'exec cc "$@"\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("DISTBFS_CC", str(script))
    assert cc.load(source, MORE=2).answer() == 42


def test_a_compiler_that_hangs(source, tmp_path, monkeypatch):
    script = tmp_path / "slow"
    script.write_text('#!/bin/sh\n[ "$1" = --version ] && exit 0\nexec sleep 60\n')
    script.chmod(0o755)
    monkeypatch.setenv("DISTBFS_CC", str(script))
    monkeypatch.setattr(compiler, "COMPILE_SECONDS", 0.2)
    with pytest.raises(
        CompilerMissing, match=r"slow cannot compile kernel\.c: not done after 0\.2 s"
    ):
        cc.load(source, MORE=2)
    assert not libraries(tmp_path / "cache")


def test_a_library_that_is_damaged_is_compiled_again(source, tmp_path):
    key = compiler.content_key(source, {"MORE": 2})
    damaged = cc.cache_folder() / f"kernel-{key}.so"
    damaged.write_bytes(b"nothing")
    cc.load(source, MORE=2)
    assert damaged.stat().st_size > 1000


def test_a_compiler_with_arguments(source, monkeypatch):
    monkeypatch.setenv("DISTBFS_CC", "env EMPTY= cc")
    assert compiler.compiler_command()[1:] == ("EMPTY=", "cc")
    cc.load(source, MORE=3)


def test_the_folder_is_private(tmp_path):
    folder = cc.cache_folder()
    assert folder == tmp_path / "cache"
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.fixture
def own_temporary(monkeypatch, tmp_path):
    """The temporary folder that a second choice lies in."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"distbfs-{os.getuid()}"


def test_where_the_folder_lies(monkeypatch, tmp_path):
    monkeypatch.delenv("DISTBFS_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cc.cache_folder() == tmp_path / "xdg" / "distbfs"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cc.cache_folder() == tmp_path / "home" / ".cache" / "distbfs"


def test_a_folder_that_cannot_be_made(source, monkeypatch, tmp_path, own_temporary):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("DISTBFS_CACHE", str(tmp_path / "file" / "cache"))
    assert cc.cache_folder() == own_temporary
    assert own_temporary.stat().st_mode & 0o777 == 0o700
    assert cc.load(source, MORE=2).answer() == 42


def test_a_folder_that_cannot_be_written(monkeypatch, tmp_path, own_temporary):
    (tmp_path / "cache").mkdir()
    real = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: path != tmp_path / "cache" and real(path, mode)
    )
    assert cc.cache_folder() == own_temporary


def give_away(path):
    """Let a folder, file or link belong to another user."""
    if os.getuid():
        pytest.skip("only root can give files away")
    os.lchown(path, 4321, 4321)


def planted(source, folder, mode=0o700):
    """Put another library where that of a kernel is looked for."""
    other = source.with_name("other.c")
    other.write_text("int answer(void) { return 666; }\n")
    folder.mkdir(exist_ok=True)
    target = folder / f"{source.stem}-{compiler.content_key(source, {'MORE': 2})}.so"
    compiler.compile_to(other, target, {})
    target.chmod(mode)
    return target


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o770, 0o702])
def test_a_folder_that_others_may_write_to(source, tmp_path, own_temporary, mode):
    folder = tmp_path / "cache"
    target = planted(source, folder)
    folder.chmod(mode)
    assert cc.load(source, MORE=2).answer() == 42
    assert cc.cache_folder() == own_temporary
    assert list(folder.iterdir()) == [target], "not even a lock"


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777])
def test_a_folder_in_one_that_others_may_write_to(
    source, tmp_path, monkeypatch, own_temporary, mode
):
    folder = tmp_path / "parent" / "cache"
    folder.parent.mkdir()
    monkeypatch.setenv("DISTBFS_CACHE", str(folder))
    planted(source, folder)
    folder.parent.chmod(mode)
    sticky = mode == 0o1777
    assert cc.load(source, MORE=2).answer() == (666 if sticky else 42)
    assert cc.cache_folder() == (folder if sticky else own_temporary)


def test_a_folder_of_another_user(source, tmp_path, own_temporary):
    planted(source, tmp_path / "cache")
    give_away(tmp_path / "cache")
    assert cc.load(source, MORE=2).answer() == 42
    assert cc.cache_folder() == own_temporary


def test_a_home_of_another_user(source, tmp_path, monkeypatch, own_temporary):
    """As root has it in a container; nothing of root is made there."""
    home = tmp_path / "home"
    home.mkdir()
    give_away(home)
    monkeypatch.delenv("DISTBFS_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(home))
    assert cc.load(source, MORE=2).answer() == 42
    assert cc.cache_folder() == own_temporary
    assert list(home.iterdir()) == []


def test_a_link_of_another_user(source, tmp_path, own_temporary):
    (tmp_path / "cache").symlink_to(tmp_path / "private")
    planted(source, tmp_path / "private")
    give_away(tmp_path / "cache")
    assert cc.load(source, MORE=2).answer() == 42
    assert cc.cache_folder() == own_temporary


def test_a_link_of_the_user(tmp_path):
    (tmp_path / "private").mkdir(mode=0o700)
    (tmp_path / "cache").symlink_to(tmp_path / "private")
    assert cc.cache_folder() == tmp_path / "private"


WHERE = """
import os, sys, tempfile
from pathlib import Path
from distbfs.device import cc, compiler, sources
assert cc.load(Path(sys.argv[1]), MORE=2).answer() == 42
print(cc.cache_folder(), oct(cc.cache_folder().stat().st_mode)[-3:])
"""


def test_no_folder_of_the_user_can_be_trusted(source, tmp_path):
    """Then a new one is used, said in one line, that goes with the process."""
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    open_to_all = tmp_path / f"distbfs-{os.getuid()}"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    done = subprocess.run(
        [sys.executable, "-c", WHERE, str(source)],
        env=clean_environment({"TMPDIR": str(tmp_path)}),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    folder, mode = done.stdout.split()
    assert Path(folder).parent == tmp_path
    assert mode == "700"
    assert not Path(folder).exists()
    assert done.stderr == (
        f"distbfs: other users can change {tmp_path / 'cache'}; compiled kernels go to "
        f"{folder} (DISTBFS_CACHE names another folder)\n"
    )


def test_folders_on_the_way_are_private(tmp_path, monkeypatch):
    monkeypatch.setenv("DISTBFS_CACHE", str(tmp_path / "a" / "b" / "cache"))
    before = os.umask(0o002)
    try:
        assert cc.cache_folder() == tmp_path / "a" / "b" / "cache"
    finally:
        os.umask(before)
    for folder in (tmp_path / "a", tmp_path / "a" / "b"):
        assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("how", ["open", "given away", "link", "lock"])
def test_files_that_others_left(source, tmp_path, how):
    """A folder may have been open before: what was put there is not run or followed."""
    target = planted(source, tmp_path / "cache", 0o722 if how == "open" else 0o700)
    (tmp_path / "cache").chmod(0o700)
    mine = tmp_path / "mine"
    if how == "given away":
        give_away(target)
    elif how == "link":
        target.rename(mine)
        target.symlink_to(mine)
    elif how == "lock":
        target.unlink()
        mine.write_text("mine")
        lock = target.with_suffix(".lock")
        lock.symlink_to(mine)
    assert cc.load(source, MORE=2).answer() == 42
    if how == "lock":
        assert mine.read_text() == "mine"
        assert not lock.is_symlink()


def test_arguments_of_calls():
    """Whole numbers have 64 bits; what ctypes has made stays."""
    values, small = np.arange(3), ctypes.c_int32(7)
    array, none, number, counted, kept = cc.arguments(
        values, None, 1 << 40, np.int64(5), small
    )
    assert array.value == values.ctypes.data
    assert none.value is None
    assert (type(number), number.value) == (ctypes.c_int64, 1 << 40)
    assert (type(counted), counted.value) == (ctypes.c_int64, 5)
    assert kept is small
    with pytest.raises(ValueError, match="contiguous"):
        cc.arguments(values[::2])


def test_pointers():
    array = np.arange(4)
    assert cc.pointer(array).value == array.ctypes.data
    assert cc.pointer(None).value is None
    with pytest.raises(ValueError, match="contiguous"):
        cc.pointer(array[::2])
    assert isinstance(cc.pointer(np.zeros(0)), ctypes.c_void_p)


@pytest.mark.parametrize("count", [0, 1, 63, 1000])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint32, np.int64])
def test_aligned_arrays(count, dtype):
    array = cc.aligned_empty(count, dtype)
    assert array.shape == (count,)
    assert array.dtype == dtype
    assert array.ctypes.data % 64 == 0 or not count
    array[:] = 1


def test_threads(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert cc.thread_count(5) == 5
    assert cc.thread_count() == len(os.sched_getaffinity(0))
    for value, wanted in (("3", 3), ("4,2", 4), ("0", None), ("all", None)):
        monkeypatch.setenv("OMP_NUM_THREADS", value)
        assert cc.thread_count() == (wanted or len(os.sched_getaffinity(0)))
