"""A process that has imported the package, and forks for each command of a test.

A short command spends most of its time on imports.  ``[*Command()]`` stands for
``distbfs`` in tests that are not about the start of a process: what is typed runs with
its arguments, environment, folder, limits, streams and signals, in a process of its
own, but one that was forked when all was imported.  Left out are MPI, CUDA and threads,
which do not survive a fork: ranks of MPICH begin MPI in their forks.
"""

import atexit
import contextlib
import ctypes
import gc
import marshal
import os
import pkgutil
import resource
import runpy
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from functools import cache
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path

import warm_client

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = ("markdown_it", "doctest")  # what programs of tests import beside it
LONGEST, HANDLES, HIGH = 1 << 20, 200, 1000
LIMITS = (resource.RLIMIT_AS, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE)
SECONDS = 60  # to end in


@cache
def folder():
    """Start the process; return a folder for PATH, with ``distbfs`` and ``python``."""
    place = Path(tempfile.mkdtemp(prefix="warm-"))
    client = Path(warm_client.__file__).read_text(encoding="utf-8")
    (place / "distbfs").write_text(f"#!{sys.executable} -IS\n{client}")
    (place / "distbfs").chmod(0o755)
    (place / "python").symlink_to("distbfs")
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(place / "socket"))
        listener.listen(100)
        server = subprocess.Popen(
            [sys.executable, __file__, str(listener.fileno())],
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": path},
            pass_fds=[listener.fileno()],
            stdin=subprocess.PIPE,  # ends with this process
            start_new_session=True,
        )

    owner = os.getpid()

    def end():
        if os.getpid() == owner:  # no child of it
            server.stdin.close()
            server.wait(SECONDS)
            shutil.rmtree(place)

    atexit.register(end)
    return place


class Command:
    """The words that stand for ``distbfs``; the process starts when they are read."""

    def __iter__(self):
        yield str(folder() / "distbfs")


def import_all():
    """Import what commands and programs of tests may need."""
    modules = pkgutil.walk_packages([str(ROOT / "distbfs")], "distbfs.")
    names = [x.name for x in modules if not x.name.endswith("__main__")]
    for name in [*names, *PROGRAMS]:
        with contextlib.suppress(ImportError):
            import_module(name)
    gc.collect()
    gc.freeze()


def serve(listener):
    """Fork for each client; return, in a fork, what runs its command."""
    waiting = selectors.DefaultSelector()
    for source in (sys.stdin, listener):
        waiting.register(source, selectors.EVENT_READ)
    forks = {}  # connection, or handle of the fork -> connection, handle, fork
    while True:
        ready = [key.fileobj for key, _ in waiting.select()]
        # the handle of one that has ended may be that of the next
        for source, one in [(source, forks.get(source)) for source in ready]:
            if source is sys.stdin:
                for _, handle, _ in {*forks.values()}:
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
                os._exit(0)
            elif source is listener:
                client = listener.accept()[0]
                text, handles, _, _ = socket.recv_fds(client, LONGEST, HANDLES)
                if not (pid := os.fork()):
                    for x in (waiting, listener, client, *forks):
                        os.close(x) if isinstance(x, int) else x.close()
                    return prepared(marshal.loads(text), handles)
                for handle in handles:
                    os.close(handle)
                client.send(str(pid).encode())
                begun = client, os.pidfd_open(pid), pid
                for x in begun[:2]:
                    forks[x] = begun
                    waiting.register(x, selectors.EVENT_READ)
            elif one is not None and forks.get(source) is one:
                for x in one[:2]:
                    waiting.unregister(x)
                end(*one, killed=source is one[0])
                forks = {x: y for x, y in forks.items() if y is not one}


def end(client, handle, fork, *, killed):
    """Tell a client how its fork ended; of a client that was killed, kill the fork."""
    if killed:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    status = os.waitpid(fork, 0)[1]
    with contextlib.suppress(OSError):
        client.send(str(status).encode())
    client.close()
    os.close(handle)


def prepared(request, handles):
    """Make a fork what its client is; return what runs the command."""
    client, arguments, environment, mask, numbers = request
    os.setsid()
    high = [os.dup2(handle, HIGH + i) for i, handle in enumerate(handles)]
    os.closerange(0, HIGH)
    os.fchdir(high[0])
    for source, target in zip(high[1:], numbers, strict=True):
        os.dup2(source, target)
    os.closerange(HIGH, HIGH + len(high))
    os.umask(mask)
    os.environb.clear()
    os.environb.update(environment)
    os.sched_setaffinity(0, os.sched_getaffinity(client))
    for limit in LIMITS:
        resource.setrlimit(limit, resource.prlimit(client, limit))
    at_once = bool(os.environ.get("PYTHONUNBUFFERED"))
    sys.stdin = stream(0, "rb")
    sys.stdout = stream(1, "wb", line_buffering=at_once or os.isatty(1))
    sys.stderr = stream(2, "wb", line_buffering=True, errors="backslashreplace")
    tempfile.tempdir = None
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    for place in [x for x in path if x and x not in sys.path]:
        sys.path.insert(0, place)
        if (program := Path(place, "sitecustomize.py")).exists():
            runpy.run_path(str(program))
    if Path(arguments[0]).name == "distbfs":
        from distbfs.entry import entry  # noqa: PLC0415

        sys.argv = arguments
        return entry
    sys.argv = arguments[1:]
    sys.path.insert(0, str(Path(sys.argv[0]).resolve().parent))
    return lambda: runpy.run_path(sys.argv[0], run_name="__main__")


def stream(handle, mode, **options):
    """Return a standard stream; None where its file is closed."""
    try:
        return TextIOWrapper(open(handle, mode, closefd=False), **options)
    except OSError:
        return None


def run_to_end(program):
    """Run the program of a fork; end as Python does, but keep what is in memory."""
    code = 0
    try:
        program()
    except SystemExit as error:
        code = error.code
    if not isinstance(code, int | None):
        sys.exit(code)
    threading._shutdown()
    atexit._run_exitfuncs()
    for written in filter(None, (sys.stdout, sys.stderr)):
        written.flush()
    if mpi := sys.modules.get("mpi4py.MPI"):
        mpi.Is_finalized() or mpi.Finalize()
    ctypes.CDLL(None).exit(code or 0)  # with what libraries do then


if __name__ == "__main__":
    import_all()
    run_to_end(serve(socket.socket(fileno=int(sys.argv[1]))))
