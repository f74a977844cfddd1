"""A command is made from a class of options: types, ranges, help, what it is given."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from distbfs.cli import verify
from distbfs.cli.command import STORE, argument, borrowed, command_of, words_of
from distbfs.cli.main import COMMANDS, commands
from distbfs.errors import UsageError
from distbfs.options import (
    ADVANCED,
    BuildOptions,
    Factors,
    Knobs,
    SearchOptions,
    SubgraphFactors,
    check_declared,
    option,
)


@dataclass(frozen=True, kw_only=True)
class Base:
    """Options of several.

    level: From {LOW} on.
    """

    level: int = option(ADVANCED, "-l", default=3, low=2, high=9)


@dataclass(frozen=True, kw_only=True)
class Toy(Base):
    """Do something.

    flag: A flag
        on two lines.
    either: One of two.
    no_turns: Without turns.
    sizes: Some sizes.  [none]
    """

    store: Path = argument(STORE)
    flag: bool = option(ADVANCED, default=False)
    either: bool | None = option(ADVANCED)
    turns: bool = option(ADVANCED, "--no-turns", default=True)
    sizes: tuple[int, ...] = option(ADVANCED, default=(), low=1)
    rest: dict[str, Any] = borrowed(SubgraphFactors, BuildOptions)
    search: dict[str, Any] = borrowed(SearchOptions, names=("levels", "threads"))


@pytest.fixture
def toy(monkeypatch):
    """Return what a command gives its program."""
    made = []
    monkeypatch.setattr(verify, "run", made.append)
    command = command_of("verify", Toy, LOW=2)

    def call(*words):
        done = CliRunner().invoke(command, ["here", *words], standalone_mode=False)
        if done.exception is not None:
            raise done.exception
        return made.pop()

    call.command = command
    return call


def test_what_is_left_out_has_its_default(toy):
    values = toy()
    assert (values.store, values.level, values.flag) == (Path("here"), 3, False)
    assert (values.either, values.turns, values.sizes) == (None, True, ())
    assert values.rest == {"pass_bytes": 4 << 30}
    assert values.search == {"levels": True, "threads": 0}


def test_what_is_typed(toy):
    words = "-l 9 --flag --no-either --no-turns --sizes 1 --sizes 2 --no-levels"
    values = toy(*words.split(), "--memory", "0.5", "--dd-factors", "2", "1")
    assert (values.level, values.flag, values.either) == (9, True, False)
    assert (values.turns, values.sizes) == (False, (1, 2))
    assert values.rest == {"pass_bytes": 1 << 29, "dd": Factors(2, 1)}
    assert values.search == {"levels": False, "threads": 0}


@pytest.mark.parametrize(
    "words", [("--level", "1"), ("--sizes", "0"), ("--memory", "0"), ("--parts", "1")]
)
def test_what_is_refused(toy, words):
    with pytest.raises(click.UsageError):
        toy(*words)


def test_help_is_that_of_the_docstring(toy):
    text = " ".join(CliRunner().invoke(toy.command, ["--help-all"]).output.split())
    assert "Do something. " in text
    assert "-l, --level INTEGER RANGE From 2 on. [default: 3] [2<=x<=9]" in text
    assert "--flag A flag on two lines. --" in text
    assert "--sizes INTEGER RANGE Some sizes. [default: none] [x>=1]" in text


def every_command():
    """Yield the names and the commands, those in others too."""
    context = click.Context(commands)
    for name in COMMANDS:
        command = commands.get_command(context, name)
        yield name, command
        yield from getattr(command, "commands", {}).items()


def test_every_option_has_help():
    options = [x for _, command in every_command() for x in command.params]
    lacking = [x.opts for x in options if isinstance(x, click.Option) and not x.help]
    assert len(options) > 250
    assert not lacking


@pytest.mark.parametrize("kind", [SearchOptions, BuildOptions, Knobs])
def test_a_class_checks_what_it_declares(kind):
    """Below its range, and outside its values, in the library as in commands."""
    declared = [x for x in fields(kind) if "option" in x.metadata]
    checked = 0
    for item in declared:
        known = item.metadata["option"]
        if known.low is not None:
            with pytest.raises(UsageError, match=f"{item.name} is .*; allowed: "):
                kind(**{item.name: known.low - 1})
        if known.allowed:
            with pytest.raises(UsageError, match=f"{item.name} is .*; allowed: "):
                kind(**{item.name: "none"})
        checked += known.low is not None or bool(known.allowed)
    assert checked >= 2


def test_declared_values_are_fine():
    check_declared(SearchOptions(threads=4096, direction="pull"))
    assert [word.item.name for word in words_of(Base, {"LOW": 2})] == ["level"]
