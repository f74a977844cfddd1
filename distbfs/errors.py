"""The exceptions of the package, each with the exit code that it ends a command with.

Exit codes: 1 a search or validation failed, 2 wrong use or bad input, 3 no memory or
no device.  A message is one line: what is wrong, where, and what is allowed.
"""


class DistbfsError(Exception):
    """Base of all errors that the package raises on purpose."""

    exit_code = 1


class ValidationError(DistbfsError):
    """A search gave a wrong result."""

    exit_code = 1


class SearchStopped(DistbfsError):  # noqa: N818
    """A search was given up between two levels because somebody asked for that."""

    exit_code = 1


class UsageError(DistbfsError):
    """An option or argument is outside its allowed set."""

    exit_code = 2


class InputError(DistbfsError):
    """A file or graph that was given cannot be used."""

    exit_code = 2


class StoreError(InputError):
    """A graph store is missing, altered, truncated or of another version."""


class LaunchError(DistbfsError):
    """The launcher and the MPI library disagree, or ranks and parts do not fit."""

    exit_code = 2


class ResourceError(DistbfsError):
    """Not enough memory, or a device or compiler that is needed is missing."""

    exit_code = 3


class CompilerMissing(ResourceError):  # noqa: N818
    """No C compiler was found, or it cannot compile the kernels."""


class DeviceMissing(ResourceError):  # noqa: N818
    """No CUDA device was found, or it cannot be used or compiled for."""
