"""Ranks that run one command after another, as one process does in ``commands.here``.

To start MPI and to end it takes most of the time of a short command.  These ranks have
done the first, and wait at a socket for what they run together next; an error ends
them, as it ends all ranks, and others begin for the command after it.
"""

import atexit
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from socket import AF_UNIX, SOCK_SEQPACKET, socket

import held_program
import warm
from launching import Finished, clean_environment, end_tree, find_mpiexec

SECONDS = 60


class HeldRanks:
    """Ranks of one mpiexec that wait for commands."""

    def __init__(self, ranks, env):
        self.env, self.owner = env, os.getpid()
        self.folder = Path(tempfile.mkdtemp(prefix="ranks-"))
        self.said = [self.folder / name for name in ("out", "err")]
        out, err = (path.open("a") for path in self.said)
        with socket(AF_UNIX, SOCK_SEQPACKET) as listener, out, err:
            listener.bind(str(self.folder / "socket"))
            listener.listen(ranks)
            listener.settimeout(SECONDS)
            program = [
                str(warm.folder() / "python"),
                held_program.__file__,
                str(self.folder),
            ]
            self.process = subprocess.Popen(
                [find_mpiexec(), "-n", str(ranks), *program],
                env=clean_environment(env),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )
            self.ranks = [listener.accept()[0] for _ in range(ranks)]
        for rank in self.ranks:
            rank.settimeout(SECONDS)
        atexit.register(self.end)

    def run(self, words):
        """Run a command on all ranks; return how it ended, as ``launching.run``."""
        for path in self.said:
            os.truncate(path, 0)
        text = "\0".join([os.getcwd(), *words]).encode("utf-8", "surrogateescape")
        for rank in self.ranks:
            rank.send(text)
        codes = [code_of(rank) for rank in self.ranks]
        code = max(map(int, codes)) if all(codes) else self.process.wait(SECONDS)
        out, err = (path.read_text("utf-8") for path in self.said)
        if not all(codes):
            self.end()
        return Finished(["distbfs", *words], code, out, err, 0, 0)

    def end(self):
        """End the ranks, which see that this process has closed its sockets."""
        atexit.unregister(self.end)
        for rank in self.ranks:
            rank.close()
        if os.getpid() != self.owner:  # a child, which has them by chance
            return
        try:
            self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            end_tree(self.process)
            raise
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


def code_of(rank):
    """Return what a rank says at the end of a command; nothing of one that is gone."""
    try:
        return rank.recv(held_program.LONGEST)
    except ConnectionResetError:
        return b""


@cache
def held():
    """Return the ranks that wait, by their number."""
    return {}


def run_held(ranks, words, env):
    """Run a command on ranks that wait in this environment, or begin now."""
    variables = {x: y for x, y in os.environ.items() if x != "PYTEST_CURRENT_TEST"}
    variables |= env
    waiting = held().pop(ranks, None)
    if waiting and waiting.env != variables:
        waiting.end()
        waiting = None
    waiting = waiting or HeldRanks(ranks, variables)
    try:
        done = waiting.run(words)
    except TimeoutError:
        end_tree(waiting.process)
        raise
    if waiting.process.returncode is None:
        held()[ranks] = waiting
    return done
