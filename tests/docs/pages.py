"""The pages of the documentation, block by block; as a program, runs or renews pages.

    python tests/docs/pages.py docs/tutorials/laptop.md
    python tests/docs/pages.py --write docs/tutorials/laptop.md

The first runs the blocks of pages in order, each page in a folder of its own, and says
which blocks fail.  The second writes what was printed into the blocks that show
something else; where a block had a line ``...``, messages on stderr become one again.
What a block means is said in ``test_blocks.py``.
"""

import contextlib
import doctest
import io
import os
import re
import select
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import markdown_it

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))
TREE = ("docker", "docs", "scripts", "slurm")  # what pages see of it
PATIENCE = 120  # seconds for one command
NUMBER = r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
VARYING = r"(?<![\w.])[-+]?\d+(?:\.\d+(?:[eE][-+]?\d+)?|[eE][-+]?\d+)(?!\.?\d)"
TOKEN = re.compile(rf"(?P<any>\.\.\.)|(?P<blank>[ \t]+)|(?P<number>{VARYING})")


class Failure(Exception):
    """A block that does not do what its page says; lines: that it should have."""

    def __init__(self, text: str, lines: list[str] | None = None):
        super().__init__(text)
        self.lines = lines


@dataclass
class Block:
    """A fenced block: its language, text and first line in the page, and the comments
    of the form ``<!-- key: value -->`` that stand directly before it."""

    language: str
    text: str
    line: int
    notes: dict[str, str]


def documents() -> list[Path]:
    """Return the README and every page."""
    pages = (ROOT / "docs").rglob("*.md")
    return [ROOT / "README.md", *sorted(p for p in pages if "_build" not in p.parts)]


