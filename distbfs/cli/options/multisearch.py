"""The options of ``distbfs multisearch``."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from distbfs import registry
from distbfs.cli.command import (
    GRAPH,
    Choice,
    InputPath,
    argument,
    borrowed,
    command_of,
    shared_options,
)
from distbfs.cli.options import FileOptions, PatienceOption, ReverseOption, Speech
from distbfs.multisearch.application import Application
from distbfs.multisearch.base import WAYS, RunOptions
from distbfs.multisearch.result_files import FILES
from distbfs.options import DEVICES, INPUT, MEMORY_OPTIONS, OUTPUT, SEARCH, option

RUN_OPTIONS = ("method", "threshold", "batch", "threads", *MEMORY_OPTIONS)
APPS: dict[str, Application] = {
    name: registry.lookup(registry.APPS, "application", name) for name in registry.APPS
}


def own_options() -> type:
    """Return a class of the options of applications; None if one is left out."""
    return shared_options(
        {name: (app.options, fields(app.options)) for name, app in APPS.items()}
    )


@dataclass(frozen=True, kw_only=True)
class MultisearchOptions(FileOptions, ReverseOption, PatienceOption, Speech):
    """Run an APPLICATION of many searches on GRAPH, a store or a file as for bfs.

    {apps}

    output: File of the results: {files}.  Text may be compressed, and - is CSV on
        stdout.  One of {resumers} is resumed if it is unfinished.
    force: Replace an existing output.
    sources: K random vertices, those of a file (one id per line, - is stdin), or all.
    seed: Seed of random vertices.
    pairs: File of {takers}: two ids per line, from and to, separated by a tab, a comma
        or blanks; - is standard input.
    engine: auto takes xbfs where there is a device, else openmp.
    divide: How ranks divide the work: sources, each rank with the whole graph, or parts
        of the graph; auto: sources if the graph fits on each rank.
    domain: Devices of a domain, where parts are searched on devices; default: all that
        map each other's memory.
    """

    app: str = argument(Choice(list(APPS)), "APPLICATION")
    graph: Path = argument(GRAPH)
    output: Path | None = option(OUTPUT, "-o")
    force: bool = option(OUTPUT, default=False)
    sources: str = option(INPUT, default="all", metavar="K|FILE|all")
    seed: int = option(INPUT, default=1)
    pairs: Path | None = option(INPUT, kind=InputPath())
    own: dict[str, Any] = borrowed(own_options())
    engine: str = option(SEARCH, default="auto", allowed=("auto", *registry.SEARCHERS))
    divide: str = option(DEVICES, default="auto", allowed=tuple(WAYS))
    domain: int | None = option(DEVICES, low=1)
    search: dict[str, Any] = borrowed(RunOptions, names=RUN_OPTIONS)


command = command_of(
    "multisearch",
    MultisearchOptions,
    apps="\b\n" + "\n".join(f"{x:<14}{app.summary}" for x, app in APPS.items()),
    files=", ".join(FILES),
    resumers=", ".join(name for name, app in APPS.items() if app.resumes),
    takers=", ".join(name for name, app in APPS.items() if app.takes == "pairs"),
)
