"""Run a command in a fork of a process that has imported the package: ``warm.py``.

Stands for ``distbfs``, and for ``python`` with a program.  Arguments, environment,
folder and open files go to the fork, signals follow, and this process ends as the fork
does.  A rank of Open MPI becomes the command itself, as PMIx knows the processes that
it has started.  Only modules are imported that Python itself needs to start.
"""

import marshal
import os
import sys
from _signal import SIG_BLOCK, SIG_DFL, SIG_SETMASK, SIGKILL, pthread_sigmask, signal
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_SEQPACKET, SOL_SOCKET, socket

OTHERS = ("PMIX_RANK", "OMPI_COMM_WORLD_RANK")  # ranks of launchers but MPICH's
FOLLOWING = (1, 2, 3, 10, 12, 15, 18)  # HUP INT QUIT USR1 USR2 TERM CONT


def main():
    """Ask for the fork, and end as it does."""
    place, name = os.path.split(os.path.abspath(sys.argv[0]))
    code = name == "python" and (not sys.argv[1:] or sys.argv[1].startswith("-"))
    if code or any(variable in os.environ for variable in OTHERS):
        module = ["-m", "distbfs"] if name == "distbfs" else []
        os.execv(sys.executable, [sys.executable, *module, *sys.argv[1:]])
    pthread_sigmask(SIG_BLOCK, FOLLOWING)
    handles = [*open_handles()]
    server = socket(AF_UNIX, SOCK_SEQPACKET)
    server.connect(os.path.join(place, "socket"))
    folder, mask = os.open(".", os.O_RDONLY), os.umask(0)
    request = os.getpid(), sys.argv, dict(os.environb), mask, handles
    rights = b"".join(x.to_bytes(4, sys.byteorder) for x in [folder, *handles])
    server.sendmsg([marshal.dumps(request)], [(SOL_SOCKET, SCM_RIGHTS, rights)])
    fork = int(server.recv(100))
    for number in FOLLOWING:
        signal(number, lambda number, _: os.kill(fork, number))
    pthread_sigmask(SIG_SETMASK, ())
    code = os.waitstatus_to_exitcode(int(server.recv(100) or SIGKILL))
    if code < 0:
        if -code != SIGKILL:
            signal(-code, SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def open_handles():
    """Yield the numbers of the files that are open."""
    for name in os.listdir("/proc/self/fd"):
        try:
            os.fstat(int(name))
        except OSError:  # of the list itself
            continue
        yield int(name)


if __name__ == "__main__":
    main()
