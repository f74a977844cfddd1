"""``distbfs doctor``: show what this installation can use."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from distbfs.cli.options.doctor import DoctorOptions
from distbfs.cli.shared import Terminal, open_terminal, share_of_cores
from distbfs.cli.trials import (
    LEFT_OUT,
    engine_trials,
    host_facts,
    kernel_compilations,
    link_facts,
    mpi_facts,
    nvrtc_version,
    software,
)
from distbfs.device.portable import ARCHITECTURES
from distbfs.errors import LaunchError, UsageError
from distbfs.plan.memory import readable
from distbfs.ranks.agreement import gather_texts
from distbfs.ranks.launcher import find_launch
from distbfs.ranks.world import SoloWorld
from distbfs.report.tables import counted, print_fields, shown

WIDTH = 16
NO_DEVICE = "need a CUDA device"
ARCHITECTURE = re.compile(r"sm_[1-9]\d{1,2}[af]?")


def examine(terminal: Terminal, problem: str) -> dict[str, Any]:
    """Return the findings on all hosts, the same on all ranks (collective).

    problem: a problem with the ranks themselves, or ""
    """
    world = terminal.world
    threads = share_of_cores(world)
    first = world.local_rank == 0
    own = json.dumps(host_facts(world, threads)) if first else ""
    hosts = [json.loads(text) for text in gather_texts(world, own) if text]
    links = link_facts(world) if world.size > 1 else None
    facts: dict[str, Any] = {}
    if world.rank == 0:
        mpi, engines = mpi_facts(world), engine_trials()
        facts = {**software(), "mpi": mpi, "engines": engines, "hosts": hosts}
        facts["links"] = links
        facts["problems"] = [x for x in (problem, mpi.pop("problem")) if x]
        facts["problems"] += problems_of(hosts, engines)
    common: dict[str, Any] = world.broadcast(facts)
    return common


def problems_of(hosts: list[dict[str, Any]], engines: Mapping[str, str]) -> list[str]:
    """Return the problems of the hosts; if there are several, each host is named."""
    problems = []
    for host in hosts:
        where = f"{host['host']}: " if len(hosts) > 1 else ""
        lines = host.pop("problems") + host["cuda"].pop("problems")
        problems += [where + line for line in lines]
    compiled = all(host["kernels"] for host in hosts)
    devices = any(host["cuda"]["devices"] for host in hosts)
    bad = {
        name: said
        for name, said in engines.items()
        if said != "works"
        and (devices or not said.startswith("no CUDA"))
        and (compiled or name == "reference")
    }
    return problems + [f"engine {x}: {said}" for said, x in by_reason(bad).items()]


def by_reason(outcomes: Mapping[str, str]) -> dict[str, str]:
    """Return the engines that have the same outcome, by that outcome."""
    names: dict[str, list[str]] = {}
    for name, said in outcomes.items():
        names.setdefault(said, []).append(name)
    return {said: ", ".join(some) for said, some in names.items()}


def fields_of(values: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the blocks of fields that are printed."""
    packages = [f"{name} {version}" for name, version in values["packages"].items()]
    yield {
        "distbfs": values["distbfs"],
        "Python": f"{values['python']}, {values['executable']}",
        "packages": ", ".join(packages),
        **engine_fields(values["engines"]),
    }
    mpi = values["mpi"]
    launcher = mpi["launcher"] or "none"
    yield {
        "mpi4py": mpi["mpi4py"] or "not installed",
        "MPI library": mpi["library"] or "none in use",
        "device pointers": f"{mpi['device_pointers']}, {mpi['device_pointers_basis']}",
        "launcher": launcher,
        "ranks": f"{shown(mpi['ranks'])}: {shown(mpi['hosts'])}",
    }
    if values["links"]:
        yield link_fields(values["links"])
    for host in values["hosts"]:
        yield host_fields(host)


def link_fields(links: Mapping[str, Any]) -> dict[str, str]:
    """Return the lines about the links between ranks."""
    out = {"domains": links["domains"]} if links["domains"] else {}
    return out | {"exchange": f"{links['exchange']}: {links['reason']}"}


def engine_fields(outcomes: Mapping[str, str]) -> dict[str, str]:
    """Return which engines work and which do not, with each reason once.

    The lines about the host give the reason why there is no device.
    """
    reasons = {
        k: NO_DEVICE if x.startswith("no CUDA") else x for k, x in outcomes.items()
    }
    names = by_reason(reasons)
    out = {"engines": names.pop("works", "none works")}
    others = [f"{some}: {reason}" for reason, some in names.items()]
    return out | ({"not usable": "; ".join(others)} if others else {})


