"""Services shared by the commands: output, logs, progress, and groups of options."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from io import BufferedWriter, TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

import click
import numpy as np

from distbfs import __version__
from distbfs.cli.command import GRAPH, STORE
from distbfs.cli.options import SearchChoices, Speech
from distbfs.cli.streams import NamedFile
from distbfs.device import cuda
from distbfs.device.cc import thread_count
from distbfs.device.control_groups import usable_cores
from distbfs.errors import SearchStopped, UsageError, legible
from distbfs.formats.inputs import is_parts
from distbfs.formats.writing import check_place
from distbfs.leftovers import DASH
from distbfs.options import BuildOptions, SearchOptions
from distbfs.progress import Tell, progress_bar, untold
from distbfs.ranks.abort import json_line
from distbfs.ranks.signals import STOP_SIGNALS, StopFlag
from distbfs.ranks.world import Ranks, start
from distbfs.search.choose import Request
from distbfs.search.holding import Source
from distbfs.search.open import prepare, source_of
from distbfs.search.opening import Opening
from distbfs.search.result import Result
from distbfs.search.session import Session
from distbfs.store.hdf5 import Store, open_store
from distbfs.types import Root, TupleSource

LOG = logging.getLogger("distbfs")
LINE_SECONDS = 5.0  # between lines that say how far work is
AT_ONCE = 0.0  # seconds until a request to stop ends the process


class TextLines(logging.Formatter):
    """Formats each message as one line, whatever text it quotes."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """Return the message with the name of the program before it."""
        return f"distbfs: {legible(record.message, None)}"


class JsonLines(logging.Formatter):
    """Formats each message as a JSON object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return time, level, message and the name of a request as JSON."""
        more = {"request": record.request} if hasattr(record, "request") else {}
        level, at = record.levelname.lower(), record.created
        return json_line(record.getMessage(), level, at, **more)


def is_file(path: Path) -> bool:
    """Return whether a path can be read as a file, or as a folder of its parts."""
    return path.exists() and (not path.is_dir() or is_parts(path))


def facts_of(context: click.Context) -> dict[str, object]:
    """Return the options of a command that ranks compare: name -> JSON value.

    Raises StoreError for a store that cannot be opened.
    """
    facts: dict[str, object] = {}
    for option in context.command.params:
        value: Any = context.params.get(option.name or "")
        name = max(option.opts, key=len)
        if isinstance(option, click.Argument):
            name = name.upper()
        if option.type is STORE or (option.type is GRAPH and not is_file(value)):
            several = value if isinstance(value, tuple) else (value,)
            value = [one and open_store(one).digest for one in several]
            name = f"the manifest of {name}"
        facts[name] = json.loads(json.dumps(value, default=str))
    return facts


class Lines:
    """Reports the progress of long work in a line every few seconds."""

    def __init__(self, label: str, total: int) -> None:
        self._label, self._total = label, max(total, 1)
        self._next = time.monotonic() + LINE_SECONDS

    def __call__(self, done: int, total: int | None = None, /) -> None:
        """Take the amount done, and the total if it has grown."""
        self._total, now = total or self._total, time.monotonic()
        if now >= self._next:
            self._next = now + LINE_SECONDS
            LOG.info("%s: %d %%", self._label, min(100 * done // self._total, 100))


@dataclass
class Terminal:
    """A command on its ranks; rank 0 writes results to stdout, all else to stderr."""

    world: Ranks
    speech: Speech

    def say(self, message: str) -> None:
        """Log one line."""
        LOG.info(message)

    def say_engine(self, session: Session) -> None:
        """Log the engine and devices of searches, with the reasons."""
        self.say(engine_line(session, session.why if self.tells(session.why) else ""))

    def tells(self, why: str) -> bool:
        """Return whether to report a reason; "no CUDA" only if there is a driver."""
        return self.speech.verbose or "no CUDA" not in why or cuda.NVIDIA.exists()

    def stdout_place(self, *places: Path | None) -> Path | None:
        """Return the output that is stdout, if one is.

        UsageError, before a long run, if several are, or if rank 0 cannot write one.
        """
        if places.count(DASH) + self.speech.as_json > 1 and DASH in places:
            raise UsageError("- is stdout, for one output alone, without --json")
        for path in filter(None, places) if self.world.rank == 0 else ():
            check_place(path)
        return DASH if DASH in places else None

    def result(
        self, values: Any, text: Callable[[], None], place: Path | None = None
    ) -> None:
        """Print the result as JSON if requested, else call ``text``.

        place: path of an output; if it is stdout, nothing else is printed
        """
        if self.world.rank != 0 or place == DASH:
            return
        if self.speech.as_json:
            click.echo(json.dumps(values, indent=2))
        else:
            text()

    @contextmanager
    def progress(self, label: str, total: int) -> Iterator[Tell]:
        """Show a bar on a terminal, else a line every few seconds, on rank 0.

        Yields a function to call, from any thread, with the amount of ``total`` that
        was done.
        """
        if self.world.rank != 0 or self.speech.quiet:
            yield untold
            return
        if not sys.stderr.isatty() or self.speech.log_format == "json":
            yield Lines(label, total)
            return
        with progress_bar(label, total) as tell:
            yield tell

    def source(
        self,
        graph: Store | TupleSource,
        threads: int = 0,
        parts: int | None = None,
        **build: Any,
    ) -> Source:
        """Return a store, or tuples to be built, as the source of a session.

        parts: number of parts of tuples, by default one per rank
        build: further options for building tuples
        """
        options = BuildOptions(threads=threads, **build)
        source = source_of(graph, self.world, parts, options)
        return replace(source, progress=self.progress)

    def prepare(
        self, source: Source, options: SearchOptions, request: Request | None = None
    ) -> Opening:
        """Choose the engine for a graph, before it is loaded (collective)."""
        return prepare(self.world, source, options, request, say=self.say)

    def search_options(self, asked: SearchChoices) -> SearchOptions:
        """Return search options from those of the command line (collective)."""
        values = dict(asked.search)
        values["threads"] = values["threads"] or share_of_cores(self.world)
        return SearchOptions.named(exchange=values.pop("name"), **values)

    def open_records(
        self, stack: ExitStack, path: Path | None, *, append: bool = False
    ) -> TextIO | None:
        """Return rank 0's file for level records, if requested."""
        if path is None or self.world.rank != 0:
            return None
        if path == DASH:
            return sys.stdout
        raw = NamedFile(str(path), "a" if append else "w")
        return stack.enter_context(TextIOWrapper(BufferedWriter(raw), encoding="utf-8"))


