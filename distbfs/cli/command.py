"""Commands made from classes of options: their help, and parsing of arguments."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import (
    MISSING,
    Field,
    dataclass,
    field,
    fields,
    make_dataclass,
    replace,
)
from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_type_hints

import click
import cloup

from distbfs import registry
from distbfs.cli.main import RankContext
from distbfs.errors import UsageError
from distbfs.formats.text import STDIN
from distbfs.options import ADVANCED, GROUPS, OUTPUT, Declared, Factors, Knobs
from distbfs.registry import did_you_mean

STDIN_USED, WHOLE = f"{__name__}.stdin", f"{__name__}.whole"
SENTENCE = re.compile(r"(?<=\.)\s+(?=[A-Z\d])")
DEFAULT = re.compile(r"\[default: [^]]*\]")
ENTRY = re.compile(r"^([a-z]\w*(?:, \w+)*): (.+(?:\n .+)*)", re.MULTILINE)
UNITS = {"": 1, **{u: 1000**k for k, u in enumerate("kMGTP", 1)}}
UNITS |= {f"{u}i": 1024**k for k, u in enumerate("KMGTP", 1)}
SIZE = re.compile(r"([\d.]+(?:e\d+)?) ?([kMGTP]|[KMGTP]i|)B?(?:/s)?")
HELP = {
    ("-h", "--help"): "Show this message and exit.",
    ("--help-all",): "Show all options with their full help, and exit.",
}


def show_help(ctx: click.Context, option: click.Parameter, asked: bool) -> None:
    """Print the help and end: all of it for ``--help-all``."""
    if asked and not ctx.resilient_parsing:
        ctx.meta[WHOLE] = option.name == "help_all"
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


def brief(text: str) -> str:
    """Return the first sentence of the help of an option, and its default."""
    sentence = SENTENCE.split(text.partition("  [")[0], 1)[0]
    return "  ".join([sentence, *DEFAULT.findall(text)])


class Command(cloup.Command):
    """A command whose help shows its options in the order of GROUPS.

    ``--help`` is brief, without those of ADVANCED; ``--help-all`` is complete.
    """

    context_class = RankContext

    def format_params(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options; brief help leaves out those of ADVANCED."""
        groups = self.option_groups
        if not ctx.meta.get(WHOLE):
            self.option_groups = [x for x in groups if x.title != ADVANCED]
        super().format_params(ctx, formatter)
        self.option_groups = groups

    def make_option_group_help_section(
        self, group: cloup.OptionGroup, ctx: click.Context
    ) -> cloup.HelpSection:
        """Return the help of a group, of a sentence for each option if it is brief."""
        section = super().make_option_group_help_section(group, ctx)
        if not ctx.meta.get(WHOLE):
            section.definitions = [
                (x, brief(f"{text}")) for x, text in section.definitions
            ]
        return section


class FilePath(click.Path):
    """A path, which is not checked here: the function that opens it does so."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, readable=False)


def input_path(text: str) -> Path:
    """Return the path of a file to read; - is standard input, for one file."""
    if text not in ("-", str(STDIN)):
        return Path(text)
    context = click.get_current_context(silent=True)
    if context is not None:
        if STDIN_USED in context.meta:
            raise UsageError("standard input holds one file; two arguments read it")
        context.meta[STDIN_USED] = text
    return STDIN


class InputPath(FilePath):
    """The path of a file to read, or - for standard input."""

    def convert(self, value: Any, param: Any, ctx: click.Context | None) -> Any:
        """Return the path; UsageError for a second file from standard input."""
        return super().convert(input_path(value), param, ctx)


class Choice(click.Choice):  # type: ignore[type-arg]  # generic from click 8.4 on
    """A choice that suggests a similar word for a misspelt one."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return the choice; BadParameter for any other word."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            if alike := did_you_mean(str(value), map(str, self.choices)):
                said = f"{error.message.rstrip('.')}; {alike}"
                raise click.BadParameter(said, ctx, param) from error
            raise


