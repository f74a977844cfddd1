"""The exceptions of the package, each with the exit code of a command.

Exit codes: 1 a search or validation failed, 2 wrong use or bad input, 3 no memory, no
disk space, no device, no compiler or no library.  A message is one line: what is
wrong, where, and what is allowed.
"""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterator

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # errors of a full disk or quota
SHOWN = 100  # characters of a text from outside in a message


def legible(text: str, most: int | None = SHOWN) -> str:
    r"""Return a text from outside in a form that fits a line of a log or a terminal.

    What cannot be printed is escaped as in Python, a line break as ``\n``; a text of
    more than ``most`` characters is cut, unless ``most`` is None.
    """
    line = text if most is None else text[: most + 1]
    if not line.isprintable():
        line = "".join(x if x.isprintable() else ascii(x)[1:-1] for x in line)
    return line if most is None or len(line) <= most else line[: most - 3] + "..."


class DistbfsError(Exception):
    """Base of all errors that the package raises on purpose.

    The message is one line: what is wrong, where, and what is allowed.

    Attributes
    ----------
    exit_code : int
        The exit code of a command that ends with this error: 1, 2 or 3.

    Examples
    --------
    >>> import distbfs
    >>> try:
    ...     distbfs.bfs(distbfs.Graph.from_edges([0], [1]), 7)
    ... except distbfs.DistbfsError as error:
    ...     print(error.exit_code, error)
    2 source 7 is not a vertex; allowed: 0 to 1
    """

    exit_code = 1


class ValidationError(DistbfsError):
    """A search gave a wrong result.  Exit code 1."""


class SearchStopped(DistbfsError):  # noqa: N818
    """A search was stopped between two levels on request.  Exit code 1."""


class RanksStuck(DistbfsError):  # noqa: N818
    """Ranks gave no sign of life, or waited for one another, for too long.

    Exit code 1.
    """


class UsageError(DistbfsError, ValueError):
    """An option or argument is outside its allowed set.  Exit code 2."""

    exit_code = 2


class WrongTypeError(UsageError, TypeError):
    """An argument is of a type that is not accepted.  Exit code 2."""


class TooDeep(UsageError):  # noqa: N818
    """A level does not fit the dtype that was requested.  Exit code 2."""


class InputError(DistbfsError, ValueError):
    """A file or graph cannot be used.  Exit code 2."""

    exit_code = 2


class FileError(InputError, OSError):
    """A file cannot be opened, read or written.  Exit code 2."""


class StoreError(InputError, OSError):
    """A graph store is missing, altered, truncated or of another version.

    Exit code 2.
    """


class PeerFailed(StoreError):  # noqa: N818
    """Another rank failed and removed the files being written.

    The error of that rank is the one to report: this one is printed only if there is no
    other.
    """


def system_error(
    error: OSError,
    path: object = None,
    kind: type[InputError] = FileError,
    *,
    otherwise: str = "cannot be read or written",
) -> DistbfsError:
    """Convert an error of the system to one of the package: ``PATH: reason``.

    Parameters
    ----------
    error : OSError
        The system's error.
    path : object, optional
        The object that the message names; by default the file that ``error`` names.
    kind : type, default FileError
        Class of the error to return; it is ``DiskFull`` instead if the disk is full.
    otherwise : str
        The reason to state if ``error`` has no error number.

    Returns
    -------
    DistbfsError
        The error to raise.
    """
    where = error.filename if path is None else path
    reason = os.strerror(error.errno) if error.errno else otherwise
    if where is None:
        where, reason = "system", error.strerror or reason
    if error.errno in FULL:
        return DiskFull(f"{where}: the disk is full ({reason})")
    return kind(f"{where}: {reason}")


@contextmanager
def naming(
    path: object, kind: type[InputError] = FileError, **how: str
) -> Iterator[None]:
    """Convert errors of the system in a ``with`` block by ``system_error``."""
    try:
        yield
    except DistbfsError:
        raise
    except OSError as error:
        raise system_error(error, path, kind, **how) from error


class ServiceError(DistbfsError, OSError):
    """A service refused a request or could not answer it.

    The exit code of a command and the status of HTTP follow from the error code, as in
    ``CODES``.

    Attributes
    ----------
    code : str
        A key of ``CODES``: ``bad_request``, ``unknown_op``, ``too_large``,
        ``unauthorized``, ``not_found``, ``not_allowed``, ``not_json``, ``busy``,
        ``deadline``, ``draining``, ``gone`` or ``broken``.
    id : object
        The ``id`` of the request, None if it had none.

    Examples
    --------
    >>> import distbfs
    >>> try:
    ...     distbfs.connect("nothing.sock")
    ... except distbfs.ServiceError as error:
    ...     print(error.code, error)
    not_found nothing.sock: no service: No such file or directory
    """

    CODES: ClassVar = {
        "bad_request": (2, 400),  # not JSON, or a field is missing, unknown or wrong
        "unauthorized": (2, 401),
        "unknown_op": (2, 404),
        "not_found": (2, 404),  # no such page or service
        "not_allowed": (2, 405),  # a method of HTTP
        "too_large": (2, 413),  # the request, or an answer
        "not_json": (2, 415),  # the type or the compression of a body
        "broken": (1, 500),  # no answer, an unreadable one, or an unsound graph
        "busy": (1, 503),  # the queue is full, or there are too many clients
        "draining": (1, 503),  # the service is ending
        "deadline": (1, 504),
        "gone": (1, 0),  # the client has disconnected
    }

    def __init__(self, code: str, message: str, request_id: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.id = request_id
        self.exit_code, self.status = self.CODES.get(code, (1, 500))

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the call that rebuilds the error; ``args`` are not enough."""
        return service_error, (type(self), self.args, vars(self))


def service_error(
    kind: type[ServiceError], args: tuple[str, ...], state: dict[str, Any]
) -> ServiceError:
    """Rebuild a pickled or copied error, whatever arguments its class takes."""
    error = kind.__new__(kind, *args)
    OSError.__init__(error, *args)
    vars(error).update(state)
    return error


class LaunchError(DistbfsError):
    """The launcher and the MPI library disagree, or ranks and parts do not match.

    Exit code 2.
    """

    exit_code = 2


class ResourceError(DistbfsError):
    """Memory, disk space, a device or a program is missing.  Exit code 3."""

    exit_code = 3


class OutOfMemory(ResourceError, MemoryError):  # noqa: N818
    """There is not enough memory, of the host or of a device.  Exit code 3."""


class DiskFull(ResourceError, OSError):  # noqa: N818
    """There is not enough room on a disk.  Exit code 3."""


class LibraryMissing(ResourceError, ImportError):  # noqa: N818
    """A Python package is not installed; the message names the extra.  Exit code 3."""


class CompilerMissing(ResourceError, OSError):  # noqa: N818
    """No C compiler was found, or it cannot compile the kernels.  Exit code 3."""


class DeviceMissing(ResourceError, OSError):  # noqa: N818
    """No CUDA device was found, or it cannot be used or compiled for.  Exit code 3."""
