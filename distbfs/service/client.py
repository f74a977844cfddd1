"""The Python client of a service: ``distbfs.connect(address)``."""

from __future__ import annotations

import contextlib
import io
import socket
import string
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias
from urllib.parse import quote, urlsplit

import msgspec
import numpy as np

from distbfs.errors import ServiceError, WrongTypeError
from distbfs.search.program_arrays import array_of, each_of, is_array
from distbfs.service.encoding import decode
from distbfs.service.limits import SECONDS

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import Self

Vertex: TypeAlias = "int | str | np.integer[Any]"
Vertices: TypeAlias = "Iterable[Vertex] | npt.NDArray[np.integer[Any]]"
CHUNK = 1 << 16
MANY = 1024  # targets from which on levels come as an array


class Client(ABC):
    """A connection to a service; a context manager, for one thread at a time.

    Made by ``distbfs.connect``.  Vertices have the names of the file that the store was
    made from: numbers from 0 or from 1 (also NumPy's), or the ids that it keeps
    (``convert --relabel``).  Several vertices are given as a sequence, or as an array
    of integers.

    Every method raises ServiceError, with a ``code``, if the answer is an error, and
    takes ``deadline=``, the seconds that the answer may take.

    Examples
    --------
    With ``distbfs serve graph --socket graph.sock`` running on the path 0 - 1 - 2, and
    a vertex 3 without edges:

    >>> import distbfs
    >>> with distbfs.connect("graph.sock") as client:
    ...     client.distances(0, [2, 3])
    [2, -1]
    """

    _address: object
    _timeout: float

    def call(self, op: str, **fields: Any) -> dict[str, Any]:
        """Ask for an operation by its name.

        Parameters
        ----------
        op : str
            Name of the operation, such as "distances"; the other methods call this one.
        **fields
            Fields of the operation, and ``deadline`` in seconds.

        Returns
        -------
        dict
            Fields of the answer, as JSON values.

        Raises
        ------
        ServiceError
            The service answered with an error, whose code this has, or no service
            answered (code ``broken``).

        Examples
        --------
        >>> import distbfs
        >>> with distbfs.connect("graph.sock") as client:
        ...     client.call("path", source=0, target=2)
        {'distance': 2, 'path': [0, 1, 2]}
        """
        try:
            return checked(self._ask(op, fields))
        except ServiceError:
            raise
        except (OSError, ValueError, HTTPException) as error:
            self.close()
            raise self._broken(error) from error

    @abstractmethod
    def _ask(self, op: str, fields: dict[str, Any]) -> object:
        """Send a request; return the answer, good or not."""

    def _broken(self, error: Exception) -> ServiceError:
        """Return the error for an answer that did not arrive or cannot be read."""
        if isinstance(error, (TimeoutError, BlockingIOError)):
            why = f"no answer within {self._timeout:g} seconds"
        elif isinstance(error, OSError):
            why = "the connection ended before the answer"
        else:
            why = "the answer is not from a service of distbfs"
        return ServiceError("broken", f"{self._address}: {why}")

    def close(self) -> None:  # noqa: B027
        """Disconnect from the service; its other clients stay connected.

        Examples
        --------
        >>> import distbfs
        >>> client = distbfs.connect("graph.sock")
        >>> client.close()
        """

    def bfs(self, source: Vertex | Vertices, **fields: Any) -> dict[str, Any]:
        """Search from a vertex, or from a set of vertices at once.

        Parameters
        ----------
        source : vertex or iterable of vertices
            Where searches begin.  From several vertices, levels count from the nearest
            one, here and in the other methods.
        **fields
            ``result`` ("inline", or "summary" for counts alone), ``parents`` (bool),
            ``arrays``, ``deadline``.

        Returns
        -------
        dict
            Always ``reached``, ``depth``, ``nedge``, ``seconds``, ``TEPS`` and
            ``levels`` (the number of vertices on each level).  Unless the result is a
            summary, also ``level`` and ``parent``: one value per vertex, -1 for
            unreached.  They are arrays of int32 and int64, or lists with
            ``arrays="json"``; parents are always a list where the store keeps the ids
            of its file.  Where vertices are counted from 1, ``first_id`` is 1, the
            vertex of the first value.

        Raises
        ------
        ServiceError
            See ``call``.

        Examples
        --------
        >>> import distbfs
        >>> with distbfs.connect("graph.sock") as client:
        ...     answer = client.bfs(0)
        >>> answer["reached"], answer["level"].tolist(), answer["parent"].tolist()
        (3, [0, 1, 2, -1], [0, 0, 1, -1])
        """
        if fields.get("result") != "summary":
            fields = {"arrays": "npy", **fields}
        return self.call("bfs", **_start(source), **fields)

    def distances(
        self, source: Vertex | Vertices, targets: Vertices, **fields: Any
    ) -> list[int]:
        """Return the levels of targets.

        Parameters
        ----------
        source : vertex or iterable of vertices
            See ``bfs``.
        targets : iterable of vertices
            The k vertices to reach.
        **fields
            ``deadline``.

        Returns
        -------
        list of int
            Number of hops to each of the k targets; -1 for unreached ones.

        Raises
        ------
        ServiceError
            See ``call``.

        Examples
        --------
        >>> import distbfs
        >>> with distbfs.connect("graph.sock") as client:
        ...     client.distances([0, 3], [2, 3])
        [2, 0]
        """
        asked = list(each_of(targets, "targets"))
        if len(asked) >= MANY:
            fields = {"arrays": "npy", **fields}
        answer = self.call("distances", **_start(source), targets=asked, **fields)
        return [*map(int, answer["distances"])]

    def path(
        self, source: Vertex | Vertices, target: Vertex, **fields: Any
    ) -> list[int | str] | None:
        """Return the vertices of a shortest path.

        Parameters
        ----------
        source : vertex or iterable of vertices
            See ``bfs``.
        target : vertex
            Where the path ends.
        **fields
            ``deadline``.

        Returns
        -------
        list or None
            From the source to the target, both included; None if there is no path.

        Raises
        ------
        ServiceError
            See ``call``; the code is ``too_large`` if the path has more vertices than
            an answer of the service may have.

        Examples
        --------
        >>> import distbfs
        >>> with distbfs.connect("graph.sock") as client:
        ...     client.path(0, 2), client.path(0, 3)
        ([0, 1, 2], None)
        """
        answer: Any = self.call("path", **_start(source), target=target, **fields)
        return answer["path"]

    def all_paths(
        self, source: Vertex | Vertices, target: Vertex, **fields: Any
    ) -> dict[str, Any]:
        """Return the number and the edges of all shortest paths to a vertex.

        Parameters
        ----------
        source : vertex or iterable of vertices
            See ``bfs``.
        target : vertex
            Where the paths end.
        **fields
            ``deadline``.

        Returns
        -------
        dict
            ``distance`` in hops, ``count``, the exact number of paths, and ``edges``,
            the list of their edges [u, v] without repeats, where u is one step nearer
            to the source.  If there is no path, these are -1, 0 and None.

        Raises
        ------
        ServiceError
            See ``call``; the code is ``too_large`` if there are more edges than an
            answer of the service may have, ``bad_request`` if the graph lies on several
            devices.

        Examples
        --------
        >>> import distbfs
        >>> with distbfs.connect("graph.sock") as client:
        ...     client.all_paths(0, 2)
        {'distance': 2, 'count': 1, 'edges': [[0, 1], [1, 2]]}
        """
        answer = self.call("all_paths", **_start(source), target=target, **fields)
        return {name: answer[name] for name in ("distance", "count", "edges")}

    def stats(self) -> dict[str, Any]:
        """Return figures of the service: counts, seconds, limits and the graph.

        Returns
        -------
        dict
            JSON values.

        Examples
        --------
        >>> import distbfs
        >>> with distbfs.connect("graph.sock") as client:
        ...     client.stats()["graph"]["vertices"]
        4
        """
        return self.call("stats")

    def health(self) -> dict[str, Any]:
        """Return the state of the service, even while it searches.

        Returns
        -------
        dict
            ``state``: "ready", "draining", or "stuck" with ``why``.

        Examples
        --------
        >>> import distbfs
        >>> with distbfs.connect("graph.sock") as client:
        ...     client.health()
        {'state': 'ready'}
        """
        return self.call("health")

    def shutdown(self) -> dict[str, Any]:
        """Tell the service to answer the queued requests and then end.

        Returns
        -------
        dict
            ``state``: "draining".
        """
        return self.call("shutdown")

    def __reduce__(self) -> NoReturn:
        raise WrongTypeError(
            "a connection to a service cannot be pickled or copied; connect again"
        )

    def __repr__(self) -> str:
        return f"<distbfs.{type(self).__name__} of {self._address}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _start(source: Vertex | Vertices) -> dict[str, Any]:
    """Return the field that gives the start of a search: a vertex, or several."""
    several = isinstance(source, Iterable) and not isinstance(source, str)
    if several and not (isinstance(source, np.ndarray) and not source.ndim):
        return {"sources": list(each_of(source, "sources"))}
    return {"source": source}


