"""Every block of the README and of the pages in docs/ does what the page says.

The blocks of a page run in order, in a folder of their own in which ``docs``,
``docker``, ``scripts`` and ``slurm`` are those of the tree, without a GPU and with two
threads:

- ``console``: a line that begins with ``$ `` is a command for bash, which a ``\\`` at
  its end continues; the lines that follow are what it prints, on both streams.  A
  command ends with exit code 0, unless the next one is ``echo $?``.  One that ends with
  ``&`` runs until the page ends, and its lines are waited for.
- ``pycon``: examples as of doctest, with ELLIPSIS and NORMALIZE_WHITESPACE.
- ``python``: is executed; all Python of a page shares its names.
- ``json``: can be read, as a whole or line by line.
- other languages are not run.  Blocks without a language, or indented, are errors.

Comments directly before a block say more of it:

- ``<!-- file: NAME -->``: the block is written to that file.
- ``<!-- prints -->``: the ``text`` block is what the last ``python`` block printed.
- ``<!-- needs: WHAT -->``: the block needs something that a test has not (NEEDS) and is
  not run; Python must compile, and ``distbfs`` must know the commands and options.

What is printed is compared line by line.  Whole numbers and words are compared exactly;
a number with a decimal point or an exponent stands for any number, ``...`` for the rest
of a line or, alone in a line, for any lines; blanks, and blank lines, do not count.
"""

import doctest
import json
import re
import shlex
from itertools import takewhile
from urllib.parse import urlsplit

import click
import pages
import pytest

from distbfs.cli.main import commands as distbfs

NEEDS = {"docker", "gpu", "hosts", "install", "root", "slurm", "time"}
NOT_RUN = {
    "bash", "c", "csv", "cuda", "diff", "html", "ini", "mermaid", "nginx", "text",
    "toml", "yaml",
}  # fmt: skip
NO_CALL = {"-m", "-t", "cd", "install"}  # before a word, which is not a command then
OPERATORS = set("();<>|&")
NAME = pytest.mark.parametrize(
    "page", pages.documents(), ids=lambda page: str(page.relative_to(pages.ROOT))
)


def calls(command):
    """Return the arguments of each call of distbfs in a command of bash."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = [";", *lexer]
    for i, word in enumerate(words):
        if word == "distbfs" and words[i - 1] not in NO_CALL:
            rest = takewhile(lambda word: not set(word) <= OPERATORS, words[i + 1 :])
            yield list(rest)


def check_call(arguments):
    """Raise click's error unless the command line is one that distbfs takes."""
    context = click.Context(distbfs, info_name="distbfs")
    command = distbfs
    while isinstance(command, click.Group) and arguments[0] not in {"-h", "--help"}:
        name, *arguments = arguments
        command = command.get_command(context, name)
        assert command is not None, f"there is no command {name}"
    context = click.Context(command, info_name=command.name)
    values, left, _ = command.make_parser(context).parse_args(list(arguments))
    assert not left, f"too many arguments: {left}"
    for parameter in command.params:
        value = values.get(parameter.name)
        if parameter.value_is_missing(value):
            assert {"--help", "-h"} & {*arguments} or not parameter.required, parameter
        elif not isinstance(parameter.type, click.Path):
            parameter.type_cast_value(context, value)


def check_json(text):
    """Raise ValueError unless text is JSON, or each of its lines."""
    try:
        json.loads(text)
    except ValueError:
        for line in filter(None, text.splitlines()):
            json.loads(line)


def check_blocks(page):
    for block in pages.blocks(page):
        where = f"{page}:{block.line}"
        assert set(block.notes) <= {"file", "needs", "prints"}, where
        if "file" in block.notes or re.match(r"\{[\w:-]+\}", block.language):
            continue
        known = NOT_RUN | {"console", "json", "pycon", "python"}
        assert block.language in known, f"{where}: language {block.language!r}"
        if block.language == "json":
            check_json(block.text)
        if block.language == "console":
            text = "\n".join(command for command, _ in pages.commands(block.text))
            for path in re.findall(
                rf"(?<![\w/.-])(?:{'|'.join(pages.TREE)})/[\w./-]+", text
            ):
                assert (pages.ROOT / path).exists(), f"{where}: {path}"
        if "needs" not in block.notes:
            continue
        assert set(block.notes["needs"].split("|")) <= NEEDS, where
        if block.language == "python":
            compile(block.text, where, "exec")
        if block.language == "pycon":
            for example in doctest.DocTestParser().get_examples(block.text):
                compile(example.source, where, "single")
        if block.language == "console":
            for command, _ in pages.commands(block.text):
                for arguments in calls(command.replace("\\\n", " ")):
                    check_call(arguments)


