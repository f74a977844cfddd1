"""Try mutations of the code on copies of the tree, and list those that no test detects.

A mutation is a comment at the end of its line, or above it on lines of its own:

    if (n >= 2) return; /* mutant: >= -> > : test_rows::test_two, test_paths */

It says that ``>=``, which occurs once in the line, becomes ``>``, and which tests
should fail by it: files of tests, or functions in them. In Python it begins with ``#``
and goes on in lines that begin with ``#`` and three spaces. Tests of tests/mpi run on
two ranks.

The tests first run without it; then it is made in a copy of the files that git tracks,
and they run again: the cases of --quick, and all cases if it lives. A run that takes
much longer than without counts as killed, with a note. Compiled kernels are cached by
content for the whole run. A name is FILE:LINE.

    python scripts/mutations.py --jobs 2
    python scripts/mutations.py --list '*/bfs4k/*'

Exit code 1: a mutation survives, or only cases that are not quick kill it; 2: one
cannot be made, or its tests fail without it.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parents[1]
PYTEST = ("-m", "pytest", "-x", "-n", "0", "-p", "no:cacheprovider", "--tb=line")
RANKS = ("mpiexec", "-n", "2")
TIERS = {"killed": ("--quick",), "not quick": ()}  # the state of what dies in them
PATIENCE, SLOWER = 30, 4  # a run may take 30 s and 4 times as long as without mutation
FIRST = 600  # seconds of a run without mutation
C = re.compile(r"/\*\smutant:(.*?)\*/", re.DOTALL)
PYTHON = re.compile(r"#\smutant:(.*(?:\n[ \t]*#   .*)*)")
COMMENTS = {".py": PYTHON, ".c": C, ".h": C, ".cu": C, ".cuh": C}
GOES_ON = re.compile(r"\s*\n\s*(?:[#*] )?\s*")
FORM = re.compile(r"(.+?) ->(.*) : (test_\S.*|\w+/test_\S.*)")
BLANK_LINES = re.compile(r"(?:[ \t]*\n)*")
DEFINED = re.compile(r"\bdef (test_\w+)\(")
FAILED = re.compile(
    r"^(?:FAILED|ERROR|rank \d+ failed in) (.+?)(?: - .*)?$", re.MULTILINE
)
NOT_COMPILED = re.compile(r"cannot compile \S+: .*|CalledProcessError.*|.*: error: .*")


@dataclass(frozen=True)
class Mutation:
    """One change of one line.

    at: where in the file the text begins; tests: files or functions that should fail;
    fault: why it cannot be made, "" if it can
    """

    file: str
    line: int
    at: int
    before: str
    after: str
    tests: tuple[str, ...]
    fault: str = ""

    @property
    def name(self) -> str:
        """Return FILE:LINE."""
        return f"{self.file}:{self.line}"

    def made(self, text: str) -> str:
        """Return the text of the file with it."""
        return text[: self.at] + self.after + text[self.at + len(self.before) :]


@dataclass(frozen=True)
class Run:
    """How tests ended.

    code: the exit code, None if they took too long; test: the first that failed
    """

    code: int | None
    test: str
    passed: int
    seconds: float
    text: str


def tracked() -> list[str]:
    """Return the files that git tracks and that are there."""
    listed = ["git", "-C", str(ROOT), "ls-files", "-z"]
    names = subprocess.run(listed, check=True, capture_output=True, text=True).stdout
    return [name for name in names.split("\0") if name and (ROOT / name).is_file()]


def mutations() -> list[Mutation]:
    """Read all mutations of the tree."""
    files = tracked()
    tests = {
        name: set(DEFINED.findall((ROOT / name).read_text(encoding="utf-8")))
        for name in files
        if name.startswith("tests/") and name.endswith(".py")
    }
    code = [x for x in files if x not in tests and Path(x).suffix in COMMENTS]
    return [mutation for name in code for mutation in mutations_of(name, tests)]


def mutations_of(name: str, tests: dict[str, set[str]]) -> Iterator[Mutation]:
    """Read the mutations of a file; tests: the functions of each file of tests."""
    text = (ROOT / name).read_text(encoding="utf-8")
    comments = list(COMMENTS[Path(name).suffix].finditer(text))
    plain = text  # without the comments, each character where it was
    for x in comments:
        blank = re.sub(r"[^\n]", " ", x[0])
        plain = plain[: x.start()] + blank + plain[x.end() :]
    for x in comments:
        begin = plain.rfind("\n", 0, x.start()) + 1
        begin += len(BLANK_LINES.match(plain[begin:])[0])
        line = plain[begin:].partition("\n")[0]
        form = FORM.fullmatch(GOES_ON.sub(" ", x[1]).strip())
        before, after = (form[1], form[2].strip()) if form else ("", "")
        ids: tuple[str, ...] = ()
        try:
            if not form:
                raise ValueError(f"no 'OLD -> NEW : test': {x[0]}")
            if line.count(before) != 1:
                raise ValueError(f"its line does not have '{before}' once: {line}")
            if before == after:
                raise ValueError("it changes nothing")
            ids = tuple(id_of(test, tests) for test in form[3].split(", "))
            fault = ""
        except ValueError as wrong:
            fault = str(wrong)
        at, number = begin + line.find(before), plain.count("\n", 0, begin) + 1
        yield Mutation(name, number, at, before, after, ids, fault)


def id_of(test: str, tests: dict[str, set[str]]) -> str:
    """Return pytest's name of a test that is named by file, function or both."""
    stem, colons, rest = test.partition("::")
    paths = [path for path in tests if path.endswith(f"/{stem}.py")]
    if not colons and not paths:
        stem, colons, rest = "", "::", test
        paths = [path for path in tests if test.partition("[")[0] in tests[path]]
    elif colons:
        paths = [path for path in paths if rest.partition("[")[0] in tests[path]]
    if len(paths) != 1:
        raise ValueError(f"{len(paths)} tests have the name {test}, not one")
    return paths[0] + colons + rest


