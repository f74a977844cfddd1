"""A service in this process, on threads, with a graph that tests know."""

import contextlib
import json
import socket
import threading
import time
from pathlib import Path

from graphs import build, kronecker
from sessions import open_parts

from distbfs.options import SearchOptions
from distbfs.ranks.signals import StopFlag
from distbfs.ranks.world import SoloWorld
from distbfs.search.session import Session
from distbfs.service.doors import Door, Front, listen
from distbfs.service.limits import Limits
from distbfs.service.metrics import Metrics
from distbfs.service.rank_calls import ServiceRank
from distbfs.service.service import Service
from distbfs.service.shared_traversal import FEWEST

SOURCE = kronecker(8, 4)
SECONDS = 60
LONE = (  # half of a character, in every place of a request
    rb'{"op": "bfs", "source": 1, "id": "\ud800"}',
    rb'{"op": "bfs", "source": "\uDFFF"}',
    rb'{"op": "bfs", "source": 1, "\udc00": 1}',
    rb'{"op": "bfs", "sources": ["\ud800x"]}',
    rb'{"op": "\ud800"}',
)


class SlowSession(Session):
    """Waits in a search until it may go on, asking ``stop`` as a level would.

    deaf: whether it goes on waiting then, as in a collective that is stuck
    """

    def begin(self):
        """Let searches through."""
        self.begun, self.go = threading.Semaphore(0), threading.Event()
        self.slow, self.deaf, self.searches = False, False, 0

    def search(self, root, *, stop=None, **options):
        self.wait(stop)
        return super().search(root, stop=stop, **options)

    def path(self, source, target, *, stop=None):
        self.wait(stop)
        return super().path(source, target, stop=stop)

    def wait(self, stop):
        """Count a search, and wait."""
        self.searches += 1
        self.begun.release()
        while self.slow and not self.go.is_set():
            time.sleep(0.002)
            if stop is not None and stop() and not self.deaf:
                break


def slow_session(parts, options, permutation=None):
    """A session of parts in host memory that can be held up."""
    session = open_parts(SoloWorld(), parts, options, permutation)
    session.__class__ = SlowSession
    session.begin()
    return session


def make_service(source=SOURCE, *, options=None, metrics=None, ids=None, **limits):
    """A service that does not run yet; ids: what the file calls its vertices."""
    made, _ = build(source, 1)
    chosen = SearchOptions.named(threads=1, **(options or {}))
    session = slow_session(made, chosen)
    limits = Limits(**limits)
    ranks = ServiceRank(session, StopFlag())
    if ranks.batches is not None:
        ranks.batches.by_lookups = lambda *_: None  # a search, which can be held up
        ranks.batches.fewest = FEWEST  # as where no edges are looked up
    known = {"vertices": source.n}
    return Service(ranks, limits, known, metrics or Metrics(), ids=ids)


@contextlib.contextmanager
def running(service, doors=()):
    """Run a service and what lets clients in, until the end of the block."""
    errors, opened = [], threading.Event()

    def run():
        try:
            with Front(service, doors):
                opened.set()
                service.run(StopFlag())
        except BaseException as error:  # noqa: BLE001
            errors.append(error)
        opened.set()

    thread = threading.Thread(target=run)
    thread.start()
    opened.wait(SECONDS)
    try:
        yield service
    finally:
        service.ranks.session.go.set()
        service.drain()
        thread.join(SECONDS)
    assert not thread.is_alive()
    if errors:
        raise errors[0]


@contextlib.contextmanager
def serving(folder, source=SOURCE, **options):
    """Yield (service, path of its socket)."""
    service = make_service(source, **options)
    path = Path(folder) / "s"
    door = Door(service, listen(path))
    with running(service, [door]):
        yield service, path
    path.unlink()


class Talker:
    """A client that may say anything."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(SECONDS)
        self.socket.connect(str(path))
        self.rest = b""

    def say(self, *requests):
        lines = [
            r if isinstance(r, bytes) else json.dumps(r).encode() for r in requests
        ]
        self.socket.sendall(b"".join(line + b"\n" for line in lines))

    def hear(self):
        """The next answer, None at the end."""
        while b"\n" not in self.rest:
            data = self.socket.recv(1 << 16)
            if not data:
                return None
            self.rest += data
        line, _, self.rest = self.rest.partition(b"\n")
        return json.loads(line)

    def ask(self, request):
        self.say(request)
        return self.hear()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.socket.close()


def wait_for(condition):
    """Wait until a condition holds."""
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, "not reached"
        time.sleep(0.002)