class Size(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.4 on
    """A size such as 25e9, 141GB or 80GiB; "/s" may follow."""

    name = "size"

    def __init__(self, number: type[int | float]) -> None:
        self._number = number

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | float:
        """Return the number; BadParameter unless it is a size above 0."""
        match = SIZE.fullmatch(value.strip())
        try:
            size = float(match[1]) * UNITS[match[2]] if match else 0.0
        except ValueError:
            size = 0.0
        if not 0 < size < float("inf"):
            text = f"{value!r} is not a size above 0; write 25e9, 141GB or 80GiB"
            raise click.BadParameter(text, ctx, param)
        return self._number(size)


STORE = FilePath()  # that is read: ranks compare what it holds
GRAPH = InputPath()  # likewise, or a file that rank 0 reads
KINDS = {
    "engine": Choice(["auto", *registry.ENGINES]),
    "exchange": Choice(["auto", *registry.EXCHANGES]),
    "bytes": Size(int),
    Path: FilePath(),
}


def argument(kind: Any, metavar: str | None = None, **more: Any) -> Any:
    """Return a field that is an argument; more: default, and keywords for click."""
    default = more.pop("default", MISSING)
    known = Declared("", kind=kind, more={"metavar": metavar, **more})
    return field(default=default, metadata={"option": known})


def borrowed(*kinds: type, names: tuple[str, ...] = ()) -> Any:
    """Return a field for options that other classes declare.

    names: names of those that the command has, by default all

    Its value is a dict of the options that the user gave.
    """
    return field(default_factory=dict, metadata={"borrowed": (kinds, names)})


@dataclass(frozen=True)
class Word:
    """An option or an argument of a command, with the field for its value.

    holder: the field of the command that holds it if it is borrowed, else ""
    """

    parameter: click.Parameter
    item: Field[Any]
    hint: Any
    holder: str = ""

    def read(self, value: Any) -> Any:
        """Convert click's value to the value of the field."""
        known: Declared = self.item.metadata["option"]
        if any(x.startswith("--no-") for x in known.spellings):
            return False if value else self.item.default
        if value is None or known.unit == 1:
            made = {Factors: lambda x: Factors(*x), Knobs: Knobs.parse}.get(self.hint)
            return value if value is None or made is None else made(value)
        return max(int(value * known.unit), 1)


def help_of(kind: type, facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the help of the options of a class, by name, from its docstring.

    facts: texts for the names in braces there
    """
    texts: dict[str, str] = {}
    for one in kind.__mro__:
        for names, text in ENTRY.findall(inspect.cleandoc(one.__doc__ or "")):
            lines = [line.strip() for line in text.splitlines()]
            spaced = [f"{line} " if line.endswith(".") else line for line in lines]
            for name in names.split(", "):
                texts.setdefault(name, " ".join(spaced).rstrip().format(name, **facts))
    return texts


def words_of(
    kind: type,
    facts: Mapping[str, Any],
    names: tuple[str, ...] = (),
    holder: str = "",
) -> Iterator[Word]:
    """Yield the options that a class declares, its own before those of its bases."""
    hints, texts = get_type_hints(kind), help_of(kind, facts)
    items = {item.name: item for item in fields(kind)}
    for one in kind.__mro__:
        for item in [items.pop(x) for x in inspect.get_annotations(one) if x in items]:
            if "borrowed" in item.metadata:
                kinds, some = item.metadata["borrowed"]
                for other in kinds:
                    yield from words_of(other, facts, some, item.name)
            elif "option" in item.metadata and (not names or item.name in names):
                hint = hints[item.name]
                optional = type(None) in get_args(hint)
                hint = get_args(hint)[0] if optional else hint
                made = _parameter(item, hint, texts, optional=optional)
                yield Word(made, item, hint, holder)


def shared_options(holders: Mapping[str, tuple[type, Iterable[Field[Any]]]]) -> type:
    """Return a class of the options of several holders, None where one is left out.

    holders: name -> the class that declares its options, and their fields
    """
    by_name: dict[str, dict[str, tuple[type, Field[Any]]]] = {}
    for holder, (kind, items) in holders.items():
        for item in items:
            by_name.setdefault(item.name, {})[holder] = kind, item
    texts, made = [], []
    for name, some in by_name.items():
        kind, item = next(iter(some.values()))
        usual = {
            holder: shown
            for holder, (_, x) in some.items()
            if (shown := x.metadata["option"].usual or shown_default(x.default))
        }
        shown = "; ".join(dict.fromkeys(usual.values()))
        if len({*usual.values()}) > 1:
            shown = "; ".join(map(": ".join, usual.items()))
        text = f"{name}: {help_of(kind, {})[name].rstrip('.')}; {', '.join(some)}."
        texts.append(f"{text}  [{shown}]" if shown else text)
        known = {"option": replace(item.metadata["option"], usual=None)}
        hint = get_type_hints(kind)[name] | None
        made.append((name, hint, field(default=None, metadata=known)))
    return make_dataclass(
        "SharedOptions", made, namespace={"__doc__": "\n".join(texts)}
    )


def shown_default(value: Any) -> str:
    """Return the default of an option as help shows it, "" for none."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else f"{value:g}" if value else ""


def with_default(text: str, usual: Any) -> str:
    """Return the help of an option with its default, which may end it in brackets."""
    if text.endswith("]"):
        return "[default: ".join(text.rsplit("[", 1))
    if usual is False or usual in (None, ""):
        return text
    shown = f"{usual:g}" if isinstance(usual, float) else f"{usual}"
    return f"{text}  [default: {shown}]"


def _parameter(
    item: Field[Any], hint: Any, texts: Mapping[str, str], *, optional: bool
) -> click.Parameter:
    """Return the option or argument of a field; texts: help by name."""
    known: Declared = item.metadata["option"]
    more, kind = dict(known.more), KINDS.get(known.kind or hint, known.kind)
    if not known.group:
        several = more.get("nargs") == -1
        more.setdefault("required", item.default is MISSING and not several)
        return click.Argument([item.name], type=kind, **more)
    spelt = item.name.replace("_", "-")
    long = next((x for x in known.spellings if x.startswith("--")), f"--{spelt}")
    usual: Any = item.default if known.usual is None else known.usual
    if known.unit != 1:
        usual /= known.unit
    several = get_args(hint) if getattr(hint, "__origin__", None) is tuple else ()
    number = several[0] if several else hint
    if known.low is not None and kind is None:
        made: Any = (
            click.FloatRange if float in (number, type(usual)) else click.IntRange
        )
        low, high = (known.low, known.high) if known.unit == 1 else (0, None)
        kind = made(low, high, min_open=known.above or known.unit != 1)
    elif known.allowed:
        kind = Choice(known.allowed)
    elif hint is Factors:
        kind, several = click.FloatRange(0), (float, float)
        more["metavar"] = "PULL PUSH"
    if several[1:] == (...,):
        more["multiple"] = True
    elif several:
        more["nargs"] = len(several)
    if hint is bool and (not optional or long.startswith("--no-")):
        more["is_flag"], usual = True, False
    elif hint is bool and "/" not in long:
        long = f"{long}/--no-{spelt}"
    elif several or hint is Factors or usual is MISSING:
        usual = None
    text = texts.get(item.name) or texts.get(long.strip("-").replace("-", "_"), "")
    text = with_default(text, usual)
    kind = kind or (number if number in (int, float) else None)
    shorts = [x for x in known.spellings if not x.startswith("--")]
    if "required" not in more:  # for which a default, None too, would stand
        more["default"] = usual
    return cloup.Option([long, *shorts, item.name], type=kind, help=text, **more)


def command_of(name: str, kind: type, *, run: str = "", **facts: Any) -> Command:
    """Return the command of a class of options, whose docstring begins with its help.

    run: the function that runs it; by default ``run`` of the module in ``distbfs.cli``
    that has the command's name
    facts: texts for the names in braces in the docstring
    """
    words = [*words_of(kind, facts)]
    places = {title: k for k, title in enumerate(GROUPS)}
    own = {title: cloup.OptionGroup(title) for title in GROUPS}
    for word in words:
        if isinstance(word.parameter, cloup.Option):
            word.parameter.group = own[word.item.metadata["option"].group]
    words.sort(key=lambda x: places.get(x.item.metadata["option"].group, -1))
    used = [word.item.metadata["option"].group for word in words]
    parameters = [word.parameter for word in words]
    for names, text in HELP.items():
        asking = cloup.Option(
            [*names],
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=show_help,
            help=text,
            group=own[OUTPUT if OUTPUT in used else used[-1]],
        )
        parameters.append(asking)

    def callback(**values: Any) -> Any:
        fitting: dict[str, Any] = {}
        for word in words:
            value = word.read(values[str(word.parameter.name)])
            if not word.holder:
                fitting[word.item.name] = value
            elif value is not None:
                fitting.setdefault(word.holder, {})[word.item.name] = value
        module, _, function = (run or f"{name}.run").partition(".")
        carry_out = getattr(import_module(f"distbfs.cli.{module}"), function)
        return carry_out(kind(**fitting))

    about = ENTRY.split(inspect.cleandoc(kind.__doc__ or ""), 1)[0]
    return Command(
        name,
        params=parameters,
        add_help_option=False,
        callback=callback,
        help=about.format(**facts) if facts else about,
    )
