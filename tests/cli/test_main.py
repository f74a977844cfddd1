"""The command line itself: help, versions, refusals, ways to start it."""

import json
import sys
from pathlib import Path

import click
import pytest
from commands import FRESH, here, on
from launching import needs_mpi, run

from distbfs import __version__
from distbfs.cli.main import COMMANDS, commands
from distbfs.options import GROUPS

# as pip writes it for [project.scripts]
CONSOLE_SCRIPT = """\
import sys
from distbfs.cli.main import entry
if __name__ == "__main__":
    sys.exit(entry())
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """An environment in which neither mpi4py nor CuPy can be imported."""
    folder = tmp_path_factory.mktemp("bare")
    for name in ("mpi4py", "cupy"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("raise ImportError('not here')\n")
    root = Path(__file__).resolve().parents[2]
    return {"PYTHONPATH": f"{folder}:{root}", "CUDA_VISIBLE_DEVICES": ""}


HELP = """
import sys
from distbfs.cli.main import run
for command in sys.argv[1:]:
    assert run([command, "--help"]) == 0
    print(chr(0))
"""


def test_help_without_mpi_and_cuda(bare):
    done = run([sys.executable, "-c", HELP, *COMMANDS], env=bare)
    assert (done.returncode, done.stderr) == (0, "")
    for command, text in zip(COMMANDS, done.stdout.split("\0\n"), strict=False):
        assert text.startswith(f"Usage: distbfs {command} ")
        assert "--help" in text
        assert ("--json" in text) is (command != "query")  # always JSON


def test_help_lists_the_commands(bare):
    words = (["--help"], ["-h"], [])
    long, *others = (run([*FRESH, *some], env=bare) for some in words)
    assert (long.returncode, long.stderr) == (0, "")
    assert [other.stdout for other in others] == [long.stdout] * 2
    assert "_DISTBFS_COMPLETE=bash_source" in long.stdout
    assert "\\b" not in long.stdout
    for name, text in COMMANDS.items():
        assert f"  {name} " in long.stdout
        assert text in long.stdout


@pytest.mark.parametrize("command", [x for x in COMMANDS if x != "plot"])
def test_help_is_grouped(command):
    lines = here(command, "--help-all").out.splitlines()
    titles = [line[:-1] for line in lines if line[:1].isalpha() and line.endswith(":")]
    assert titles == [title for title in GROUPS if title in titles]
    assert ("Output" in titles) is (command != "query")
    # each option stands in one group
    options = [
        option for option in command_of(command).params if option.opts[0][0] == "-"
    ]
    for option in options:
        long = max(option.opts, key=len)
        shown = [x for x in lines if f" {long} " in f"{x} ".replace("/", " ")]
        assert any(x.lstrip().startswith("-") for x in shown), long
    assert sum(" --help" in line for line in lines) == 2
    short = here(command, "--help").out
    assert "Advanced:" not in short
    assert set(short.split()) <= set(" ".join(lines).split())


def command_of(name):
    return commands.get_command(click.Context(commands), name)


def test_a_group_of_commands_alone_shows_its_help():
    done = here("plot")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Usage: distbfs plot ")


COMPLETED = [
    ("distbfs m", {"multisearch"}),
    ("distbfs bfs --eng", {"--engine"}),
    ("distbfs bfs --engine x", {"xbfs", "xbfs-paper"}),
    ("distbfs plot c", {"compare"}),
    ("distbfs nothing --v", {"--version"}),
]


@pytest.mark.parametrize(("line", "words"), COMPLETED)
def test_completion(line, words):
    asked = {"_DISTBFS_COMPLETE": "bash_complete", "COMP_WORDS": line}
    done = run(FRESH, env={**asked, "COMP_CWORD": str(line.count(" "))})
    assert (done.returncode, done.stderr) == (0, "")
    assert {x.partition(",")[2] for x in done.stdout.splitlines()} == words


def test_verbose_tells_version_and_ranks():
    done = here("generate", "star", "--scale", 2, "-o", "/nowhere/x", "--verbose")
    assert f"version {__version__}, MPI: none, ranks: 1 on " in done.err


def test_version():
    done = here("--version")
    assert (done.code, done.out) == (0, f"distbfs, version {__version__}\n")


def test_module_and_console_script_give_the_same(tmp_path):
    installed = Path(sys.executable).with_name("distbfs")
    script = [str(installed)]
    if not installed.exists():
        written = tmp_path / "distbfs"
        written.write_text(CONSOLE_SCRIPT)
        script = [sys.executable, str(written)]
    for words, code in [
        (["--version"], 0),
        (["bfs", str(tmp_path / "nowhere"), "--source", "1"], 2),
    ]:
        module, console = (run([*argv, *words]) for argv in (FRESH, script))
        assert module.returncode == code
        assert (module.returncode, module.stdout, module.stderr) == (
            console.returncode,
            console.stdout,
            console.stderr,
        )


REFUSED = [
    (["bsf"], "no command 'bsf'; did you mean 'bfs'? 'distbfs --help' lists all"),
    (["fly"], "no command 'fly'; allowed: generate, convert"),
    (["--fly"], "--fly"),
    (["bfs"], "'GRAPH' (see 'distbfs bfs --help')"),
    (["bfs", "x", "--fly"], "No such option '--fly'"),
    (["bfs", "x", "--no-parent"], "'--no-parents'"),
    (["bfs", "x", "--engine", "openmpi"], "did you mean 'openmp'? (see 'distbfs bfs"),
    (["bfs", "x", "-s", "1", "-q", "-v"], "give either --quiet or --verbose"),
    (["bfs", "x", "y", "--source", "1"], "(y)"),
    (["generate", "kronecker", "-s", "one", "-o", "x"], "'one' is not a valid integer"),
    (["bfs", "x", "-s", "1", "--engine", "warp"], "'auto', 'reference', 'openmp'"),
    (["bfs", "x", "-s", "1", "--exchange", "pigeon"], "'auto', 'host', 'nccl'"),
    (["bfs", "x", "-s", "1", "--direction", "up"], "'auto', 'push', 'pull'"),
    (["bfs", "x", "-s", "1", "--mask-reduce", "x"], "'blocking', 'nonblocking'"),
    (["bfs", "x", "-s", "1", "--threads", "-1"], "0<=x<=4096"),
    (["bfs", "x", "-s", "1", "--log-format", "xml"], "'text', 'json'"),
    (["bfs", "x", "-s"], "requires an argument"),
    (["bfs", "nowhere", "-s", "1"], "nowhere: there is no such file or folder"),
    (["graph500"], "give either --scale or --graph"),
    (["graph500", "--scale", "4", "--graph", "x"], "give either --scale or --graph"),
    (["graph500", "--graph", "x", "--parts", "2"], "--parts is settled by the store"),
    (["graph500", "--graph", "x", "--edge-factor", "16"], "--edge-factor is settled"),
    (["graph500", "--scale", "0"], "1<=x<=48"),
    (["graph500", "--scale", "49"], "1<=x<=48"),
    (["graph500", "--scale", "4", "--roots", "0"], "'--roots'"),
    (["graph500", "--scale", "4", "--edge-factor", "0"], "1<=x<=4096"),
    (["graph500", "--scale", "4", "--memory", "0"], "'--memory'"),
    (["generate", "petersen", "--scale", "4", "-o", "x"], "'petersen' is not"),
    (["generate", "kronecker", "-o", "x"], "'--scale'"),
    (["generate", "kronecker", "--scale", "4"], "'--output'"),
    (["convert", "x", "-o", "y", "--format", "docx"], "'matrix-market', 'edge-list'"),
    (["convert", "x", "-o", "y", "--permute-seed", "-1"], "'--permute-seed'"),
    (["partition", "x", "-o", "y", "--parts", "0"], "'--parts'"),
]


@pytest.mark.parametrize(("words", "text"), REFUSED)
def test_refused_in_one_line(tmp_path, monkeypatch, words, text):
    monkeypatch.chdir(tmp_path)
    assert text in here(*words).refusal
    assert list(tmp_path.iterdir()) == []


def test_method_of_another_engine_is_refused():
    words = ("graph500", "--scale", "4", "--method")
    assert "allowed: fast, push, hybrid" in here(*words, "x").refusal
    words = (*words, "fast", "--engine", "reference")
    assert "allowed: numpy" in here(*words).refusal


@needs_mpi
@pytest.mark.parametrize(("words", "text"), [REFUSED[k] for k in (1, 10, 17, 18)])
def test_refused_once_on_several_ranks(words, text):
    assert text in on(2, *words).refusal


@pytest.mark.parametrize("form", [("--log-format", "json"), ("--log-format=json",)])
@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["bfs", "nowhere", "-s", "1"], "nowhere: there is no such file or folder"),
        (["bfs", "x", "--threads", "-1"], "0<=x<=4096"),
        (["bfs", "--fly"], "No such option '--fly'"),
        (["bfs", "x", "--fly", "--log-format", "text"], "No such option '--fly'"),
        (["bfs"], "'GRAPH' (see 'distbfs bfs --help')"),
        (["bsf"], "no command 'bsf'"),
    ],
)
def test_the_last_message_is_json_as_the_others(words, text, form):
    done = here(*words, *form)
    (line,) = done.err.splitlines()
    told = json.loads(line)
    assert done.code == 2
    assert set(told) == {"time", "level", "message"}
    assert told["level"] == "error"
    assert text in told["message"]


@pytest.mark.parametrize(
    "words",
    [
        ["bfs", "nowhere", "-s", "1"],
        ["bfs", "x", "--log-format=json", "--fly", "--log-format", "text"],
        ["bfs", "x", "--fly", "--log-format"],
    ],
)
def test_the_last_message_is_text_unless_json_is_asked_for(words):
    assert here(*words).refusal
