"""Measure the figures and tables of five papers again, and say what came of each.

    python scripts/papers/run.py --list
    python scripts/papers/run.py bfs4k --figure 14
    python scripts/papers/run.py --all --seconds 500 --out results
    mpirun -n 2 python scripts/papers/run.py pan --out results

A paper has one file, paper_NAME.json, with a row for each graph of an entry, written as
they come: the same command continues where it stopped.  A row names its commit; a tree
with changes does not write to a file of a clean one.  --plots FOLDER draws what is
there.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import figures

from distbfs.cli.options import Speech
from distbfs.cli.shared import open_terminal
from distbfs.cli.streams import run_program
from distbfs.device import cuda
from distbfs.errors import DistbfsError, InputError, UsageError
from distbfs.report.provenance import commit, provenance
from distbfs.report.tables import print_table
from papers.bench import Bench
from papers.entries import OPEN, Entry, Paper, judged

NAMES = ("bfs4k", "cs406", "mclaughlin", "xbfs", "pan")
# of thousands of levels, seconds a search by the slowest engines; or long to grow
LONG = ("europa.osm", "hugehubbles-00020", "europe", "Gen-ForestFire")
LATER = 2.5
SMALL = 1 << 14  # vertices of --small
ROMAN = {"1": "i", "2": "ii", "3": "iii"}


class Results:
    """The file of one paper; rows by entry, one a graph and number of devices."""

    def __init__(self, folder: Path, paper: Paper, settings: dict[str, Any]) -> None:
        self.path = folder / f"paper_{paper.key}.json"
        self.paper, self.commit = paper, commit()
        self.values: dict[str, Any] = {"entries": {}}
        if self.path.exists():
            self.values = self._read()
            there = self.values.get("settings", {})
            if there != settings:
                raise UsageError(
                    f"{self.path} was measured with {there}, not {settings}; name "
                    "another --out"
                )
        self.values["settings"] = settings
        self.most = settings["vertices"]
        self.failed: list[str] = []

    def _read(self) -> dict[str, Any]:
        try:
            values = json.loads(self.path.read_text(encoding="utf-8"))
            if set(values["entries"]) <= {entry.name for entry in self.paper.entries}:
                return values
        except OSError as error:
            raise InputError(f"{self.path}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError):
            pass
        raise InputError(f"{self.path}: no results of {self.paper.key}")

    def check(self) -> None:
        """Raise UsageError if a changed tree would write over a clean one's rows."""
        rows = [row for entry in self.rows().values() for row in entry]
        if not clean(self.commit) and any(clean(row["commit"]) for row in rows):
            raise UsageError(
                f"{self.path} is of a clean tree and this one has changes (commit "
                f"{self.commit}); commit them, or name another --out"
            )

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """Return the rows by entry."""
        return {name: x["rows"] for name, x in self.values["entries"].items()}

    def done(self, entry: Entry, graph: str, devices: int, *, keep: bool) -> bool:
        """Return whether a row is there, of this commit or, with ``keep``, of any."""
        return any(
            row["graph"] == graph
            and row.get("devices", 1) == devices
            and (keep or row["commit"] == self.commit)
            for row in self.rows().get(entry.name, ())
        )

    def add(self, entry: Entry, row: dict[str, Any], *, device: bool) -> None:
        """Put a row in the place of an older one, judge anew, and write all."""
        held = self.values["entries"].setdefault(entry.name, {"rows": []})
        key = row["graph"], row.get("devices", 1)
        others = [r for r in held["rows"] if (r["graph"], r.get("devices", 1)) != key]
        order = {name: k for k, name in enumerate(entry.graphs)}
        rows = [*others, {**row, "commit": self.commit}]
        held["rows"] = sorted(
            rows, key=lambda r: (order[r["graph"]], r.get("devices", 1))
        )
        # the commit as the run began: the file itself is a change of the tree
        self.values |= provenance(sys.argv, device=device) | {"commit": self.commit}
        self.write()

    def write(self) -> None:
        """Write the file whole, with the verdicts."""
        entries, rows = {}, self.rows()
        for entry in self.paper.entries:
            told = {"title": entry.title, "says": entry.says}
            told["verdict"] = judged(entry, rows, self.most).as_dict()
            entries[entry.name] = {**told, "rows": rows.get(entry.name, [])}
        self.values["entries"] = entries
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_suffix(".partial")
        partial.write_text(json.dumps(self.values, indent=1) + "\n", encoding="utf-8")
        partial.replace(self.path)

    def draw(self, folder: Path) -> None:
        """Draw what has rows."""
        rows = self.rows()
        for entry in self.paper.entries:
            if entry.draw is None or judged(entry, rows).word == OPEN:
                continue
            name = f"{self.paper.key}_{entry.name.replace(' ', '_')}"
            draw = entry.draw
            figures.drawn(folder / name, lambda f, d=draw: d(f, rows), entry.size)