def copy_tree(target: Path) -> None:
    """Copy the files that git tracks, in their present state."""
    for name in tracked():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target / name)


def run_tests(tree: Path, words: tuple[str, ...], cache: Path, limit: float) -> Run:
    """Run tests in a tree; words: options, and tests."""
    command = [sys.executable, *PYTEST, *words]
    if any(word.startswith("tests/mpi/") for word in words):
        command = [*RANKS, *command[:3], "--with-mpi", *command[3:]]
    mine = {"PYTHONPATH": str(tree), "DISTBFS_CACHE": str(cache)}
    mine |= {"PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "2"}
    begin = time.monotonic()
    running = subprocess.Popen(
        command,
        cwd=tree,
        env={**os.environ, **mine},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    code: int | None = None
    try:
        text, _ = running.communicate(timeout=limit)
        code = running.returncode
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)
        text, _ = running.communicate()
    failed = FAILED.search(text)
    passed = re.search(r"(\d+) passed", text)
    return Run(
        code,
        failed[1] if failed else "",
        int(passed[1]) if passed else 0,
        time.monotonic() - begin,
        text,
    )


def judge(run: Run, limit: float) -> tuple[str, str]:
    """Return (killed, lives or broken, reason)."""
    if run.code is None:
        return "killed", f"a run of more than {limit:.0f} s"
    if run.code == 0:
        return "lives", ""
    wrong = NOT_COMPILED.search(run.text)
    if wrong:
        return "broken", wrong[0].strip()
    if run.code < 0:
        return "killed", f"signal {signal.Signals(-run.code).name}"
    if not run.test:
        return "broken", "pytest: " + run.text.strip().rpartition("\n")[2]
    return "killed", run.test


class Trees:
    """Copies of the tree and the kernel cache; one run at a time uses a copy."""

    def __init__(self, folder: Path, jobs: int) -> None:
        self.cache = folder / "cache"
        self.cache.mkdir(mode=0o700)
        self._free: SimpleQueue[Path] = SimpleQueue()
        for k in range(jobs):
            tree = folder / f"tree-{k}"
            copy_tree(tree)
            self._free.put(tree)

    def run(
        self, words: tuple[str, ...], limit: float, mutation: Mutation | None
    ) -> Run:
        """Run tests, with a mutation or without; words: options, and tests."""
        tree = self._free.get()
        path = tree / (mutation.file if mutation else "README.md")
        text = path.read_text(encoding="utf-8")
        try:
            if mutation:
                path.write_text(mutation.made(text), encoding="utf-8")
            return run_tests(tree, words, self.cache, limit)
        finally:
            path.write_text(text, encoding="utf-8")
            self._free.put(tree)


def limit_of(words: tuple[str, ...], trees: Trees) -> tuple[float, str]:
    """Run tests without a mutation; return the seconds that they may take with one.

    Second: why they say nothing of mutations, "" if they do.
    """
    run = trees.run(words, FIRST, None)
    if run.code is None:
        fault = f"take more than {FIRST} s without a mutation"
    elif run.code:
        fault = f"fail without a mutation: {run.test or run.text}"
    else:
        fault = "" if run.passed else "are skipped"
    return PATIENCE + SLOWER * run.seconds, fault and f"{' '.join(words)} {fault}"


def try_group(group: list[Mutation], trees: Trees) -> list[dict[str, object]]:
    """Run tests shared by mutations without any, then with each; print lines."""
    rows, left = [], group
    for dead, tier in TIERS.items():
        words, trying, left = (*tier, *group[0].tests), left, []
        limit, broken = limit_of(words, trees) if trying else (0.0, "")
        for mutation in trying:
            state, by, seconds = "broken", broken, 0.0
            if not broken:
                run = trees.run(words, limit, mutation)
                (state, by), seconds = judge(run, limit), run.seconds
            if state == "lives" and tier:
                left.append(mutation)
                continue
            state = dead if state == "killed" else state
            change = f"{mutation.before} -> {mutation.after}"
            line = f"{state:9} {mutation.name} {seconds:4.0f} s  "
            print(line + (by or change), flush=True)
            row: dict[str, object] = {"name": mutation.name, "change": change}
            rows.append(row | {"state": state, "by": by, "seconds": seconds})
    return rows


def try_all(chosen: list[Mutation], jobs: int) -> list[dict[str, object]]:
    """Try mutations, those with the same tests one after the other."""
    groups: dict[object, list[Mutation]] = {}
    for mutation in chosen:
        groups.setdefault(mutation.tests, []).append(mutation)
    with tempfile.TemporaryDirectory(prefix="mutations-") as name:
        trees = Trees(Path(name), jobs)
        with ThreadPoolExecutor(jobs) as pool:
            begun = [pool.submit(try_group, group, trees) for group in groups.values()]
            return [row for done in begun for row in done.result()]


class CannotRunError(Exception):
    """What was requested cannot be run."""


def choose(names: list[str]) -> list[Mutation]:
    """Return the mutations that match names or patterns, all by default."""
    every = mutations()
    for name in names:
        if not any(fnmatch.fnmatch(m.name, name) for m in every):
            raise CannotRunError(f"no mutation '{name}'; allowed: those of --list")
    chosen = [
        m for m in every if not names or any(fnmatch.fnmatch(m.name, x) for x in names)
    ]
    for mutation in chosen:
        if mutation.fault:
            raise CannotRunError(f"{mutation.name}: {mutation.fault}")
    return chosen


def run(args: argparse.Namespace) -> int:
    """Run the requested mutations; return the exit code."""
    chosen = choose(args.names)
    if args.list:
        for m in chosen:
            print(f"{m.name}: {m.before} -> {m.after} : {', '.join(m.tests)}")
        print(f"{len(chosen)} mutations")
        return 0
    if args.jobs < 1:
        raise CannotRunError(f"--jobs is {args.jobs}; allowed: 1 or more")
    rows = try_all(chosen, args.jobs)
    states = [row["state"] for row in rows]
    counts = {state: states.count(state) for state in (*TIERS, "lives", "broken")}
    print(", ".join(f"{count} {state}" for state, count in counts.items()))
    if args.json:
        args.json.write_text(json.dumps({"counts": counts, "rows": rows}, indent=1))
    if counts["broken"]:
        raise CannotRunError("mutations that are broken say nothing; mend them")
    return 0 if counts["killed"] == len(rows) else 1


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="names or patterns (default: all)")
    parser.add_argument("--list", action="store_true", help="print them and end")
    parser.add_argument("--jobs", type=int, default=1, help="runs at once (default 1)")
    parser.add_argument("--json", type=Path, help="write what came out to a file")
    try:
        return run(parser.parse_args(words))
    except CannotRunError as wrong:
        print(f"mutations.py: {wrong}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    raise SystemExit(main())
