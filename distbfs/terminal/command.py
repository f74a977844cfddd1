"""What help shows of a command, in groups, and what a misspelt word is answered."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
import cloup

from distbfs.errors import UsageError
from distbfs.formats.text import STDIN
from distbfs.registry import did_you_mean

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

STDIN_USED = f"{__name__}.stdin"

INPUT = cloup.OptionGroup("Input")
CONNECTIONS = cloup.OptionGroup("Connections")
SEARCH = cloup.OptionGroup("Search")
BUILDING = cloup.OptionGroup("Building")
DEVICES = cloup.OptionGroup("Devices and threads")
OUTPUT = cloup.OptionGroup("Output")
REQUEST_LIMITS = cloup.OptionGroup("Limits")
ADVANCED = cloup.OptionGroup("Advanced")
GROUPS = (
    INPUT,
    CONNECTIONS,
    SEARCH,
    BUILDING,
    DEVICES,
    OUTPUT,
    REQUEST_LIMITS,
    ADVANCED,
)


class Command(cloup.Command):
    """A command whose help shows its options in the order of GROUPS."""

    def __init__(self, *args: Any, params: list[click.Parameter], **named: Any) -> None:
        # groups hold the options of one command, so each command has its own
        own = {group: cloup.OptionGroup(group.title) for group in GROUPS}
        place: dict[Any, int] = {group: k for k, group in enumerate(GROUPS, 1)}
        params = sorted(params, key=lambda x: place.get(getattr(x, "group", None), 0))
        for param in params:
            if isinstance(param, cloup.Option) and param.group is not None:
                param.group = own[param.group]
        super().__init__(*args, params=params, **named)

    def make_option_group_help_section(
        self, group: cloup.OptionGroup, ctx: click.Context
    ) -> cloup.HelpSection:
        """Return the help of a group; ``--help`` is of the output, or at the end."""
        section = super().make_option_group_help_section(group, ctx)
        asked = self.get_help_option(ctx)
        shown = [x.title for x in self.option_groups]
        place = OUTPUT.title if OUTPUT.title in shown else shown[-1]
        if group.title == place and asked is not None:
            record = asked.get_help_record(ctx)
            section.definitions = [*section.definitions, *([record] if record else [])]
        return section

    def get_default_option_group(
        self, ctx: click.Context, is_the_only_visible_option_group: bool = False
    ) -> cloup.OptionGroup:
        """Return the group of options that have none, which is not shown."""
        group = super().get_default_option_group(ctx, is_the_only_visible_option_group)
        group.hidden = True
        return group


def grouped_command(name: str, **named: Any) -> Callable[[Callable[..., Any]], Command]:
    """Make a function a command; named: what ``click.Command`` takes."""
    return cloup.command(name, cls=Command, **named)


def with_options(*options: Callable[[Any], Any]) -> Callable[[Decorated], Decorated]:
    """Add several options in the order given."""

    def add(function: Decorated) -> Decorated:
        for option in reversed(options):
            function = option(function)
        return function

    return add


class FilePath(click.Path):
    """A path; one that cannot be read is refused by what reads it, for all users."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, readable=False)


def input_path(text: str) -> Path:
    """Return the path of a file to read; - is standard input, for one file."""
    if text not in ("-", str(STDIN)):
        return Path(text)
    context = click.get_current_context(silent=True)
    if context is not None:
        if STDIN_USED in context.meta:
            raise UsageError("standard input holds one file, and two are read from it")
        context.meta[STDIN_USED] = text
    return STDIN


class InputPath(FilePath):
    """The path of a file to read, or - for standard input."""

    def convert(self, value: Any, param: Any, ctx: click.Context | None) -> Any:
        """Return the path; UsageError for a second file from standard input."""
        return super().convert(input_path(value), param, ctx)


class Choice(click.Choice):  # type: ignore[type-arg]  # generic from click 8.4 on
    """A choice that names what a misspelt word is like."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return the choice; BadParameter for a word that is none."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            if alike := did_you_mean(str(value), map(str, self.choices)):
                said = f"{error.message.rstrip('.')}; {alike}"
                raise click.BadParameter(said, ctx, param) from error
            raise
