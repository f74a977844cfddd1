"""The exceptions of the package, each with the exit code that it ends a command with.

Exit codes: 1 a search or validation failed, 2 wrong use or bad input, 3 no memory or
no device.  A message is one line: what is wrong, where, and what is allowed.  Those
that Python has a kind for are of that kind too.
"""

import errno
import os
from typing import ClassVar

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # what a full disk or quota says


class DistbfsError(Exception):
    """Base of all errors that the package raises on purpose."""

    exit_code = 1


class ValidationError(DistbfsError):
    """A search gave a wrong result."""

    exit_code = 1


class SearchStopped(DistbfsError):  # noqa: N818
    """A search was given up between two levels because somebody asked for that."""

    exit_code = 1


class RanksStuck(DistbfsError):  # noqa: N818
    """Ranks gave no sign of life, or waited for one another, for too long."""

    exit_code = 1


class UsageError(DistbfsError, ValueError):
    """An option or argument is outside its allowed set."""

    exit_code = 2


class WrongTypeError(UsageError, TypeError):
    """An argument is of a type that cannot be taken."""


class InputError(DistbfsError, ValueError):
    """A file or graph that was given cannot be used."""

    exit_code = 2


class FileError(InputError, OSError):
    """A file cannot be opened, read or written."""


class StoreError(InputError, OSError):
    """A graph store is missing, altered, truncated or of another version."""


class PeerFailed(StoreError):  # noqa: N818
    """What is being written was removed, as a rank does that fails.

    The error of that rank counts: this one is told where no other is.
    """


def system_error(
    error: OSError,
    path: object = None,
    kind: type[InputError] = FileError,
    *,
    otherwise: str = "cannot be read or written",
) -> DistbfsError:
    """Return the package's error for one of the system: ``PATH: reason``.

    path: what it is about, by default the file that the error names
    kind: of the error, which is DiskFull where the disk is full
    otherwise: the reason where the system gave none, but a library in its own words
    """
    where = error.filename if path is None else path
    reason = os.strerror(error.errno) if error.errno else otherwise
    if where is None:
        where, reason = "system", error.strerror or reason
    if error.errno in FULL:
        return DiskFull(f"{where}: the disk is full ({reason})")
    return kind(f"{where}: {reason}")


class ServiceError(DistbfsError, OSError):
    """A service refused a request or could not answer it.

    code: one of ``CODES``, for programs; the exit code of a command follows from it
    """

    CODES: ClassVar = {
        "bad_request": 2,  # not JSON, or a field is missing, unknown or wrong
        "unknown_op": 2,
        "too_large": 2,  # the request, or what would come inline
        "exists": 2,  # a result of that name
        "unauthorized": 2,
        "not_found": 2,  # no such page or service
        "not_allowed": 2,  # a method of HTTP
        "not_json": 2,  # the type of a body
        "busy": 1,  # the queue is full, or there are too many clients
        "deadline": 1,
        "draining": 1,  # the service ends and takes no more
        "gone": 1,  # the client has left
        "broken": 1,  # no answer, or none that can be read
        "no_room": 3,  # on the disk of the results
    }

    def __init__(self, code: str, message: str, request_id: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.id = request_id
        self.exit_code = self.CODES.get(code, 1)


class LaunchError(DistbfsError):
    """The launcher and the MPI library disagree, or ranks and parts do not fit."""

    exit_code = 2


class ResourceError(DistbfsError):
    """Something that is needed is missing: memory, room, a device, a program."""

    exit_code = 3


class OutOfMemory(ResourceError, MemoryError):  # noqa: N818
    """There is not enough memory, of the host or of a device."""


class DiskFull(ResourceError, OSError):  # noqa: N818
    """There is not enough room on a disk."""


class LibraryMissing(ResourceError, ImportError):  # noqa: N818
    """A Python package is not installed, which one extra or another brings."""


class CompilerMissing(ResourceError, OSError):  # noqa: N818
    """No C compiler was found, or it cannot compile the kernels."""


class DeviceMissing(ResourceError, OSError):  # noqa: N818
    """No CUDA device was found, or it cannot be used or compiled for."""