def host_fields(host: Mapping[str, Any]) -> dict[str, Any]:
    """Return the lines about a host."""
    cuda, kernels = host["cuda"], host["kernels"]
    devices = [f"{one['name']}, {readable(one['memory'])}" for one in cuda["devices"]]
    good = [Path(name).stem for name, said in kernels.items() if said == "ok"]
    out = {
        "host": f"{host['host']}, {host['system']}",
        "cores": host["cores"],
        "threads": f"{host['threads']} a rank",
        "memory": f"{readable(host['memory'])}, {host['memory_limit']}",
        "C compiler": host["compiler"] or "none",
    }
    if host["compiler"]:
        out |= {"version": host["compiler_version"], "kernel cache": host["cache"]}
    if kernels:
        how = f"portable, {', '.join(host['portable'])}"
        how = how if host["portable"] else "compile"
        out["kernels"] = f"{len(good)} of {len(kernels)} {how}: {', '.join(good)}"
    if devices:
        out["CUDA"] = f"cupy {cuda['cupy']}, {counted(len(devices), 'device')}"
        out |= {f"device {index}": text for index, text in enumerate(devices)}
    else:
        out["CUDA"] = cuda["said"]
    out["NVRTC"] = cuda["nvrtc"] or "none"
    missing = cuda["nvshmem_said"] if devices else "none"
    out["NVSHMEM"] = cuda["nvshmem"] or missing
    return out


def architectures(wanted: Iterable[str]) -> list[str]:
    """Return the architectures to compile for; UsageError for unknown ones."""
    names: list[str] = []
    for name in wanted:
        if name != "all" and not ARCHITECTURE.fullmatch(name):
            raise UsageError(f"--compile is '{name}'; allowed: all, or one as sm_90")
        names += ARCHITECTURES if name == "all" else [name]
    return list(dict.fromkeys(names))


def compile_kernels(terminal: Terminal, wanted: Iterable[str]) -> int:
    """Compile every CUDA kernel without a device; returns the exit code (collective).

    Raises DeviceMissing if there is no NVRTC.
    """
    version = nvrtc_version()
    outcomes: dict[str, dict[str, str]] = {}
    if terminal.world.rank == 0:
        outcomes = {arch: kernel_compilations(arch) for arch in wanted}
    outcomes = terminal.world.broadcast(outcomes)
    values = {"nvrtc": version, "kernels": outcomes}
    terminal.result(values, lambda: print_compilations(outcomes))
    return 1 if any(divided(said)[1] for said in outcomes.values()) else 0


def divided(said: Mapping[str, str]) -> tuple[int, list[str], list[str]]:
    """Return the number of compiled kernels, the errors, and files left out."""
    others = [x for x in said.values() if x != "ok"]
    bad = [x for x in others if not x.startswith(LEFT_OUT)]
    left = [f"{name} is {x}" for name, x in said.items() if x.startswith(LEFT_OUT)]
    return len(said) - len(others), bad, left


def print_compilations(outcomes: Mapping[str, Mapping[str, str]]) -> None:
    """Print how many kernels compile for each architecture, and the first error."""
    for arch, said in outcomes.items():
        good, bad, left = divided(said)
        line = f"{good} of {good + len(bad)} kernels compile for {arch}"
        error = [f"the first error: {bad[0]}"] if bad else []
        click.echo("; ".join([line, *left, *error]))


def print_findings(values: Mapping[str, Any]) -> None:
    """Print the findings as text, problems last."""
    for block in fields_of(values):
        print_fields({f"{name:<{WIDTH}}": value for name, value in block.items()})
        click.echo()
    for problem in values["problems"]:
        click.echo(f"problem: {problem}")
    if not values["problems"]:
        click.echo("no problems found")


def run(asked: DoctorOptions) -> int:
    """Run the command."""
    named = architectures(asked.compile)
    problem = ""
    try:
        terminal = open_terminal(asked)
    except LaunchError as error:
        launch = find_launch(os.environ)
        if launch is not None and launch.rank:
            return 0
        terminal = Terminal(SoloWorld(), asked)
        problem = str(error)
    if named:
        return compile_kernels(terminal, named)
    values = examine(terminal, problem)
    terminal.result(values, lambda: print_findings(values))
    return 0 if values["engines"]["reference"] == "works" else 1
