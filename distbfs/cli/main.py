"""The ``distbfs`` command: finds the module of a subcommand and guards the run."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from importlib import import_module
from itertools import pairwise
from typing import Any

import click
import cloup

from distbfs import __version__
from distbfs.cli.streams import ClosedPipe, run_program
from distbfs.errors import DistbfsError, LaunchError, UsageError, system_error
from distbfs.interrupts import end_at_once
from distbfs.ranks.abort import log_as_json
from distbfs.ranks.endings import AbortHook
from distbfs.ranks.launcher import find_launch
from distbfs.ranks.signals import Interrupts
from distbfs.registry import did_you_mean

SECTIONS = {
    "Graphs": {
        "generate": "Generate a graph and store it.",
        "convert": "Read a graph file and store it.",
        "partition": "Store a graph again in another number of parts.",
        "export": "Write a stored graph to a file of another format.",
        "info": "Show a graph: vertices, edges, degrees, components.",
        "verify": "Check every byte and rule of a store.",
        "plan": "Show the memory per device before anything is loaded.",
    },
    "Searches": {
        "bfs": "Search a graph, a store or a file, from given sources.",
        "multisearch": "Run an application of many searches at once.",
        "serve": "Keep a graph loaded and answer queries.",
        "query": "Ask a service.",
    },
    "Measurements": {
        "graph500": "Run the Graph500 benchmark and print the official report.",
        "compare": "Compare engines on one graph: time, GTEPS, edge checks.",
        "plot": "Draw figures from result files.",
    },
    "Installation": {"doctor": "Show what this installation can use."},
}
WIDEST = max(len(name) for section in SECTIONS.values() for name in section)
COMPLETION = """\b
Shell completion, by a line in the file that your shell reads first:
  bash  eval "$(_DISTBFS_COMPLETE=bash_source distbfs)"
  zsh   eval "$(_DISTBFS_COMPLETE=zsh_source distbfs)"
  fish  _DISTBFS_COMPLETE=fish_source distbfs | source
"""
COMMANDS = {k: text for section in SECTIONS.values() for k, text in section.items()}


def compare_ranks(command: str, context: click.Context | None = None) -> None:
    """Raise UsageError unless all ranks run the same command (collective).

    Ranks compare the version, the command and its options. For stores that are read,
    they compare manifests, since hosts may see a store at different paths.  If MPI
    cannot be started, nothing is compared: commands that need it say so.
    """
    from distbfs.ranks.agreement import first_difference  # noqa: PLC0415 - has NumPy
    from distbfs.ranks.world import start  # noqa: PLC0415

    try:
        world = start()
    except LaunchError:
        return
    if world.size == 1:
        return
    facts: dict[str, object] = {"the version": __version__, "the command": command}
    if context is not None:
        facts |= import_module("distbfs.cli.shared").facts_of(context)
    difference = first_difference(world, facts)
    if difference:
        raise UsageError(f"all ranks must run the same command: {difference}")


class RankContext(cloup.Context):
    """The context of a command, which first checks that all ranks run the same one."""

    def invoke(self, *arguments: Any, **options: Any) -> Any:
        """Compare the command with that of the other ranks, then run it."""
        is_program = signal.getsignal(signal.SIGINT) is end_at_once
        with Interrupts() if is_program else nullcontext():
            compare_ranks(self.command_path, self)
            return super().invoke(*arguments, **options)


class Interrupted(BaseException):
    """Stands for KeyboardInterrupt, for which click would print an empty line."""


class Commands(click.Group):
    """Loads the module of a subcommand when it is used."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a subcommand."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise Interrupted(*error.args) from error

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names in the order in which they are usually needed."""
        return list(COMMANDS)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002
        cmd_name: str,
    ) -> click.Command | None:
        """Import a subcommand; None if there is no such command."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"distbfs.cli.options.{cmd_name}")
        command: click.Command = module.command
        return command

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002
        formatter: click.HelpFormatter,
    ) -> None:
        """Write the list of subcommands without importing them."""
        for title, section in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(list(section.items()), col_max=WIDEST)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return name, command and its arguments; UsageError for an unknown name."""
        name = args[0]
        if name in COMMANDS or ctx.resilient_parsing or name.startswith("-"):
            return super().resolve_command(ctx, args)
        more = f"allowed: {', '.join(COMMANDS)}"
        if alike := did_you_mean(name, COMMANDS):
            more = f"{alike} 'distbfs --help' lists all"
        raise click.UsageError(f"no command '{name}'; {more}", ctx)


@click.group(
    cls=Commands,
    invoke_without_command=True,
    epilog=COMPLETION,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="distbfs")
@click.pass_context
def commands(ctx: click.Context) -> None:
    """Breadth-first search on graphs that outgrow one device.

    \b
    distbfs bfs edges.txt --source 0     search the graph of a file
    distbfs convert edges.txt -o graph   store it, which makes later searches fast
    distbfs bfs graph --source 0         search the store
    distbfs COMMAND --help               show the options of a command

    Every command runs the same alone and under mpirun or srun.  Exit codes: 0 done,
    1 a search or validation failed, 2 wrong use or bad input, 3 no memory, disk space,
    device or compiler.
    """  # noqa: D301 - click takes the backspace
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def asks_for_json_log(arguments: Sequence[str]) -> bool:
    """Return whether a command line, valid or not, has ``--log-format json``.

    An unknown option ends a command before its known options are read.
    """
    words = [part for word in arguments for part in word.split("=", 1)]
    formats = [value for name, value in pairwise(words) if name == "--log-format"]
    return formats[-1:] == ["json"]


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code; errors are raised."""
    log_as_json(asks_for_json_log(arguments))
    try:
        code = commands.main(
            args=list(arguments), prog_name="distbfs", standalone_mode=False
        )
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except (ClosedPipe, DistbfsError):
        raise
    except OSError as error:
        if error.errno is None:
            raise
        raise system_error(error) from error
    except (Interrupted, click.Abort) as error:
        raise KeyboardInterrupt(*error.args) from error
    except click.ClickException as error:
        text = error.format_message().rstrip(".")
        context = getattr(error, "ctx", None)
        if context is not None and context.parent is not None:
            text += f" (see '{context.command_path} --help')"
        raise UsageError(text) from error
    launched = find_launch(os.environ) is not None or "mpi4py.MPI" in sys.modules
    if launched and AbortHook.installed() is None:  # --help or --version, no command
        compare_ranks(" ".join(["distbfs", *arguments]))
    return code if isinstance(code, int) else 0


def entry() -> None:
    """Run the console script.

    Nothing else in its process uses NCCL; see the rule for graphs in ``Replays.land``.
    """
    os.environ.setdefault("NCCL_GRAPH_MIXING_SUPPORT", "0")
    run_program(lambda: run(sys.argv[1:]))