def checked(answer: object) -> dict[str, Any]:
    """Return the fields of a good answer; raise ServiceError for an error.

    Raises ValueError for anything else.
    """
    answer = answer if isinstance(answer, dict) else {}
    if answer.get("ok") is True:
        return {k: v for k, v in answer.items() if k not in ("id", "ok")}
    error = answer.get("error")
    if not isinstance(error, dict):
        raise ValueError("neither a result nor an error")
    code, message = str(error.get("code", "broken")), str(error.get("message", ""))
    raise ServiceError(code, message, answer.get("id"))


def _plain(value: object) -> object:
    """Return a NumPy number, or an array of any library, as a value of JSON.

    Raises ServiceError for a value that cannot be encoded.
    """
    if isinstance(value, np.generic):
        return value.tolist()
    if is_array(value):
        return array_of(value, "an argument").tolist()
    name = type(value).__name__
    text = f"{name} cannot be sent; allowed: numbers, texts, lists, NumPy arrays"
    raise ServiceError("bad_request", text)


encoded = msgspec.json.Encoder(enc_hook=_plain).encode


def no_service(address: object, error: OSError) -> ServiceError:
    """Return the error for an address at which nobody listens."""
    text = f"{address}: no service: {error.strerror or error}"
    return ServiceError("not_found", text)


