"""The options of ``distbfs multisearch``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from distbfs import registry
from distbfs.cli.options import carry_out
from distbfs.multisearch.application import Application, Option
from distbfs.multisearch.base import WAYS
from distbfs.multisearch.result_files import FILES
from distbfs.terminal.command import (
    ADVANCED,
    DEVICES,
    INPUT,
    OUTPUT,
    SEARCH,
    Choice,
    FilePath,
    InputPath,
    grouped_command,
    with_options,
)
from distbfs.terminal.options import (
    STORE,
    energy_option,
    first_id_option,
    memory_options,
    output_options,
    patience_option,
)


def every_application() -> dict[str, Application]:
    """Return the applications of the registry by name."""
    names = registry.APPS
    return {name: registry.lookup(names, "application", name) for name in names}


def help_of(apps: Mapping[str, Application]) -> str:
    """Return the text of ``multisearch --help``."""
    lines = [f"{name:<14}{app.summary}" for name, app in apps.items()]
    return "\n".join(
        ["Run an APPLICATION of many searches on the graph of STORE.\n\n\b", *lines]
    )


def endings_of(apps: Mapping[str, Application]) -> str:
    """Return the sentence of the help on the endings of result files."""
    more = {
        name: [x for x in app.endings if x not in FILES] for name, app in apps.items()
    }
    others = "; ".join(f"{name}: {', '.join(x)}" for name, x in more.items() if x)
    return f"File of the results: {', '.join(FILES)}; {others}."


def takers_of(apps: Mapping[str, Application], what: str) -> str:
    """Return the names of the applications that take sources, pairs or nothing."""
    return ", ".join(name for name, app in apps.items() if app.takes == what)


def resumers_of(apps: Mapping[str, Application]) -> str:
    """Return the names of the applications that resume."""
    return ", ".join(name for name, app in apps.items() if app.resumes)


def own_options(apps: Mapping[str, Application]) -> list[Callable[[Any], Any]]:
    """Return the options that applications declare; None where one is left out."""
    readers: dict[Option, list[str]] = {}
    for name, app in apps.items():
        for option in app.options:
            readers.setdefault(option, []).append(name)
    return [own_option(option, ", ".join(names)) for option, names in readers.items()]


def own_option(option: Option, readers: str) -> Callable[[Any], Any]:
    """Return the option of the command line; readers: names of applications."""
    text, usual = f"{readers}: {option.help}.", option.default
    if isinstance(usual, bool):
        usual = "yes" if usual else "no"
    if usual is not None:
        text += f"  [{usual}]"
    name = option.name.replace("_", "-")
    kind: click.Choice[str] | click.IntRange | type[float] | None = None
    if isinstance(option.kind, tuple):
        kind = click.Choice(option.kind)
    elif option.kind is int:
        kind = click.IntRange(option.least)
    elif option.kind is float:
        kind = float
    words = f"--{name}/--no-{name}" if kind is None else f"--{name}"
    return SEARCH.option(words, type=kind, default=None, help=text)


APPS = every_application()

source_options = with_options(
    INPUT.option(
        "--sources",
        "chosen",
        default="all",
        metavar="K|FILE|all",
        help="K random vertices, those of a file (one id a line, - is stdin), or all.  "
        "[all]",
    ),
    INPUT.option("--seed", default=1, help="Seed of random vertices.  [1]"),
    INPUT.option(
        "--pairs",
        type=InputPath(),
        help=f"File of {takers_of(APPS, 'pairs')}: two ids a line, from and to, "
        "separated by a tab, a comma or blanks; - is standard input.",
    ),
    first_id_option,
)

run_options = with_options(
    SEARCH.option(
        "--engine",
        type=Choice(["auto", *registry.RUNNERS]),
        default="auto",
        help="auto takes xbfs where there is a device, else openmp.  [auto]",
    ),
    SEARCH.option("--method", default="", help="Variant of the engine."),
    ADVANCED.option(
        "--threshold",
        default="auto",
        metavar="T|auto",
        help="Degree from which a warp searches a vertex (method hybrid of xbfs).  "
        "[auto]",
    ),
    ADVANCED.option(
        "--batch",
        type=click.IntRange(0),
        default=0,
        help="Searches at once; 0: what memory allows.  [0]",
    ),
    DEVICES.option(
        "--threads",
        type=click.IntRange(0, 4096),
        default=0,
        help="Threads a rank; 0: this rank's share of the cores.  [0]",
    ),
    DEVICES.option(
        "--divide",
        type=Choice(WAYS),
        default="auto",
        help="What ranks share: sources, each with the whole graph, or its parts; "
        "auto: sources where the graph fits on each rank.  [auto]",
    ),
    DEVICES.option(
        "--domain",
        type=click.IntRange(1),
        help="Devices of a domain, where parts are searched on devices; default: all "
        "that map each other's memory.",
    ),
    *memory_options,
)


@grouped_command("multisearch", help=help_of(APPS))
@click.argument("app", type=Choice(list(APPS)), metavar="APPLICATION")
@click.argument("store", type=STORE)
@OUTPUT.option(
    "--output",
    "-o",
    type=FilePath(),
    help=f"{endings_of(APPS)}  One of {resumers_of(APPS)} is resumed if it is "
    "unfinished.",
)
@OUTPUT.option("--force", is_flag=True, help="Replace an output that is there.")
@source_options
@with_options(*own_options(APPS))
@run_options
@energy_option
@patience_option
@output_options
def command(**values: Any) -> Any:
    """Run an application; ``own`` are options that applications declare."""
    return carry_out("multisearch", values)
