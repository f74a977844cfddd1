"""The service over HTTP: operations, health checks, metrics and a web page.

Starlette and uvicorn (extra ``serve``) are imported when the door opens.
"""

from __future__ import annotations

import asyncio
import math
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distbfs.errors import (
    InputError,
    LibraryMissing,
    ServiceError,
    legible,
)
from distbfs.service.checker import too_long, unknown_op
from distbfs.service.encoding import MEDIA_TYPE, Buffer, chunks, encode
from distbfs.service.openapi import STATUS, describe_api
from distbfs.service.operations import (
    OPERATIONS,
    Answer,
    Refusal,
    Request,
)
from distbfs.service.quota import Quotas
from distbfs.service.service import Service
from distbfs.service.tokens import Guard

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.requests import Request as HttpRequest
    from starlette.responses import Response
    from uvicorn import Server

    Endpoint = Callable[[HttpRequest], Awaitable[Response]]

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
BACKLOG = 128  # most clients waiting to be accepted
LOOK = 0.1  # seconds until a disconnected client is noticed
ENDING = 5  # seconds for open connections at shutdown


def load_libraries() -> None:
    """Raise LibraryMissing where the packages of the extra are missing."""
    try:
        import prometheus_client  # noqa: F401, PLC0415
        import starlette.applications  # noqa: F401, PLC0415
        import uvicorn  # noqa: F401, PLC0415
    except ImportError as error:
        raise LibraryMissing(
            "HTTP needs the extra 'serve'; pip install '.[serve]'"
        ) from error


def listen_http(host: str, port: int) -> socket.socket:
    """Return a listening TCP socket; InputError where the address is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
        made.listen(BACKLOG)
    except OSError as error:
        made.close()
        raise InputError(f"{host}:{port}: {error.strerror}") from error
    return made


class HttpDoor:
    """Accepts clients on a listening TCP socket."""

    def __init__(self, service: Service, listening: socket.socket, token: str) -> None:
        load_libraries()
        self._service = service
        self._socket = listening
        self._app = Routes(service, token)
        self._server: Server | None = None
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Start accepting clients."""
        import uvicorn  # noqa: PLC0415

        from distbfs.service.connection import HttpConnection  # noqa: PLC0415

        limits = self._service.limits
        config = uvicorn.Config(
            self._app.starlette(),
            http=partial(HttpConnection, limits, self._app.refuse),  # type: ignore[arg-type]
            log_config=None,
            log_level="error",  # its warnings are of what clients send
            ws="none",  # connections of a WebSocket have no limits
            access_log=False,
            lifespan="off",
            server_header=False,
            proxy_headers=False,
            backlog=BACKLOG,  # asyncio's retries before it waits for descriptors
            timeout_keep_alive=30,
            timeout_graceful_shutdown=ENDING,
        )
        self._server = uvicorn.Server(config)
        self._task = asyncio.get_running_loop().create_task(
            self._server.serve(sockets=[self._socket])
        )
        while not self._server.started and not self._task.done():
            await asyncio.sleep(0.01)

    async def close(self) -> None:
        """Stop accepting clients and disconnect them."""
        if self._server is not None and self._task is not None:
            self._server.should_exit = True
            await asyncio.wait([self._task], timeout=2 * ENDING)


