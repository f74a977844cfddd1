"""Try distbfs on random graphs and compare every answer with a checker of its own.

    python scripts/campaign.py                              # an hour, all kinds
    python scripts/campaign.py --seconds 60 --seed 7
    python scripts/campaign.py --only stores --trial 123    # repeats one trial

Each trial draws a graph and a way through the package from its seed: arrays, files,
stores, engines, ranks, parts, TH, options of the exchange, many searches, NetworkX,
threads, forks, functions that search, a service, input that must be refused.  A wrong
answer, an error or an end that should not be leaves the graph and the line that repeats
it in a folder of --out; the campaign goes on, and ends with 1.  Under mpiexec the kinds
"stores", "sessions" and "multisearch" run on all ranks.  Two kinds run by name only:
"emulated", the engines of CUDA, on the CPU, and "damage", files of stores with bytes
changed, 25 times a trial, read by the host and by a device, which is the CPU where
there is none.

Needs NetworkX, pyarrow and SciPy (extra ``test-all``).
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from trials.trial import GRAPH, NOTES
from trials.worker import Result, Worker, perform

import distbfs.ranks.world

# kinds, each with its frequency
KINDS = {
    "library": 12,
    "stores": 8,
    "sessions": 6,
    "multisearch": 4,
    "networkx": 8,
    "refusals": 6,
    "turns": 4,
    "service": 1,
    "ranks": 1,
    "emulated": 0,
    "damage": 0,
}
ON_RANKS = ("stores", "sessions", "multisearch")
PROGRESS = 30  # seconds between lines


class Campaign:
    """Counts by kind, and the failures."""

    def __init__(self, args: argparse.Namespace, world: Any) -> None:
        self.args, self.world = args, world
        self.worker = Worker(world, args.longest)
        self.trials: Counter[str] = Counter()
        self.checked: Counter[str] = Counter()
        self.wrong: Counter[str] = Counter()
        self.seconds: Counter[str] = Counter()
        self.failures: list[dict[str, Any]] = []
        self.began = self.last_report = time.monotonic()

    @property
    def over(self) -> bool:
        """Whether the time is up, agreed by all ranks."""
        args, done = self.args, sum(self.trials.values())
        stop = args.stop and bool(self.failures)
        late = args.trials is None and time.monotonic() - self.began >= args.seconds
        full = args.trials is not None and done >= args.trials
        return bool(self.world.broadcast(stop or late or full))

    def once(self, kind: str, seed: int) -> None:
        """Make one trial."""
        began = time.monotonic()
        shared = tempfile.mkdtemp(prefix="campaign-") if self.world.rank == 0 else ""
        folder = Path(self.world.broadcast(shared))
        if self.world.size > 1:
            if self.args.current and self.world.rank == 0:
                self.args.current.write_text(f"{kind} {seed}")
            result = perform(kind, seed, folder, self.world)
        else:
            result = self.worker.perform(kind, seed, folder)
        self.trials[kind] += 1
        self.checked[kind] += result.checked
        self.seconds[kind] += time.monotonic() - began
        if result.rule:
            self.fail(kind, seed, result, folder)
        if self.world.rank == 0:
            shutil.rmtree(folder)

    def fail(self, kind: str, seed: int, result: Result, folder: Path) -> None:
        """Save a failure and its graph; print the line that repeats it."""
        self.wrong[kind] += 1
        self.failures.append({"kind": kind, "seed": seed, **vars(result)})
        if self.world.rank:
            return
        kept = self.args.out / f"{kind}-{seed}"
        kept.mkdir(parents=True, exist_ok=True)
        if (folder / GRAPH).exists():
            shutil.copy(folder / GRAPH, kept / "graph.txt")
        notes = (folder / NOTES).read_text() if (folder / NOTES).exists() else ""
        text = f"{result.command}\n\n{result.text}\n\n{notes}"
        (kept / "failure.txt").write_text(text)
        print(f"WRONG {kept.name}: {result.text.splitlines()[0]:.300}")
        print(f"  repeat: {result.command}   (see {kept})", flush=True)

    def progress(self) -> None:
        """Print a line every half minute."""
        now = time.monotonic()
        if self.world.rank or now - self.last_report < PROGRESS or self.args.quiet:
            return
        self.last_report = now
        kinds = ", ".join(f"{kind} {count}" for kind, count in self.trials.items())
        print(
            f"{now - self.began:5.0f} s: {sum(self.trials.values())} trials, "
            f"{sum(self.checked.values())} answers checked, "
            f"{sum(self.wrong.values())} wrong ({kinds})",
            flush=True,
        )

    def report(self) -> None:
        """Print the table, and write the counts."""
        if self.world.rank:
            return
        counts = {
            kind: {
                "trials": self.trials[kind],
                "checked": self.checked[kind],
                "wrong": self.wrong[kind],
                "seconds": round(self.seconds[kind], 1),
            }
            for kind in self.trials
        }
        if not self.args.quiet:
            print(f"{'kind':<12}{'trials':>9}{'checked':>9}{'wrong':>9}{'seconds':>9}")
            for kind, row in counts.items():
                print(f"{kind:<12}" + "".join(f"{value:>9}" for value in row.values()))
        if self.args.json:
            summary = {
                "seed": self.args.seed,
                "kinds": counts,
                "failures": self.failures,
            }
            self.args.json.write_text(json.dumps(summary, indent=1) + "\n")


def arguments() -> argparse.Namespace:
    """Return the arguments, checked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--trials", type=int, help="This many, however long they take.")
    parser.add_argument("--only", help="Kinds, joined by commas.", metavar="KINDS")
    parser.add_argument("--trial", type=int, metavar="SEED", help="Repeat one trial.")
    parser.add_argument(
        "--longest", type=float, default=300, help="Seconds of a trial."
    )
    parser.add_argument("--stop", action="store_true", help="End with the first fault.")
    parser.add_argument("--out", type=Path, default=Path("campaign-failures"))
    parser.add_argument("--json", type=Path, help="File for counts and failures.")
    parser.add_argument(
        "--quiet", action="store_true", help="Print what is wrong only."
    )
    parser.add_argument("--current", type=Path, help="File for the trial that runs.")
    args = parser.parse_args()
    args.kinds = args.only.split(",") if args.only else [k for k in KINDS if KINDS[k]]
    for kind in args.kinds:
        if kind not in KINDS:
            parser.error(f"kind '{kind}'; allowed: {', '.join(KINDS)}")
    if args.trial is not None and len(args.kinds) != 1:
        parser.error("--trial repeats a trial of one kind; give --only KIND")
    return args


def main() -> int:
    args = arguments()
    world = distbfs.ranks.world.start()
    if world.size > 1:
        args.kinds = [kind for kind in args.kinds if kind in ON_RANKS] or list(ON_RANKS)
    campaign = Campaign(args, world)
    if args.trial is not None:
        campaign.once(args.kinds[0], args.trial)
    else:
        turns = [kind for kind in args.kinds for _ in range(max(KINDS[kind], 1))]
        random.Random(args.seed).shuffle(turns)
        number = 0
        while not campaign.over:
            campaign.once(turns[number % len(turns)], args.seed * 1_000_003 + number)
            campaign.progress()
            number += 1
    campaign.worker.close()
    campaign.report()
    world.finish()
    return 1 if campaign.failures else 0


if __name__ == "__main__":
    sys.exit(main())
