"""The exceptions of the package, each with the exit code of a command.

Exit codes: 1 a search or validation failed, 2 wrong use or bad input, 3 no memory or no
device. A message is one line: what is wrong, where, and what is allowed. Where Python
has a matching exception, classes derive from it too.
"""

import errno
import os
from typing import ClassVar

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # errors of a full disk or quota


class DistbfsError(Exception):
    """Base of all errors that the package raises on purpose."""

    exit_code = 1


class ValidationError(DistbfsError):
    """A search gave a wrong result."""

    exit_code = 1


class SearchStopped(DistbfsError):  # noqa: N818
    """A search was aborted between two levels on request."""

    exit_code = 1


class RanksStuck(DistbfsError):  # noqa: N818
    """Ranks gave no sign of life, or waited for one another, for too long."""

    exit_code = 1


class UsageError(DistbfsError, ValueError):
    """An option or argument is outside its allowed set."""

    exit_code = 2


class WrongTypeError(UsageError, TypeError):
    """An argument has an unsupported type."""


class InputError(DistbfsError, ValueError):
    """A file or graph from the user cannot be used."""

    exit_code = 2


class FileError(InputError, OSError):
    """A file cannot be opened, read or written."""


class StoreError(InputError, OSError):
    """A graph store is missing, altered, truncated or of another version."""


class PeerFailed(StoreError):  # noqa: N818
    """Another rank failed and removed the files being written.

    The error of that rank counts: this one is printed only if there is no other.
    """


def system_error(
    error: OSError,
    path: object = None,
    kind: type[InputError] = FileError,
    *,
    otherwise: str = "cannot be read or written",
) -> DistbfsError:
    """Convert an error of the system to one of the package: ``PATH: reason``.

    path: its subject, by default the file named in the error
    kind: of the result, which is DiskFull where the disk is full
    otherwise: the reason if the system gave none
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
        "too_large": 2,  # the request, or an inline result
        "exists": 2,  # a result of that name exists
        "unauthorized": 2,
        "not_found": 2,  # no such page or service
        "not_allowed": 2,  # a method of HTTP
        "not_json": 2,  # the type of a body
        "busy": 1,  # the queue is full, or there are too many clients
        "deadline": 1,
        "draining": 1,  # the service is ending
        "gone": 1,  # the client has disconnected
        "broken": 1,  # no answer, or an unreadable one
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
    """Something needed is missing: memory, space, a device, a program."""

    exit_code = 3


class OutOfMemory(ResourceError, MemoryError):  # noqa: N818
    """There is not enough memory, of the host or of a device."""


class DiskFull(ResourceError, OSError):  # noqa: N818
    """There is not enough room on a disk."""


class LibraryMissing(ResourceError, ImportError):  # noqa: N818
    """An optional Python package, part of an extra, is not installed."""


class CompilerMissing(ResourceError, OSError):  # noqa: N818
    """No C compiler was found, or it cannot compile the kernels."""


class DeviceMissing(ResourceError, OSError):  # noqa: N818
    """No CUDA device was found, or it is not usable or supported."""