def clean(name: str | None) -> bool:
    """Return whether a commit says all about the tree."""
    return bool(name) and not str(name).endswith("-changed")


def paper_of(key: str) -> Paper:
    """Return the table of a paper."""
    paper: Paper = import_module(f"papers.{key}").PAPER
    return paper


def wanted(paper: Paper, args: argparse.Namespace) -> list[Entry]:
    """Return the entries that were requested, with those whose rows they read."""
    names = [
        *(f"figure {x}" for x in args.figure),
        *(f"table {x}" for x in args.table),
        *args.entry,
    ]
    if not names:
        return list(paper.entries)
    known = {entry.name: entry for entry in paper.entries}
    chosen: list[str] = []
    for name in names:
        kind, _, number = name.partition(" ")
        named = name if name in known else f"{kind} {ROMAN.get(number, number)}"
        if named not in known:
            raise UsageError(f"{paper.key} has no {name}; allowed: {', '.join(known)}")
        chosen += [named, *known[named].rows_of]
    return [entry for entry in paper.entries if entry.name in chosen]


def units(
    papers: Sequence[Paper], args: argparse.Namespace, ranks: int
) -> list[tuple[Paper, Entry, str]]:
    """Return (paper, entry, graph) to measure, the most valuable first."""
    found = []
    for k, paper in enumerate(papers):
        for j, entry in enumerate(wanted(paper, args)):
            alone = args.device_only or ranks > 1
            if entry.measure is None or (alone and not entry.device):
                continue
            for i, graph in enumerate(entry.graphs):
                if not args.graphs or graph in args.graphs:
                    value = entry.value + LATER * (graph in LONG)
                    found.append(((value, k, i, j), paper, entry, graph))
    return [unit[1:] for unit in sorted(found, key=lambda unit: unit[0])]


def measure(
    bench: Bench, results: dict[str, Results], args: argparse.Namespace
) -> Iterator[str]:
    """Measure what is not there yet, while there is time; yield a line a row."""
    began, longest = time.perf_counter(), dict[str, float]()
    world = bench.world
    papers = [one.paper for one in results.values()]
    every = units(papers, args, world.size)
    left = 0
    for k, (paper, entry, graph) in enumerate(every):
        one, name = results[paper.key], f"{paper.key}, {entry.name}"
        spent = time.perf_counter() - began
        there = one.done(entry, graph, world.size, keep=args.keep)
        late = spent + longest.get(name, 0.0) > args.seconds
        skip, late = world.broadcast((there and not args.again, late))
        if skip:
            continue
        if late:
            left += 1
            continue
        text = f"[{spent:5.0f} s, {k + 1}/{len(every)}] {name} {graph}".rstrip()
        start = time.perf_counter()
        try:
            if entry.device and bench.part_engine == "pan":
                cuda.cupy()
            assert entry.measure is not None
            row = entry.measure(bench, graph)
        except DistbfsError as error:
            one.failed.append(f"{name} {graph}: {error}")
            bench.drop()
            yield f"{text}: {error}"
            continue
        seconds = time.perf_counter() - start
        longest[name] = max(longest.get(name, 0.0), seconds)
        if world.rank == 0:
            device = entry.device and bench.part_engine == "pan"
            one.add(entry, {**row, "measured_seconds": seconds}, device=device)
        yield f"{text}: {seconds:.1f} s"
    if left:
        yield f"{left} of {len(every)} rows are left: run the same command again"


def listed(papers: Sequence[Paper], args: argparse.Namespace, settings: Any) -> None:
    """Print every entry with its verdict, as far as there are results."""
    for paper in papers:
        path = args.out / f"paper_{paper.key}.json"
        rows: Any = Results(args.out, paper, settings).rows() if path.exists() else {}
        print(f"\n{paper.key}: {paper.title}")
        lines = []
        for entry in wanted(paper, args):
            told = judged(entry, rows, args.vertices)
            lines.append((entry.name, entry.title, told.word, told.reason))
        print_table(("entry", "what it shows", "verdict", "why"), lines)