def open_terminal(speech: Speech) -> Terminal:
    """Start the ranks and the log (collective)."""
    world = start()
    handler = logging.StreamHandler(sys.stderr)
    as_json = speech.log_format == "json"
    handler.setFormatter(JsonLines() if as_json else TextLines())
    LOG.handlers = [handler] if world.rank == 0 else [logging.NullHandler()]
    LOG.propagate = False
    LOG.setLevel(logging.WARNING if speech.quiet else logging.INFO)
    if speech.verbose:
        about = world.describe()
        hosts = ", ".join(
            f"{count} on {name}" for name, count in about["hosts"].items()
        )
        LOG.info("version %s, MPI: %s, ranks: %s", __version__, about["library"], hosts)
    return Terminal(world, speech)


@contextmanager
def stop_requests(patience: float | None = None) -> Iterator[StopFlag]:
    """Yield the handler that notes SIGTERM and SIGUSR1 during a command.

    patience: AT_ONCE if no finished work is kept, None if the caller polls the flag.
    One request can arrive twice, directly and through the launcher; after the first
    such signals are ignored until the process has ended, so that it ends with 0.
    """
    before = {}
    if threading.current_thread() is threading.main_thread():
        # what StopFlag goes back to: no moment is left in which a signal kills
        before = {x: signal.signal(x, signal.SIG_IGN) for x in STOP_SIGNALS}
    stop = StopFlag(patience=patience)
    try:
        with stop:
            yield stop
    finally:
        if not stop.requested:
            for number, handler in before.items():
                signal.signal(number, handler)


def searched(
    session: Session, roots: Iterable[Root], flag: StopFlag, **options: Any
) -> Iterator[Result]:
    """Search from each root until a request to stop (collective).

    SIGTERM also ends a search between two levels, unless one launch on devices runs all
    levels, which needs another kernel to be stopped.
    options: further arguments of ``Session.search``
    """
    at_once = session.on_devices and session.describe()["mode"] == "resident"
    stop = None if at_once else lambda: flag.urgent
    with suppress(SearchStopped):
        for root in roots:
            if flag.agreed(session.world):
                return
            yield session.search(root, stop=stop, **options)


def write_records(
    file: TextIO | None, begin: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
) -> None:
    """Append the level records of a search as JSON lines; begin: its source."""
    if file is not None:
        file.writelines(json.dumps({**begin, **x}) + "\n" for x in records)
        file.flush()


def warn_of_rest(done: int, count: int, *, resumes: bool = False) -> None:
    """Log where searches were stopped, and whether they can be continued."""
    if done < count:
        more = "; the same command continues" if resumes else ""
        LOG.warning("stopped on request after %d of %d searches%s", done, count, more)


def make_request(
    asked: SearchChoices, parts: int | None = None, threshold: int | None = None
) -> Request:
    """Return the parts, devices and domains that the command line asks for."""
    separate = "--threshold" if threshold is not None else ""
    if (parts or 1) > 1:
        separate = "--parts"
    return Request(parts, separate, asked.devices, asked.domain)


def engine_line(session: Session, why: str | None = None) -> str:
    """Return the line about the engine and devices of searches, with the reasons."""
    about: dict[str, Any] = session.describe()
    where = about.get("device") or f"{about.get('threads', 1)} threads per rank"
    line = (
        f"engine {about['engine']} ({about['method']}), {where}, {about['mode']}, "
        f"exchange {about['exchange']}"
    )
    why = session.why if why is None else why
    return f"{line}; {why}" if why else line


def share_of_cores(world: Ranks) -> int:
    """Return the threads for this rank (collective).

    Ranks of one host that may run on the same cores share the cores, and the quota of
    their control group, evenly. OMP_NUM_THREADS takes precedence.
    """
    cores = sorted(os.sched_getaffinity(0))
    host = sorted(set(world.hosts)).index(world.hosts[world.rank])
    mine = np.array([host, *cores], dtype=np.int64)
    same = sum(np.array_equal(mine, other) for other in world.allgather(mine))
    if os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].isdigit():
        return thread_count()
    return max(1, usable_cores() // same)