def tokens(page: Path) -> list[markdown_it.token.Token]:
    """Return the parts of a page."""
    return markdown_it.MarkdownIt().parse(page.read_text(encoding="utf-8"))


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page in order."""
    out: list[Block] = []
    notes: dict[str, str] = {}
    for token in tokens(page):
        if token.type == "html_block":
            found = re.findall(r"<!--\s*(\w+)(?::\s*(.*?))?\s*-->", token.content)
            notes |= dict(found)
        elif token.type in {"fence", "code_block"}:
            language = token.info.strip() if token.type == "fence" else "indented"
            out.append(Block(language, token.content, token.map[0] + 1, notes))
            notes = {}
        else:
            notes = {}
    return out


def commands(text: str) -> list[tuple[str, list[str]]]:
    """Return each command of a console block, with the lines that it is to print."""
    out: list[tuple[str, list[str]]] = []
    unfinished = False
    for line in text.splitlines():
        if unfinished:
            out[-1] = (f"{out[-1][0]}\n{line}", [])
        elif line.startswith("$ "):
            out.append((line[2:], []))
        elif out:
            out[-1][1].append(line)
        else:
            raise Failure(f"a console block begins with a command: {line}")
        unfinished = not out[-1][1] and out[-1][0].endswith("\\")
    return out


def matches(wanted: list[str], printed: str) -> bool:
    """Return whether text is what a page shows, by the rules of ``test_blocks.py``."""
    pattern = ""
    for line in filter(str.strip, wanted):
        if line.strip() == "...":
            pattern += r"(?:[^\n]*\n)*"
            continue
        place = 0
        for found in TOKEN.finditer(line := line.strip()):
            pattern += re.escape(line[place : found.start()])
            kinds = {"any": r"[^\n]*", "blank": r"[ \t]+", "number": NUMBER}
            pattern += kinds[found.lastgroup]
            place = found.end()
        pattern += re.escape(line[place:]) + r"\n"
    lines = [line.strip() + "\n" for line in printed.splitlines() if line.strip()]
    return re.fullmatch(pattern, "".join(lines)) is not None


def renewed(wanted: list[str], printed: str) -> list[str]:
    """Return what a page is to show of a command that printed something else."""
    lines = [line.rstrip() for line in printed.splitlines()]
    if "..." in wanted:
        lines = ["..." if line.startswith("distbfs: ") else line for line in lines]
    pairs = zip([None, *lines], lines, strict=False)
    return [line for before, line in pairs if not before == line == "..."]


class Shell:
    """A bash that goes through the commands of a page."""

    def __init__(self):
        self.process = subprocess.Popen(
            ["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.outputs = Path(os.environ["PAGE_OUTPUTS"])
        self.count = 0

    def run(self, command: str, wanted: list[str]) -> tuple[int, str]:
        """Run a command; return its exit code and what it printed."""
        self.count += 1
        output = self.outputs / str(self.count)
        output.touch()  # a background command may not have opened it yet
        if background := command.endswith("&"):
            text = f"{command[:-1]} >{output} 2>&1 </dev/null &"
        else:
            text = f"eval {shlex.quote(command)} >{output} 2>&1 </dev/null"
        self.process.stdin.write(f"{text}\ncode=$?; echo $code; (exit $code)\n")
        self.process.stdin.flush()
        if not select.select([self.process.stdout], [], [], PATIENCE)[0]:
            raise Failure(
                f"no end within {PATIENCE} s: {command}\n{output.read_text()}"
            )
        code = int(self.process.stdout.readline() or 1)
        if background:
            end = time.monotonic() + PATIENCE
            while time.monotonic() < end and not matches(wanted, output.read_text()):
                time.sleep(0.02)
        return code, output.read_text()

    def block(self, text: str) -> list[str]:
        """Run a console block; return it with what its commands have printed."""
        every, shown = commands(text), []
        failures = []
        for i, (command, wanted) in enumerate(every):
            code, printed = self.run(command, wanted)
            asked = [c for c, _ in every[i + 1 : i + 2]] == ["echo $?"]
            if code and not asked:
                raise Failure(f"exit code {code}: {command}\n{printed}")
            good = not wanted or matches(wanted, printed)
            if not good:
                failures.append(f"{command}\nprinted\n{printed}")
            shown += [f"$ {command}", *(wanted if good else renewed(wanted, printed))]
        if failures:
            raise Failure("\n".join(failures), shown)
        return shown


class Page:
    """What the blocks of one page share."""

    def __init__(self, path: Path, *, write: bool = False):
        self.path = path
        self.write = write
        self.lines: list[tuple[Block, list[str]]] = []  # to be written
        self.names = {"__name__": "__main__"}
        self.shell = Shell()
        self.printed = ""

    def python(self, block: Block) -> None:
        """Execute a block; what it prints is kept for the next one."""
        out = io.StringIO()
        code = compile("\n" * block.line + block.text, self.path, "exec")
        with contextlib.redirect_stdout(out):
            exec(code, self.names)
        self.printed = out.getvalue()

    def pycon(self, block: Block) -> None:
        """Run the examples of a block."""
        test = doctest.DocTestParser().get_doctest(
            block.text, self.names, self.path.name, str(self.path), block.line
        )
        out = io.StringIO()
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        runner = doctest.DocTestRunner(optionflags=flags, verbose=False)
        runner.run(test, out=out.write, clear_globs=False)
        self.names.update(test.globs)
        if runner.failures:
            raise Failure(out.getvalue())

    def run(self, block: Block) -> None:
        """Do what a block asks for."""
        if "file" in block.notes:
            Path(block.notes["file"]).write_text(block.text, encoding="utf-8")
        elif "needs" in block.notes:
            return
        elif "prints" in block.notes:
            if not matches(block.text.splitlines(), self.printed):
                lines = self.printed.splitlines()
                raise Failure(f"printed\n{self.printed}", lines)
        elif block.language == "console":
            self.shell.block(block.text)
        elif block.language == "pycon":
            self.pycon(block)
        elif block.language == "python":
            self.python(block)

    def succeeds(self, block: Block) -> bool:
        """Run a block; say what is wrong with it, or note what it should show."""
        try:
            self.run(block)
        except Exception as error:  # noqa: BLE001 - any error of a page's own code
            lines = getattr(error, "lines", None)
            if self.write and lines is not None:
                self.lines.append((block, lines))
                return True
            name = "" if isinstance(error, Failure) else f"{type(error).__name__}: "
            print(f"{self.path}:{block.line}: {name}{error}", flush=True)
            return False
        return True

    def renew(self) -> None:
        """Write the page with what its blocks should show."""
        text = self.path.read_text(encoding="utf-8").split("\n")
        for block, lines in reversed(self.lines):
            text[block.line : block.line + len(block.text.splitlines())] = lines
        self.path.write_text("\n".join(text), encoding="utf-8")


def run_apart(path: Path, folder: Path, *options: str) -> subprocess.CompletedProcess:
    """Run a page in a process and an empty folder of its own; return how it ended."""
    import warm  # noqa: PLC0415 - not where the page runs

    here, outputs = folder / "page", folder / "outputs"
    here.mkdir()
    outputs.mkdir()
    for name in TREE:
        (here / name).symlink_to(ROOT / name)
    programs = (str(warm.folder()), os.path.dirname(sys.executable), os.environ["PATH"])
    environment = {
        **os.environ,
        "COLUMNS": "100",
        "CUDA_VISIBLE_DEVICES": "",
        "MPLBACKEND": "agg",
        "OMP_NUM_THREADS": "2",
        "PAGE_OUTPUTS": str(outputs),
        "PATH": os.pathsep.join(programs),
        "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}".rstrip(":"),
        "PYTHONUNBUFFERED": "1",
    }
    return subprocess.run(
        [warm.folder() / "python", __file__, "--here", *options, path.absolute()],
        cwd=here, env=environment, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def run_here(path: Path, *, write: bool) -> int:
    """Run a page in this folder; return the number of blocks that failed."""
    page = Page(path, write=write)
    failed = sum(not page.succeeds(block) for block in blocks(path))
    if write:
        page.renew()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)  # bash, and what still runs in the background
    page.shell.process.wait()
    return failed


def main(arguments: list[str]) -> int:
    """Run or renew the pages that are named; return the exit code."""
    options = [x for x in arguments if x.startswith("--")]
    paths = [Path(x) for x in arguments if x not in options]
    if "--here" in options:
        return min(run_here(paths[0], write="--write" in options), 1)
    code = 0
    for path in paths:
        with tempfile.TemporaryDirectory() as folder:
            done = run_apart(path, Path(folder), *options)
        print(done.stdout, end="")
        code = max(code, done.returncode)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
