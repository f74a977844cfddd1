"""The console script, and ``python -m distbfs``.

The handler of Ctrl-C is set before anything else is imported, which takes half a
second; even the module ``signal`` is not imported for it.
"""

from _signal import SIGINT, signal  # type: ignore[import-not-found]

from distbfs.interrupts import end_at_once


def entry() -> None:
    """Run the command line of this process."""
    signal(SIGINT, end_at_once)
    from distbfs.cli.main import entry as run  # noqa: PLC0415

    run()
