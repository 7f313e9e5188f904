"""The local HTTP server of the explorer: static files, and JSON requests that worker processes answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import socket
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from hwsim.explorer import guard
from hwsim.explorer.workers import RequestRefused, Workers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

LARGEST: Final = 256_000  # bytes of a request
SLOWEST: Final = 5.0  # s within which a request must arrive
MOST_HEADERS: Final = 32_000  # bytes
CONNECTIONS: Final = 64
TYPES: Final = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".png": "image/png"}
RESTARTED: Final = "open the address that `hwsim explore` printed"

Scope = MutableMapping[str, Any]
Application = Callable[[Scope, Any, Any], Awaitable[None]]


def application(
    token: str,
    port: int,
    opened: Mapping[str, Any],
    *,
    workers: Workers,
    ready: Callable[[], None] = lambda: None,
) -> Application:
    """Return the ASGI application.

    Args:
        token: secret in the printed address.
        port: TCP port of the server.
        opened: answer to the request `opened`, with initial texts and names.
        workers: worker processes.
        ready: function that is called when the server is ready.
    """
    who = guard.Guard(token, port)
    pages, first = _pages(), json.dumps(opened).encode()

    async def file(request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in pages:
            return _refused("no such file", 404)
        kind, content = pages[name]
        if name != "index.html":
            return Response(content, media_type=kind, headers=guard.headers())
        nonce = secrets.token_urlsafe(12)
        return Response(content.replace(b"NONCE", nonce.encode()), media_type=kind, headers=guard.headers(nonce))

    async def ask(request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return _refused("expected JSON", 415)
        try:
            question = await _body(request)
        except _Refused as refused:
            return _refused(*refused.args)
        door = request.path_params["door"]
        if door == "opened":
            return _json(first)
        try:
            return _json(await workers.ask(door, question))
        except KeyError:
            return _refused("unknown request", 404)
        except RequestRefused as stopped:
            return _refused(str(stopped), stopped.status)

    @contextlib.asynccontextmanager
    async def running(_: Starlette) -> AsyncIterator[None]:
        begun = asyncio.ensure_future(workers.start())
        ahead = asyncio.ensure_future(_ahead(workers, begun, opened))  # concurrently with the start of the browser
        ready()
        try:
            yield
        finally:
            ahead.cancel()
            await begun
            workers.stop()

    inner = Starlette(
        routes=[Route("/", file), Route("/page/{name}", file), Route("/ask/{door}", ask, methods=["POST"])], lifespan=running
    )

    async def guarded(scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return await inner(scope, receive, send)
        request = Request(scope)
        if who.is_foreign(request):
            answer: Response = _refused("refused", 403)
        elif request.url.path == "/" and who.has_token(request):
            answer = RedirectResponse("/", 303, headers=guard.headers())
            answer.set_cookie(who.cookie, token, httponly=True, samesite="strict")
        elif not who.has_cookie(request):
            answer = _refused(RESTARTED, 401)
        else:
            return await inner(scope, receive, send)
        return await answer(scope, receive, send)

    return guarded


class ExplorerServer:
    """A server that runs in the thread that calls `run`, until `end`."""

    def __init__(self, app: Application, line: socket.socket, workers: Workers) -> None:
        config = uvicorn.Config(
            app, http=Patient, log_level="warning", access_log=False, server_header=False, date_header=False,
            timeout_keep_alive=5, limit_concurrency=CONNECTIONS, h11_max_incomplete_event_size=MOST_HEADERS, lifespan="on",
            ws="none", timeout_graceful_shutdown=1,
        )  # fmt: skip
        self._server, self._line, self._workers = uvicorn.Server(config), line, workers

    def run(self) -> None:
        """Serve requests until `end` is called."""
        self._server.run(sockets=[self._line])

    def end(self) -> None:
        """Stop the workers, then the server, so that no request is pending."""
        self._workers.stop()
        self._server.should_exit = True


class Patient(H11Protocol):
    """A protocol that closes connections whose request does not arrive in time."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_answering():
            if self._deadline is not None:
                self._deadline.cancel()
            self._deadline = None
        elif self._deadline is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._deadline = self.loop.call_later(SLOWEST, self._end)

    def _end(self) -> None:
        self._deadline = None
        if not self._is_answering():
            self.transport.close()

    def _is_answering(self) -> bool:
        """Return whether a request is being answered; its body has a timeout of its own."""
        cycle: Any = getattr(self, "cycle", None)
        return cycle is not None and not cycle.response_complete


class _Refused(Exception):
    """An error for a refused request: reason and HTTP status."""


async def _ahead(workers: Workers, begun: Awaitable[None], opened: Mapping[str, Any]) -> None:
    """Compute the first run before the page requests it; the worker keeps its last run."""
    with contextlib.suppress(KeyError, RequestRefused, asyncio.CancelledError):
        await asyncio.shield(begun)
        await workers.ask("run", {"page": "ahead", **opened})


async def _body(request: Request) -> dict[str, Any]:
    """Return the JSON object in a request; raise `_Refused`."""
    body = bytearray()
    try:
        async with asyncio.timeout(SLOWEST):
            async for chunk in request.stream():
                body += chunk
                if len(body) > LARGEST:
                    raise _Refused(f"the request is larger than {LARGEST} bytes", 413)
    except TimeoutError:
        raise _Refused(f"the request did not arrive within {SLOWEST:g} s", 408) from None
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        raise _Refused("invalid JSON", 400) from None
    if not isinstance(said, dict):
        raise _Refused("expected a JSON object", 400)
    return said


def _pages() -> dict[str, tuple[str, bytes]]:
    """Return the files of the page, which are read once; no other path is opened."""
    pages = {}
    for file in files("hwsim.explorer").joinpath("page").iterdir():
        kind = TYPES.get("." + file.name.rpartition(".")[2])
        if kind and file.is_file():
            pages[file.name] = kind, file.read_bytes()
    return pages


def _json(said: bytes) -> Response:
    return Response(said, media_type="application/json", headers=guard.headers())


def _refused(text: str, status: int) -> Response:
    return PlainTextResponse(text, status, headers=guard.headers())
