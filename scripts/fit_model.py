"""Fit the time model of ``distbfs plan`` to runs, and check it on other runs.

    python scripts/fit_model.py
    python scripts/fit_model.py --write
    python scripts/fit_model.py --predict
    python scripts/fit_model.py --collect FOLDER --into scripts/results/model_h100.json

Runs are those of ``scripts/results``: what ``graph500 --json`` printed, cells of
``bench_resident.py``, and files that --collect makes of a folder of such outputs. HELD,
LATER and TAILS name the runs that are never fitted, UNLIKE those that the model is not
about.
Prints the constants, and the error of the predicted time of each run.

HELD was chosen when the errors of another choice were known (up to 33 %): so each run
is predicted by a fit to all others, too.

The time of a run is the mean of the middle half of its searches: some roots of a few
meet a host that is late.

--predict: print predictions for hosts of 8 GPUs instead, by the constants of the
library, at the largest scale whose parts fit the GPUs with all columns
--write: write the constants to ``distbfs/plan/fitted.json``, where the library reads
them
--collect: keep the times, levels and bytes of the outputs NAME.json, NAME.jsonl (level
records, if any) and of log.txt (commands) in one file
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np

from distbfs.cli.plan_gpus import Machine, part_memory
from distbfs.cli.plan_input import PlannedGraph, of_kronecker, search_time
from distbfs.engines.cuda.xbfs.link_reads import expected_reads
from distbfs.plan.memory import expected_degrees
from distbfs.plan.search_time import (
    BETWEEN,
    FITTED,
    TERMS,
    DeviceConstants,
    ExchangeConstants,
    PlannedLayout,
    SearchTime,
    device_of,
    exchange_of,
    predict_search,
)
from distbfs.report.tables import print_table
from distbfs.types import Floats

RESULTS = Path(__file__).with_name("results")
COLLECTED = ("model_h100.json", "model_h100_again.json", "model_h200.json")
SINGLE_BELOW = 1 << 24  # vertices of a graph that one device searches alone
HELD = frozenset(
    {
        *("one_18", "one_22", "one_25", "one_26_ef8", "two_26"),
        *("nvshmem_18", "nvshmem_22", "nvshmem_25_ef32", "nvshmem_25_th24"),
        *("h200_nccl_22", "h200_nccl_25", "h200_nvshmem_22", "h200_nvshmem_25"),
        "host_24",
        *("graph500_26_4", "graph500_26_4_internal"),
        *("graph500_28_4", "graph500_28_4_internal"),
        *("graph500_31_ef8_2", "graph500_27_domains_nvshmem"),
        "graph500_27_domains_nccl",
        *("resident 4 x 28", "resident 2 x 27", "resident 2 x 27 internal"),
    }
)
# Of one and four H200 and of another pair of H100, when the model was done: nothing was
# chosen by these
LATER = frozenset(
    {
        *("graph500_28", "graph500_31_4", "graph500_28_domains_2x2"),
        *("again_one_19", "again_one_23", "again_one_27"),
        *("again_two_25", "again_two_27", "again_two_27_internal"),
        *("again_nvshmem_23", "again_nvshmem_25", "again_nvshmem_27"),
        "again_host_25",
    }
)
# Rows have tails in host memory: never fitted, as the link's constants are measured
TAILS = frozenset(
    {
        *("graph500_28_32GiB", "graph500_29_h100", "graph500_30"),
        *("graph500_31_2", "graph500_32_4"),
    }
)
# Edge factor 1: next to no hubs; a wire of its own; hosts of which scale 20 took longer
# than 26; arcs, whose times are those of edges in both directions with a factor
UNLIKE = frozenset(
    {
        *("graph500_32", "graph500_33_ef1_2", "graph500_26_domains_sockets"),
        *("graph500_27_directed_2", "graph500_27_directed_domains"),
        *("h200_host_20", "h200_host_24", "h200_host_26"),
    }
)
HOSTS, A_HOST = (8, 64, 512, 1024), 8
CAPACITY = {"H100": 80e9, "H200": 141e9}  # bytes
MOST_SCALE = 31  # of one GPU
# microseconds of a level with one vertex, bench_level.py --exchange, on pairs of GPUs
TINY = {
    "H100": {"nccl": 54.4, "nvshmem": 31.9},
    "H200": {"nccl": 50.0, "nvshmem": 27.1},
}
MEMORY = {"H100": 3.35e12, "H200": 4.8e12}  # bytes a second, by the data sheets
KEPT = ("engine", "SCALE", "edgefactor", "parts", "TH", "ids")  # of a report


@dataclass(frozen=True)
class MeasuredRun:
    """Searches of a Kronecker graph; seconds: the mean of the middle half of them.

    kept: columns of a row on a device, None: all
    """

    name: str
    device: str
    scale: int
    edge_factor: int
    domains: int
    devices: int
    threshold: int
    exchange: str
    internal: bool
    seconds: float
    kept: int | None = None

    @property
    def held(self) -> bool:
        """Whether the run is only for checks."""
        return self.name in HELD | LATER | TAILS


def middle(seconds: Sequence[float]) -> float:
    """Return the mean of the middle half."""
    ordered = np.sort(np.asarray(seconds))
    cut = len(ordered) // 4
    return float(ordered[cut : len(ordered) - cut].mean())


def of_report(name: str, report: Mapping[str, Any]) -> MeasuredRun:
    """Return the run of a report of ``graph500``."""
    between = report["TH"] is not None
    exchange = report["engine"].partition("exchange ")[2].partition(";")[0]
    parts = report["parts"]
    return MeasuredRun(
        name,
        "H100" if "H100" in report["engine"] else "H200",
        report["SCALE"],
        report["edgefactor"],
        parts if between else 1,
        1 if between or report["SCALE"] < 24 else parts,
        report["TH"] if between else 0,
        exchange if between else "",
        report["ids"] == "internal",
        middle([search["time"] for search in report["searches"]]),
        kept_of(report),
    )


def kept_of(report: Mapping[str, Any]) -> int | None:
    """Return how many columns of a row a device kept, None for all."""
    search = report.get("search", {})
    facts = search.get("graph", search.get("part", {}))
    kept: int | None = facts.get("kept")
    return kept


def of_cell(row: Mapping[str, Any]) -> MeasuredRun:
    """Return the run of a cell of ``bench_resident.py``."""
    mode, _, ids = row["mode"].partition(" ")
    devices, scale = row["devices"], int(row["graph"])
    name = f"{mode} {devices} x {scale} {ids}".strip()
    internal = ids == "internal"
    seconds = middle(row["seconds"])
    return MeasuredRun(name, "H200", scale, 16, 1, devices, 0, "", internal, seconds)


def runs(folder: Path = RESULTS) -> list[MeasuredRun]:
    """Return all runs of the folder that the model is about."""
    every = [
        of_report(path.stem, json.loads(path.read_text(encoding="utf-8")))
        for path in sorted(
            [*folder.glob("graph500_*.json"), folder / "resident_scale31.json"]
        )
    ]
    cells = json.loads((folder / "bench_resident.json").read_text(encoding="utf-8"))
    every += [of_cell(row) for row in cells["rows"] if row["mode"] != "captured"]
    for name in COLLECTED:
        file = json.loads((folder / name).read_text(encoding="utf-8"))
        every += [of_report(run["name"], run) for run in file["runs"]]
    return [run for run in every if run.name not in UNLIKE]


def time_of(
    run: MeasuredRun, device: DeviceConstants, exchange: ExchangeConstants | None
) -> SearchTime:
    """Return the predicted time of a run."""
    degrees, link = expected_degrees(run.scale, run.edge_factor), None
    if run.kept is not None:
        where = (run.domains, run.threshold, run.devices)
        link = expected_reads(degrees, run.kept, *where)
    return predict_search(
        degrees,
        run.edge_factor << run.scale,
        PlannedLayout(run.domains, run.devices, run.threshold, run.exchange != "host"),
        device,
        exchange if run.domains > 1 else None,
        internal=run.internal,
        link=link,
    )


@cache
def row_of(run: MeasuredRun) -> dict[str, float]:
    """Return what each constant is multiplied with in the time of a run.

    A rate counts with its inverse; "known" are the seconds of no fitted constant.
    """
    device = DeviceConstants(run.device, 1.0, 0.0, 1.0, math.inf, 1.0, 1.0)
    exchange = ExchangeConstants(run.exchange or "nccl", 1.0, 1.0)
    time = time_of(run, device, exchange)
    terms, work = time.terms, time.work
    return {
        "level": work.levels,
        "shared": work.levels * (run.devices > 1),
        "near_rate": terms["looks"],
        "far_rate": work.far / run.devices,
        "finish": terms["results"],
        "vertex": terms.get("counting", 0.0),
        "exchange_level": terms.get("meetings", 0.0),
        "bandwidth": terms.get("wire", 0.0),
        "known": sum(terms.get(x, 0.0) for x in ("publish", "partners", "link")),
    }


def nonnegative(terms: Floats, values: Floats) -> Floats:
    """Return the x >= 0 of least norm of terms x - values, trying every subset.

    terms: float64 [rows, columns], few columns; values: float64 [rows]
    """
    columns = terms.shape[1]
    scale = np.maximum(np.abs(terms).max(axis=0, initial=0.0), 1e-300)
    best, least = np.zeros(columns), float(values @ values)
    for size in range(1, columns + 1):
        for chosen in combinations(range(columns), size):
            columns_chosen = terms[:, chosen] / scale[list(chosen)]
            x, *_ = np.linalg.lstsq(columns_chosen, values, rcond=None)
            rest = columns_chosen @ x - values
            if (x >= 0).all() and float(rest @ rest) < least:
                best, least = np.zeros(columns), float(rest @ rest)
                best[list(chosen)] = x / scale[list(chosen)]
    return best


def solve(
    some: Sequence[MeasuredRun], names: Sequence[str], fixed: Mapping[str, float]
) -> dict[str, float]:
    """Return constants (of a rate, its inverse) of the least relative errors.

    fixed: those that are known already
    """
    rows = [row_of(run) for run in some]
    seconds = np.array([run.seconds for run in some])
    known = np.array(
        [row["known"] + sum(row[x] * y for x, y in fixed.items()) for row in rows]
    )
    terms = np.array([[row[name] for name in names] for row in rows])
    values = nonnegative(terms / seconds[:, None], (seconds - known) / seconds)
    return dict(zip(names, values.tolist(), strict=True))


def constant(
    value: float, some: Iterable[MeasuredRun] = (), origin: str = ""
) -> dict[str, Any]:
    """Return a constant as the file has it; some: runs that it was fitted to."""
    number = float(f"{value:.4g}")
    return {"value": number, "origin": origin or f"fitted: {named(some)}"}


def named(some: Iterable[MeasuredRun]) -> str:
    """Return the names of runs."""
    return ", ".join(run.name for run in some)


def pace(device: str, exchange: str) -> float:
    """Return the time of a level with a GPU over that with the H100.

    By TINY; 1 for an exchange that was not measured so.
    """
    base = TINY["H100"].get(exchange, 1.0)
    return TINY[device].get(exchange, base) / base


def rate(inverse: float) -> float:
    """Return a rate; inverse: as ``solve`` has it."""
    return 1 / max(inverse, 1e-300)


def fit(
    every: Sequence[MeasuredRun], held: Container[str] = HELD | LATER | TAILS
) -> dict[str, Any]:
    """Return the constants of all devices and exchanges, as in ``fitted.json``.

    held: names of runs that are left out

    Those of the H200 inside a domain first; runs of the H100 are too small to show the
    rate of looks beyond the cache, which follows the memory's bandwidth. Exchanges are
    fitted all at once, as those of the H100: seconds a vertex become the H200's
    likewise, and seconds of a level by ``pace``.
    """
    fitted = [run for run in every if run.name not in held]
    inside = ("level", "shared", "near_rate", "far_rate", "finish")
    of_h200 = [x for x in fitted if x.device == "H200" and x.domains == 1]
    of_h100 = [x for x in fitted if x.device == "H100" and x.domains == 1]
    between = [x for x in fitted if x.domains > 1]
    ratio = MEMORY["H200"] / MEMORY["H100"]
    h200 = solve(of_h200, inside, {})
    far = {"far_rate": h200["far_rate"] * ratio}
    h100 = solve(of_h100, [x for x in inside if x not in far], far) | far
    apart = solve_exchanges(between, {"H100": h100, "H200": h200}, ratio)
    scaled = "from the {}, by the bandwidths of memory"
    devices = {}
    for name, values, some in (("H100", h100, of_h100), ("H200", h200, of_h200)):
        table = {
            x: constant(rate(y) if x.endswith("rate") else y, some)
            for x, y in values.items()
        }
        if name == "H100":
            table["far_rate"]["origin"] = scaled.format("H200")
            table["vertex"] = constant(apart["vertex"], between)
        else:
            origin = scaled.format("H100")
            table["vertex"] = constant(apart["vertex"] / ratio, origin=origin)
        devices[name] = table
    exchanges = {}
    for name, level in apart.items():
        if name in ("vertex", "bandwidth"):
            continue
        own = [x for x in between if x.exchange == name]
        exchanges[name] = {"bandwidth": constant(rate(apart["bandwidth"]), between)}
        for device in devices:
            slower = pace(device, name)
            origin = "" if slower == 1 else "from the H100, by the time of a tiny level"
            exchanges[name][f"level {device}"] = constant(level * slower, own, origin)
    return {"devices": devices, "exchanges": exchanges}


def solve_exchanges(
    some: Sequence[MeasuredRun],
    inside: Mapping[str, Mapping[str, float]],
    ratio: float,
) -> dict[str, float]:
    """Return seconds of a level by exchange, of a vertex and of a byte on the wire."""
    names = sorted({run.exchange for run in some})
    rows = [row_of(run) for run in some]
    seconds = np.array([run.seconds for run in some])
    known = np.array(
        [
            row["known"] + sum(row[x] * y for x, y in inside[run.device].items())
            for run, row in zip(some, rows, strict=True)
        ]
    )
    terms = np.array(
        [
            [
                row["exchange_level"] * (run.exchange == name) * pace(run.device, name)
                for name in names
            ]
            + [row["vertex"] / (ratio if run.device == "H200" else 1)]
            + [row["bandwidth"]]
            for run, row in zip(some, rows, strict=True)
        ]
    )
    values = nonnegative(terms / seconds[:, None], (seconds - known) / seconds)
    return dict(zip([*names, "vertex", "bandwidth"], values.tolist(), strict=True))


def errors(
    every: Iterable[MeasuredRun], constants: Mapping[str, Any]
) -> list[tuple[MeasuredRun, float]]:
    """Return (run, predicted seconds) of each run."""
    pairs = []
    for run in every:
        device = device_of(run.device, constants)
        exchange = None
        if run.domains > 1:
            exchange = exchange_of(run.exchange, run.device, constants=constants)
        pairs.append((run, time_of(run, device, exchange).seconds))
    return pairs


def left_out(every: Sequence[MeasuredRun]) -> dict[str, float]:
    """Return the relative error of each run by a fit to all others, without TAILS."""
    wrong = {}
    others = [run for run in every if run.name not in TAILS]
    for run in others:
        ((_, seconds),) = errors([run], fit(others, {run.name}))
        wrong[run.name] = seconds / run.seconds - 1
    return wrong


def of_records(path: Path) -> dict[str, Any]:
    """Return the levels of a search and the bytes that it sends, by kind; means."""
    records = [json.loads(x) for x in path.read_text(encoding="utf-8").splitlines()]
    roots = len({record["root"] for record in records})
    sent: dict[str, float] = {}
    for record in records:
        for kind, size in record.get("bytes_sent", {}).items():
            sent[kind] = sent.get(kind, 0) + size / roots
    return {"levels": len(records) / roots, "bytes_sent": sent}


def collect(folder: Path, into: Path) -> None:
    """Write what the model needs of a folder of outputs to a file."""
    commands = {}
    for line in (folder / "log.txt").read_text(encoding="utf-8").splitlines():
        head, _, command = line.partition(": ")
        commands[head.split()[0]] = command
    every = []
    for path in sorted(folder.glob("*.json")):
        if path.stem.startswith("level"):
            continue
        report = json.loads(path.read_text(encoding="utf-8"))
        lines = path.with_suffix(".jsonl")
        every.append(
            {
                "name": path.stem,
                "command": commands[path.stem],
                **{k: report[k] for k in KEPT},
                **(of_records(lines) if lines.exists() else {}),
                "searches": [{"time": search["time"]} for search in report["searches"]],
            }
        )
        about = {k: report[k] for k in ("versions", "machine")}
    into.write_text(json.dumps(about | {"runs": every}, indent=1) + "\n", "utf-8")


def largest(devices: int, gpu: str) -> list[PlannedGraph]:
    """Return the largest Kronecker graph that fits, in each size of domains that does.

    All columns are on the GPUs, which are in domains of a host or of one.
    """
    scale = (devices - 1).bit_length() + MOST_SCALE
    while True:
        graphs = []
        for domain in (A_HOST, 1):
            graph = of_kronecker(scale, 16, devices, None, domain)
            memory = part_memory(graph, Machine(CAPACITY[gpu], None, A_HOST))
            if memory["fits"] and memory["kept"] is None and not memory["host"]:
                graphs.append(graph)
        if graphs:
            return graphs
        scale -= 1


def predictions() -> list[list[str]]:
    """Return the rows of predictions for hosts of 8 GPUs, seconds in milliseconds."""
    rows = []
    for gpu, hosts in product(sorted(CAPACITY), HOSTS):
        graphs = largest(hosts * A_HOST, gpu)
        times = [
            search_time(graph, gpu, exchange, hosts=True)
            for graph in graphs
            for exchange in ("nccl", "host")
        ]
        time = min((x for x in times if x is not None), key=lambda x: x.seconds)
        scale = (graphs[0].n - 1).bit_length()
        terms = [f"{1e3 * time.terms[x]:.2f}" for x in (*TERMS, *BETWEEN)]
        totals = f"{1e3 * time.seconds:.1f}", f"{time.teps / 1e12:.1f}"
        wire = "" if time.exchange is None else time.exchange.name
        form = str(time.layout.devices), wire, str(scale)
        rows.append([gpu, f"{hosts:,}", *form, *terms, *totals])
    return rows


def main() -> int:
    """Fit, print, and write if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--predict", action="store_true")
    parser.add_argument("--collect", type=Path, metavar="FOLDER")
    parser.add_argument("--into", type=Path, metavar="FILE")
    args = parser.parse_args()
    if (args.collect is None) != (args.into is None):
        parser.error("--collect and --into go together")
    if args.collect is not None:
        collect(args.collect, args.into)
        return 0
    if args.predict:
        heads = (
            "GPU",
            "hosts",
            "domain",
            "exchange",
            "scale",
            *TERMS,
            *BETWEEN,
            "all, ms",
            "TTEPS",
        )
        print_table(heads, predictions())
        return 0
    every = runs()
    constants = fit(every)
    if args.write:
        FITTED.write_text(json.dumps(constants, indent=1) + "\n", encoding="utf-8")
    for kind, table in constants.items():
        for name, values in table.items():
            shown = ", ".join(f"{k} {x['value']:.4g}" for k, x in values.items())
            print(f"{kind[:-1]} {name}: {shown}")
    pairs = errors(every, constants)
    fitted = {run.name for run in every} - HELD - LATER - TAILS
    parts = {"fitted": fitted, "not used to fit": HELD, "run later": LATER}
    parts |= {"columns in host memory, not used to fit": TAILS}
    for title, names in parts.items():
        rows = [
            (
                *(run.name, run.device, f"{1e6 * run.seconds:.1f}"),
                *(f"{1e6 * time:.1f}", f"{100 * (time / run.seconds - 1):+.1f}"),
            )
            for run, time in pairs
            if run.name in names
        ]
        print()
        print(title)
        print_table(("run", "GPU", "us", "model", "error, %"), rows)
    wrong = sorted((abs(x), name) for name, x in left_out(every).items())
    within = [sum(size < most for size, _ in wrong) for most in (0.1, 0.25)]
    print()
    print(
        f"each run by a fit to all others: {within[0]} of {len(wrong)} within 10 %, "
        f"{within[1]} within 25 %, the worst {100 * wrong[-1][0]:.1f} % "
        f"({wrong[-1][1]})"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