class Routes:
    """The routes of the service."""

    def __init__(self, service: Service, token: str) -> None:
        self._service = service
        self._guard = Guard(token)
        self._quotas = Quotas(service.limits)
        self._pages = {
            path: (PAGE / name).read_bytes() for path, (name, _) in FILES.items()
        }
        self._described = describe_api(service.names, service.limits)
        service.metrics.expose()
        gauge = service.metrics.gauge
        gauge(
            "distbfs_queue_length", "Requests that wait.", lambda: len(service.tickets)
        )
        gauge(
            "distbfs_stuck",
            "1 while a rank is stuck, else 0.",
            lambda: service.health()["state"] == "stuck",
        )
        gauge(
            "distbfs_graph_vertices", "Vertices of the graph.", lambda: service.names.n
        )

    def starlette(self) -> Any:
        """Return the ASGI application."""
        from starlette.applications import Starlette  # noqa: PLC0415
        from starlette.exceptions import HTTPException  # noqa: PLC0415
        from starlette.routing import Route  # noqa: PLC0415

        routes = [
            *(Route(path, self._file, methods=["GET"]) for path in FILES),
            Route("/openapi.json", self._openapi, methods=["GET"]),
            Route("/healthz", self._healthz, methods=["GET"]),
            Route("/readyz", self._readyz, methods=["GET"]),
            Route("/metrics", self._metrics, methods=["GET"]),
            *(
                Route(f"/v1/{op}", self._operation, methods=["POST"])
                for op in OPERATIONS
            ),
        ]
        made = Starlette(
            routes=routes,
            exception_handlers={
                HTTPException: self._no_route,
                ServiceError: self._refused,
            },
        )
        made.router.redirect_slashes = False
        return made

    def refuse(self, error: ServiceError) -> Response:
        """Return the answer to a refused client."""
        response = self._error(error)
        response.headers["Connection"] = "close"
        return response

    def _json(
        self, value: Any, status: int = 200, headers: dict[str, str] | None = None
    ) -> Response:
        from starlette.responses import Response, StreamingResponse  # noqa: PLC0415

        head, *arrays = encode(value)
        made = {**SAFE, **(headers or {})}
        if not arrays:
            return Response(head, status, made, "application/json")
        made["Content-Length"] = str(len(head) + sum(map(len, arrays)))

        async def pieces() -> AsyncIterator[Buffer]:
            for piece in chunks([head, *arrays]):
                yield piece

        return StreamingResponse(pieces(), status, made, MEDIA_TYPE)

    def _error(self, error: ServiceError, op: str = "") -> Response:
        name = self._service.name()
        answer = self._service.refused(error, op, name)
        status = STATUS.get(error.code, 500)
        headers = {"X-Request-Id": name}
        if status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        if status in (429, 503):
            headers["Retry-After"] = str(math.ceil(getattr(error, "retry", 1)))
        return self._json(answer, status, headers)

    async def _no_route(self, request: HttpRequest, error: Exception) -> Response:
        path, headers = request.url.path, getattr(error, "headers", None) or {}
        if getattr(error, "status_code", 404) == 405:
            text = f"{path} takes no {legible(request.method)}"
            text = f"{text}; allowed: {headers['Allow']}"
            refused = ServiceError("not_allowed", text)
        elif path.startswith("/v1/"):
            refused = unknown_op(path.removeprefix("/v1/"))
        else:
            refused = ServiceError("not_found", f"there is no page {legible(path)}")
        response = self._error(refused)
        response.headers.update(headers)
        return response

    async def _refused(self, request: HttpRequest, error: Exception) -> Response:
        if not isinstance(error, ServiceError):
            raise error
        return self._error(error, request.url.path.rpartition("/")[2])

    def _check_token(self, request: HttpRequest) -> None:
        header = request.headers.get("authorization")
        if not self._guard.allows(header):
            text = f"the token is {'wrong' if header else 'missing'}; send the header "
            raise ServiceError("unauthorized", f"{text}Authorization: Bearer TOKEN")

    async def _file(self, request: HttpRequest) -> Response:
        from starlette.responses import Response  # noqa: PLC0415

        path = request.url.path
        return Response(self._pages[path], 200, SAFE, FILES[path][1])

    async def _openapi(self, request: HttpRequest) -> Response:  # noqa: ARG002
        return self._json(self._described)

    async def _healthz(self, request: HttpRequest) -> Response:  # noqa: ARG002
        health = self._service.health()
        return self._json(health, 503 if health["state"] == "stuck" else 200)

    async def _readyz(self, request: HttpRequest) -> Response:  # noqa: ARG002
        health = self._service.health()
        return self._json(health, 200 if health["state"] == "ready" else 503)

    async def _metrics(self, request: HttpRequest) -> Response:
        from starlette.responses import Response  # noqa: PLC0415

        self._check_token(request)
        text, kind = self._service.metrics.text()
        return Response(text, 200, SAFE, kind)

    async def _operation(self, request: HttpRequest) -> Response:
        self._check_token(request)
        op = request.url.path.rpartition("/")[2]
        _check_kind(request.headers)
        checked = self._service.checker.check(await self._body(request), op)
        if MEDIA_TYPE in request.headers.get("accept", "") and hasattr(
            checked, "arrays"
        ):
            checked.arrays = "npy"
        name = self._service.name()
        quota = self._quotas.of(request.client.host if request.client else "")
        try:
            quota.begin()
        except ServiceError as error:
            error.id = checked.id
            raise
        try:
            self._service.answers.check(checked)
            answer = self._service.now(checked, name)
            if answer is None:
                answer = await self._search(request, checked, name)
        except ServiceError as error:
            error.id = checked.id
            raise
        finally:
            quota.end()
        status = 200
        if isinstance(answer, Refusal):
            status = STATUS.get(answer.error.code, 500)
        return self._json(answer, status, {"X-Request-Id": name})

    async def _body(self, request: HttpRequest) -> bytes:
        """Return the body; keeps at most the allowed length of a request.

        The rest of a longer one is read, as some clients hear no answer before.
        """
        from starlette.requests import ClientDisconnect  # noqa: PLC0415

        most, data = self._service.limits.line, bytearray()
        patience, long = self._service.limits.patience, False

        async def read() -> None:
            nonlocal long
            async for part in request.stream():
                long = long or len(data) + len(part) > most
                if not long:
                    data.extend(part)

        try:
            await asyncio.wait_for(read(), patience)
        except asyncio.TimeoutError as error:
            if not long:
                text = f"the body has not come within {patience:g} seconds"
                raise ServiceError("bad_request", text) from error
        except ClientDisconnect as error:
            text = "the client has left before the end of the body"
            raise ServiceError("gone", text) from error
        if long:
            raise too_long(self._service.limits)
        return bytes(data)

    async def _search(
        self, request: HttpRequest, checked: Request, name: str
    ) -> Answer:
        """Enqueue a request; wait for its answer or until its client disconnects."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()
        gone = False

        def take(value: Answer) -> None:
            if not answer.done():
                answer.set_result(value)

        def done(value: Answer) -> None:
            loop.call_soon_threadsafe(take, value)

        self._service.submit(checked, name, done, lambda: gone)
        try:
            while not answer.done():
                await asyncio.wait([answer], timeout=LOOK)
                if not answer.done() and await request.is_disconnected():
                    gone = True
        finally:
            gone = gone or not answer.done()
        return answer.result()


def _check_kind(headers: Headers) -> None:
    """Raise ServiceError unless a body is announced as JSON, not compressed."""
    kind = headers.get("content-type", "")
    if kind.partition(";")[0].strip().lower() != "application/json":
        sent = f"Content-Type is {legible(kind)}" if kind else "Content-Type is missing"
        raise ServiceError("not_json", f"{sent}; send Content-Type: application/json")
    packing = headers.get("content-encoding", "identity")
    if packing.strip().lower() != "identity":
        text = f"Content-Encoding is {legible(packing)}; send the body as it is"
        raise ServiceError("not_json", text)