def options() -> argparse.Namespace:
    """Return the options of the command line, checked."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("papers", nargs="*", help=f"of {', '.join(NAMES)}")
    add("--all", action="store_true", help="all five")
    add("--list", action="store_true", help="entries and verdicts; measure nothing")
    add("--figure", nargs="+", default=[], help="numbers of figures")
    add("--table", nargs="+", default=[], help="numbers of tables")
    add("--entry", nargs="+", default=[], help="names of entries")
    add("--graphs", nargs="+", default=[], help="of an entry, as the paper names them")
    add("--graph", nargs="+", default=[], metavar="NAME=FILE", help="the graph itself")
    add("--out", type=Path, default=figures.RESULTS, help="folder of the results")
    add("--plots", type=Path, help="folder of plots, drawn of all results there are")
    add("--seconds", type=float, default=math.inf, help="begin nothing after so long")
    add("--each", type=float, default=1.0, help="seconds a measurement")
    add("--roots", type=int, default=16, help="roots of a graph")
    add("--sources", type=int, default=1024, help="of many searches at once")
    add("--looked", type=int, default=2, help="roots of parts with a breakdown")
    add("--threads", type=int, nargs="+", default=[1, 2, 4, 8, 16], help="of openmp")
    add("--vertices", type=int, help="of the largest graph, else as in the papers")
    add("--small", action="store_true", help=f"a trial: --vertices {SMALL} --each 0.05")
    add("--seed", type=int, default=1, help="of roots and Kronecker graphs")
    add("--device-only", action="store_true", help="not what a host does alone")
    add("--again", action="store_true", help="measure what is there, too")
    add("--keep", action="store_true", help="keep rows of other commits")
    add("--peers", action="store_true", help="other libraries, where installed")
    add("--engine", default="pan", choices=("pan", "reference"), help="of parts")
    args = parser.parse_args()
    if args.small:
        args.vertices, args.each = args.vertices or SMALL, min(args.each, 0.05)
    args.papers = list(NAMES) if args.all else args.papers
    strange = [name for name in args.papers if name not in NAMES]
    if strange or not (args.papers or args.list):
        raise UsageError(f"name papers of {', '.join(NAMES)}, or --all")
    args.papers = args.papers or list(NAMES)
    numbers = (args.roots, args.sources, *args.threads, args.vertices or 4)
    if min(numbers) < 1 or args.looked < 0 or not args.each > 0:
        raise UsageError("--roots, --sources, --threads and --each are above 0")
    return args


def files_of(words: Sequence[str]) -> dict[str, Path]:
    """Return the files of graphs by name."""
    files = {}
    for word in words:
        name, equals, path = word.rpartition("=")
        if not equals or not Path(path).exists():
            raise UsageError(f"--graph {word}: give NAME=FILE, a file that is there")
        files[name] = Path(path)
    return files


def work() -> int:
    args = options()
    papers = [paper_of(key) for key in args.papers]
    settings = {
        name: getattr(args, name) for name in ("vertices", "roots", "sources", "seed")
    }
    settings["engine"] = args.engine
    if args.list:
        listed(papers, args, settings)
        return 0
    world = open_terminal(Speech()).world
    if world.size > 1 and set(args.papers) != {"pan"}:
        raise UsageError("several ranks are for paper pan alone")
    bench = Bench(
        **{name: getattr(args, name) for name in ("each", "roots", "sources", "seed")},
        most=args.vertices,
        files=files_of(args.graph),
        peers=args.peers,
        threads=args.threads,
        looked=args.looked,
        world=world,
        part_engine=args.engine,
    )
    results = {paper.key: Results(args.out, paper, settings) for paper in papers}
    for one in results.values():
        one.check()
    for text in measure(bench, results, args):
        if world.rank == 0:
            print(text, flush=True)
    bench.drop()
    failed = [text for one in results.values() for text in one.failed]
    if world.rank == 0:
        for one in results.values():
            if args.plots is not None:
                one.draw(args.plots)
        listed(papers, args, settings)
        for text in failed:
            print(text, file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    run_program(work)
