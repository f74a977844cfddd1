"""Try mutations of the code on copies of the tree, and list those that no test detects.

A mutation is one changed line of mutation_table.py, with the tests that should fail by
it. The tests first run without it; then it is made in a copy of the files that git
tracks, and they run again. A run that takes much longer than without counts as killed,
with a note. Compiled kernels are cached by content for the whole run.

    python scripts/mutations.py --jobs 2
    python scripts/mutations.py --list 'bfs4k-*'

Exit code 1: a mutation survives; 2: one cannot be made, or its tests fail without it.
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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from mutation_table import MUTATIONS, Mutation

ROOT = Path(__file__).resolve().parents[1]
PYTEST = ("-m", "pytest", "-x", "-n", "0", "-p", "no:cacheprovider", "--tb=line")
RANKS = ("mpiexec", "-n", "2")
PATIENCE, SLOWER = 30, 4  # a run may take 30 s and 4 times as long as without mutation
FIRST = 600  # seconds of a run without mutation
FAILED = re.compile(r"^(?:FAILED|ERROR|rank \d+ failed in) (\S+)", re.MULTILINE)
NOT_COMPILED = re.compile(r"cannot compile \S+: .*|CalledProcessError.*|.*: error: .*")


@dataclass(frozen=True)
class Run:
    """How tests ended.

    code: the exit code, None where they took too long; test: the first that failed
    """

    code: int | None
    test: str
    passed: int
    seconds: float
    text: str


def fits(mutation: Mutation, root: Path) -> str:
    """Return why a mutation cannot be made in a tree, "" if it can."""
    path = root / mutation.file
    if not path.is_file():
        return f"{mutation.name}: no file {mutation.file}"
    times = path.read_text(encoding="utf-8").count(mutation.before)
    if times != 1:
        return f"{mutation.name}: {mutation.file} has its text {times} times, not once"
    if mutation.before == mutation.after:
        return f"{mutation.name}: it changes nothing"
    for test in mutation.tests:
        name, _, function = test.partition("::")
        wanted = f"def {function.partition('[')[0]}("
        if not (root / name).is_file():
            return f"{mutation.name}: no file {name}"
        if function and wanted not in (root / name).read_text(encoding="utf-8"):
            return f"{mutation.name}: no test {test}"
    return ""


def copy_tree(target: Path) -> None:
    """Copy the files that git tracks, in their present state."""
    listed = ["git", "-C", str(ROOT), "ls-files", "-z"]
    names = subprocess.run(listed, check=True, capture_output=True, text=True).stdout
    for name in names.split("\0"):
        if name and (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


def run_tests(tree: Path, mutation: Mutation, cache: Path, limit: float) -> Run:
    """Run the tests of a mutation in a tree."""
    command = [sys.executable, *PYTEST, *mutation.tests]
    if mutation.ranks:
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


class CannotTryError(Exception):
    """A mutation that cannot be made, or whose tests fail without it."""


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

    def run(self, mutation: Mutation, limit: float, *, mutated: bool) -> Run:
        """Run the tests of a mutation, with it or without."""
        tree = self._free.get()
        path = tree / mutation.file
        text = path.read_text(encoding="utf-8")
        try:
            if mutated:
                path.write_text(text.replace(mutation.before, mutation.after))
            return run_tests(tree, mutation, self.cache, limit)
        finally:
            path.write_text(text)
            self._free.put(tree)


def try_group(group: list[Mutation], trees: Trees) -> list[dict[str, object]]:
    """Run tests shared by mutations without any, then with each; print lines."""
    before = trees.run(group[0], FIRST, mutated=False)
    if before.code != 0 or not before.passed:
        fault = (
            f"fail without a mutation: {before.test}" if before.code else "are skipped"
        )
        if before.code is None:
            fault = f"take more than {FIRST} s without a mutation"
        raise CannotTryError(f"{' '.join(group[0].tests)}: {fault}\n{before.text}")
    limit, rows = PATIENCE + SLOWER * before.seconds, []
    for mutation in group:
        run = trees.run(mutation, limit, mutated=True)
        state, by = judge(run, limit)
        line = f"{state:7} {mutation.name:32} {run.seconds:4.0f} s  "
        print(line + (by or mutation.breaks), flush=True)
        row: dict[str, object] = {"name": mutation.name, "file": mutation.file}
        row |= {"breaks": mutation.breaks, "state": state, "by": by}
        rows.append({**row, "seconds": round(run.seconds, 1)})
    return rows


def try_all(chosen: list[Mutation], jobs: int) -> list[dict[str, object]]:
    """Try mutations, those with the same tests one after the other."""
    groups: dict[object, list[Mutation]] = {}
    for mutation in chosen:
        groups.setdefault((mutation.tests, mutation.ranks), []).append(mutation)
    with tempfile.TemporaryDirectory(prefix="mutations-") as name:
        trees = Trees(Path(name), jobs)
        with ThreadPoolExecutor(jobs) as pool:
            begun = [pool.submit(try_group, group, trees) for group in groups.values()]
            try:
                return [row for done in begun for row in done.result()]
            except CannotTryError:
                pool.shutdown(cancel_futures=True)
                raise


def choose(names: list[str]) -> list[Mutation]:
    """Return the mutations that match names or patterns, all by default."""
    for name in names:
        if not any(fnmatch.fnmatch(m.name, name) for m in MUTATIONS):
            raise CannotTryError(f"no mutation '{name}'; allowed: those of --list")
    chosen = [
        m
        for m in MUTATIONS
        if not names or any(fnmatch.fnmatch(m.name, x) for x in names)
    ]
    for mutation in chosen:
        if why := fits(mutation, ROOT):
            raise CannotTryError(why)
    return chosen


def run(args: argparse.Namespace) -> int:
    """Run the requested mutations; return the exit code."""
    chosen = choose(args.names)
    if args.list:
        for m in chosen:
            print(f"{m.name:32} {m.file}\n{'':32} {m.breaks}\n{'':32} {m.tests[0]}")
        return 0
    if args.jobs < 1:
        raise CannotTryError(f"--jobs is {args.jobs}; allowed: 1 or more")
    rows = try_all(chosen, args.jobs)
    states = [row["state"] for row in rows]
    counts = {state: states.count(state) for state in ("killed", "lives", "broken")}
    print(", ".join(f"{count} {state}" for state, count in counts.items()))
    if args.json:
        args.json.write_text(json.dumps({"counts": counts, "rows": rows}, indent=1))
    if counts["broken"]:
        raise CannotTryError("mutations that are broken say nothing; mend the table")
    return 1 if counts["lives"] else 0


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="names or patterns (default: all)")
    parser.add_argument("--list", action="store_true", help="print the table and end")
    parser.add_argument("--jobs", type=int, default=1, help="runs at once (default 1)")
    parser.add_argument("--json", type=Path, help="write what came out to a file")
    try:
        return run(parser.parse_args(words))
    except CannotTryError as wrong:
        print(f"mutations.py: {wrong}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    raise SystemExit(main())
