"""The service over HTTP/1.1: operations, health checks, metrics and a web page.

h11 (extra ``serve``) parses requests.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from email.utils import formatdate
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import h11

from distbfs.errors import ServiceError, legible
from distbfs.service.checker import too_long, unknown_op
from distbfs.service.connection import Encoding
from distbfs.service.doors import Door
from distbfs.service.encoding import MEDIA_TYPE, Buffer, encode
from distbfs.service.metrics import TEXT
from distbfs.service.openapi import describe_api
from distbfs.service.operations import OPERATIONS, Request, refusal
from distbfs.service.service import Service
from distbfs.service.tokens import Guard

PAGE = Path(__file__).with_name("page")
FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/docs": ("docs.html", "text/html; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/docs.js": ("docs.js", "text/javascript; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
}
SAFE = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
JSON = "application/json"
HEAD = 1 << 16  # most bytes of a request's head
NO_HTTP = "not an HTTP/1.1 request, or its head is too long"
READ = "GET, HEAD"  # methods of pages


class Sent(NamedTuple):
    """The answer to a request for a page: status, media type and body."""

    status: int
    kind: str
    body: bytes


class Site:
    """The pages that a service returns for ``GET``, and the guard of its operations."""

    def __init__(self, service: Service, guard: Guard) -> None:
        self.service, self.guard = service, guard
        described = encode(describe_api(service.names, service.limits))[0]
        self.pages: dict[str, Sent | Callable[[], Sent]] = {
            path: Sent(200, kind, (PAGE / name).read_bytes())
            for path, (name, kind) in FILES.items()
        }
        self.pages["/openapi.json"] = Sent(200, JSON, bytes(described))
        self.pages["/healthz"] = lambda: self._state(bad=("stuck",))
        self.pages["/readyz"] = lambda: self._state(bad=("stuck", "draining"))
        self.pages["/metrics"] = lambda: Sent(200, TEXT, service.metrics.text())

    def _state(self, bad: tuple[str, ...]) -> Sent:
        health = self.service.health()
        status = 503 if health["state"] in bad else 200
        return Sent(status, JSON, bytes(encode(health)[0]))


@dataclass
class HttpRequest:
    """An HTTP request.

    fault: why the request is refused, None for a valid one
    close: whether to disconnect the client after the answer
    """

    method: str = ""
    path: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)
    fault: ServiceError | None = None
    close: bool = False

    @property
    def op(self) -> str | None:
        """The operation of the request, None for a page."""
        return self.path[4:] if self.path.startswith("/v1/") else None


class HttpEncoding(Encoding):
    """HTTP requests, one open at a time.

    Of a body longer than allowed, the rest is read but not kept, since some clients
    read no answer before they have sent everything.
    """

    ends = select.POLLRDHUP  # whoever says no more has left
    kept = 30.0

    def __init__(self, site: Site) -> None:
        self._site, self._service = site, site.service
        self._limits = site.service.limits
        self._part, self._name = HttpRequest(), ""  # that is being answered
        self._expect(b"")

    def _expect(self, data: bytes) -> None:
        """Expect a new request, of which some data may have arrived."""
        self._parser = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD)
        self.begun: HttpRequest | None = None  # whose head is complete
        self.within = bool(data)
        if data:
            self._parser.receive_data(data)

    def feed(self, data: bytes) -> list[HttpRequest]:
        """Return complete requests, and a broken one last; b"" marks the end."""
        made = []
        self.within, self.interim = self.within or bool(data), b""
        try:
            self._parser.receive_data(data)
            while (event := self._parser.next_event()) is not h11.NEED_DATA:
                if isinstance(event, h11.Request):
                    self.begun = self._head(event)
                elif isinstance(event, h11.Data) and self.begun is not None:
                    self._keep(self.begun, event.data)
                elif isinstance(event, h11.EndOfMessage) and self.begun is not None:
                    made.append(self.begun)
                    self._expect(self._parser.trailing_data[0])
                else:  # the end
                    break
            if self._parser.they_are_waiting_for_100_continue and data and not made:
                self.interim = b"HTTP/1.1 100 Continue\r\n\r\n"
        except h11.RemoteProtocolError:
            if data:
                made.append(self._refuse("bad_request", NO_HTTP))
            elif self.begun is not None:
                text = "the client left before the end of the body"
                made.append(self._refuse("gone", text))
        return made

    def _refuse(self, code: str, text: str) -> HttpRequest:
        """Return a request that cannot be answered; it is the last one."""
        made, self.begun = self.begun or HttpRequest(), None
        made.fault, made.close = made.fault or ServiceError(code, text), True
        self.within = False
        return made

    def _head(self, event: h11.Request) -> HttpRequest:
        path = event.target.decode("latin-1").partition("?")[0]
        headers = {k.decode(): v.decode("latin-1") for k, v in event.headers}
        goes_on = event.http_version == b"1.1"
        close = not goes_on or "close" in headers.get("connection", "").lower()
        return HttpRequest(event.method.decode(), unquote(path), headers, close=close)

    def _keep(self, request: HttpRequest, data: bytes) -> None:
        if len(request.body) + len(data) > self._limits.line:
            request.fault = too_long(self._limits)
        if request.fault is None:
            request.body += data

    def op_of(self, part: HttpRequest) -> str:
        """Return the operation that the path of a request names."""
        return part.op or ""

    def begin(self, part: HttpRequest, name: str) -> bool:
        """Begin to answer a part; return whether to disconnect the client after it."""
        self._part, self._name = part, name
        part.close = part.close or super().begin(part, name)
        return part.close

    def request_of(self, part: HttpRequest) -> Request | Sent:
        """Return the operation's request that a part holds, or the page it asks for."""
        if part.op is None:
            return self._page(part)
        if part.op not in OPERATIONS:
            raise unknown_op(part.op)
        self._check_method(part, "POST")
        self._check_token(part)
        _check_kind(part.headers)
        if part.fault is not None:
            raise part.fault
        return self._service.checker.check(bytes(part.body), part.op)

    def _page(self, part: HttpRequest) -> Sent:
        """Return the page at a path."""
        page = self._site.pages.get(part.path)
        if page is None:
            text = f"there is no page {legible(part.path)}; /docs lists all pages"
            raise part.fault or ServiceError("not_found", text)
        self._check_method(part, READ)
        if part.path == "/metrics":
            self._check_token(part)
        return page() if callable(page) else page

    def _check_method(self, part: HttpRequest, allowed: str) -> None:
        if part.method not in allowed.split(", "):
            text = f"{legible(part.path)} does not take {legible(part.method)}"
            raise ServiceError("not_allowed", f"{text}; allowed: {allowed}")

    def _check_token(self, part: HttpRequest) -> None:
        header = part.headers.get("authorization")
        if not self._site.guard.allows(header):
            text = f"the token is {'wrong' if header else 'missing'}; send the header "
            raise ServiceError("unauthorized", f"{text}Authorization: Bearer TOKEN")

    def encode(self, answer: Any) -> list[Buffer]:
        """Return the head and the body of an answer."""
        part, status, kind = self._part, 200, JSON
        headers = {"Date": formatdate(usegmt=True), **SAFE, "X-Request-Id": self._name}
        body: list[Buffer]
        if isinstance(answer, Sent):
            status, kind, body = answer.status, answer.kind, [answer.body]
        elif isinstance(answer, ServiceError):
            status, body = answer.status or 500, encode(refusal(answer))
            if status == 401:
                headers["WWW-Authenticate"] = "Bearer"
            if status == 405:
                headers["Allow"] = READ if part.op is None else "POST"
            if status == 503:
                headers["Retry-After"] = "1"
        else:
            body = encode(answer)
            kind = MEDIA_TYPE if len(body) > 1 else JSON
        headers["Content-Type"] = kind
        headers["Content-Length"] = str(sum(map(len, body)))
        if part.close:
            headers["Connection"] = "close"
        lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        head = "\r\n".join([*lines, "", ""]).encode("latin-1")
        return [head] if part.method == "HEAD" else [head + body[0], *body[1:]]


def _check_kind(headers: dict[str, str]) -> None:
    """Raise ServiceError unless the headers announce uncompressed JSON."""
    kind = headers.get("content-type", "")
    if kind.partition(";")[0].strip().lower() != JSON:
        sent = f"Content-Type is {legible(kind)}" if kind else "Content-Type is missing"
        raise ServiceError("not_json", f"{sent}; send Content-Type: {JSON}")
    packing = headers.get("content-encoding", "identity")
    if packing.strip().lower() != "identity":
        text = f"Content-Encoding is {legible(packing)}; send the body uncompressed"
        raise ServiceError("not_json", text)


def http_door(service: Service, listening: socket.socket, guard: Guard) -> Door:
    """Return a door for HTTP clients on a listening TCP socket."""
    return Door(service, listening, partial(HttpEncoding, Site(service, guard)))