@NAME
def test_blocks_and_links_are_well_formed(page):
    check_blocks(page)
    check_links(page)


def check_links(page):
    """Links of the README are files of the tree; Sphinx checks those of pages."""
    every = [child for token in pages.tokens(page) for child in token.children or ()]
    for link in every:
        target = link.attrGet("href") or link.attrGet("src")
        if target is None:
            continue
        parts = urlsplit(target)
        if parts.scheme:
            assert parts.scheme in {"https", "mailto"}, target
            assert parts.scheme == "mailto" or "." in parts.netloc, target
        elif page.name == "README.md":
            assert (page.parent / parts.path).exists(), target


SLOW = {"cost_model.md", "engines.md", "check.md"}  # they take seconds
RUN = {"console", "json", "pycon", "python"}


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            id=str(page.relative_to(pages.ROOT)),
            marks=pytest.mark.thorough if page.name in SLOW else (),
        )
        for page in pages.documents()
        if any(x.language in RUN and "needs" not in x.notes for x in pages.blocks(page))
    ],
)
def test_blocks_run(page, tmp_path):
    done = pages.run_apart(page, tmp_path)
    assert done.returncode == 0, done.stdout


PAGE = """
<!-- file: edges.txt -->
```text
0 1
1 2
```

```console
$ distbfs convert edges.txt -o graph >log 2>&1 && \\
  echo done
done
$ distbfs nonsense
...
$ echo $?
2
$ sleep 60 &
$ echo 1.5 whole 3
2.25   whole 3
```

```python
x = 1
print(0.5)
```

<!-- prints -->
```text
0.75
```

```pycon
>>> x + 1
2
```
"""
WRONG = {
    "$ echo 3\n4": "printed",
    "$ false": "exit code 1",
    "$ echo a\na\nb": "printed",
    "$ echo 1.2.3\n1.2.4": "printed",
    ">>> 1 + 1\n3": "Got",
    "raise KeyError(5)": "KeyError: 5",
}


def run_text(text, tmp_path):
    (tmp_path / "page.md").write_text(text)
    try:
        test_blocks_run(tmp_path / "page.md", tmp_path)
    except AssertionError as error:
        return str(error)
    return ""


def test_what_a_page_should_show_is_written(tmp_path):
    page = tmp_path / "page.md"
    shown = PAGE.replace("2.25   whole 3", "2.25 part 4\n...").replace("0.75", "x")
    page.write_text(shown.replace("$ echo 1.5", "$ echo distbfs: a && echo 1.5"))
    assert pages.main([str(page)]) == 1
    assert pages.main(["--write", str(page)]) == 0
    assert "\n...\n1.5 whole 3\n" in page.read_text()
    assert pages.main([str(page)]) == 0


def test_a_page_that_is_right(tmp_path):
    assert run_text(PAGE, tmp_path) == ""


def test_blocks_that_are_wrong_are_told(tmp_path):
    kinds = {"$": "console", ">": "pycon", "r": "python"}
    text = "\n\n".join(f"```{kinds[code[0]]}\n{code}\n```" for code in WRONG)
    told = run_text(text, tmp_path)
    assert len({*re.findall(r"page\.md:\d+: ", told)}) == len(WRONG), told
    for message in WRONG.values():
        assert message in told


@pytest.mark.parametrize(
    "command",
    ["distbfs bfs graph --no-such", "mpirun -n 2 distbfs no-such-command",
     "distbfs serve", "A=1 distbfs bfs graph --parts many | head"],
)  # fmt: skip
def test_commands_that_distbfs_does_not_take(command):
    [arguments] = calls(command)
    with pytest.raises((click.ClickException, AssertionError)):
        check_call(arguments)
