"""``distbfs doctor``: show what this installation can use."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np

from distbfs.cli.common import Terminal, open_terminal, output_options, share_of_cores
from distbfs.cli.probing import engine_trials, host_facts, mpi_facts, software
from distbfs.errors import LaunchError
from distbfs.exchange.launcher import find_launch
from distbfs.exchange.world import SoloWorld
from distbfs.partition.memory import readable
from distbfs.report.tables import print_fields, shown

WIDTH = 16


def examine(terminal: Terminal, problem: str) -> dict[str, Any]:
    """Return what was found on all hosts, the same on all ranks (collective).

    problem: with the ranks themselves, or ""
    """
    world = terminal.world
    threads = share_of_cores(world)
    first = world.local_rank == 0
    mine = json.dumps(host_facts(world, threads)).encode() if first else b""
    told = world.allgather(np.frombuffer(mine, dtype=np.uint8))
    hosts = [json.loads(one.tobytes()) for one in told if len(one)]
    found: dict[str, Any] = {}
    if world.rank == 0:
        mpi, engines = mpi_facts(world), engine_trials()
        found = {**software(), "mpi": mpi, "engines": engines, "hosts": hosts}
        found["problems"] = [x for x in (problem, mpi.pop("problem")) if x]
        found["problems"] += problems_of(hosts, engines)
    common: dict[str, Any] = world.broadcast(found)
    return common


def problems_of(hosts: list[dict[str, Any]], engines: Mapping[str, str]) -> list[str]:
    """Return the problems of the hosts, each named where there are several."""
    found = []
    for host in hosts:
        where = f"{host['host']}: " if len(hosts) > 1 else ""
        lines = host.pop("problems") + host["cuda"].pop("problems")
        found += [where + line for line in lines]
    compiled = all(host["compiler"] for host in hosts)
    found += [
        f"engine {name}: {said}"
        for name, said in engines.items()
        if said != "works" and (compiled or name == "reference")
    ]
    return found


def fields_of(values: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what is shown, block by block."""
    packages = [f"{name} {version}" for name, version in values["packages"].items()]
    yield {
        "distbfs": values["distbfs"],
        "Python": f"{values['python']}, {values['executable']}",
        "packages": ", ".join(packages),
        "engines": values["engines"],
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
    for host in values["hosts"]:
        yield host_fields(host)


def host_fields(host: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is shown of a host."""
    cuda, kernels = host["cuda"], host["kernels"]
    devices = [f"{one['name']}, {readable(one['memory'])}" for one in cuda["devices"]]
    good = [Path(name).stem for name, said in kernels.items() if said == "ok"]
    out = {
        "host": f"{host['host']}, {host['system']}",
        "cores": host["cores"],
        "OpenMP threads": f"{host['threads']} a rank",
        "memory": f"{readable(host['memory'])}, {host['memory_limit']}",
        "C compiler": host["compiler"] or "none",
    }
    if host["compiler"]:
        out |= {
            "version": host["compiler_version"],
            "-march=native": f"with OpenMP: {host['march_native']}",
            "kernel cache": host["cache"],
            "kernels": f"{len(good)} of {len(kernels)} compile: {', '.join(good)}",
        }
    if devices:
        count = "1 device" if len(devices) == 1 else f"{len(devices)} devices"
        out["CUDA"] = f"cupy {cuda['cupy']}, {count}"
        out |= {f"device {index}": text for index, text in enumerate(devices)}
    else:
        out["CUDA"] = cuda["said"]
    return out


def print_findings(values: Mapping[str, Any]) -> None:
    """Print what was found for people, problems last."""
    for block in fields_of(values):
        print_fields({f"{name:<{WIDTH}}": value for name, value in block.items()})
        click.echo()
    for problem in values["problems"]:
        click.echo(f"problem: {problem}")
    if not values["problems"]:
        click.echo("no problems found")


@click.command("doctor")
@output_options
def command(json_output: bool, log_format: str) -> int:
    """Show what this installation can use, and what to install for the rest.

    Starts MPI, compiles every kernel and searches a small graph with every engine.
    Exit code 0 where at least the reference engine works.
    """
    problem = ""
    try:
        terminal = open_terminal(json_output=json_output, log_format=log_format)
    except LaunchError as error:
        launch = find_launch(os.environ)
        if launch is not None and launch.rank:
            return 0
        terminal = Terminal(SoloWorld(), json_output, log_format)
        problem = str(error)
    values = examine(terminal, problem)
    terminal.result(values, lambda: print_findings(values))
    return 0 if values["engines"]["reference"] == "works" else 1