class Received(io.RawIOBase):
    """The bytes that a socket receives; an error if none come in time."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Receive into a buffer; return the number of bytes, 0 at the end."""
        return self._socket.recv_into(buffer)


class SocketClient(Client):
    """A client over a Unix socket."""

    def __init__(self, path: Path, timeout: float = SECONDS) -> None:
        self._address, self._timeout = path, timeout
        self._next = 0
        self._connect()

    def _connect(self) -> None:
        self._answered = False
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # the kernel's own: Python's would ask before each call whether it may block
        spent = max(round(self._timeout * 1e6), 1)
        limit = struct.pack("@ll", *divmod(spent, 1_000_000))
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            self._socket.setsockopt(socket.SOL_SOCKET, option, limit)
        try:
            self._socket.connect(str(self._address))
        except OSError as error:
            self._socket.close()
            raise no_service(self._address, error) from error
        self._stream = io.BufferedReader(Received(self._socket), CHUNK)

    def _ask(self, op: str, fields: dict[str, Any]) -> object:
        """Send a request; send it again if the connection had ended before."""
        self._next += 1
        request = encoded({"id": self._next, "op": op, **fields}) + b"\n"
        answer, idle = None, self._answered
        try:
            answer = self._answer(request)
        except (BrokenPipeError, ConnectionResetError):
            idle = True
        if answer is None and idle:  # it has given way; nothing was read of this
            self.close()
            self._connect()
            answer = self._answer(request)
        if answer is None:
            raise ServiceError("broken", f"{self._address}: the connection ended")
        self._answered = True
        return answer

    def _answer(self, request: bytes) -> object:
        """Send the last request and return its answer, None if there is none."""
        self._socket.sendall(request)
        while (line := self._stream.readline()).endswith(b"\n"):
            answer = decode(line, self._stream)
            numbers = (self._next, None)
            if not isinstance(answer, dict) or answer.get("id") in numbers:
                return answer
        return None

    def close(self) -> None:
        """Disconnect from the service."""
        self._socket.close()


class HttpClient(Client):
    """A client over HTTP, with a bearer token; it follows no redirects."""

    def __init__(self, url: str, token: str | None, timeout: float = SECONDS) -> None:
        self._address, self._timeout = url, timeout
        self._headers = {"Content-Type": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        if token and not (token.isascii() and token.isprintable()):
            raise ServiceError("unauthorized", "a token must be printable ASCII")
        try:
            parts = urlsplit(url)
            host = (parts.hostname or "").encode("idna").decode()
            if not host or parts.port == 0 or set(url) & set(string.whitespace):
                raise ValueError("no host")
        except ValueError as error:
            text = f"{url!a} is not an address; allowed: http://HOST:PORT"
            raise ServiceError("not_found", text) from error
        self._path = parts.path.rstrip("/")
        safe = parts.scheme == "https"
        made = HTTPSConnection if safe else HTTPConnection
        self._connection = made(host, parts.port, timeout=timeout)

    def _ask(self, op: str, fields: dict[str, Any]) -> object:
        """Post a request; read the answer, whatever its status."""
        body, connection = encoded(fields), self._connection
        try:
            connection.connect()
        except OSError as error:
            raise no_service(self._address, error) from error
        with contextlib.closing(connection):
            path = f"{self._path}/v1/{quote(op, safe='')}"
            connection.request("POST", path, body, self._headers)
            stream = connection.getresponse()
            return decode(stream.readline(), stream)


def connect(
    address: str | Path, *, token: str | None = None, timeout: float = SECONDS
) -> Client:
    """Return a client of the service at a socket or at an HTTP address.

    Parameters
    ----------
    address : path_like or str
        Path of a Unix socket, or "http://HOST:PORT".
    token : str, optional
        The bearer token that the HTTP service asks for.
    timeout : float, default 70
        Seconds to wait for one answer.  The default is longer than the default deadline
        of requests.

    Returns
    -------
    Client
        The client; use it in a ``with`` statement, or call ``close()`` at the end.

    Raises
    ------
    ServiceError
        No service listens there (code ``not_found``), or the token is not printable
        ASCII (code ``unauthorized``).

    Examples
    --------
    With ``distbfs serve graph --socket graph.sock`` running on the path 0 - 1 - 2, and
    a vertex 3 without edges:

    >>> import distbfs
    >>> with distbfs.connect("graph.sock") as client:
    ...     client.distances(0, [2, 3])
    [2, -1]
    """
    text = str(address)
    if text.startswith(("http://", "https://")):
        return HttpClient(text, token, timeout)
    return SocketClient(Path(text), timeout)
